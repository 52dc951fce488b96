// A fabric that somebody draws: switches with hosts, and cables between them. As text: "x.y.hosts_x.y.hosts~0-1.1-2", in hundredths of the field.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  // Four edge switches, with three ways between any two.
  const EXAMPLE = "12.75.4_38.75.4_62.75.4_88.75.4_25.30.0_50.15.0_75.30.0~0-4.0-5.1-4.1-5.2-5.2-6.3-5.3-6.0-6.1-6.2-4.3-4";
  const FILE = "drawn.toml";
  const MOST_SWITCHES = 24;
  const REACH = 14;

  function parse(text) {
    const [nodes = "", cables = ""] = (text || EXAMPLE).split("~");
    const number = (found, most) => Math.min(most, Math.max(0, Math.round(Number(found)) || 0));
    const switches = nodes.split("_").filter(Boolean).slice(0, MOST_SWITCHES).map((node) => {
      const [x, y, hosts] = node.split(".");
      return { x: number(x, 100), y: number(y, 100), hosts: number(hosts, 32) };
    });
    const pairs = cables.split(".").map((cable) => cable.split("-").map(Number));
    const isGood = ([a, b]) => a !== b && switches[a] && switches[b];
    return { switches, cables: pairs.filter(isGood) };
  }

  function write({ switches, cables }) {
    const nodes = switches.map(({ x, y, hosts }) => `${Math.round(x)}.${Math.round(y)}.${hosts}`).join("_");
    return `${nodes}~${cables.map((pair) => pair.join("-")).join(".")}`;
  }

  const hostsOf = (text) => parse(text).switches.reduce((sum, { hosts }) => sum + hosts, 0);

  // The file of a fabric of kind "graph".
  function toFile(text) {
    const { switches, cables } = parse(text);
    const lines = [
      `hosts = [{ prefix = "h", count = ${hostsOf(text)} }]`,
      `switches = [{ prefix = "s", count = ${switches.length} }]`,
      'rate = "10Gbps"', 'delay = "1us"', "",
    ];
    const link = (from, to) => lines.push(`[[link]]`, `from = "${from}"`, `to = "${to}"`, "");
    let host = 0;
    switches.forEach(({ hosts }, number) => {
      for (let place = 0; place < hosts; place++) link(`h${host++}`, `s${number}`);
    });
    for (const [a, b] of cables) link(`s${a}`, `s${b}`);
    return lines.join("\n");
  }

  // Places of the nodes of such a fabric: hosts in a row below their switch.
  function places(text, fabric) {
    const { switches } = parse(text);
    const found = [];
    let host = 0;
    for (const { x, y, hosts } of switches) {
      for (let place = 0; place < hosts; place++) {
        const shift = (place - (hosts - 1) / 2) * Math.min(3.2, 22 / hosts);
        found[host++] = { x: (x + shift) / 100, y: Math.min(0.97, y / 100 + 0.15) };
      }
    }
    switches.forEach(({ x, y }, number) => (found[fabric.hosts + number] = { x: x / 100, y: y / 100 }));
    return found;
  }

  // A board to draw on. `changed` is called with the text of each new drawing.
  class Board {
    constructor(canvas, changed) {
      Object.assign(this, { canvas, changed, pen: canvas.getContext("2d"), selected: 0, from: null });
      canvas.addEventListener("pointerdown", (event) => this.begin(event));
      canvas.addEventListener("pointermove", (event) => this.move(event));
      canvas.addEventListener("pointerup", (event) => this.end(event));
      canvas.addEventListener("pointercancel", () => ((this.from = null), this.draw()));
    }

    show(text) {
      this.drawing = parse(text);
      this.selected = Math.min(this.selected, Math.max(this.drawing.switches.length - 1, 0));
      this.draw();
    }

    point(event) {
      const box = this.canvas.getBoundingClientRect();
      return { x: ((event.clientX - box.left) / box.width) * 100, y: ((event.clientY - box.top) / box.height) * 100 };
    }

    switchAt({ x, y }) {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      const near = (node) => Math.hypot(((node.x - x) * width) / 100, ((node.y - y) * height) / 100) < REACH;
      return this.drawing.switches.findIndex(near);
    }

    begin(event) {
      const at = this.point(event);
      this.from = { number: this.switchAt(at), at };
      this.to = at;
      this.canvas.setPointerCapture(event.pointerId);
    }

    move(event) {
      if (!this.from) return;
      this.to = this.point(event);
      this.draw();
    }

    // A click chooses a switch or adds one; a line from one switch to another adds or takes away their cable.
    end(event) {
      if (!this.from) return;
      const [{ number }, target] = [this.from, this.switchAt(this.point(event))];
      this.from = null;
      if (number < 0 && target < 0) return this.add(this.point(event));
      if (number >= 0 && target >= 0 && number !== target) return this.connect(number, target);
      if (number >= 0 && target < 0) return this.place(number, this.point(event));
      this.choose(target);
    }

    choose(number) {
      this.selected = number;
      this.draw();
      this.changed(write(this.drawing));
    }

    add(at = { x: 50, y: 50 }) {
      if (this.drawing.switches.length >= MOST_SWITCHES) return;
      this.drawing.switches.push({ ...at, hosts: 0 });
      this.choose(this.drawing.switches.length - 1);
    }

    place(number, at) {
      Object.assign(this.drawing.switches[number], at);
      this.choose(number);
    }

    connect(a, b) {
      const { cables } = this.drawing;
      const rest = cables.filter((pair) => !(pair.includes(a) && pair.includes(b)));
      this.drawing.cables = rest.length < cables.length ? rest : [...cables, [Math.min(a, b), Math.max(a, b)]];
      this.choose(b);
    }

    giveHosts(more) {
      const node = this.drawing.switches[this.selected];
      if (!node) return;
      node.hosts = Math.min(32, Math.max(0, node.hosts + more));
      this.choose(this.selected);
    }

    remove() {
      const { switches, cables } = this.drawing;
      const behind = (number) => number - (number > this.selected);
      switches.splice(this.selected, 1);
      this.drawing.cables = cables.filter((pair) => !pair.includes(this.selected)).map((pair) => pair.map(behind));
      this.choose(Math.max(0, this.selected - 1));
    }

    draw() {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      if (!width) return;
      const [{ pen }, theme, ratio] = [this, Playground.theme(), Math.min(devicePixelRatio || 1, 2)];
      this.canvas.width = width * ratio;
      this.canvas.height = height * ratio;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      const at = ({ x, y }) => [(x * width) / 100, (y * height) / 100];
      const line = (a, b, colour) => {
        pen.strokeStyle = colour;
        pen.lineWidth = 2;
        pen.beginPath();
        pen.moveTo(...at(a));
        pen.lineTo(...at(b));
        pen.stroke();
      };
      const { switches, cables } = this.drawing;
      for (const [a, b] of cables) line(switches[a], switches[b], theme.cable);
      if (this.from?.number >= 0) line(switches[this.from.number], this.to, theme.accent);
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      switches.forEach((node, number) => {
        const [x, y] = at(node);
        pen.fillStyle = number === this.selected ? theme.accent : theme.ink;
        pen.beginPath();
        pen.roundRect(x - 14, y - 10, 28, 20, 5);
        pen.fill();
        pen.fillStyle = theme.paper;
        pen.font = "600 11px ui-sans-serif, system-ui, sans-serif";
        pen.fillText(`s${number}`, x, y);
        pen.fillStyle = theme.soft;
        if (node.hosts) pen.fillText(`${node.hosts} hosts`, x, y + 19);
      });
    }
  }

  Object.assign(Playground, { drawing: { EXAMPLE, FILE, parse, write, hostsOf, toFile, places, Board } });
})();
