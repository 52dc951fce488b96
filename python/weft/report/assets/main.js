// Starts the page. A chart that has no place on this page is left out.
for (const name of Object.keys(options)) {
  if (!document.getElementById(name)) delete options[name];
}
if (typeof makeReplay === "function") makeReplay();
makeChips();
makeChoices();
makePicks();
makeTheme();
makeDownloads();
document.querySelectorAll("table").forEach(makeSortable);
// Charts with a row a scheme are as high as these need.
const HEIGHTS = [["why", narrow() ? 230 : 132, 36], ["critical", narrow() ? 220 : 140, 36], ["overhead", narrow() ? 180 : 70, narrow() ? 84 : 32]];
for (const [name, head, perScheme] of HEIGHTS.filter(([name]) => options[name])) {
  document.getElementById(name).style.height = `${head + perScheme * data.schemes.length}px`;
}
for (const name of Object.keys(options).filter((name) => name !== "replay")) {
  charts[name] = echarts.init(document.getElementById(name), null, { renderer: "svg" });
}
drawAll();
new ResizeObserver(() => {
  Object.values(charts).forEach((chart) => chart.resize());
  drawAll();
}).observe(document.querySelector("main"));
