// The page: what is chosen is run, what is run is shown.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});
  const { Run, Player, Picture, Pairs, Difference, LINK, make, showClock, showTime, showBytes, showCount } = Playground;
  const { controls, panels, setup: setups } = Playground;
  const { get } = panels;

  // Panels change slower than pictures: so they can be read.
  const PANEL_MS = 250;
  const SPEEDS = [0.5e6, 20e9];
  // Who comes for the first time sees a fabric at work: by then queues have built up.
  const BUSY_PS = 5e9;

  const state = { setup: setups.DEFAULT, followed: null, selected: "", lists: null, faultsOf: null };
  let pictures, pairs, difference, player, board, popup, panelsAt = 0, loading = 0, titles = ["", ""];

  const names = () => [state.setup.a, state.setup.b];

  // Begins both runs of the set-up, and goes to this time.
  async function load(time = 0) {
    const turn = ++loading;
    const { setup } = state;
    popup.hide();
    showAddress(time);
    controls.show(setup);
    showBoard(setup);
    showCommand();
    const problem = setups.problem(setup);
    try {
      if (problem) throw new Error(problem);
      const spec = setups.toSpec(setup);
      const files = setup.fabric === "graph" ? { [Playground.drawing.FILE]: Playground.drawing.toFile(setup.drawing) } : {};
      const runs = [await Run.begin(spec, setup.a, files), await Run.begin(spec, setup.b, files)];
      if (turn !== loading) return;
      tell("");
      adopt(runs, time);
    } catch (error) {
      if (turn === loading) tell(error.message);
    }
  }

  function adopt(runs, time) {
    const [{ description }] = runs;
    titles = runs.map((run) => state.lists.schemes.find(({ name }) => name === run.scheme.split(":")[0])?.title ?? "");
    if (state.followed !== null && state.followed >= description.flows.length) state.followed = null;
    const colours = Playground.colours(...names());
    const { fabric } = description;
    const isDrawn = state.setup.fabric === "graph";
    const places = isDrawn ? Playground.drawing.places(state.setup.drawing, fabric) : Playground.layout(fabric);
    pictures.forEach((picture, side) => picture.show(fabric, places, colours[side]));
    for (const run of runs) run.follow(state.followed);
    showCables();
    showFlows(description);
    get("result").textContent = "";
    player.load(runs, time);
  }

  // The address has the set-up and what is looked at: so a link and a reload come back to it.
  function showAddress(time = player.time) {
    const view = { time: Math.round(time), follow: state.followed, speed: Number(get("speed").value) };
    history.replaceState(null, "", setups.toHash(state.setup, view));
  }

  function tell(message) {
    get("message").textContent = message;
    get("message").hidden = !message;
  }

  // The board of a drawn fabric, and the same as lists.
  function showBoard({ fabric, drawing }) {
    if (fabric !== "graph") return;
    board.show(drawing);
    const { switches, cables } = board.drawing;
    const isJoined = (number) => cables.some((pair) => pair.includes(number) && pair.includes(board.selected));
    const option = (text) => (_, number) => make("option", { value: number }, text(number));
    get("switch").replaceChildren(...switches.map(option((number) => `s${number}, ${switches[number].hosts} hosts`)));
    get("switch").value = board.selected;
    const others = switches.map(option((number) => `s${number}${isJoined(number) ? " (take away)" : ""}`));
    get("connect").replaceChildren(make("option", { value: "" }, "choose"), ...others.filter((_, number) => number !== board.selected));
  }

  function showCommand() {
    get("command").textContent = setups.toCommand(state.setup);
  }

  function frame() {
    const theme = Playground.theme();
    const colours = Playground.colours(...names());
    const { description } = player.runs[0];
    const flow = description.flows[state.followed];
    pictures.forEach((picture, side) => {
      picture.colour = colours[side];
      picture.draw(player.seen[side], {
        theme, selected: state.selected, followed: state.followed,
        ends: flow ? [flow[1], flow[2]] : null, isPlaying: player.isPlaying,
      });
    });
    get("clock").textContent = showClock(player.time);
    get("play").textContent = player.isPlaying ? "Pause" : "Play";
    get("play").setAttribute("aria-pressed", player.isPlaying);
    if (performance.now() - panelsAt > PANEL_MS || !player.isPlaying) showPanels(theme, colours);
  }

  function showPanels(theme, colours) {
    panelsAt = performance.now();
    const { flows } = player.runs[0].description;
    const compared = Playground.compare(flows, player.seen);
    const drops = player.seen.map(({ links }) => {
      let sum = 0;
      for (let at = LINK.dropped; at < links.length; at += LINK.count) sum += links[at];
      return sum;
    });
    panels.showFigures(compared, drops, names(), flows.length, player.ended);
    panels.showWaits(compared.totals, names());
    pairs.draw(theme, compared.pairs, names(), colours, state.followed);
    difference.draw(theme, Playground.differences(flows, compared.pairs), names(), colours, state.setup.faults);
    for (const run of player.runs) run.takeDecisions();
    panels.showDecisions(player.runs, titles);
    player.runs.forEach((run, side) => {
      get(`live-${side ? "b" : "a"}`).textContent = `${showCount(run.hops)} packet-hops`;
    });
  }

  function ended() {
    const prints = player.runs.map((run) => run.result?.fingerprint);
    get("result").replaceChildren(
      `Over after ${showTime(player.end)}. The command above gives the same bytes: fingerprints of all tables `,
      make("code", {}, prints[0] ?? "?"), " and ", make("code", {}, prints[1] ?? "?"), ".",
    );
  }

  // Flows by what can be seen of them: the largest first.
  function showFlows({ flows, fabric }) {
    const order = flows.map((_, flow) => flow).sort((a, b) => flows[b][3] - flows[a][3]);
    const name = (flow) => {
      const [start, from, to, bytes] = flows[flow];
      return `${flow}: ${fabric.names[from]} to ${fabric.names[to]}, ${showBytes(bytes)}, at ${showTime(start)}`;
    };
    get("flow").replaceChildren(make("option", { value: "" }, "none"), ...order.map((flow) => make("option", { value: flow }, name(flow))));
    get("flow").value = state.followed ?? "";
  }

  // Of a flow that has begun, the runs begin anew and come back to now: so that all that was decided about it is told.
  function follow(flow) {
    if (flow === state.followed) return;
    state.followed = flow;
    get("flow").value = flow ?? "";
    if (flow !== null && player.runs[0].description.flows[flow][0] < player.time) return load(player.time);
    for (const run of player.runs) run.follow(flow);
    showAddress();
    player.draw();
  }

  // Follows a flow of a host: one that is under way now, else the next one.
  function followHost(host) {
    const { flows } = player.runs[0].description;
    const own = flows.map((flow, number) => ({ flow, number })).filter(({ flow }) => flow[1] === host || flow[2] === host);
    const goesOn = ({ flow, number }) => flow[0] <= player.time && player.seen.some(({ flows: now }) => now[number * Playground.FLOW.count] < 0);
    const found = own.filter(goesOn).sort((a, b) => b.flow[3] - a.flow[3])[0] ?? own.find(({ flow }) => flow[0] > player.time);
    if (found) follow(found.number);
  }

  function showCables() {
    const { cables } = pictures[0];
    const option = ({ name }) => make("option", { value: name }, name);
    get("cable").replaceChildren(make("option", { value: "" }, "choose a cable"), ...cables.filter((cable) => !cable.isHosts).map(option), ...cables.filter((cable) => cable.isHosts).map(option));
    if (!cables.some(({ name }) => name === state.selected)) state.selected = "";
    get("cable").value = state.selected;
    showFaults();
  }

  const isFaulty = (cable) => state.setup.faults.some(({ link, until }) => link === cable && until === undefined);

  function showFaults() {
    const { faults } = state.setup;
    const open = isFaulty(state.selected);
    for (const what of ["cut", "slow"]) get(what).disabled = !state.selected || open;
    get("mend").disabled = !open;
    const chip = (fault, place) => {
      const what = fault.what === "cut" ? "cut" : "slowed to 1 Gbit/s";
      const until = fault.until === undefined ? "" : `, mended at ${showTime(fault.until)}`;
      const remove = make("button", { type: "button", "aria-label": `forget that ${fault.link} was ${what}` }, "×");
      remove.addEventListener("click", () => change({ faults: faults.filter((_, other) => other !== place) }, player.time));
      return make("li", {}, `${fault.link} ${what} at ${showTime(fault.at)}${until}`, remove);
    };
    get("faults").replaceChildren(...faults.map(chip));
  }

  function choose(cable) {
    state.selected = cable;
    popup.hide();
    get("cable").value = cable;
    showFaults();
    player.draw();
  }

  // Cuts, slows or mends the chosen cable from now on: the runs begin anew with that in their spec, and come back to now.
  function act(what) {
    const at = Math.ceil(player.time / 1e3) * 1e3;
    const { selected, setup } = { ...state };
    if (!selected) return;
    const isOpen = ({ link, until }) => link === selected && until === undefined;
    const faults =
      what === "mend"
        ? setup.faults.flatMap((fault) => (!isOpen(fault) ? [fault] : fault.at < at ? [{ ...fault, until: at }] : []))
        : [...setup.faults, { what, link: selected, at }];
    change({ faults }, player.time);
  }

  function change(changes, time = 0) {
    Object.assign(state, { setup: { ...state.setup, ...changes } });
    return load(time);
  }

  // Another fabric has other cables.
  function changed() {
    const next = controls.read(state.setup);
    const isOther = ["fabric", "leaves", "spines", "hosts", "k", "drawing"].some((key) => next[key] !== state.setup[key]);
    change({ ...next, ...(isOther ? { faults: [] } : {}) });
  }

  // Looks at what an address says; returns the time that it says.
  function look(hash) {
    const { time, follow, speed } = setups.viewOf(hash);
    state.followed = follow;
    get("speed").value = speed;
    setSpeed();
    return time;
  }

  function setSpeed() {
    const share = Number(get("speed").value) / 100;
    player.speed = SPEEDS[0] * (SPEEDS[1] / SPEEDS[0]) ** share;
    get("speed-text").textContent = `${showTime(player.speed, 2)} a second`;
    get("speed").setAttribute("aria-valuetext", get("speed-text").textContent);
  }

  function pointer(picture, event) {
    const box = picture.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  function listen() {
    get("setup").addEventListener("change", changed);
    get("setup").addEventListener("submit", (event) => event.preventDefault());
    for (const side of ["a", "b"]) controls.field(side).addEventListener("change", changed);
    get("play").addEventListener("click", play);
    get("step").addEventListener("click", () => player.step());
    get("again").addEventListener("click", () => load());
    get("finish").addEventListener("click", () => player.seek(Number.MAX_SAFE_INTEGER));
    get("speed").addEventListener("input", setSpeed);
    get("speed").addEventListener("change", () => showAddress());
    get("cable").addEventListener("change", () => choose(get("cable").value));
    for (const what of ["cut", "slow", "mend"]) get(what).addEventListener("click", () => act(what));
    get("flow").addEventListener("change", () => follow(get("flow").value === "" ? null : Number(get("flow").value)));
    get("copy-link").addEventListener("click", () => {
      showAddress();
      copy(location.href, get("copy-link"));
    });
    get("copy-command").addEventListener("click", () => copy(get("command").textContent, get("copy-command")));
    get("save").addEventListener("click", save);
    get("add-switch").addEventListener("click", () => board.add());
    get("remove-switch").addEventListener("click", () => board.remove());
    get("more-hosts").addEventListener("click", () => board.giveHosts(1));
    get("fewer-hosts").addEventListener("click", () => board.giveHosts(-1));
    get("switch").addEventListener("change", () => board.choose(Number(get("switch").value)));
    get("connect").addEventListener("change", () => board.connect(board.selected, Number(get("connect").value)));
    for (const picture of pictures) {
      picture.canvas.addEventListener("click", (event) => {
        const point = pointer(picture, event);
        const host = picture.hostAt(point);
        if (host !== null) return followHost(host);
        const name = picture.cableAt(point)?.name ?? "";
        choose(name);
        if (name) popup.show(name, isFaulty(name), event);
      });
      picture.canvas.addEventListener("mousemove", (event) => {
        const point = pointer(picture, event);
        const name = picture.fabric?.names[picture.hostAt(point)] ?? picture.cableAt(point)?.name ?? "";
        picture.canvas.style.cursor = name ? "pointer" : "default";
        picture.canvas.title = name;
      });
    }
    get("pairs").addEventListener("click", (event) => {
      const flow = pairs.flowAt(pointer(pairs, event));
      if (flow !== null) follow(flow);
    });
    document.addEventListener("keydown", keys);
    addEventListener("hashchange", () => change(setups.fromHash(location.hash), look(location.hash)));
    new ResizeObserver(() => {
      pictures.forEach((picture) => picture.fit());
      player.draw();
    }).observe(get("stage"));
    new MutationObserver(() => player.draw()).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  }

  function play() {
    player.play();
    if (!player.isPlaying) showAddress();
  }

  // A field keeps its keys, a button and a link the space. What is taken here goes no further: the guide has a full stop turn the page.
  function keys(event) {
    const act = { " ": play, ".": () => player.step(), "0": () => load(), Escape: () => popup.hide() }[event.key];
    const own = event.key === " " ? "a, button, input, select, textarea" : 'input:not([type="range"]), select, textarea';
    if (!act || event.ctrlKey || event.metaKey || event.altKey || event.target.closest(own)) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  async function copy(text, button) {
    const usual = (button.dataset.usual ??= button.textContent);
    const say = (text) => {
      button.textContent = text;
      setTimeout(() => (button.textContent = usual), 1500);
    };
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      say("Copy it by hand");
    }
  }

  function save() {
    const { FILE, toFile } = Playground.drawing;
    download("playground.toml", setups.toSpec(state.setup));
    if (state.setup.fabric === "graph") download(FILE, toFile(state.setup.drawing));
  }

  function download(name, text) {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    make("a", { href: address, download: name }).click();
    URL.revokeObjectURL(address);
  }

  async function start() {
    if (!document.getElementById("pg-stage")) return;
    if (!globalThis.WEFT_ENGINE) {
      get("missing").hidden = false;
      return;
    }
    document.querySelector(".pg").hidden = false;
    pictures = ["a", "b"].map((side) => new Picture(get(`picture-${side}`)));
    pairs = new Pairs(get("pairs"));
    difference = new Difference(get("difference"));
    player = new Player(frame, ended);
    board = new Playground.drawing.Board(get("board"), (drawing) => change({ drawing, faults: [] }));
    state.lists = await Playground.list();
    controls.fill(state.lists);
    popup = new Playground.Popup(get("popup"), act);
    state.setup = setups.fromHash(location.hash);
    listen();
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const playsByItself = !location.hash.slice(1) && !isCalm;
    const time = look(location.hash);
    await load(playsByItself ? BUSY_PS : time);
    if (playsByItself) player.play(true);
    Object.assign(Playground, { state, player, change, follow, choose });
    document.querySelector(".pg").dataset.ready = "true";
  }

  start().catch((error) => tell(`The engine does not start in this browser: ${error.message}`));
})();
