// The colour of each scheme, light and dark, as in every figure (python/weft/palette.py; a test compares them).
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  const BLUE = ["#0072B2", "#3E9BDC"], RED = ["#D55E00", "#F0813A"], GREEN = ["#009E73", "#1FC496"];
  const PINK = ["#CC79A7", "#E095BF"], SKY = ["#56B4E9", "#8CD0F7"], YELLOW = ["#E69F00", "#F2B93B"];
  const SCHEMES = {
    ecmp: ["#595959", "#B8B8B8"], oracle: ["#111111", "#F5F5F5"],
    meet: RED, tr: RED, qall: RED, lbt: RED, conga: BLUE, drb: BLUE, "qall-poly": BLUE, plb: BLUE,
    letflow: GREEN, hedera: GREEN, hermes: PINK, rps: PINK, hula: PINK, drill: SKY, wcmp: SKY,
    clove: YELLOW, presto: YELLOW, flowbender: YELLOW, reps: GREEN, ofan: GREEN, ar: PINK, conweave: SKY,
    flowcut: SKY, oblivious: YELLOW, bitmap: YELLOW,
  };
  // Where packets wait.
  const TIERS = { host: "#999999", leaf: "#0072B2", spine: "#E69F00", last: "#56B4E9" };

  const isDark = () => document.body.dataset.mdColorScheme === "slate";

  // The colours of two schemes; two of one colour are told apart.
  function colours(a, b) {
    const shade = isDark() ? 1 : 0;
    const own = (scheme) => SCHEMES[scheme.split(":")[0]] ?? BLUE;
    const first = own(a);
    const second = own(b) === first ? [RED, BLUE].find((other) => other !== first) : own(b);
    return [first[shade], second[shade]];
  }

  // What the theme has, for pictures.
  function theme() {
    const style = getComputedStyle(document.querySelector(".pg"));
    const value = (name) => style.getPropertyValue(name).trim();
    return Object.fromEntries(
      ["ink", "soft", "faint", "paper", "cable", "hot", "accent"].map((name) => [name, value(`--pg-${name}`)]),
    );
  }

  Object.assign(Playground, { SCHEME_COLOURS: SCHEMES, TIERS, colours, theme });
})();
