// The fabric of the replay: nodes, links, and what was seen of them, unpacked when it is first needed.
const fabric = data.replay && (() => {
  const { nodes, links, rates, schemes } = data.replay;
  const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const levels = 1 + Math.max(...nodes.map(([, level]) => level));
  const hostLink = new Map();
  links.forEach(([from], link) => { if (nodes[from][1] === 0) hostLink.set(nodes[from][0], link); });
  const name = (link) => `${nodes[links[link][0]][0]} → ${nodes[links[link][1]][0]}`;
  const bytesOf = (number) => (number ? data.replay.queue[0] * 2 ** ((number - 1) / data.replay.queue[1]) : 0);

  // Frame, link and packets of a traced flow, by frame.
  function pathOf(flow) {
    if (!flow.frames) {
      const raw = unpack(flow.path);
      const words = new Uint16Array(raw.buffer, 0, raw.length / 2);
      flow.frames = new Map();
      flow.total = new Map();
      for (let at = 0; at < words.length; at += 3) {
        const [frame, link, packets] = words.subarray(at, at + 3);
        if (!flow.frames.has(frame)) flow.frames.set(frame, new Map());
        flow.frames.get(frame).set(link, packets);
        flow.total.set(link, (flow.total.get(link) || 0) + packets);
      }
      // A host has one cable, which all of its packets take.
      const own = hostLink.get(flow.src);
      for (const each of flow.frames.values()) each.set(own, 0);
      flow.total.set(own, 0);
    }
    return flow;
  }

  function run(index) {
    const one = schemes[index];
    if (one && !(one.used instanceof Uint8Array)) {
      one.used = unpack(one.used);
      one.queues = unpack(one.queues);
      one.paused = one.paused && unpack(one.paused);
    }
    return one;
  }

  // What a fault does to a link in a frame: "cut", "degraded" or nothing. Names of links are those of the table.
  const place = new Map(data.replay.names.map((called, link) => [called, link]));
  const hits = new Map();
  for (const fault of data.faults) {
    for (const link of fault.links.map((called) => place.get(called)).filter((found) => found !== undefined)) {
      if (!hits.has(link)) hits.set(link, []);
      hits.get(link).push(fault);
    }
  }
  function faultsAt(one, frame, link) {
    const begins = frame * one.interval, ends = begins + one.interval;
    return (hits.get(link) || []).filter((fault) => fault.from < ends && (fault.until === null || fault.until > begins));
  }
  const markAt = (one, frame, link) => {
    const found = faultsAt(one, frame, link);
    return found.some((fault) => fault.mark === "cut") ? "cut" : found.length ? "degraded" : null;
  };
  // Packets dropped at links, by frame.
  function dropsAt(one, frame) {
    if (!one.dropsByFrame) {
      const raw = unpack(one.drops);
      const words = new Uint16Array(raw.buffer, 0, raw.length / 2);
      one.dropsByFrame = new Map();
      for (let at = 0; at < words.length; at += 3) {
        const [when, link, packets] = words.subarray(at, at + 3);
        if (!one.dropsByFrame.has(when)) one.dropsByFrame.set(when, new Map());
        one.dropsByFrame.get(when).set(link, packets);
      }
    }
    return one.dropsByFrame.get(frame) || new Map();
  }

  // What nodes lost themselves, between the first packet and the last.
  function lostAt(one, frame) {
    const begins = frame * one.interval, ends = begins + one.interval;
    return one.lost.filter(([, , first, last]) => first < ends && last >= begins).map(([node, packets, first, last, why]) => ({ node, packets, first, last, why }));
  }

  // Because of which other links a link was paused in the whole run, most of the time first.
  function pausesOf(one, link) {
    if (!one.pausesByLink) {
      one.pausesByLink = new Map();
      for (const [paused, cause, us, times] of one.pauses) {
        if (!one.pausesByLink.has(paused)) one.pausesByLink.set(paused, []);
        one.pausesByLink.get(paused).push({ cause, us, times });
      }
    }
    return one.pausesByLink.get(link) || [];
  }
  // The flow of the critical path at the end of a frame: the next ones waited for it.
  function criticalAt(one, frame) {
    const at = (frame + 1) * one.interval;
    return one.critical ? one.critical.links.find(({ from, until }) => from <= at && at < until) || null : null;
  }
  const cables = new Map();
  links.forEach(([from, to], link) => {
    if (nodes[from][1] === 0) cables.set(nodes[from][0], { ...cables.get(nodes[from][0]), up: link });
    if (nodes[to][1] === 0) cables.set(nodes[to][0], { ...cables.get(nodes[to][0]), down: link });
  });
  // The links that such a flow took for sure: those of its hosts, the one where it was late, and all of them if it is traced.
  function criticalLinks(one, found) {
    const traced = one.flows.find((flow) => flow.id === found.flow);
    const own = [cables.get(found.src)?.up, found.dst && cables.get(found.dst)?.down, place.get(found.at)];
    return new Set([...own.filter((link) => link !== undefined && link !== null), ...(traced ? pathOf(traced).total.keys() : [])]);
  }

  const used = (one, frame, link) => one.used[frame * links.length + link] / data.replay.full;
  const queue = (one, frame, link) => bytesOf(one.queues[frame * links.length + link]);
  // Of a frame, the share that a link was paused.
  const paused = (one, frame, link) => (one.paused ? one.paused[frame * links.length + link] / data.replay.full : 0);
  // The frame in which links were paused most.
  function worstPauses(one) {
    if (!one.paused) return null;
    const sums = Array.from({ length: one.frames }, (_, frame) => links.reduce((sum, _, link) => sum + paused(one, frame, link), 0));
    return sums.indexOf(Math.max(...sums));
  }
  const nodeAt = new Map(nodes.map(([called], node) => [called, node]));
  const most = Math.max(...rates);
  return { nodes, links, rates, most, levels, name, run, used, queue, pathOf, faultsAt, markAt, dropsAt, lostAt, paused, pausesOf, worstPauses, nodeAt, criticalAt, criticalLinks, hit: [...hits.keys()], hosts: nodes.filter(([, level]) => level === 0).length };
})();
