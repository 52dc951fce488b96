// What is run: as it stands in the address, as a spec, and as a command.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  const DEFAULT = {
    fabric: "leaf-spine", leaves: 4, spines: 4, hosts: 8, k: 4, drawing: "",
    a: "ecmp", b: "drill", transport: "dctcp", workload: "web-search", load: 0.7, flows: 200, seed: 1, faults: [],
  };
  const NUMBERS = {
    leaves: [2, 16], spines: [1, 8], hosts: [1, 32], k: [2, 6], flows: [1, 2000], seed: [0, 2 ** 31], load: [0.01, 1.5],
  };
  // What a link has besides the set-up: the instant in ps, the flow that is followed, where the slider of speed stands.
  const VIEW = { time: 0, follow: null, speed: 50 };
  const MOST_HOSTS = 64;
  // Switches learn of a fault soon, so that it can be watched; a spec that says nothing waits 10 ms.
  const REROUTE_AFTER = "200us";
  const SLOWED = "1Gbps";

  const time = (ps) => (ps % 1e6 ? `${ps}ps` : `${ps / 1e6}us`);
  const quote = (text) => JSON.stringify(text);

  // "cut~leaf0-spine1~1200000~": what, which cable, from when, until when, in ps.
  const writeFault = ({ what, link, at, until }) => [what, link, at, until ?? ""].join("~");

  function readFault(text) {
    const [what, link, at, until] = text.split("~");
    const known = (what === "cut" || what === "slow") && /^[\w.>-]+$/.test(link ?? "") && Number(at) >= 0;
    return known ? { what, link, at: Number(at), ...(until ? { until: Number(until) } : {}) } : null;
  }

  // The set-up, and what is looked at, as the address has them: only what is not as usual.
  function toHash(setup, view = VIEW) {
    const fields = new URLSearchParams();
    for (const [key, usual] of Object.entries(DEFAULT)) {
      const value = key === "faults" ? setup.faults.map(writeFault).join(";") : setup[key];
      if (String(value) !== String(usual)) fields.set(key, value);
    }
    for (const [key, usual] of Object.entries(VIEW)) if (view[key] !== usual) fields.set(key, view[key]);
    return `#${fields}`;
  }

  function fromHash(hash) {
    const fields = new URLSearchParams(hash.replace(/^#/, ""));
    const setup = structuredClone(DEFAULT);
    for (const [key, value] of fields) {
      if (key === "faults") setup.faults = value.split(";").map(readFault).filter(Boolean);
      else if (key in NUMBERS) setup[key] = bounded(key, Number(value));
      else if (key in DEFAULT) setup[key] = value;
    }
    return setup;
  }

  // What of the set-up is looked at; numbers that are none are left out.
  function viewOf(hash) {
    const fields = new URLSearchParams(hash.replace(/^#/, ""));
    const view = { ...VIEW };
    for (const key of Object.keys(VIEW)) if (/^\d{1,15}$/.test(fields.get(key) ?? "")) view[key] = Number(fields.get(key));
    return view;
  }

  function bounded(key, value) {
    const [least, most] = NUMBERS[key];
    return Number.isFinite(value) ? Math.min(most, Math.max(least, value)) : DEFAULT[key];
  }

  function hostsOf(setup) {
    if (setup.fabric === "fat-tree") return setup.k ** 3 / 4;
    if (setup.fabric === "graph") return Playground.drawing.hostsOf(setup.drawing);
    return setup.leaves * setup.hosts;
  }

  function problem(setup) {
    const hosts = hostsOf(setup);
    return hosts > MOST_HOSTS ? `${hosts} hosts: the playground draws up to ${MOST_HOSTS}. The command line takes more.` : null;
  }

  // The keys of the spec and their values, as TOML writes them.
  function keys(setup) {
    const fabric = {
      "leaf-spine": [["leaves", setup.leaves], ["spines", setup.spines], ["hosts_per_leaf", setup.hosts]],
      "fat-tree": [["k", setup.k]],
      graph: [["file", quote(Playground.drawing.FILE)]],
    }[setup.fabric];
    const fault = ({ what, link, at, until }) => {
      const effect = what === "cut" ? "down = true" : `rate = ${quote(SLOWED)}`;
      const end = until === undefined ? "" : `, until = ${quote(time(until))}`;
      return `{ link = ${quote(link)}, at = ${quote(time(at))}${end}, ${effect} }`;
    };
    return [
      ["run.seed", setup.seed],
      ["fabric.kind", quote(setup.fabric)],
      ...fabric.map(([key, value]) => [`fabric.${key}`, value]),
      ["fabric.reroute_after", quote(REROUTE_AFTER)],
      ...(setup.faults.length ? [["fabric.fault", `[${setup.faults.map(fault).join(", ")}]`]] : []),
      ["traffic.workload", quote(setup.workload)],
      ["traffic.load", setup.load],
      ["traffic.flows", setup.flows],
      ["transport.name", quote(setup.transport)],
    ];
  }

  function toSpec(setup) {
    const tables = new Map();
    for (const [key, value] of keys(setup)) {
      const [table, name] = key.split(".");
      tables.set(table, `${tables.get(table) ?? `[${table}]\n`}${name} = ${value}\n`);
    }
    return [...tables.values()].join("\n");
  }

  // The same for a shell, without the quotes that the command line does not need.
  function toCommand(setup) {
    const word = (text) => (/^[\w.,:=+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`);
    const bare = (value) => (/^"[\w.-]+"$/.test(value) ? value.slice(1, -1) : String(value));
    const sets = keys(setup).map(([key, value]) => `--set ${word(`${key}=${bare(value)}`)}`);
    return ["weft compare", `--schemes ${word(`${setup.a},${setup.b}`)}`, ...sets].join(" \\\n  ");
  }

  Object.assign(Playground, { setup: { DEFAULT, NUMBERS, MOST_HOSTS, toHash, fromHash, viewOf, bounded, hostsOf, problem, toSpec, toCommand } });
})();
