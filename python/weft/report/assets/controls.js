// Schemes, sizes, values of swept fields, choices of a section, light and dark.
const drawnBy = {
  statistic: ["fct", "against"], quantity: ["fct", "against"], curve: ["curves"], curveOf: ["curves"], bySize: ["bysize"],
  why: ["why"], scale: ["against", "waiting"], x: ["against", "waiting"], collective: ["waiting"], measure: ["series"], uplinks: ["uplinks"],
};

function makeChips() {
  const place = document.getElementById("schemes");
  data.schemes.forEach((scheme, index) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.setAttribute("aria-pressed", "true");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.dataset.label = scheme.label;
    chip.append(swatch, scheme.label);
    chip.addEventListener("click", () => {
      if (!shown.delete(index)) shown.add(index);
      chip.setAttribute("aria-pressed", String(shown.has(index)));
      drawAll();
    });
    place.append(chip);
  });
  moveWithArrows(place);
}

// The arrow keys move between the buttons of a group; Tab leaves it.
function moveWithArrows(group) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  group.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    const buttons = [...group.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    buttons[(at + step + buttons.length) % buttons.length].focus();
  });
}

function makeChoices() {
  const updates = {};
  for (const group of document.querySelectorAll("[data-choice]")) {
    const key = group.dataset.choice;
    const buttons = [...group.querySelectorAll("button")];
    const update = () => buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.value === chosen[key])));
    (updates[key] ||= []).push(update);
    for (const button of buttons) {
      button.addEventListener("click", () => {
        chosen[key] = button.dataset.value;
        updates[key].forEach((each) => each());
        (drawnBy[key] || []).forEach(draw);
      });
    }
    moveWithArrows(group);
    update();
  }
}

function makePicks() {
  document.getElementById("size").addEventListener("change", (event) => {
    chosen.size = Number(event.target.value);
    drawAll();
  });
  for (const select of document.querySelectorAll("[data-field]")) {
    select.addEventListener("change", () => {
      chosen.at[Number(select.dataset.field)] = Number(select.value);
      drawAll();
    });
  }
}

function makeTheme() {
  const button = document.getElementById("theme");
  const update = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Light background" : "Dark background");
    button.setAttribute("aria-pressed", String(theme !== null));
  };
  button.addEventListener("click", () => {
    theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    update();
    drawAll();
  });
  systemIsDark.addEventListener("change", () => { update(); drawAll(); });
  update();
}
