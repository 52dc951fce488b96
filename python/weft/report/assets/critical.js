// A stacked bar a scheme: where the time on the critical paths of collectives went.
function criticalRows() {
  const schemes = data.critical.schemes.map((breakdown, index) => ({ label: data.schemes[index].label, breakdown }));
  const seen = new Set(visible().map((scheme) => scheme.label));
  return schemes.filter((scheme) => scheme.breakdown && seen.has(scheme.label));
}

options.critical = () => {
  const schemes = criticalRows();
  if (!schemes.length) return { ...base(), ...empty("No collective finished") };
  const share = chosen.critical === "share";
  return stackedBars({
    schemes, share, parts: data.critical.parts, top: 72, stack: "critical",
    read: (scheme) => scheme.breakdown,
    sum: (scheme) => scheme.breakdown.reduce((total, value) => total + value, 0),
    title: share ? () => "share of the completion time" : (unit) => `completion time of collectives (${unit})`,
    decal: () => undefined,
  });
};
chosen.critical = "time";
drawnBy.critical = ["critical"];
tables.critical = () => ({
  heads: ["scheme", ...data.critical.parts.map((part) => `${part.title} (us)`)],
  rows: criticalRows().map((scheme) => [scheme.label, ...scheme.breakdown]),
});
