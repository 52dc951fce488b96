// Each chart as a file: SVG and PNG with a legend, and its numbers as CSV.
// In pixels: the height of a row, the width of a letter, and what stands beside a name.
const LEGEND = { row: 24, letter: 7.5, beside: 36, below: 14 };
const SCALE_OF_PICTURES = 2;

// The numbers behind each chart, as they are: of the schemes that are shown, in the chart's own choices.
const tables = {
  fct: () => ({
    heads: ["scheme", "flow size", `${data.statistics[chosen.statistic]} ${unitOf(chosen.quantity)}`, "low", "high"],
    rows: visible().flatMap((scheme) => data.sizes.flatMap((title, size) => {
      const value = scheme.cell[chosen.quantity][chosen.statistic][size];
      return value ? [[scheme.label, title, ...value]] : [];
    })),
  }),
  against: () => againstTable(ofFlows, `${data.statistics[chosen.statistic]} ${unitOf(chosen.quantity)}`),
  waiting: () => againstTable(ofCollectives, `${data.collectives[chosen.collective]} (us)`),
  curves: () => ({
    heads: ["scheme", unitOf(chosen.curveOf), chosen.curve === "tail" ? "share of flows above" : "share of flows"],
    rows: visible().flatMap((scheme) => {
      const [xs, shares] = scheme.cell.curves[chosen.curveOf][chosen.size];
      return xs.map((x, at) => [scheme.label, x, chosen.curve === "tail" ? 1 - shares[at] : shares[at]]);
    }),
  }),
  bysize: () => ({
    heads: ["scheme", "flow size (bytes)", "mean slowdown", "median slowdown", "99th percentile slowdown"],
    rows: visible().flatMap((scheme) => scheme.cell.bySize.map((row) => [scheme.label, ...row.slice(0, 4)])),
  }),
  why: () => {
    const { parts, schemes, read } = whyRows();
    return {
      heads: ["scheme", ...parts.map((part) => `${part.title} (us)`)],
      rows: schemes.map((scheme) => [scheme.label, ...parts.map((_, index) => read(scheme)[index])]),
    };
  },
  overhead: () => ({
    heads: ["scheme", "own packets (% of all bytes)", "state per switch (bytes)", "state per host (bytes)"],
    rows: visible().map((scheme) => [scheme.label, ...PAID.map((paid) => (scheme.cell.overhead[paid.key] || [0])[0])]),
  }),
  series: () => timeTable("scheme", data.time.measures[chosen.measure].axis, seriesCurves()),
  uplinks: () => timeTable("uplink", "utilisation", uplinkCurves()),
};

function againstTable(of, measure) {
  const { field, schemes, found } = againstValues(of);
  return {
    heads: ["scheme", field.title, measure, "low", "high"],
    rows: schemes.flatMap((scheme, index) => field.values.flatMap((label, at) => (
      found[index][at] ? [[scheme.label, label, ...found[index][at]]] : []))),
  };
}
const unitOf = (quantity) => (quantity === "fct" ? "completion time (us)" : "slowdown");
const timeTable = (of, measure, curves) => ({
  heads: [of, "until (us)", measure],
  rows: curves.flatMap(({ label, points: [times, values] }) => times.map((us, at) => [label, us, values[at]])),
});

// RFC 4180.
function csv({ heads, rows }) {
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [heads, ...rows].map((row) => row.map(field).join(",") + "\r\n").join("");
}

function rowsOfLegend(names, width) {
  let [rows, used] = [1, 0];
  for (const name of names) {
    const wide = Math.min(name.length * LEGEND.letter + LEGEND.beside, width);
    if (used + wide > width) [rows, used] = [rows + 1, 0];
    used += wide;
  }
  return rows;
}

// A chart by itself has to say which line is whose: on the page the buttons of the schemes do. All names are to be
// seen, so nothing scrolls; the chart grows by what the legend takes.
function withLegend(name, width) {
  const option = options[name]();
  const backgroundColor = css("--paper");
  const names = [...new Set((option.series || []).map((one) => one.name).filter(Boolean))];
  if (Array.isArray(option.grid) || !option.grid || !names.length) return { option: { ...option, backgroundColor }, room: 0 };
  const legend = { ...legendAbove(), ...option.legend, type: "plain", data: names };
  const room = Math.max(0, rowsOfLegend(names, width) * LEGEND.row + LEGEND.below - option.grid.top);
  return { option: { ...option, legend, backgroundColor, grid: { ...option.grid, top: option.grid.top + room } }, room };
}

function picture(name, renderer) {
  const place = document.getElementById(name);
  const width = place.clientWidth;
  const { option, room } = withLegend(name, width);
  const height = place.clientHeight + room;
  const chart = renderer === "svg"
    ? echarts.init(null, null, { renderer, ssr: true, width, height })
    : echarts.init(document.createElement("div"), null, { renderer, width, height, devicePixelRatio: SCALE_OF_PICTURES });
  chart.setOption(option);
  const made = renderer === "svg" ? chart.renderToSVGString() : chart.getDataURL({ pixelRatio: SCALE_OF_PICTURES });
  chart.dispose();
  return made;
}

const bytesOf = (url) => Uint8Array.from(atob(url.split(",")[1]), (letter) => letter.charCodeAt(0));
const FILES = {
  svg: (name) => new Blob([picture(name, "svg")], { type: "image/svg+xml" }),
  png: (name) => new Blob([bytesOf(picture(name, "canvas"))], { type: "image/png" }),
  csv: (name) => new Blob([csv(tables[name]())], { type: "text/csv" }),
};
const A_MINUTE_MS = 60_000;

function save(file, name) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(file);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), A_MINUTE_MS);
}

function makeDownloads() {
  for (const group of document.querySelectorAll("[data-downloads]")) {
    const name = group.dataset.downloads;
    for (const button of group.querySelectorAll("button")) {
      const { kind } = button.dataset;
      button.addEventListener("click", () => save(FILES[kind](name), `weft-${name}.${kind}`));
    }
    moveWithArrows(group);
  }
}
