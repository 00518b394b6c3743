// Filters the matrix of the overview by text and by verdict.
function startOverview() {
  const table = document.getElementById("cells");
  const words = document.getElementById("filter-cases");
  const shown = document.getElementById("shown-cases");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const reasons = new Map();
  for (const trial of trials) {
    const said = [...(trial.result?.grades ?? []).filter((it) => it.passed !== true).map((it) => `${it.name} ${it.reason ?? ""}`), trial.result?.error?.message ?? ""].join(" ");
    reasons.set(trial.case, `${reasons.get(trial.case) ?? ""} ${said.toLowerCase()}`);
  }
  const texts = rows.map((row) => {
    const name = row.cells[0].textContent;
    return `${name.toLowerCase()} ${reasons.get(name) ?? ""}`;
  });
  const checks = [...document.querySelectorAll("#overview input[name=verdict]")];
  const apply = () => {
    const wanted = words.value.trim().toLowerCase();
    const on = new Set(checks.filter((it) => it.checked).map((it) => it.value));
    const all = on.size === checks.length;
    let count = 0;
    rows.forEach((row, at) => {
      const has = all || [...row.cells].some((cell) => (cell.dataset.verdicts ?? "").split(",").some((word) => on.has(word)));
      row.hidden = !(has && texts[at].includes(wanted));
      count += row.hidden ? 0 : 1;
    });
    shown.textContent = count === rows.length ? plural(rows.length, "case") : `${grouped(count)} of ${plural(rows.length, "case")}`;
  };
  words.addEventListener("input", apply);
  checks.forEach((it) => it.addEventListener("change", apply));
  apply();
  // A long list of problems repeats the matrix, and is closed at first.
  document.querySelectorAll("section.many details").forEach((it) => (it.open = false));
}
