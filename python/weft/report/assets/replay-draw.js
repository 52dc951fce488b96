// One picture of the fabric: links by utilisation, queues by depth, the traced flow on top.
const SCALES = {
  light: ["#dfe4ea", "#a6cbe3", "#4a98c9", "#0b4f94", "#2d004b"],
  dark: ["#333a43", "#235f8e", "#3ea0dc", "#f0c94a", "#fff6d5"],
};
const QUEUE_COLOUR = { light: "#D55E00", dark: "#ff9a45" };
const TRACE_COLOUR = { light: "#C2187E", dark: "#ff86d3" };
const shade = () => (isDark() ? "dark" : "light");
const mixed = (() => {
  const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const tables = Object.fromEntries(Object.entries(SCALES).map(([key, stops]) => {
    const colours = stops.map(parse);
    return [key, Array.from({ length: 64 }, (_, step) => {
      const at = (step / 63) * (colours.length - 1);
      const low = Math.min(Math.floor(at), colours.length - 2);
      const part = colours[low].map((value, channel) => Math.round(value + (at - low) * (colours[low + 1][channel] - value)));
      return `rgb(${part.join(",")})`;
    })];
  }));
  return (share) => tables[shade()][Math.round(63 * Math.min(Math.max(share, 0), 1))];
})();
const queueRadius = (held) => (held > 0 ? Math.min(1.2 + 1.05 * Math.log2(1 + held / 3000), 9) : 0);

// Where things are on a canvas of this size.
function stageLayout(width, height) {
  const side = Math.max(14, width * 0.02), bottom = 22;
  // Switches of one level are joined by an arc, the higher the farther they are apart: longer ones pass over shorter ones.
  const bends = fabric.links.map(([from, to]) => {
    const [[, level, x], [, far, end]] = [fabric.nodes[from], fabric.nodes[to]];
    return level === far ? Math.max(26, Math.min(0.15 * Math.abs(end - x) * width, 0.4 * height)) : 0;
  });
  const highest = bends.filter((_, link) => fabric.nodes[fabric.links[link][0]][1] === fabric.levels - 1);
  const top = 30 + highest.reduce((most, bend) => Math.max(most, bend), 0) / 2;
  const at = fabric.nodes.map(([, level, x]) => [
    side + x * (width - 2 * side),
    height - bottom - (level * (height - top - bottom)) / Math.max(fabric.levels - 1, 1),
  ]);
  // The two directions of a cable side by side.
  const gap = Math.min(2.4, Math.max(0.8, (width / fabric.links.length) * 0.7));
  const lines = fabric.links.map(([from, to], link) => {
    const [x1, y1] = at[from], [x2, y2] = at[to];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [dx, dy] = [(-gap * (y2 - y1)) / length, (gap * (x2 - x1)) / length];
    return { x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy, bend: bends[link] };
  });
  return { at, lines, width, height };
}

const pointOn = (line, share) => {
  const y = line.y1 + (line.y2 - line.y1) * share - 2 * line.bend * share * (1 - share);
  return [line.x1 + (line.x2 - line.x1) * share, y];
};
function strokeLine(pen, line) {
  pen.beginPath();
  pen.moveTo(line.x1, line.y1);
  if (line.bend) pen.quadraticCurveTo((line.x1 + line.x2) / 2, line.y1 - line.bend, line.x2, line.y2);
  else pen.lineTo(line.x2, line.y2);
  pen.stroke();
}

function drawLinks(pen, layout, one, frame, faded) {
  const thin = layout.width < 600 ? 1 : 1.5;
  const order = fabric.links.map((_, link) => link).sort((a, b) => fabric.used(one, frame, a) - fabric.used(one, frame, b));
  for (const link of order) {
    const share = fabric.used(one, frame, link);
    pen.globalAlpha = faded ? 0.35 : 1;
    pen.strokeStyle = mixed(share);
    pen.lineWidth = (thin + 1.6 * share) * Math.sqrt(fabric.rates[link] / fabric.most);
    strokeLine(pen, layout.lines[link]);
  }
  pen.globalAlpha = 1;
}

const FAULT_DASHES = { cut: [7, 6], degraded: [] };
const FAULT_COLOURS = { cut: "--cut", degraded: "--degraded" };

// Cables with a fault: over the others, so that a cut one is not taken for an idle one.
function drawFaults(pen, layout, one, frame) {
  const crossed = new Set();
  for (const link of fabric.hit) {
    const mark = fabric.markAt(one, frame, link);
    if (!mark) continue;
    const line = layout.lines[link];
    pen.strokeStyle = css(FAULT_COLOURS[mark]);
    pen.lineWidth = 2.6;
    pen.setLineDash(FAULT_DASHES[mark]);
    strokeLine(pen, line);
    pen.setLineDash([]);
    // One cross for both directions.
    const ends = [...fabric.links[link]].sort((a, b) => a - b).join("-");
    if (mark !== "cut" || crossed.has(ends)) continue;
    crossed.add(ends);
    const [x, y] = pointOn(line, 0.5);
    cross(pen, x, y, 6, 3);
  }
}

