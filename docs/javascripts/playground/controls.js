// The set-up as fields of a form, and what can be chosen there.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});
  const { make } = Playground;

  const TEXTS = ["fabric", "a", "b", "transport", "workload"];
  const field = (name) => document.querySelector(`.pg [name="${name}"]`);

  function choices(select, entries) {
    select.replaceChildren(...entries.map(({ name, title }) => make("option", { value: name, title: title ?? name }, name)));
  }

  // Fills the lists with what the engine has.
  function fill({ schemes, transports, workloads }) {
    for (const side of ["a", "b"]) choices(field(side), schemes);
    choices(field("transport"), transports);
    choices(field("workload"), workloads);
  }

  // A scheme with parameters, as an address may have it, is a choice of its own.
  function select(element, value) {
    if (![...element.options].some((option) => option.value === value)) element.append(make("option", { value }, value));
    element.value = value;
  }

  function show(setup) {
    for (const name of TEXTS) select(field(name), setup[name]);
    for (const name of Object.keys(Playground.setup.NUMBERS)) field(name).value = setup[name];
    field("load").nextElementSibling.textContent = `${Math.round(setup.load * 100)} %`;
    for (const part of document.querySelectorAll(".pg [data-fabric]")) part.hidden = part.dataset.fabric !== setup.fabric;
  }

  // The set-up that the form has now.
  function read(setup) {
    const found = { ...setup };
    for (const name of TEXTS) found[name] = field(name).value;
    for (const name of Object.keys(Playground.setup.NUMBERS)) found[name] = Playground.setup.bounded(name, Number(field(name).value));
    found.k -= found.k % 2;
    return found;
  }

  Object.assign(Playground, { controls: { fill, show, read, field } });
})();
