// Links, queues and receivers over time.
// The time of each fault that does not hold for the whole run, shaded.
function outages(unit, end) {
  const found = data.faults.filter((fault) => fault.from < end && (fault.from > 0 || fault.until !== null));
  return {
    silent: true,
    label: { show: !narrow(), position: "insideTop", color: css("--ink"), fontSize: 11 },
    data: found.map((fault, place) => [
      {
        xAxis: fault.from / unit, name: found.length < 4 || place === 0 ? fault.text : "",
        itemStyle: { color: css(`--${fault.mark}`), opacity: 0.14 },
        // Those that overlap one below the other.
        label: { offset: [0, 14 * Math.min(place, 3)] },
      },
      { xAxis: Math.min(fault.until === null ? end : fault.until, end) / unit },
    ]),
  };
}

// Values over time; each holds for the interval that ends at its time.
function timeOption(curves, name, more) {
  const ends = curves.map((curve) => curve.points[0].at(-1) || 0);
  const unit = Math.max(1, ...ends) >= 1e6 ? ["s", 1e6] : Math.max(1, ...ends) >= 1e3 ? ["ms", 1e3] : ["µs", 1];
  const at = ([times, values], us) => values[times.findIndex((time) => time >= us)];
  const { legend, ...others } = more;
  return {
    ...base(),
    grid: { left: 64, right: 18, top: legend ? (narrow() ? 84 : 44) : 16, bottom: 52 },
    legend,
    title: curves.length ? undefined : { text: "Nothing was sampled", left: "center", top: "middle", textStyle: { color: css("--soft"), fontSize: 15 } },
    tooltip: tooltip({
      trigger: "axis",
      axisPointer: { type: "line", snap: false },
      formatter: (points) => {
        const us = points[0].axisValue * unit[1];
        const lines = curves.flatMap((curve) => {
          const value = at(curve.points, us);
          return value === undefined ? [] : [`${mark(curve.colour)}${safe(curve.label)} <b>${safe(digits(value))}</b>`];
        });
        return `at ${safe(time(us))}<br>${lines.join("<br>")}`;
      },
    }),
    xAxis: axis({ type: "value", min: 0, max: Math.max(...ends, 0) / unit[1] || 1, name: `time (${unit[0]})`, nameGap: 30, axisLabel: { formatter: (value) => digits(value), showMaxLabel: false } }),
    yAxis: axis({ type: "value", min: 0, name, nameGap: 48, axisLabel: { formatter: (value) => digits(value) }, ...others }),
    series: curves.map((curve, place) => {
      const [times, values] = curve.points;
      const points = times.map((us, at) => [us / unit[1], values[at]]);
      const drawn = points.length ? [[0, points[0][1]], ...points] : [];
      const how = curve.symbol ? marked(drawn, { symbol: curve.symbol, turn: place, of: curves.length }) : { symbol: "none", data: drawn };
      return {
        type: "line", name: curve.label, step: "end", ...how,
        markArea: place === 0 ? outages(unit[1], Math.max(...ends, 0)) : undefined,
        lineStyle: { color: curve.colour, width: 1.6, type: curve.dash }, itemStyle: { color: curve.colour },
      };
    }),
  };
}

function seriesCurves() {
  const found = data.time.curves[chosen.measure];
  return visible().filter((scheme) => found[scheme.index] && found[scheme.index][0].length)
    .map((scheme) => ({ label: scheme.label, colour: colour(scheme), dash: scheme.dash, symbol: scheme.symbol, points: found[scheme.index] }));
}

options.series = () => timeOption(seriesCurves(), data.time.measures[chosen.measure].axis, {});

const hit = (link) => data.faults.some((fault) => fault.links.includes(link));

function uplinkCurves() {
  const found = data.time.uplinks[Number(chosen.uplinks)] || {};
  // From dark to bright, readable on white and on black.
  const hue = (place, of) => `hsl(${Math.round(260 - (220 * place) / Math.max(of - 1, 1))}, 65%, ${isDark() ? 66 : 43}%)`;
  const names = Object.keys(found);
  return names.map((name, place) => ({ label: name, colour: hit(name) ? css("--cut") : hue(place, names.length), dash: hit(name) ? "dashed" : "solid", points: found[name] }));
}

options.uplinks = () => {
  const legend = { type: "scroll", top: 0, left: 0, itemWidth: 14, icon: "roundRect", textStyle: { color: css("--ink") }, inactiveColor: css("--line"), pageTextStyle: { color: css("--ink") } };
  return timeOption(uplinkCurves(), "utilisation", { max: 1, legend });
};
