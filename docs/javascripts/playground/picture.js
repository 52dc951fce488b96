// One fabric with its packets and queues, on a canvas.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});
  const { LINK, PACKET } = Playground;

  // A drop is shown for so long, in ms of the viewer's time.
  const DROP_SHOWN = 700;
  const MOST_DOTS = 6000;
  const ACKS = new Set([1, 3, 4]);

  class Picture {
    constructor(canvas) {
      this.canvas = canvas;
      this.pen = canvas.getContext("2d");
      this.drops = [];
    }

    // Takes the fabric of a run, with the places of its nodes; `colour` is that of its scheme.
    show(fabric, places, colour) {
      Object.assign(this, { fabric, places, colour, cables: Playground.cables(fabric) });
      this.cableOf = new Map(this.cables.flatMap((cable) => cable.links.map((link) => [link, cable])));
      this.dropped = new Float64Array(fabric.links.length);
      this.drops = [];
      this.fit();
    }

    fit() {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      const ratio = Math.min(devicePixelRatio || 1, 2);
      if (!width || !this.fabric) return;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      Object.assign(this, { width, height });
      this.lines = Playground.lines(this.fabric, this.places, this.cables, width, height);
    }

    cableAt(point) {
      return this.lines ? Playground.cableAt(this.cables, this.lines, point, 9) : null;
    }

    // The host at a point, if there is one.
    hostAt(point) {
      const near = (host) => Math.hypot(this.places[host].x * this.width - point.x, this.places[host].y * this.height - point.y);
      for (let host = 0; host < (this.fabric?.hosts ?? 0); host++) if (near(host) < 9) return host;
      return null;
    }

    draw(seen, { theme, selected, followed, ends, isPlaying }) {
      const { pen, width, height } = this;
      if (!this.lines || !seen) return;
      Object.assign(this, { theme });
      pen.clearRect(0, 0, width, height);
      this.noteDrops(seen, isPlaying);
      for (const cable of this.cables) this.drawCable(cable, seen, cable.name === selected);
      this.drawPackets(seen, followed);
      this.drawNodes(ends);
      this.drawDrops();
    }

    drawCable(cable, seen, isSelected) {
      const { pen, theme } = this;
      const [first] = cable.links;
      const isUp = cable.links.every((link) => seen.links[link * LINK.count + LINK.up]);
      const isSlow = seen.links[first * LINK.count + LINK.rate] < this.fabric.links[first].rate;
      const [a, b] = cable.links.map((link) => this.lines[link]);
      const [from, to] = [middle(a.from, b.to), middle(a.to, b.from)];
      if (isSelected) this.stroke(from, to, theme.accent, 9, 0.35);
      pen.setLineDash(isUp ? (isSlow ? [7, 5] : []) : [2, 6]);
      const colour = !isUp ? theme.hot : isSlow ? theme.hot : theme.cable;
      this.stroke(from, to, colour, cable.isHosts ? 1 : 1.6, isUp ? 1 : 0.8);
      pen.setLineDash([]);
      if (!isUp) this.cross(middle(from, to), 6, theme.hot, 2.4);
      for (const link of cable.links) this.drawQueue(link, seen);
    }

    // What waits at the near end of a link: a bar along it, that grows with the root of the queue and reddens as it fills.
    drawQueue(link, seen) {
      const queued = seen.links[link * LINK.count + LINK.queued];
      if (queued < 1600) return;
      const line = this.lines[link];
      const buffer = this.fabric.links[link].buffer ?? 1e6;
      const full = Math.min(1, Math.sqrt(queued / buffer));
      const room = Math.min(line.length * 0.55, 120);
      const [skip, reach] = [13, 13 + room * full];
      const at = (along) => ({
        x: line.from.x + ((line.to.x - line.from.x) * along) / line.length,
        y: line.from.y + ((line.to.y - line.from.y) * along) / line.length,
      });
      this.stroke(at(skip), at(Math.min(reach, line.length - 12)), mix(this.colour, this.theme.hot, full * full), 3 + 3 * full, 0.85);
    }

    drawPackets(seen, followed) {
      const { pen, theme } = this;
      const count = Math.min(seen.packets.length / PACKET.count, MOST_DOTS);
      const own = [];
      pen.fillStyle = this.colour;
      for (let number = 0; number < count; number++) {
        const at = number * PACKET.count;
        const place = this.placeOf(seen, at);
        if (!place) continue;
        const isAck = ACKS.has(seen.packets[at + PACKET.kind]);
        if (seen.packets[at + PACKET.flow] === followed && seen.packets[at + PACKET.kind] < 7) {
          own.push({ ...place, isAck });
          continue;
        }
        pen.globalAlpha = isAck ? 0.45 : 0.9;
        const radius = isAck ? 1.4 : 2.5;
        pen.beginPath();
        pen.arc(place.x, place.y, radius, 0, 2 * Math.PI);
        pen.fill();
      }
      pen.globalAlpha = 1;
      for (const { x, y, isAck } of own) this.disc(x, y, isAck ? 3 : 5, theme.accent, theme.paper);
    }

    // Where a packet is on its link, if its first bit has left; what waits is part of the queue.
    placeOf(seen, at) {
      const { packets, links } = seen;
      const link = packets[at + PACKET.link];
      const line = this.lines[link];
      const service = (packets[at + PACKET.bytes] * 8e12) / Math.max(links[link * LINK.count + LINK.rate], 1);
      const [leaves, arrives] = [packets[at + PACKET.leaves], packets[at + PACKET.arrives]];
      const begins = leaves - service;
      if (begins > 0) return null;
      const along = Math.min(1, Math.max(0, -begins / (arrives - begins || 1)));
      return { x: line.from.x + (line.to.x - line.from.x) * along, y: line.from.y + (line.to.y - line.from.y) * along };
    }

    drawNodes(ends) {
      const { pen, theme, fabric } = this;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      this.places.forEach((place, node) => {
        const [x, y] = [place.x * this.width, place.y * this.height];
        if (node < fabric.hosts) {
          const isEnd = ends?.includes(node);
          this.disc(x, y, isEnd ? 6 : 3.6, isEnd ? theme.accent : theme.soft, theme.paper);
          if (isEnd) this.label(ends[0] === node ? "from" : "to", x, y + 14, theme.ink, 10);
          return;
        }
        const name = fabric.names[node];
        const wide = Math.max(24, name.length * 6.2 + 8);
        const room = this.width < 420 || fabric.tiers.length > 16 ? 15 : wide;
        pen.fillStyle = theme.paper;
        pen.strokeStyle = theme.ink;
        pen.lineWidth = 1.4;
        pen.beginPath();
        pen.roundRect(x - room / 2, y - 8.5, room, 17, 4);
        pen.fill();
        pen.stroke();
        this.label(room === wide ? name : name.replace(/^\D+/, ""), x, y + 0.5, theme.ink, 10.5);
      });
    }

    noteDrops(seen, isPlaying) {
      const now = performance.now();
      for (let link = 0; link < this.dropped.length; link++) {
        const dropped = seen.links[link * LINK.count + LINK.dropped];
        if (dropped > this.dropped[link] && isPlaying) this.drops.push({ link, since: now });
        this.dropped[link] = dropped;
      }
      this.drops = this.drops.filter((drop) => now - drop.since < DROP_SHOWN).slice(-200);
    }

    drawDrops() {
      const now = performance.now();
      for (const { link, since } of this.drops) {
        const age = (now - since) / DROP_SHOWN;
        const line = this.lines[link];
        const along = Math.min(14 / line.length, 0.5);
        const x = line.from.x + (line.to.x - line.from.x) * along;
        const y = line.from.y + (line.to.y - line.from.y) * along + 14 * age * age;
        this.pen.globalAlpha = 1 - age;
        this.cross({ x, y }, 4.5, this.theme.hot, 2.2);
        this.pen.globalAlpha = 1;
      }
    }

    stroke(from, to, colour, width, alpha) {
      const { pen } = this;
      pen.globalAlpha = alpha;
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.lineCap = "round";
      pen.beginPath();
      pen.moveTo(from.x, from.y);
      pen.lineTo(to.x, to.y);
      pen.stroke();
      pen.globalAlpha = 1;
    }

    cross({ x, y }, size, colour, width) {
      this.stroke({ x: x - size, y: y - size }, { x: x + size, y: y + size }, colour, width, this.pen.globalAlpha);
      this.stroke({ x: x - size, y: y + size }, { x: x + size, y: y - size }, colour, width, this.pen.globalAlpha);
    }

    disc(x, y, radius, colour, rim) {
      const { pen } = this;
      pen.beginPath();
      pen.arc(x, y, radius, 0, 2 * Math.PI);
      pen.fillStyle = colour;
      pen.fill();
      pen.lineWidth = 1.2;
      pen.strokeStyle = rim;
      pen.stroke();
    }

    label(text, x, y, colour, size) {
      const { pen } = this;
      pen.fillStyle = colour;
      pen.font = `${size}px ui-sans-serif, system-ui, sans-serif`;
      pen.fillText(text, x, y);
    }
  }

  const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

  // A colour so far from the one to the other; both as "#rrggbb".
  function mix(one, other, share) {
    const part = (colour, at) => parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16);
    const channel = (at) => Math.round(part(one, at) * (1 - share) + part(other, at) * share);
    return `rgb(${channel(0)} ${channel(1)} ${channel(2)})`;
  }

  Object.assign(Playground, { Picture });
})();
