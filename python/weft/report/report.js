"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = new Set(data.schemes.map((scheme) => scheme.label));
  const chosen = { statistic: "mean", bin: "all", curve: "cdf", measure: "utilisation", uplinks: "0" };
  const charts = {};

  const colour = (scheme) => (dark.matches ? scheme.dark : scheme.colour);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Charts take HTML in tooltips: every label goes through here first.
  const safe = (text) => echarts.format.encodeHTML(String(text));
  const narrow = () => window.innerWidth < 600;
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
  // The next 1, 2 or 5 times a power of ten.
  const ceiling = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((step) => step * power).find((limit) => limit >= value);
  };
  const floor = (value) => 1 / ceiling(1 / value);
  const visible = () => data.schemes.map((scheme, index) => ({ ...scheme, index })).filter((s) => shown.has(s.label));
  const mark = (fill) => `<span class="swatch" style="background:${fill}"></span>`;

  const axis = (extra) => ({
    nameLocation: "middle",
    nameTextStyle: { color: css("--soft"), fontSize: 12 },
    axisLabel: { color: css("--soft"), hideOverlap: true, ...(extra.axisLabel || {}) },
    axisLine: { show: true, onZero: false, lineStyle: { color: css("--soft") } },
    splitLine: { show: true, lineStyle: { color: css("--line") } },
    minorTick: { show: false },
    ...Object.fromEntries(Object.entries(extra).filter(([key]) => key !== "axisLabel")),
  });
  const base = () => ({
    animation: false,
    aria: { enabled: true },
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 64, right: 18, top: 16, bottom: 52 },
  });
  const tooltip = (extra) => ({
    confine: true,
    backgroundColor: css("--panel"),
    borderColor: css("--line"),
    textStyle: { color: css("--ink"), fontSize: 13 },
    ...extra,
  });

  function fctOption() {
    const schemes = visible();
    const rows = data.fct[chosen.statistic];
    const bins = data.bins
      .map((bin, column) => ({ ...bin, column }))
      .filter((bin) => data.fct.mean.some((row) => row[bin.column]));
    const step = 0.76 / Math.max(schemes.length, 1);
    const place = (bin, position) => bin + (position - (schemes.length - 1) / 2) * step;
    const series = schemes.flatMap((scheme, position) => {
      const values = bins.map((bin) => rows[scheme.index][bin.column]);
      const points = values.map((value, bin) => value && { value: [place(bin, position), value[0]], ends: value, bin });
      const whiskers = values.flatMap((value, bin) => {
        if (!value || value[1] === value[2]) return [];
        const at = place(bin, position);
        return [[at, Math.max(value[1], value[0] / 10)], [at, value[2]], [null, null]];
      });
      const style = { color: colour(scheme) };
      return [
        { type: "line", data: whiskers, symbol: "none", lineStyle: { ...style, width: 2 }, silent: true, tooltip: { show: false } },
        { type: "scatter", name: scheme.label, data: points.filter(Boolean), symbolSize: 11, itemStyle: style, z: 3 },
      ];
    });
    const ends = schemes.flatMap((scheme) => rows[scheme.index]).filter(Boolean);
    return {
      ...base(),
      grid: { left: 64, right: 18, top: 16, bottom: narrow() ? 44 : 28 },
      tooltip: tooltip({
        trigger: "item",
        formatter: (point) => {
          const [mean, low, high] = point.data.ends;
          const interval = low === high ? "" : `<br>${safe(time(low))} to ${safe(time(high))}`;
          return `<b>${safe(point.seriesName)}</b>, ${safe(bins[point.data.bin].title)}<br>${safe(time(mean))}${interval}`;
        },
      }),
      xAxis: axis({
        type: "value", min: -0.5, max: bins.length - 0.5, interval: 0.5, splitLine: { show: false }, axisTick: { show: false },
        axisLabel: {
          formatter: (value) => (Number.isInteger(value) && bins[value] ? bins[value].title.replace(" - ", narrow() ? "\n- " : " - ") : ""),
          hideOverlap: false, interval: 0, showMinLabel: false, showMaxLabel: false,
        },
      }),
      yAxis: axis({
        type: "log",
        min: ends.length ? floor(Math.min(...ends.map((end) => Math.max(end[1], end[0] / 10))) / 1.2) : undefined,
        max: ends.length ? ceiling(Math.max(...ends.map((end) => end[2])) * 1.2) : undefined,
        axisLabel: { formatter: time },
      }),
      series,
    };
  }

  // Share of flows at or below x, from the thinned curve.
  function shareAt([xs, shares], x) {
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle + 1; else high = middle;
    }
    return low ? shares[low - 1] : 0;
  }

  function slowdownOption() {
    const curves = data.slowdown[chosen.bin];
    const tail = chosen.curve === "tail";
    const schemes = visible().filter((scheme) => curves[scheme.index][0].length);
    const series = schemes.map((scheme) => {
      const [xs, shares] = curves[scheme.index];
      const points = xs.map((x, at) => [x, tail ? 1 - shares[at] : shares[at]]);
      return {
        type: "line", name: scheme.label, step: "end", symbol: "none",
        data: tail ? points.filter((point) => point[1] > 1e-7) : [[xs[0], 0], ...points],
        lineStyle: { color: colour(scheme), width: 2, type: scheme.dash }, itemStyle: { color: colour(scheme) },
      };
    });
    const largest = Math.max(1, ...schemes.map((scheme) => curves[scheme.index][0].at(-1)));
    return {
      ...base(),
      title: schemes.length ? undefined : { text: "No such flows", left: "center", top: "middle", textStyle: { color: css("--soft"), fontSize: 15 } },
      tooltip: tooltip({
        trigger: "axis",
        axisPointer: { type: "line", snap: false },
        formatter: (points) => {
          const x = points[0].axisValue;
          const lines = schemes.map((scheme) => {
            const share = shareAt(curves[scheme.index], x);
            return `${mark(colour(scheme))}${safe(scheme.label)} <b>${digits(100 * (tail ? 1 - share : share))} %</b>`;
          });
          return `slowdown ${tail ? "&gt;" : "≤"} ${safe(digits(x))}<br>${lines.join("<br>")}`;
        },
      }),
      xAxis: axis({ type: "log", min: 1, max: ceiling(largest * 1.0001), name: "slowdown (FCT / ideal FCT)", nameGap: 30, axisLabel: { formatter: (value) => digits(value) } }),
      yAxis: tail
        ? axis({ type: "log", max: 1, name: "share of flows above", nameGap: 50, axisLabel: { formatter: (value) => Number((100 * value).toPrecision(2)) + " %" } })
        : axis({ type: "value", min: 0, max: 1, name: "share of flows", nameGap: 50, axisLabel: { formatter: (value) => Math.round(100 * value) + " %" } }),
      series,
    };
  }

  function waitsOption() {
    const schemes = visible();
    return {
      ...base(),
      grid: { left: 12, right: 28, top: narrow() ? 66 : 44, bottom: 44, containLabel: true },
      legend: { top: 0, left: 0, textStyle: { color: css("--ink") }, itemWidth: 14, selectedMode: true, inactiveColor: css("--line") },
      tooltip: tooltip({
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: (points) => {
          const lines = points.map((point) => `${mark(point.color)}${safe(point.seriesName)} <b>${safe(time(point.value || 0))}</b>`);
          const sum = points.reduce((total, point) => total + (point.value || 0), 0);
          return `<b>${safe(points[0].axisValue)}</b><br>${lines.join("<br>")}<br>together <b>${safe(time(sum))}</b>`;
        },
      }),
      xAxis: axis({ type: "value", name: "mean wait per data packet (µs)", nameGap: 28 }),
      yAxis: axis({ type: "category", inverse: true, data: schemes.map((s) => s.label), axisTick: { show: false }, splitLine: { show: false }, axisLabel: { color: css("--ink"), width: narrow() ? 90 : 180, overflow: "truncate" } }),
      series: data.tiers.map((tier, column) => ({
        type: "bar", stack: "waits", name: tier.title, barMaxWidth: 30, itemStyle: { color: tier.colour },
        data: schemes.map((scheme) => data.waits[scheme.index][column]),
      })),
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
      series: curves.map((curve) => {
        const [times, values] = curve.points;
        const points = times.map((us, place) => [us / unit[1], values[place]]);
        return {
          type: "line", name: curve.label, step: "end", symbol: "none", data: points.length ? [[0, points[0][1]], ...points] : [],
          lineStyle: { color: curve.colour, width: 1.6, type: curve.dash }, itemStyle: { color: curve.colour },
        };
      }),
    };
  }

  function seriesOption() {
    const found = data.time.curves[chosen.measure];
    const curves = visible().filter((scheme) => found[scheme.index] && found[scheme.index][0].length)
      .map((scheme) => ({ label: scheme.label, colour: colour(scheme), dash: scheme.dash, points: found[scheme.index] }));
    return timeOption(curves, data.time.measures[chosen.measure].axis, {});
  }

  function uplinksOption() {
    const found = data.time.uplinks[Number(chosen.uplinks)] || {};
    // From dark to bright, readable on white and on black.
    const hue = (place, of) => `hsl(${Math.round(260 - (220 * place) / Math.max(of - 1, 1))}, 65%, ${dark.matches ? 66 : 43}%)`;
    const names = Object.keys(found);
    const curves = names.map((name, place) => ({ label: name, colour: hue(place, names.length), dash: "solid", points: found[name] }));
    const legend = { type: "scroll", top: 0, left: 0, itemWidth: 14, icon: "roundRect", textStyle: { color: css("--ink") }, inactiveColor: css("--line"), pageTextStyle: { color: css("--ink") } };
    return timeOption(curves, "utilisation", { max: 1, legend });
  }

  const everything = { fct: fctOption, slowdown: slowdownOption, waits: waitsOption, series: seriesOption, uplinks: uplinksOption };
  // The last two are on the page only if there are samples.
  const options = Object.fromEntries(Object.entries(everything).filter(([name]) => document.getElementById(name)));
  const drawnBy = { statistic: "fct", bin: "slowdown", curve: "slowdown", measure: "series", uplinks: "uplinks" };
  const draw = (name) => charts[name].setOption(options[name](), { notMerge: true });
  const drawAll = () => {
    for (const swatch of document.querySelectorAll(".swatch[data-label]")) {
      const scheme = data.schemes.find((one) => one.label === swatch.dataset.label);
      if (scheme) swatch.style.background = colour(scheme);
    }
    Object.keys(options).forEach(draw);
  };

  function makeChips() {
    const place = document.getElementById("schemes");
    for (const scheme of data.schemes) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.setAttribute("aria-pressed", "true");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.dataset.label = scheme.label;
      chip.append(swatch, scheme.label);
      chip.addEventListener("click", () => {
        if (!shown.delete(scheme.label)) shown.add(scheme.label);
        chip.setAttribute("aria-pressed", String(shown.has(scheme.label)));
        drawAll();
      });
      place.append(chip);
    }
  }

  function makeChoices() {
    for (const group of document.querySelectorAll("[data-choice]")) {
      const key = group.dataset.choice;
      const buttons = [...group.querySelectorAll("button")];
      const update = () => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.value === chosen[key])));
      for (const button of buttons) {
        button.addEventListener("click", () => {
          chosen[key] = button.dataset.value;
          update();
          draw(drawnBy[key]);
        });
      }
      update();
    }
  }

  function makeSortable(table) {
    const heads = [...table.querySelectorAll("thead th")];
    const body = table.querySelector("tbody");
    const value = (row, column) => {
      const text = row.cells[column].dataset.value;
      return column === 0 ? text : text === "" ? Infinity : Number(text);
    };
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [value(a, column), value(b, column)];
          const order = typeof x === "string" ? x.localeCompare(y) : x === y ? 0 : x < y ? -1 : 1;
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
  }

  makeChips();
  makeChoices();
  document.querySelectorAll("table").forEach(makeSortable);
  document.getElementById("waits").style.height = `${130 + 42 * data.schemes.length}px`;
  for (const name of Object.keys(options)) {
    charts[name] = echarts.init(document.getElementById(name), null, { renderer: "svg" });
  }
  drawAll();
  dark.addEventListener("change", drawAll);
  new ResizeObserver(() => {
    Object.values(charts).forEach((chart) => chart.resize());
    drawAll();
  }).observe(document.querySelector("main"));
})();