function cross(pen, x, y, size, width) {
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(x - size, y - size);
  pen.lineTo(x + size, y + size);
  pen.moveTo(x + size, y - size);
  pen.lineTo(x - size, y + size);
  pen.stroke();
}

// Small crosses at the start of links at which packets were dropped in this frame, the larger the more.
const dropSize = (packets) => Math.min(2.5 + 0.9 * Math.log2(packets), 9);
function drawDrops(pen, layout, one, frame) {
  pen.strokeStyle = css("--cut");
  for (const [link, packets] of fabric.dropsAt(one, frame)) {
    const line = layout.lines[link];
    const [x, y] = pointOn(line, Math.min(0.42, 30 / Math.hypot(line.x2 - line.x1, line.y2 - line.y1)));
    cross(pen, x, y, dropSize(packets), 1.8);
  }
}

// A cross on each switch or host that lost packets itself: it knew no way on.
function drawLost(pen, layout, one, frame) {
  for (const { node, packets } of fabric.lostAt(one, frame)) {
    const [x, y] = layout.at[node];
    pen.strokeStyle = css("--paper");
    cross(pen, x, y, dropSize(packets) + 3, 6);
    pen.strokeStyle = css("--cut");
    cross(pen, x, y, dropSize(packets) + 2, 3);
  }
}

// Links that are paused in this frame: dashes in place of the link's own colour, the longer the more of the frame.
const PAUSE_COLOUR = { light: "#7A2FB5", dark: "#c79bff" };
function drawPauses(pen, layout, one, frame) {
  if (!one.paused) return;
  // Where cables are many, thinner ones, so that they stay apart.
  const width = fabric.links.length > 200 || layout.width < 600 ? 2 : 3;
  fabric.links.forEach((_, link) => {
    const share = fabric.paused(one, frame, link);
    if (!share) return;
    // On paper, so that they are seen on a link of any colour.
    pen.setLineDash([]);
    pen.strokeStyle = css("--paper");
    pen.lineWidth = width + 1.6;
    strokeLine(pen, layout.lines[link]);
    pen.setLineDash([2 + 8 * share, 6]);
    pen.strokeStyle = PAUSE_COLOUR[shade()];
    pen.lineWidth = width;
    strokeLine(pen, layout.lines[link]);
  });
  pen.setLineDash([]);
}

// The circle of a deadlock: at the end, when nothing moves any more.
function drawDeadlock(pen, layout, one, frame) {
  if (!one.deadlock || frame < one.frames - 1) return;
  pen.strokeStyle = css("--cut");
  pen.lineWidth = 4.5;
  for (const link of one.deadlock.links) {
    strokeLine(pen, layout.lines[link]);
    const [x, y] = pointOn(layout.lines[link], 0.5);
    cross(pen, x, y, 6, 3);
    pen.lineWidth = 4.5;
  }
}

// The flow for which all waited that came after it: its ends, the links that it took as far as they are known, and a ring
// where it lost the most time.
const CRITICAL_COLOUR = { light: "#00796B", dark: "#4fe3c8" };
function drawCritical(pen, layout, one, frame) {
  const found = fabric.criticalAt(one, frame);
  if (!found) return;
  pen.strokeStyle = CRITICAL_COLOUR[shade()];
  pen.fillStyle = CRITICAL_COLOUR[shade()];
  pen.lineWidth = 3.4;
  for (const link of fabric.criticalLinks(one, found)) strokeLine(pen, layout.lines[link]);
  for (const name of [found.src, found.dst]) {
    const node = fabric.nodeAt.get(name);
    if (node === undefined) continue;
    pen.beginPath();
    pen.arc(...layout.at[node], 5, 0, 2 * Math.PI);
    pen.fill();
  }
  const late = fabric.nodeAt.get(found.at);
  if (late === undefined) return;
  pen.lineWidth = 3;
  pen.beginPath();
  pen.arc(...layout.at[late], fabric.nodes[late][1] === 0 ? 9 : 19, 0, 2 * Math.PI);
  pen.stroke();
}

