// A run in an instance of the engine of its own, so that its memory goes with it.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  const LINK = { queued: 0, rate: 1, up: 2, bytes: 3, dropped: 4, marked: 5, count: 6 };
  const PACKET = { link: 0, flow: 1, kind: 2, segment: 3, bytes: 4, marked: 5, leaves: 6, arrives: 7, count: 8 };
  const FLOW = {
    took: 0, bytes: 1, host: 2, leaf: 3, spine: 4, last: 5, arrived: 6, behind: 7, moves: 8, resent: 9, count: 10,
  };
  // In the order of weft_packet::Kind.
  const KINDS = [
    "data", "ack", "syn", "syn-ack", "credit", "credit-request", "credit-stop", "control", "message",
    "nack", "cnp", "trimmed", "pause", "sender-ack",
  ];

  let module = null;

  // The engine stands as text in a script, since a page that is opened from a disk may fetch nothing.
  async function compile() {
    const packed = Uint8Array.from(atob(globalThis.WEFT_ENGINE), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  }

  async function engine() {
    module ??= compile();
    const instance = await WebAssembly.instantiate(await module, {});
    return instance.exports;
  }

  class Module {
    constructor(calls) {
      this.calls = calls;
    }

    text() {
      const bytes = new Uint8Array(this.calls.memory.buffer, this.calls.text_at(), this.calls.text_bytes());
      return JSON.parse(new TextDecoder().decode(bytes));
    }

    // A copy: the memory of the module moves when it grows.
    numbers(list) {
      return new Float64Array(this.calls.memory.buffer, this.calls.numbers_at(list), this.calls.numbers(list)).slice();
    }

    write(text) {
      const bytes = new TextEncoder().encode(text);
      const at = this.calls.room(bytes.length);
      new Uint8Array(this.calls.memory.buffer, at, bytes.length).set(bytes);
      return bytes.length;
    }
  }

  class Run {
    // Begins the run of a spec with this scheme; throws the engine's message if the spec has a mistake.
    // `files` are those that the spec names, by name.
    static async begin(spec, scheme, files = {}) {
      const module = new Module(await engine());
      for (const [name, text] of Object.entries(files)) {
        module.write(name + text);
        module.calls.give_file(new TextEncoder().encode(name).length);
      }
      const schemeBytes = new TextEncoder().encode(scheme).length;
      module.write(scheme + spec);
      const began = module.calls.begin(schemeBytes);
      const answer = module.text();
      if (!began) throw new Error(answer.error);
      return new Run(module, answer, scheme);
    }

    constructor(module, description, scheme) {
      Object.assign(this, { module, description, scheme });
      // 0: goes on; from 2 on it is over.
      this.state = 0;
      // The time up to which everything has happened, in ps.
      this.reached = 0;
      this.last = null;
      this.result = null;
    }

    get isOver() {
      return this.state >= 2;
    }

    // Goes on towards `until` until it is there or the clock of the machine says `deadline`.
    advance(until, deadline) {
      while (!this.isOver && this.reached < until && performance.now() < deadline) {
        this.state = this.module.calls.advance(until, 4000);
        this.reached = this.state === 1 ? until : Math.min(until, this.module.calls.now());
        if (this.isOver) {
          this.ended = this.module.calls.now();
          this.reached = until;
          this.look(this.ended);
          this.hops = this.module.calls.hops();
          this.takeDecisions();
          this.result = this.module.calls.finish() ? this.module.text() : null;
        }
      }
      if (this.isOver) this.reached = Math.max(this.reached, until);
      return this.reached >= until;
    }

    // What there is at this time, up to which the run has come: numbers of links, packets and flows.
    look(at) {
      if (this.result) return this.last;
      this.module.calls.look(at);
      this.hops = this.module.calls.hops();
      this.last = { at, links: this.module.numbers(0), packets: this.module.numbers(1), flows: this.module.numbers(2) };
      return this.last;
    }

    follow(flow) {
      this.decided = [];
      if (!this.result) this.module.calls.follow(flow ?? -1);
    }

    // The decisions about the followed flow since this was last asked.
    takeDecisions() {
      if (this.result) return [];
      this.module.calls.decisions();
      const taken = this.module.text();
      this.decided = [...(this.decided ?? []), ...taken].slice(-400);
      return taken;
    }
  }

  async function list() {
    const module = new Module(await engine());
    module.calls.list();
    return module.text();
  }

  // Packet-hops a second of a spec under a scheme, on one core, from its first event to its last: for the console.
  async function measure(spec, scheme) {
    const run = await Run.begin(spec, scheme);
    const begin = performance.now();
    run.advance(Number.MAX_SAFE_INTEGER, Infinity);
    return (run.hops * 1000) / (performance.now() - begin);
  }

  Object.assign(Playground, { Run, list, measure, LINK, PACKET, FLOW, KINDS });
})();
