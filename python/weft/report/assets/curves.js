// Distributions of completion times and slowdowns, and slowdown by size.

// Share of flows at or below x, from the thinned curve.
function shareAt([xs, shares], x) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle + 1; else high = middle;
  }
  return low ? shares[low - 1] : 0;
}

options.curves = () => {
  const tail = chosen.curve === "tail";
  const { axis: name, text } = QUANTITIES[chosen.curveOf];
  const read = (scheme) => scheme.cell.curves[chosen.curveOf][chosen.size];
  const schemes = visible().filter((scheme) => read(scheme)[0].length);
  if (!schemes.length) return { ...base(), ...empty("No such flows") };
  const series = schemes.map((scheme, turn) => {
    const [xs, shares] = read(scheme);
    const points = xs.map((x, at) => [x, tail ? 1 - shares[at] : shares[at]]);
    const drawn = tail ? points.filter((point) => point[1] > 1e-7) : [[xs[0], 0], ...points];
    return {
      type: "line", name: scheme.label, step: "end", ...marked(drawn, { symbol: scheme.symbol, turn, of: schemes.length }),
      lineStyle: { color: colour(scheme), width: 2, type: scheme.dash }, itemStyle: { color: colour(scheme) },
    };
  });
  const least = chosen.curveOf === "slowdown" ? 1 : floor(Math.min(...schemes.map((scheme) => read(scheme)[0][0])));
  const largest = Math.max(least, ...schemes.map((scheme) => read(scheme)[0].at(-1)));
  return {
    ...base(),
    tooltip: tooltip({
      trigger: "axis",
      axisPointer: { type: "line", snap: false },
      formatter: (points) => {
        const x = points[0].axisValue;
        const rows = schemes.map((scheme) => {
          const share = shareAt(read(scheme), x);
          return [colour(scheme), scheme.label, `${digits(100 * (tail ? 1 - share : share))} %`];
        });
        return `${tail ? "&gt;" : "≤"} ${safe(text(x))}<br>${lines(rows)}`;
      },
    }),
    xAxis: axis({ type: "log", min: least, max: ceiling(largest * 1.0001), name, nameGap: 30, axisLabel: { formatter: text } }),
    yAxis: tail
      ? axis({ type: "log", max: 1, name: "share of flows above", nameGap: 50, axisLabel: { formatter: (value) => Number((100 * value).toPrecision(2)) + " %" } })
      : axis({ type: "value", min: 0, max: 1, name: "share of flows", nameGap: 50, axisLabel: { formatter: (value) => Math.round(100 * value) + " %" } }),
    series,
  };
};

options.bysize = () => {
  const column = { mean: 1, p50: 2, p99: 3 }[chosen.bySize];
  const schemes = visible().filter((scheme) => scheme.cell.bySize.length);
  if (!schemes.length) return { ...base(), ...empty("No flow finished") };
  const sizes = schemes.flatMap((scheme) => scheme.cell.bySize.map((row) => row[0]));
  return {
    ...base(),
    tooltip: tooltip({
      trigger: "axis",
      formatter: (points) => `flows of about ${safe(bytes(points[0].value[0]))}<br>` +
        lines(points.map((point) => [point.color, point.seriesName, digits(point.value[1])])),
    }),
    xAxis: axis({ type: "log", min: floor(Math.max(1, Math.min(...sizes))), max: ceiling(Math.max(...sizes)), name: "flow size", nameGap: 30, axisLabel: { formatter: bytes } }),
    yAxis: axis({ type: "log", min: 1, name: `${data.statistics[chosen.bySize]} slowdown`, nameGap: 44, axisLabel: { formatter: digits } }),
    series: schemes.map((scheme) => ({
      type: "line", name: scheme.label, data: scheme.cell.bySize.map((row) => [row[0], row[column]]), symbolSize: 6, symbol: scheme.symbol, symbolKeepAspect: true,
      lineStyle: { color: colour(scheme), width: 2, type: scheme.dash }, itemStyle: { color: colour(scheme) },
    })),
  };
};
