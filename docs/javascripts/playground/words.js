// Numbers as people read them.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  const UNITS = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]];

  // A time in ps, with so many digits.
  function showTime(ps, digits = 3) {
    if (!ps) return "0 µs";
    const [size, unit] = UNITS.find(([size]) => Math.abs(ps) >= size) ?? UNITS.at(-1);
    const value = ps / size;
    return `${digits ? Number(value.toPrecision(digits)) : Math.round(value)} ${unit}`;
  }

  // A clock that does not jump: always in µs, with a place for ns.
  const showClock = (ps) => `${(ps / 1e6).toFixed(ps < 1e9 ? 2 : 1)} µs`;

  function showBytes(bytes) {
    const [size, unit] = [[1e6, "MB"], [1e3, "KB"], [1, "B"]].find(([size]) => bytes >= size) ?? [1, "B"];
    return `${Number((bytes / size).toPrecision(3))} ${unit}`;
  }

  const showCount = (count) => Math.round(count).toLocaleString("en");

  // An element with attributes and children.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  Object.assign(Playground, { showTime, showClock, showBytes, showCount, make });
})();
