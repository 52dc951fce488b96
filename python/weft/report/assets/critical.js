// A stacked bar a scheme: where the time on the critical paths of collectives went.
function criticalRows() {
  const schemes = data.critical.schemes.map((spent, index) => ({ label: data.schemes[index].label, spent }));
  const seen = new Set(visible().map((scheme) => scheme.label));
  return schemes.filter((scheme) => scheme.spent && seen.has(scheme.label));
}

options.critical = () => {
  const schemes = criticalRows();
  if (!schemes.length) return { ...base(), ...empty("No collective finished") };
  const share = chosen.critical === "share";
  return stackedBars({
    schemes, share, parts: data.critical.parts, top: 72, stack: "critical",
    read: (scheme) => scheme.spent,
    sum: (scheme) => scheme.spent.reduce((total, value) => total + value, 0),
    title: share ? () => "share of the completion time" : (unit) => `completion time of collectives (${unit})`,
    decal: () => undefined,
  });
};
chosen.critical = "time";
drawnBy.critical = ["critical"];
tables.critical = () => ({
  heads: ["scheme", ...data.critical.parts.map((part) => `${part.title} (us)`)],
  rows: criticalRows().map((scheme) => [scheme.label, ...scheme.spent]),
});
