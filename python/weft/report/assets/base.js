// What all modules share: the data, what is chosen, colours, and numbers as people read them.
const data = JSON.parse(document.getElementById("data").textContent);
const shown = new Set(data.schemes.map((_, index) => index));
const chosen = {
  size: 0, at: data.fields.map(() => 0), quantity: "fct", statistic: "mean", curveOf: "fct", curve: "cdf", bySize: "p99",
  why: "time", scale: "linear", x: "0", measure: "utilisation", uplinks: "0",
  collective: Object.keys(data.collectives || {})[0],
};
// Charts by the identity of their element: how to draw each, and what is chosen that it depends on.
const options = {};
const charts = {};

const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");
let theme = null;
const isDark = () => (theme === null ? systemIsDark.matches : theme === "dark");
const colour = (scheme) => (isDark() ? scheme.dark : scheme.colour);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const narrow = () => window.innerWidth < 600;

// Charts take HTML in tooltips: every label goes through here first.
const safe = (text) => echarts.format.encodeHTML(String(text));
const digits = (value) => {
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
};
const time = (us) => {
  if (us >= 1e6) return digits(us / 1e6) + " s";
  if (us >= 1e3) return digits(us / 1e3) + " ms";
  return digits(us) + " µs";
};
const bytes = (value) => {
  const units = [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]];
  const found = units.find(([, scale]) => value >= scale);
  return found ? `${digits(value / found[1])} ${found[0]}` : `${digits(value)} B`;
};
const timeUnit = (us) => (us >= 1e6 ? ["s", 1e6] : us >= 1e3 ? ["ms", 1e3] : ["µs", 1]);
// The next 1, 2 or 5 times a power of ten.
const ceiling = (value) => {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((limit) => limit >= value * 0.999999);
};
const floor = (value) => 1 / ceiling(1 / value);
const QUANTITIES = {
  fct: { axis: "completion time", text: time },
  slowdown: { axis: "slowdown (FCT / ideal FCT)", text: digits },
};

// The point of a sweep that is chosen, and what each variant did there.
const pointAt = (at) => data.points.find((point) => point.at.every((value, field) => value === at[field]));
const cells = () => (pointAt(chosen.at) || { cells: [] }).cells;
const visible = () => {
  const found = cells();
  return data.schemes
    .map((scheme, index) => ({ ...scheme, index, cell: found[index] || null }))
    .filter((scheme) => shown.has(scheme.index) && scheme.cell);
};
const mark = (fill) => `<span class="swatch" style="background:${fill}"></span>`;
const lines = (rows) => rows.map(([fill, name, text]) => `${mark(fill)}${safe(name)} <b>${safe(text)}</b>`).join("<br>");
// A scheme's marker in its colour.
const OUTLINES = { circle: "M5,0A5,5 0 1,1 5,10A5,5 0 1,1 5,0Z", rect: "M0.5,0.5H9.5V9.5H0.5Z", triangle: "M5,0.5L10,9.5H0Z" };
function glyph(scheme) {
  const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
  svg.setAttribute("viewBox", "0 0 10 10");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", OUTLINES[scheme.symbol] || scheme.symbol.replace("path://", ""));
  path.setAttribute("fill", colour(scheme));
  svg.append(path);
  return svg;
}
// How a curve of many points is drawn: the scheme's marker at a few of them, at other ones for each scheme.
const MARKERS_A_CURVE = 7;
function marked(points, { symbol, turn, of }) {
  const every = Math.max(1, Math.floor(points.length / MARKERS_A_CURVE));
  const first = Math.floor((turn * every) / of);
  return {
    symbol, symbolSize: 7, symbolKeepAspect: true, showAllSymbol: true,
    data: points.map((value, at) => (at % every === first ? value : { value, symbol: "none" })),
  };
}
const interval = ([low, high], text) => (low === high ? "" : ` (${text(low)} to ${text(high)})`);

const axis = (extra) => ({
  nameLocation: "middle",
  nameTextStyle: { color: css("--soft"), fontSize: 12 },
  axisLabel: { color: css("--soft"), hideOverlap: true, ...(extra.axisLabel || {}) },
  axisLine: { show: true, onZero: false, lineStyle: { color: css("--soft") } },
  splitLine: { show: true, lineStyle: { color: css("--line") } },
  minorTick: { show: false },
  ...Object.fromEntries(Object.entries(extra).filter(([key]) => key !== "axisLabel")),
});
const names = (extra) => axis({
  type: "category", inverse: true, axisTick: { show: false }, splitLine: { show: false },
  axisLabel: { color: css("--ink"), width: narrow() ? 90 : 180, overflow: "truncate" }, ...extra,
});
const base = () => ({
  animation: false,
  aria: { enabled: true },
  textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
  grid: { left: 64, right: 26, top: 16, bottom: 52 },
});
const empty = (text) => ({
  title: { text, left: "center", top: "middle", textStyle: { color: css("--soft"), fontSize: 15 } },
});
const tooltip = (extra) => ({
  confine: true,
  backgroundColor: css("--panel"),
  borderColor: css("--line"),
  textStyle: { color: css("--ink"), fontSize: 13 },
  ...extra,
});
const legendAbove = () => ({
  top: 0, left: 0, itemWidth: 14, textStyle: { color: css("--ink") }, inactiveColor: css("--line"),
});

function draw(name) {
  if (charts[name]) charts[name].setOption(options[name](), { notMerge: true });
  else if (options[name]) options[name]();
}
function drawAll() {
  for (const swatch of document.querySelectorAll(".swatch[data-label]")) {
    const scheme = data.schemes.find((one) => one.label === swatch.dataset.label);
    if (scheme) swatch.replaceChildren(glyph(scheme));
  }
  for (const name of Object.keys(options)) draw(name);
}
