// A stacked bar a scheme: the parts of a completion time, or the waits of a packet.
const DECALS = [
  null, null, null, null, null,
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: Math.PI / 4, color: "rgba(255,255,255,.55)" },
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: -Math.PI / 4, color: "rgba(255,255,255,.55)" },
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: 0, color: "rgba(255,255,255,.55)" },
  { symbol: "circle", symbolSize: 0.6, dashArrayX: [[4, 4]], dashArrayY: [4, 4], color: "rgba(255,255,255,.6)" },
];

function whyRows() {
  const packet = chosen.why === "packet";
  const parts = packet ? data.tiers : data.parts;
  const read = (scheme) => (packet ? scheme.cell.waits : scheme.cell.breakdown[chosen.size]);
  const schemes = visible().filter((scheme) => read(scheme) && read(scheme).some((value) => value !== null));
  const sum = (scheme) => read(scheme).reduce((total, value) => total + (value || 0), 0);
  return { parts, schemes, read, sum, packet };
}

// What such a chart is: `read` gives a scheme's parts, `title` names the axis, given the unit of time.
function stackedBars({ schemes, parts, read, sum, share, top, title, stack, decal }) {
  const [unit, scale] = timeUnit(Math.max(...schemes.map(sum)));
  const value = (scheme, part) => (share ? (100 * (read(scheme)[part] || 0)) / (sum(scheme) || 1) : (read(scheme)[part] || 0) / scale);
  const text = share ? (number) => `${digits(number)} %` : (number) => `${digits(number)} ${unit}`;
  return {
    ...base(),
    grid: { left: 12, right: 28, top: narrow() ? 150 : top, bottom: 44, containLabel: true },
    legend: legendAbove(),
    tooltip: tooltip({
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (points) => {
        const scheme = schemes[points[0].dataIndex];
        const rows = parts.map((part, index) => [part.colour, part.title, text(value(scheme, index))]);
        return `<b>${safe(scheme.label)}</b><br>${lines(rows)}<br>together <b>${safe(time(sum(scheme)))}</b>`;
      },
    }),
    xAxis: axis({ type: "value", max: share ? 100 : undefined, name: title(unit), nameGap: 28 }),
    yAxis: names({ data: schemes.map((scheme) => scheme.label) }),
    series: parts.map((part, index) => ({
      type: "bar", stack, name: part.title, barMaxWidth: 30, data: schemes.map((scheme) => value(scheme, index)),
      itemStyle: { color: part.colour, decal: decal(index), borderColor: css("--paper"), borderWidth: 0.5 },
    })),
  };
}

options.why = () => {
  const { parts, schemes, read, sum, packet } = whyRows();
  if (!schemes.length) return { ...base(), ...empty("No such flows finished") };
  const share = chosen.why === "share";
  const completion = share ? () => "share of the mean completion time" : (unit) => `mean completion time (${unit})`;
  return stackedBars({
    schemes, parts, read, sum, share, top: 64, stack: "why",
    title: packet ? (unit) => `mean wait per data packet (${unit})` : completion,
    decal: (index) => (packet ? undefined : DECALS[index] || undefined),
  });
};
