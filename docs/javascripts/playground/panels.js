// What stands below the pictures: figures of both runs, why, and the decisions about one flow.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});
  const { make, showTime, showCount, showBytes } = Playground;

  const TIER_NAMES = ["host (NIC)", "leaf uplink", "spine downlink", "last hop"];
  const TIER_COLOURS = Object.values(Playground.TIERS);
  const get = (id) => document.getElementById(`pg-${id}`);

  function showFigures({ totals, pairs }, drops, names, flows, isOver) {
    const [a, b] = totals;
    const row = (name, values, better) => {
      const cells = values.map((value, side) => make("td", better === side ? { class: "pg-best" } : {}, value));
      return make("tr", {}, make("th", { scope: "row" }, name), ...cells);
    };
    const least = (x, y) => (x === y ? null : x < y ? 0 : 1);
    const share = (total) => (total.arrived ? total.behind / total.arrived : 0);
    const percent = (value) => `${(value * 100).toFixed(value < 0.1 ? 2 : 1)} %`;
    const head = make("tr", {}, make("th", { scope: "col" }, ""), ...names.map((name) => make("th", { scope: "col" }, name)));
    get("figures").replaceChildren(
      make("thead", {}, head),
      make(
        "tbody", {},
        row("flows done", [a, b].map((total) => `${total.done} of ${flows}`), null),
        row(`mean completion time of the ${pairs.length} done under both`, [a, b].map((total) => (total.mean === null ? "–" : showTime(total.mean))), pairs.length ? least(a.mean, b.mean) : null),
        row("packets out of order", [a, b].map((total) => percent(share(total))), least(share(a), share(b))),
        row("segments sent again", [a, b].map((total) => showCount(total.resent)), least(a.resent, b.resent)),
        row("packets dropped", drops.map(showCount), least(...drops)),
        row("path changes of flows", [a, b].map((total) => showCount(total.moves)), null),
      ),
    );
    get("verdict").textContent = verdict(totals, pairs, names, isOver);
  }

  function verdict([a, b], pairs, names, isOver) {
    const [when, who] = isOver ? ["In the end", "Flows"] : ["So far", "So far flows"];
    if (pairs.length < 2) return "Play, and the difference grows here as flows end.";
    const share = b.mean / a.mean - 1;
    if (Math.abs(share) < 0.005) return `${when} ${names[0]} and ${names[1]} take the same time.`;
    const size = Math.abs(share) >= 1 ? `${(b.mean / a.mean).toFixed(1)} times the time of` : `${Math.round(Math.abs(share) * 100)} % ${share < 0 ? "less" : "more"} time than`;
    return `${who} under ${names[1]} take ${size} under ${names[0]}. One seed is no proof: run it in full with several.`;
  }

  // Where a packet waited on average, as two bars of one scale.
  function showWaits(totals, names) {
    const means = totals.map((total) => total.waits.map((ps) => (total.arrived ? ps / total.arrived : 0)));
    const most = Math.max(1, ...means.map((waits) => waits.reduce((sum, wait) => sum + wait, 0)));
    const bar = (waits, side) => {
      const sum = waits.reduce((total, wait) => total + wait, 0);
      const parts = waits.map((wait, tier) => {
        const style = `width:${(100 * wait) / most}%;background:${TIER_COLOURS[tier]}`;
        return make("span", { style, title: `${TIER_NAMES[tier]}: ${showTime(wait)}` });
      });
      return make("div", { class: "pg-wait" }, make("b", {}, names[side]), make("div", { class: "pg-bar" }, ...parts), make("span", {}, showTime(sum)));
    };
    const key = TIER_NAMES.map((name, tier) => make("span", {}, make("i", { style: `background:${TIER_COLOURS[tier]}` }), name));
    get("waits").replaceChildren(...means.map(bar), make("div", { class: "pg-key" }, ...key));
    const differences = means[0].map((wait, tier) => [wait - means[1][tier], tier]);
    const [largest, tier] = differences.reduce((best, one) => (Math.abs(one[0]) > Math.abs(best[0]) ? one : best));
    const [less, more] = largest > 0 ? [1, 0] : [0, 1];
    get("why").textContent =
      Math.abs(largest) < 1e4
        ? "Packets wait alike under both so far."
        : `A packet waits ${showTime(means[more][tier])} at the ${TIER_NAMES[tier]} under ${names[more]}, ${showTime(means[less][tier])} under ${names[less]}.`;
  }

  // The latest decisions about the followed flow, of each run.
  function showDecisions(runs, titles) {
    runs.forEach((run, side) => {
      const taken = alike((run.decided ?? []).filter(({ kind }) => kind !== "ack")).slice(-6).reverse();
      const items = taken.map((decision) => decisionItem(decision, titles[side]));
      get(`why-${side ? "b" : "a"}`).replaceChildren(...(items.length ? items : [make("li", { class: "pg-none" }, "no decision yet")]));
    });
  }

  // Decisions in a row that differ in their figures only are one, the latest.
  function alike(decisions) {
    const rows = new Map();
    const found = [];
    for (const decision of decisions) {
      const rule = `${decision.to} ${decision.reason?.replace(/[\d.]+/g, "")}`;
      const last = rows.get(decision.node);
      const row = last?.rule === rule ? last : { rule, packets: 0 };
      if (row !== last) found.push(row);
      rows.set(decision.node, Object.assign(row, decision, { packets: row.packets + 1 }));
    }
    return found;
  }

  function decisionItem({ at, node, kind, segment, to, port, reason, queues, packets }, title) {
    const more = packets > 1 ? `, and ${packets - 1} before it` : "";
    const where = make("span", { class: "pg-when" }, `${(at / 1e6).toFixed(2)} µs · ${node} · ${kind} ${segment}${more}`);
    const arrow = to ? make("b", {}, ` → ${to} (port ${port})`) : "";
    const most = Math.max(1, ...queues.map((queue) => queue.bytes));
    const bars = queues.slice(0, 16).map(({ to: far, bytes }) => {
      const style = `height:${3 + (13 * bytes) / most}px`;
      return make("i", { style, class: far === to ? "pg-taken" : "", title: `${far}: ${showBytes(bytes)} queued` });
    });
    return make("li", {}, where, make("span", {}, reason ?? title), arrow, make("span", { class: "pg-queues" }, ...bars));
  }

  Object.assign(Playground, { panels: { showFigures, showWaits, showDecisions, get } });
})();
