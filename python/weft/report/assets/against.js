// What flows took, or collectives, against a swept field, with intervals.
const ofFlows = {
  read: (cell) => cell[chosen.quantity][chosen.statistic][chosen.size],
  name: () => `${data.statistics[chosen.statistic]} ${QUANTITIES[chosen.quantity].axis}`,
  text: (value) => QUANTITIES[chosen.quantity].text(value),
  none: "No such flows",
};
const ofCollectives = {
  read: (cell) => cell.collectives[chosen.collective],
  name: () => data.collectives[chosen.collective],
  text: time,
  none: "No such collectives",
};

function againstValues({ read }) {
  const fields = data.fields.map((field, index) => ({ ...field, index })).filter((field) => field.values.length > 1);
  const field = fields.find((one) => String(one.index) === chosen.x) || fields[0];
  const schemes = data.schemes.map((scheme, index) => ({ ...scheme, index })).filter((scheme) => shown.has(scheme.index));
  const found = schemes.map((scheme) => field.values.map((_, at) => {
    const place = chosen.at.map((value, index) => (index === field.index ? at : value));
    const cell = ((pointAt(place) || { cells: [] }).cells[scheme.index]) || null;
    return cell && read(cell);
  }));
  return { field, schemes, found };
}

function against(of) {
  const { field, schemes, found } = againstValues(of);
  const { text } = of;
  const name = of.name();
  const numbers = field.numbers;
  const x = (at) => (numbers ? numbers[at] : at);
  const values = found.flat().filter(Boolean);
  if (!values.length) return { ...base(), ...empty(of.none) };
  const log = chosen.scale === "log";
  const order = field.values.map((_, at) => at).sort((a, b) => x(a) - x(b));
  const span = numbers ? Math.max(...numbers) - Math.min(...numbers) : 0;
  // Beside each other, so that no interval hides another.
  const beside = (index) => (index - (schemes.length - 1) / 2) * 0.006 * span;
  const series = schemes.flatMap((scheme, index) => {
    const points = order.flatMap((at) => (found[index][at] ? [{ value: [numbers ? x(at) + beside(index) : x(at), found[index][at][0]], ends: found[index][at], at }] : []));
    const whiskers = points.flatMap(({ value, ends: [mean, low, high] }) => (low === high ? []
      : [[value[0], log ? Math.max(low, mean / 10) : low], [value[0], high], [null, null]]));
    const style = { color: colour(scheme) };
    return [
      { type: "line", data: whiskers, symbol: "none", lineStyle: { ...style, width: 2 }, silent: true, tooltip: { show: false } },
      { type: "line", name: scheme.label, data: points, symbolSize: 8, symbol: scheme.symbol, symbolKeepAspect: true, lineStyle: { ...style, width: 2, type: scheme.dash }, itemStyle: style, z: 3 },
    ];
  });
  return {
    ...base(),
    grid: { left: 72, right: 18, top: 16, bottom: 52 },
    tooltip: tooltip({
      trigger: "item",
      formatter: ({ data: point, seriesName }) => {
        const [mean, low, high] = point.ends;
        return `<b>${safe(seriesName)}</b>, ${safe(field.title)} = ${safe(field.values[point.at])}<br>${safe(text(mean) + interval([low, high], text))}`;
      },
    }),
    xAxis: numbers
      ? axis({ type: "value", name: field.title, nameGap: 30, min: Math.min(...numbers) - 0.04 * span, max: Math.max(...numbers) + 0.04 * span, axisLabel: { formatter: (value) => (value < Math.min(...numbers) || value > Math.max(...numbers) ? "" : digits(value)) } })
      : axis({ type: "category", name: field.title, nameGap: 30, data: field.values, axisLabel: { width: 120, overflow: "truncate" } }),
    yAxis: log
      ? axis({ type: "log", name, nameGap: 56, min: floor(Math.min(...values.map(([mean, low]) => Math.max(low, mean / 10)))), max: ceiling(Math.max(...values.map((value) => value[2]))), axisLabel: { formatter: text } })
      : axis({ type: "value", name, nameGap: 56, min: 0, axisLabel: { formatter: text } }),
    series,
  };
}

options.against = () => against(ofFlows);
options.waiting = () => against(ofCollectives);