// The strip of a critical path over the time of the run: each flow a piece, of the colours of what it breakdown its time on.
function drawPath(canvas, critical, end, now) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const x = (us) => (us / end) * width;
  for (const { from, until, parts } of critical.links) {
    let at = from;
    for (const [part, us] of parts) {
      pen.fillStyle = data.replay.parts[part].colour;
      pen.fillRect(x(at), 3, Math.max(x(at + us) - x(at), 0.3), height - 6);
      at += us;
    }
    // Where one ends and the next begins, if there is room for it.
    if (x(until) - x(from) < 6) continue;
    pen.fillStyle = css("--paper");
    pen.fillRect(x(until) - 1, 3, 1, height - 6);
  }
  const flow = critical.links.find(({ from, until }) => from <= now && now < until);
  if (!flow) return;
  pen.strokeStyle = css("--ink");
  pen.lineWidth = 2;
  pen.strokeRect(Math.max(x(flow.from), 1), 1, Math.max(x(flow.until) - x(flow.from) - 1, 2), height - 2);
}

function drawQueues(pen, layout, one, frame) {
  pen.fillStyle = QUEUE_COLOUR[shade()];
  pen.globalAlpha = 0.85;
  fabric.links.forEach((_, link) => {
    const radius = queueRadius(fabric.queue(one, frame, link));
    if (radius < 1.6) return;
    const line = layout.lines[link];
    const [x, y] = pointOn(line, Math.min(0.3, 14 / Math.hypot(line.x2 - line.x1, line.y2 - line.y1)));
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  });
  pen.globalAlpha = 1;
}

// The whole path of the flow as thin dashes; what it used in this frame as thick lines with packets on them.
function drawTrace(pen, layout, flow, frame, phase) {
  const now = flow.frames.get(frame) || new Map();
  pen.strokeStyle = TRACE_COLOUR[shade()];
  pen.fillStyle = TRACE_COLOUR[shade()];
  for (const link of flow.total.keys()) {
    pen.setLineDash(now.has(link) ? [] : [3, 5]);
    pen.lineWidth = now.has(link) ? 3.2 : 1.2;
    strokeLine(pen, layout.lines[link]);
    if (!now.has(link)) continue;
    for (const part of [0.1, 0.6]) {
      const [x, y] = pointOn(layout.lines[link], (part + phase) % 1);
      pen.beginPath();
      pen.arc(x, y, 4, 0, 2 * Math.PI);
      pen.fill();
    }
  }
  pen.setLineDash([]);
}

function drawNodes(pen, layout, flow, critical) {
  const perLevel = Array.from({ length: fabric.levels }, (_, level) => fabric.nodes.filter((node) => node[1] === level).length);
  // A host has a name where a flow is followed that begins or ends there.
  const ends = new Map(critical ? [critical.src, critical.dst].map((name) => [name, CRITICAL_COLOUR[shade()]]) : []);
  for (const name of flow ? [flow.src, flow.dst] : []) ends.set(name, TRACE_COLOUR[shade()]);
  pen.textAlign = "center";
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  fabric.nodes.forEach(([name, level], index) => {
    const [x, y] = layout.at[index];
    const room = layout.width / perLevel[level];
    const half = level === 0 ? Math.min(3.5, Math.max(1, room * 0.3)) : Math.min(15, Math.max(3, room * 0.3));
    const tall = level === 0 ? half : Math.min(7, half);
    const end = ends.has(name);
    pen.fillStyle = ends.get(name) || css("--ink");
    pen.fillRect(x - half, y - tall, 2 * half, 2 * tall);
    if (room > name.length * 6.4 + 6 || end) {
      const edge = Math.min(Math.max(x, name.length * 3.2 + 4), layout.width - name.length * 3.2 - 4);
      const line = level === 0 ? y + 17 : y - tall - 6;
      // Links run behind the text.
      pen.strokeStyle = css("--paper");
      pen.lineWidth = 4;
      pen.strokeText(name, edge, line);
      pen.fillStyle = ends.get(name) || css("--ink");
      pen.fillText(name, edge, line);
    }
  });
}

// Draws one frame; returns the layout, for pointing.
function drawFabric(canvas, one, frame, flow, phase) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const layout = stageLayout(width, height);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  drawLinks(pen, layout, one, frame, Boolean(flow));
  drawFaults(pen, layout, one, frame);
  drawPauses(pen, layout, one, frame);
  drawDeadlock(pen, layout, one, frame);
  drawQueues(pen, layout, one, frame);
  drawDrops(pen, layout, one, frame);
  drawCritical(pen, layout, one, frame);
  if (flow) drawTrace(pen, layout, flow, frame, phase);
  drawNodes(pen, layout, flow, fabric.criticalAt(one, frame));
  drawLost(pen, layout, one, frame);
  return layout;
}

function nearestLink(layout, x, y) {
  let best = null, least = 9;
  layout.lines.forEach((line, link) => {
    for (let share = 0.08; share < 1; share += 0.07) {
      const [px, py] = pointOn(line, share);
      const away = Math.hypot(px - x, py - y);
      if (away < least) [best, least] = [link, away];
    }
  });
  return best;
}
