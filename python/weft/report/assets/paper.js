"use strict";
// Buttons choose which verdicts the scorecards show; all are shown at first, and without a script.
const buttons = [...document.querySelectorAll(".chips button")];
const rows = [...document.querySelectorAll("tr[data-verdict]")];
function show() {
  const chosen = new Set(buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.value));
  for (const row of rows) row.hidden = !chosen.has(row.dataset.verdict);
}
for (const button of buttons) {
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    show();
  });
}
