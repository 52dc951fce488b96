// Tables are sorted by the heading that is chosen.
function makeSortable(table) {
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.querySelector("tbody");
  const value = (row, column) => {
    const text = row.cells[column].dataset.value;
    const number = Number(text);
    if (text === "") return Infinity;
    return Number.isNaN(number) ? text : number;
  };
  const order = (x, y) => {
    if (typeof x === typeof y && typeof x === "string") return x.localeCompare(y);
    if (typeof x !== typeof y) return typeof x === "string" ? 1 : -1;
    return x === y ? 0 : x < y ? -1 : 1;
  };
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * order(value(a, column), value(b, column)));
      body.append(...rows);
    });
  });
}
