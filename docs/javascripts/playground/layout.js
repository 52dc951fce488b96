// Where nodes stand: hosts below their switch, switches in rows by tier, all in a field of 1 by 1.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  const HOST_ROW = 0.93;
  const TOP_ROW = 0.1;
  const EDGE_ROW = 0.7;

  // In equal steps from left to right, in the order of their numbers.
  const spread = (count, place) => (place + 0.5) / count;

  function layout(fabric) {
    const switches = fabric.tiers.length;
    const places = new Array(fabric.hosts + switches);
    const highest = Math.max(...fabric.tiers);
    const racks = fabric.edges.length;
    // Racks side by side, each as wide as its hosts are many.
    const sizes = new Array(racks).fill(0);
    for (const rack of fabric.racks) sizes[rack] += 1;
    const total = sizes.reduce((sum, size) => sum + Math.max(size, 1) + 0.8, 0);
    let from = 0;
    for (let rack = 0; rack < racks; rack++) {
      const width = (Math.max(sizes[rack], 1) + 0.8) / total;
      places[fabric.hosts + fabric.edges[rack]] = { x: from + width / 2, y: highest ? EDGE_ROW : 0.4 };
      let place = 0;
      for (let host = 0; host < fabric.hosts; host++) {
        if (fabric.racks[host] !== rack) continue;
        const step = width / (Math.max(sizes[rack], 1) + 0.8);
        places[host] = { x: from + step * (0.9 + place), y: HOST_ROW };
        place += 1;
      }
      from += width;
    }
    for (let tier = 0; tier <= highest; tier++) {
      const row = [];
      for (let number = 0; number < switches; number++) {
        if (fabric.tiers[number] === tier && !places[fabric.hosts + number]) row.push(number);
      }
      const y = EDGE_ROW + ((TOP_ROW - EDGE_ROW) * tier) / Math.max(highest, 1);
      row.forEach((number, place) => (places[fabric.hosts + number] = { x: spread(row.length, place), y }));
    }
    return places;
  }

  // Cables, each with its two links and its name as faults take it; parallel ones lie beside each other.
  function cables(fabric) {
    const found = [];
    const beside = new Map();
    fabric.links.forEach((link, number) => {
      if (link.reverse < number) return;
      const name = link.name.replace(">", "-");
      const pair = `${link.from}-${link.to}`;
      const place = beside.get(pair) ?? 0;
      beside.set(pair, place + 1);
      const isHosts = Math.min(link.from, link.to) < fabric.hosts;
      found.push({ name, links: [number, link.reverse], from: link.from, to: link.to, place, isHosts });
    });
    for (const cable of found) cable.parallel = beside.get(`${cable.from}-${cable.to}`);
    return found;
  }

  // The ends of each link in pixels: the two directions of a cable lie a little apart, on the right as seen by who goes.
  function lines(fabric, places, all, width, height) {
    const at = (node) => ({ x: places[node].x * width, y: places[node].y * height });
    const found = new Array(fabric.links.length);
    for (const cable of all) {
      for (const number of cable.links) {
        const link = fabric.links[number];
        const [from, to] = [at(link.from), at(link.to)];
        const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
        const normal = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
        const forward = number === cable.links[0] ? 1 : -1;
        const shift = 2.2 + forward * (cable.place - (cable.parallel - 1) / 2) * 7;
        const move = (point) => ({ x: point.x + normal.x * shift, y: point.y + normal.y * shift });
        found[number] = { from: move(from), to: move(to), normal, length };
      }
    }
    return found;
  }

  // The cable nearest to a point, if one is near.
  function cableAt(all, drawn, point, reach) {
    let best = null;
    for (const cable of all) {
      const [a, b] = cable.links.map((number) => drawn[number]);
      const distance = Math.min(distanceTo(a, point), distanceTo(b, point));
      if (distance <= (best?.distance ?? reach)) best = { cable, distance };
    }
    return best?.cable ?? null;
  }

  function distanceTo({ from, to }, point) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const along = ((point.x - from.x) * dx + (point.y - from.y) * dy) / (dx * dx + dy * dy || 1);
    const kept = Math.min(1, Math.max(0, along));
    return Math.hypot(point.x - from.x - kept * dx, point.y - from.y - kept * dy);
  }

  Object.assign(Playground, { layout, cables, lines, cableAt });
})();
