"use strict";
// Counts verdicts in the scenarios that agree with what is chosen.
const { scenarios, kinds } = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector(".choices");
const selects = [...form.querySelectorAll("select")];
const rows = [...document.querySelectorAll("tr[data-claim]")];
const matching = document.getElementById("matching");

function percent(share) {
  const value = 100 * share;
  return `${value > 0 && value < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
}

function show() {
  const wanted = selects.map((one) => (one.value === "" ? null : Number(one.value)));
  const chosen = scenarios.filter((one) => wanted.every((place, number) => place === null || one.at[number] === place));
  const only = chosen.length === 1 ? chosen[0] : null;
  matching.textContent = only ? `One scenario: ${only.scenario}` : `${chosen.length.toLocaleString("en")} of ${scenarios.length.toLocaleString("en")} scenarios`;
  rows.forEach((row, claim) => {
    const counts = kinds.map((_, kind) => chosen.filter((one) => one.verdicts[claim] === kind).length);
    row.querySelectorAll(".bar span").forEach((part, kind) => { part.style.flex = String(counts[kind]); });
    const told = counts.map((count, kind) => (count ? `${count.toLocaleString("en")} ${kinds[kind]}` : "")).filter(Boolean);
    const measured = only && only.measured[claim] !== null ? `; measured: ${only.measured[claim]}` : "";
    row.querySelector(".counts").textContent = (told.join(", ") || "no such scenario") + measured;
    row.querySelector(".share").textContent = chosen.length ? percent(counts[0] / chosen.length) : "-";
  });
}

form.addEventListener("change", show);
form.addEventListener("reset", () => setTimeout(show));
document.getElementById("default-scenario").addEventListener("click", () => {
  for (const one of selects) one.value = "0";
  show();
});
show();
