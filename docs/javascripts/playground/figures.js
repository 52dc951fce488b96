// What the flows of two runs come to: pairs of completion times, their difference over time, and where packets waited.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});
  const { FLOW } = Playground;

  // Sums over flows, of both runs at one time.
  function compare(flows, seen) {
    const totals = seen.map(() => ({ done: 0, waits: [0, 0, 0, 0], arrived: 0, behind: 0, resent: 0, moves: 0, mean: 0 }));
    const pairs = [];
    for (let flow = 0; flow < flows.length; flow++) {
      const at = flow * FLOW.count;
      seen.forEach(({ flows: numbers }, side) => {
        const total = totals[side];
        total.done += numbers[at + FLOW.took] >= 0;
        for (let tier = 0; tier < 4; tier++) total.waits[tier] += numbers[at + FLOW.host + tier];
        total.arrived += numbers[at + FLOW.arrived];
        total.behind += numbers[at + FLOW.behind];
        total.resent += numbers[at + FLOW.resent];
        total.moves += numbers[at + FLOW.moves];
      });
      const took = seen.map(({ flows: numbers }) => numbers[at + FLOW.took]);
      if (took[0] >= 0 && took[1] >= 0) pairs.push({ flow, took, bytes: flows[flow][3] });
    }
    const mean = (side) => pairs.reduce((sum, pair) => sum + pair.took[side], 0) / pairs.length;
    totals.forEach((total, side) => (total.mean = pairs.length ? mean(side) : null));
    return { totals, pairs };
  }

  // The mean difference of pairs that were done under both by each time: [ps, share of the first's mean].
  function differences(flows, pairs) {
    const done = ({ flow, took }) => flows[flow][0] + Math.max(...took);
    const ordered = pairs.map((pair) => ({ at: done(pair), took: pair.took })).sort((a, b) => a.at - b.at);
    const sums = [0, 0];
    return ordered.map(({ at, took }) => {
      took.forEach((ps, side) => (sums[side] += ps));
      return [at, sums[1] / sums[0] - 1];
    });
  }

  class Chart {
    constructor(canvas) {
      this.canvas = canvas;
      this.pen = canvas.getContext("2d");
    }

    begin(theme) {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      const ratio = Math.min(devicePixelRatio || 1, 2);
      if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(height * ratio);
      }
      this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.pen.clearRect(0, 0, width, height);
      Object.assign(this, { width, height, theme });
      return width > 0;
    }

    text(text, x, y, align = "left", colour = this.theme.soft) {
      this.pen.fillStyle = colour;
      this.pen.font = "11px ui-sans-serif, system-ui, sans-serif";
      this.pen.textAlign = align;
      this.pen.textBaseline = "middle";
      this.pen.fillText(text, x, y);
    }

    line(x1, y1, x2, y2, colour, width = 1) {
      this.pen.strokeStyle = colour;
      this.pen.lineWidth = width;
      this.pen.beginPath();
      this.pen.moveTo(x1, y1);
      this.pen.lineTo(x2, y2);
      this.pen.stroke();
    }
  }

  // Each flow that is done under both: its completion time under the first to the right, under the second upwards.
  class Pairs extends Chart {
    draw(theme, pairs, names, colours, followed) {
      if (!this.begin(theme)) return;
      const box = { left: 62, right: this.width - 8, top: 8, bottom: this.height - 32 };
      const all = pairs.flatMap((pair) => pair.took);
      const [least, most] = all.length ? [Math.min(...all) * 0.8, Math.max(...all) * 1.25] : [1e7, 1e10];
      const share = (ps) => Math.log(ps / least) / Math.log(most / least);
      const x = (ps) => box.left + (box.right - box.left) * share(ps);
      const y = (ps) => box.bottom - (box.bottom - box.top) * share(ps);
      Object.assign(this, { x, y, pairs });
      for (let power = Math.ceil(Math.log10(least)); 10 ** power <= most; power++) {
        const ps = 10 ** power;
        this.line(x(ps), box.top, x(ps), box.bottom, theme.faint);
        this.line(box.left, y(ps), box.right, y(ps), theme.faint);
        this.text(Playground.showTime(ps, 0), x(ps), box.bottom + 10, "center");
        this.text(Playground.showTime(ps, 0), box.left - 5, y(ps), "right");
      }
      this.line(x(least), y(least), x(most), y(most), theme.soft);
      this.text(`${names[1]} faster`, box.right - 4, box.bottom - 9, "right", colours[1]);
      this.text(`${names[0]} faster`, box.left + 5, box.top + 8, "left", colours[0]);
      this.text(`completion time under ${names[0]}`, (box.left + box.right) / 2, this.height - 7, "center");
      this.pen.save();
      this.pen.rotate(-Math.PI / 2);
      this.text(`under ${names[1]}`, -(box.top + box.bottom) / 2, 9, "center");
      this.pen.restore();
      for (const { flow, took, bytes } of pairs) {
        const radius = 1.8 + 0.75 * Math.log10(Math.max(bytes, 1000) / 1000);
        const isFollowed = flow === followed;
        this.pen.globalAlpha = isFollowed ? 1 : 0.6;
        this.pen.fillStyle = isFollowed ? theme.accent : took[1] <= took[0] ? colours[1] : colours[0];
        this.pen.beginPath();
        this.pen.arc(x(took[0]), y(took[1]), isFollowed ? radius + 2 : radius, 0, 2 * Math.PI);
        this.pen.fill();
      }
      this.pen.globalAlpha = 1;
      if (!pairs.length) this.text("no flow is done under both yet", (box.left + box.right) / 2, this.height / 2, "center");
    }

    flowAt(point) {
      let best = null;
      for (const { flow, took } of this.pairs ?? []) {
        const distance = Math.hypot(this.x(took[0]) - point.x, this.y(took[1]) - point.y);
        if (distance < (best?.distance ?? 12)) best = { flow, distance };
      }
      return best?.flow ?? null;
    }
  }

  // How the mean completion time under the second differs from that under the first, over simulated time.
  class Difference extends Chart {
    draw(theme, points, names, colours, faults) {
      if (!this.begin(theme)) return;
      const box = { left: 44, right: this.width - 8, top: 10, bottom: this.height - 32 };
      const end = points.length ? points.at(-1)[0] : 1e9;
      const most = Math.max(0.1, ...points.map(([, share]) => Math.abs(share))) * 1.1;
      const x = (ps) => box.left + ((box.right - box.left) * ps) / end;
      const y = (share) => (box.top + box.bottom) / 2 - ((box.bottom - box.top) / 2) * (share / most);
      for (const share of [-most / 1.1, 0, most / 1.1]) {
        this.line(box.left, y(share), box.right, y(share), share ? theme.faint : theme.soft);
        this.text(`${share > 0 ? "+" : ""}${Math.round(share * 100)} %`, box.left - 5, y(share), "right");
      }
      // While a cable has a fault.
      for (const { at, until } of faults.filter((fault) => fault.at <= end)) {
        this.pen.globalAlpha = 0.1;
        this.pen.fillStyle = theme.hot;
        this.pen.fillRect(x(at), box.top, x(Math.min(until ?? end, end)) - x(at), box.bottom - box.top);
        this.pen.globalAlpha = 1;
        for (const ps of [at, until]) if (ps <= end) this.line(x(ps), box.top, x(ps), box.bottom, theme.hot);
      }
      this.text(`${names[1]} slower`, box.right - 4, box.top + 7, "right", colours[0]);
      this.text(`${names[1]} faster`, box.right - 4, box.bottom - 8, "right", colours[1]);
      this.text(`0 to ${Playground.showTime(end)} of simulated time`, (box.left + box.right) / 2, this.height - 7, "center");
      const { pen } = this;
      points.forEach(([at, share], place) => {
        if (!place) return;
        const [before, was] = points[place - 1];
        this.line(x(before), y(was), x(at), y(share), share <= 0 ? colours[1] : colours[0], 2);
      });
      pen.globalAlpha = 1;
    }
  }

  Object.assign(Playground, { compare, differences, Pairs, Difference });
})();
