// The player: which scheme, which instant, which flow; play, pause and step.
function makeReplay() {
  if (!fabric || !document.getElementById("player")) return;
  const part = (id) => document.getElementById(id);
  const [play, instant, clock, speed, traced] = ["play", "instant", "clock", "speed", "traced"].map(part);
  const stages = [part("stage-0"), part("stage-1")].map((canvas, index) => (
    { canvas, figure: canvas.parentElement, path: part(`path-${index}`), layout: null, scheme: null }
  ));
  const SECONDS = 24; // a whole run, at speed 1
  let now = 0; // in intervals
  let playing = false, last = 0, pointed = null;

  const intervals = Math.max(...data.replay.schemes.map((one) => (one ? one.frames : 0)));
  const intervalUs = data.replay.schemes.find(Boolean).interval;
  instant.max = String(Math.max(intervals - 1, 0));

  // The strip below the slider: when faults were in force.
  const end = intervals * intervalUs;
  const share = (us) => `${100 * Math.min(Math.max(us / end, 0), 1)}%`;
  part("outages").replaceChildren(...data.faults.map((fault) => {
    const bar = document.createElement("i");
    bar.className = fault.mark;
    bar.title = fault.text;
    bar.style.left = share(fault.from);
    bar.style.right = `calc(100% - ${share(fault.until === null ? end : fault.until)})`;
    return bar;
  }));

  const scheme = (index) => (chosen[index === 0 ? "replayed" : "beside"] === "" ? null : Number(chosen[index === 0 ? "replayed" : "beside"]));
  const flowOf = (one) => {
    const found = one.flows.find((flow) => String(flow.id) === traced.value);
    return found ? fabric.pathOf(found) : null;
  };

  function describe(stage, one, frame) {
    const mean = fabric.links.reduce((sum, _, link) => sum + fabric.used(one, frame, link), 0) / fabric.links.length;
    const text = `${data.schemes[stage.scheme].label} at ${time((frame + 1) * intervalUs)}: links are used to ${digits(100 * mean)} % on average`;
    const held = one.paused ? fabric.links.filter((_, link) => fabric.paused(one, frame, link)).length : 0;
    const hit = [...new Set(fabric.hit.flatMap((link) => fabric.faultsAt(one, frame, link)).map((fault) => fault.text))];
    const lost = fabric.lostAt(one, frame).map(lostText);
    stage.canvas.setAttribute("aria-label", [text, ...(one.paused ? [`${held} links are paused`] : []), ...hit, ...lost, ...(isStuck(one, frame) ? [one.deadlock.text] : [])].join("; "));
    stage.figure.querySelector("figcaption").textContent = data.schemes[stage.scheme].label;
  }

  function showBusy(one, frame) {
    const order = fabric.links.map((_, link) => link).sort((a, b) => fabric.used(one, frame, b) - fabric.used(one, frame, a) || fabric.queue(one, frame, b) - fabric.queue(one, frame, a));
    part("busy").replaceChildren(...order.slice(0, 5).map((link) => {
      const item = document.createElement("li");
      item.textContent = linkText(one, frame, link);
      return item;
    }));
  }

  const linkText = (one, frame, link) => {
    const hit = fabric.faultsAt(one, frame, link).map((fault) => `; ${fault.text}`).join("");
    const lost = fabric.dropsAt(one, frame).get(link);
    const beside = fabric.lostAt(one, frame).filter(({ node }) => fabric.links[link].includes(node)).map((found) => `; ${lostText(found)}`).join("");
    return `${linkUse(one, frame, link)}${lost ? `, ${lost} packets dropped` : ""}${pauseText(one, frame, link)}${hit}${beside}`;
  };
  // What was paused in this frame, and because of which links in the whole run: there is no telling which of them it was now.
  function pauseText(one, frame, link) {
    const share = fabric.paused(one, frame, link);
    if (!share) return "";
    const because = fabric.pausesOf(one, link).slice(0, 2).map(({ cause, us, times }) => `${times === 1 ? "once" : `${times} times`}, ${time(us)}, because of ${fabric.name(cause)}`);
    return `; paused for ${digits(100 * share)} % of the interval${because.length ? ` (in the whole run ${because.join("; ")})` : ""}`;
  }
  const lostText = ({ node, packets, first, last, why }) =>
    `${fabric.nodes[node][0]} lost ${packets} packets, ${first === last ? `at ${time(first)}` : `from ${time(first)} to ${time(last)}`}: ${why}`;
  const linkUse = (one, frame, link) =>
    `${fabric.name(link)}: ${digits(100 * fabric.used(one, frame, link))} % of ${digits(fabric.rates[link])} Gbit/s, queue up to ${bytes(fabric.queue(one, frame, link))}`;

  function flowText(flow) {
    const size = flow.size === null ? "long-lived" : bytes(flow.size);
    const took = flow.fct === null ? "not finished" : `took ${time(flow.fct)}, slowdown ${digits(flow.slowdown)}`;
    const breakdown = flow.breakdown.map((value, index) => [value, data.parts[index]?.title]).filter(([value]) => value > 0)
      .sort((a, b) => b[0] - a[0]).slice(0, 4).map(([value, title]) => `${title} ${time(value)}`);
    return `Flow ${flow.id}, ${flow.src} to ${flow.dst}, ${size}, from ${time(flow.start)}: ${took}. ${breakdown.join(", ")}. It used ${flow.total.size} links.`;
  }

  // What became of the traced flow under each scheme that is shown.
  function showFlow() {
    const found = stages.filter((stage) => stage.scheme !== null && fabric.run(stage.scheme)).flatMap((stage) => {
      const flow = flowOf(fabric.run(stage.scheme));
      return flow ? [`${data.schemes[stage.scheme].label}: ${flowText(flow)}`] : [];
    });
    part("flow-note").textContent = found.join("\n");
  }

  const isStuck = (one, frame) => Boolean(one.deadlock) && frame >= one.frames - 1;
  // Which flow all that came later waited for at this time, and where its time went.
  function criticalText(one, frame) {
    const found = fabric.criticalAt(one, frame);
    if (!found) return "";
    const ends = found.dst ? `from ${found.src} to ${found.dst}` : `at ${found.src}`;
    const what = found.flow === null ? "what is computed" : `flow ${found.flow}`;
    const breakdown = [...found.parts].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([index, us]) => `${data.replay.parts[index].title} ${time(us)}`).join(", ");
    const late = found.at ? `; late most of all at ${found.at}` : "";
    return `critical path of ${one.critical.title}, ended at ${time(one.critical.end)}: ${what} ${ends}, ${time(found.until - found.from)}: ${breakdown}${late}`;
  }
  function showWaits() {
    const said = stages.filter((stage) => stage.scheme !== null && fabric.run(stage.scheme)).flatMap((stage) => {
      const one = fabric.run(stage.scheme);
      const frame = Math.min(Math.floor(now), one.frames - 1);
      const stuck = isStuck(one, frame) ? one.deadlock.text : "";
      return [stuck, criticalText(one, frame)].filter(Boolean).map((text) => `${data.schemes[stage.scheme].label}: ${text}`);
    });
    part("waits-note").textContent = said.join("\n");
    part("waits-note").classList.toggle("stuck", said.some((text) => text.includes("deadlock")));
  }

  function render() {
    const frame = Math.min(Math.floor(now), intervals - 1);
    instant.value = String(frame);
    const text = time((frame + 1) * intervalUs);
    clock.textContent = text;
    instant.setAttribute("aria-valuetext", text);
    // How wide a picture is hangs on whether there is another beside it.
    stages.forEach((stage, index) => {
      stage.scheme = scheme(index);
      stage.figure.hidden = stage.scheme === null || !fabric.run(stage.scheme);
    });
    stages.forEach((stage) => {
      const critical = !stage.figure.hidden && fabric.run(stage.scheme).critical;
      stage.path.hidden = !critical;
      if (!critical) return;
      stage.path.querySelector("span").textContent = `${data.schemes[stage.scheme].label}: critical path`;
      drawPath(stage.path.querySelector("canvas"), critical, end, (frame + 1) * intervalUs);
    });
    stages.forEach((stage, index) => {
      if (stage.figure.hidden) return;
      const one = fabric.run(stage.scheme);
      const own = Math.min(frame, one.frames - 1);
      stage.layout = drawFabric(stage.canvas, one, own, flowOf(one), now % 1);
      describe(stage, one, own);
      if (index === 0) showBusy(one, own);
    });
    showFlow();
    showWaits();
    const at = pointed && fabric.run(stages[pointed.stage].scheme);
    part("pointed").textContent = at ? linkText(at, Math.min(frame, at.frames - 1), pointed.link) : "";
  }

  function setPlaying(on) {
    playing = on && intervals > 1;
    if (playing && now >= intervals - 1) now = 0;
    play.textContent = playing ? "Pause" : "Play";
    play.setAttribute("aria-pressed", String(playing));
    last = performance.now();
    if (playing) requestAnimationFrame(step);
  }
  function step(at) {
    if (!playing) return;
    now += ((at - last) / 1000 / SECONDS) * intervals * Number(speed.value);
    last = at;
    if (now >= intervals - 1) { now = intervals - 1; setPlaying(false); }
    render();
    if (playing) requestAnimationFrame(step);
  }
  function go(frame) {
    now = Math.min(Math.max(frame, 0), intervals - 1);
    render();
  }

  function listFlows() {
    const kept = traced.value;
    const first = fabric.run(scheme(0));
    const options = (first ? first.flows : []).map((flow) => {
      const option = document.createElement("option");
      option.value = String(flow.id);
      option.textContent = `${flow.id}: ${flow.src} → ${flow.dst}, ${flow.size === null ? "long-lived" : bytes(flow.size)}`;
      return option;
    });
    traced.replaceChildren(traced.options[0], ...options);
    traced.value = options.some((option) => option.value === kept) ? kept : "";
    traced.disabled = !options.length;
  }

  play.addEventListener("click", () => setPlaying(!playing));
  instant.addEventListener("input", () => { setPlaying(false); go(Number(instant.value)); });
  traced.addEventListener("change", () => {
    const flow = flowOf(fabric.run(scheme(0)));
    // Nothing of it is to be seen before it starts, or after it ended.
    if (flow && !flow.frames.has(Math.floor(now)) && !playing) now = Math.min(...flow.frames.keys());
    render();
  });
  part("player").addEventListener("keydown", (event) => {
    const onCanvas = event.target instanceof HTMLCanvasElement;
    if (event.key === " " && (onCanvas || event.target === instant)) {
      event.preventDefault();
      setPlaying(!playing);
    }
    const steps = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
    if (onCanvas && event.key in steps) {
      event.preventDefault();
      setPlaying(false);
      go(Math.floor(now) + steps[event.key]);
    }
  });
  stages.forEach((stage, index) => stage.canvas.addEventListener("pointermove", (event) => {
    const box = stage.canvas.getBoundingClientRect();
    const link = stage.layout ? nearestLink(stage.layout, event.clientX - box.left, event.clientY - box.top) : null;
    pointed = link === null ? null : { stage: index, link };
    render();
  }));

  // The strip of a critical path leads to the time that is pointed at.
  stages.forEach((stage) => stage.path.querySelector("canvas").addEventListener("click", (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    setPlaying(false);
    go(Math.round(((event.clientX - box.left) / box.width) * intervals) - 1);
  }));

  function makeLegend() {
    const stops = Array.from({ length: 6 }, (_, step) => `<i style="background:${mixed(step / 5)}"></i>`).join("");
    const sizes = [5e3, 5e4, 5e5].map((held) => `<b style="background:${QUEUE_COLOUR[shade()]};width:${2 * queueRadius(held)}px;height:${2 * queueRadius(held)}px"></b> ${bytes(held)}`).join(" ");
    const own = { paused: PAUSE_COLOUR, critical: CRITICAL_COLOUR };
    const key = (mark, text) => `<span><s class="${mark}"${own[mark] ? ` style="border-top-color:${own[mark][shade()]}"` : ""}></s>${text}</span>`;
    const marks = new Set(data.faults.map((fault) => fault.mark));
    const faults = [["cut", "cut cable"], ["degraded", "degraded cable"]].filter(([mark]) => marks.has(mark)).map(([mark, text]) => key(mark, text)).join("");
    const some = (key) => data.replay.schemes.some((one) => one && (Array.isArray(one[key]) ? one[key].length : one[key]));
    const waits = [["paused", "paused", "paused"], ["critical", "critical", "critical path"], ["deadlock", "stuck", "deadlock"]]
      .filter(([of]) => some(of)).map(([, mark, text]) => key(mark, text)).join("");
    // What is seen of critical paths' time, 1 % of it at least.
    const breakdown = data.replay.parts.map((_, index) => data.replay.schemes.reduce((sum, one) => sum + (one && one.critical
      ? one.critical.links.reduce((total, { parts }) => total + (parts.find(([own]) => own === index)?.[1] || 0), 0) : 0), 0));
    const all = breakdown.reduce((sum, us) => sum + us, 0);
    part("path-legend").innerHTML = data.replay.parts.filter((_, index) => breakdown[index] > 0.01 * all)
      .map(({ title, colour }) => `<span><i style="background:${colour}"></i>${safe(title)}</span>`).join("");
    part("legend").innerHTML = `<span>idle ${stops} full</span><span>queue ${sizes}</span><span><em>×</em> packets dropped: at a cable, or at a switch that knew no way</span>${faults}${waits}`;
  }

  options.replay = () => { makeLegend(); listFlows(); render(); };
  drawnBy.replayed = drawnBy.beside = ["replay"];
  chosen.replayed = String(data.replay.schemes.findIndex(Boolean));
  chosen.beside = "";
  // Begin where something happens: in the middle of a fault that comes in mid-run, if there is one, at a deadlock, or where
  // most is paused.
  const fault = data.faults.find(({ from, until }) => from > 0 && from < end && (until === null || until > from));
  const first = fabric.run(Number(chosen.replayed));
  if (fault) now = Math.floor((fault.from + Math.min(fault.until === null ? end : fault.until, end)) / 2 / intervalUs);
  else if (first.deadlock) now = first.frames - 1;
  else now = fabric.worstPauses(first) ?? Math.floor(intervals / 3);
}
