// A stacked bar a scheme: where the time on the critical paths of collectives went.
function criticalRows() {
  const schemes = data.critical.schemes.map((spent, index) => ({ label: data.schemes[index].label, spent }));
  const seen = new Set(visible().map((scheme) => scheme.label));
  return schemes.filter((scheme) => scheme.spent && seen.has(scheme.label));
}

options.critical = () => {
  const { parts } = data.critical;
  const schemes = criticalRows();
  if (!schemes.length) return { ...base(), ...empty("No collective finished") };
  const sum = (scheme) => scheme.spent.reduce((total, value) => total + value, 0);
  const share = chosen.critical === "share";
  const [unit, scale] = timeUnit(Math.max(...schemes.map(sum)));
  const value = (scheme, part) => (share ? (100 * scheme.spent[part]) / (sum(scheme) || 1) : scheme.spent[part] / scale);
  const text = share ? (number) => `${digits(number)} %` : (number) => `${digits(number)} ${unit}`;
  return {
    ...base(),
    grid: { left: 12, right: 28, top: narrow() ? 150 : 72, bottom: 44, containLabel: true },
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
    xAxis: axis({ type: "value", max: share ? 100 : undefined, name: share ? "share of the completion time" : `completion time of collectives (${unit})`, nameGap: 28 }),
    yAxis: names({ data: schemes.map((scheme) => scheme.label) }),
    series: parts.map((part, index) => ({
      type: "bar", stack: "critical", name: part.title, barMaxWidth: 30, data: schemes.map((scheme) => value(scheme, index)),
      itemStyle: { color: part.colour, borderColor: css("--paper"), borderWidth: 0.5 },
    })),
  };
};
chosen.critical = "time";
drawnBy.critical = ["critical"];
tables.critical = () => ({
  heads: ["scheme", ...data.critical.parts.map((part) => `${part.title} (us)`)],
  rows: criticalRows().map((scheme) => [scheme.label, ...scheme.spent]),
});
