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
    }
    return one;
  }

  const used = (one, frame, link) => one.used[frame * links.length + link] / data.replay.full;
  const queue = (one, frame, link) => bytesOf(one.queues[frame * links.length + link]);
  const most = Math.max(...rates);
  return { nodes, links, rates, most, levels, name, run, used, queue, pathOf, hosts: nodes.filter(([, level]) => level === 0).length };
})();
