// Completion times or slowdowns by range of sizes, with intervals.
options.fct = () => {
  const schemes = visible();
  const { axis: name, text } = QUANTITIES[chosen.quantity];
  const read = (scheme, size) => scheme.cell[chosen.quantity][chosen.statistic][size];
  const bins = data.sizes.map((title, size) => ({ title, size })).filter((bin) => schemes.some((scheme) => read(scheme, bin.size)));
  if (!bins.length) return { ...base(), ...empty("No such flows") };
  const step = 0.76 / schemes.length;
  const place = (bin, position) => bin + (position - (schemes.length - 1) / 2) * step;
  const ends = [];
  const series = schemes.flatMap((scheme, position) => {
    const values = bins.map((bin) => read(scheme, bin.size));
    ends.push(...values.filter(Boolean).flatMap(([mean, low, high]) => [Math.max(low, mean / 10), high]));
    const points = values.map((value, bin) => value && { value: [place(bin, position), value[0]], ends: value, bin });
    const whiskers = values.flatMap((value, bin) => {
      if (!value || value[1] === value[2]) return [];
      const at = place(bin, position);
      return [[at, Math.max(value[1], value[0] / 10)], [at, value[2]], [null, null]];
    });
    const style = { color: colour(scheme) };
    return [
      { type: "line", data: whiskers, symbol: "none", lineStyle: { ...style, width: 2 }, silent: true, tooltip: { show: false } },
      { type: "scatter", name: scheme.label, data: points.filter(Boolean), symbolSize: 11, symbol: scheme.symbol, symbolKeepAspect: true, itemStyle: style, z: 3 },
    ];
  });
  return {
    ...base(),
    grid: { left: 72, right: 18, top: 16, bottom: narrow() ? 44 : 28 },
    tooltip: tooltip({
      trigger: "item",
      formatter: ({ data: point, seriesName }) => {
        const [mean, low, high] = point.ends;
        return `<b>${safe(seriesName)}</b>, ${safe(bins[point.bin].title)}<br>${safe(text(mean) + interval([low, high], text))}`;
      },
    }),
    xAxis: axis({
      type: "value", min: -0.5, max: bins.length - 0.5, interval: 0.5, splitLine: { show: false }, axisTick: { show: false },
      axisLabel: {
        formatter: (value) => (Number.isInteger(value) && bins[value] ? bins[value].title.replace(" - ", narrow() ? "\n- " : " - ") : ""),
        hideOverlap: false, interval: 0, showMinLabel: false, showMaxLabel: false,
      },
    }),
    yAxis: axis({ type: "log", name: `${data.statistics[chosen.statistic]} ${name}`, nameGap: 56, min: floor(Math.min(...ends) / 1.2), max: ceiling(Math.max(...ends) * 1.2), axisLabel: { formatter: text } }),
    series,
  };
};
