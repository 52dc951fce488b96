// What a scheme paid: bytes of its own packets, and state.
const PAID = [
  { key: "share", title: "own packets, % of all bytes", text: (value) => `${digits(value)} %` },
  { key: "switch", title: "state per switch", text: bytes },
  { key: "host", title: "state per host", text: bytes },
];

options.overhead = () => {
  const schemes = visible();
  if (!schemes.length) return { ...base(), ...empty("No scheme is chosen") };
  const below = narrow();
  const grids = PAID.map((_, index) => (below
    ? { left: 12, right: 60, top: `${4 + 33 * index}%`, height: "21%", containLabel: true }
    : { left: `${1 + 33 * index}%`, width: "29%", top: 30, bottom: 12, containLabel: true }));
  const read = (scheme, key) => (scheme.cell.overhead[key] || [0])[0];
  return {
    ...base(),
    grid: grids,
    title: PAID.map((paid, index) => ({
      text: paid.title, left: below ? 0 : `${1 + 33 * index}%`, top: below ? `${33 * index}%` : 0,
      textStyle: { color: css("--soft"), fontSize: 12, fontWeight: "normal" },
    })),
    tooltip: tooltip({
      trigger: "item",
      formatter: (point) => `<b>${safe(point.name)}</b><br>${safe(PAID[point.seriesIndex].title)}: <b>${safe(PAID[point.seriesIndex].text(point.value))}</b>`,
    }),
    xAxis: PAID.map((_, index) => axis({ type: "value", gridIndex: index, axisLabel: { show: false }, splitLine: { show: false }, axisLine: { show: false } })),
    yAxis: PAID.map((_, index) => names({ gridIndex: index, data: schemes.map((scheme) => scheme.label), axisLabel: { show: below || index === 0, color: css("--ink"), width: 90, overflow: "truncate" } })),
    series: PAID.map((paid, index) => ({
      type: "bar", name: paid.title, xAxisIndex: index, yAxisIndex: index, barMaxWidth: 22,
      label: { show: true, position: "right", color: css("--ink"), formatter: (point) => paid.text(point.value) },
      data: schemes.map((scheme) => ({ value: read(scheme, paid.key), itemStyle: { color: colour(scheme) } })),
    })),
  };
};
