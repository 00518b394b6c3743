// Shows the part of the page that the address names.
const pages = { "": document.getElementById("overview"), compare: document.getElementById("compare"), trial: document.getElementById("trial") };
const scrolls = new Map();
let last = "";

function go(place) {
  location.hash = `#/${place}`;
}

function trialAt(place) {
  if (byPlace.has(place)) return byPlace.get(place);
  try {
    return trials.find((trial) => decodeURIComponent(trial.place) === decodeURIComponent(place));
  } catch {
    return undefined;
  }
}

function show() {
  const place = location.hash.replace(/^#\/?/, "").replace(/\/$/, "");
  scrolls.set(last, window.scrollY);
  last = place;
  if (place === "" || place === "compare") {
    page(place);
    document.title = `${place ? "Comparison · " : ""}${visible(run.label ? `${run.label} · ` : "")}${visible(run.run)} · evals`;
    window.scrollTo(0, scrolls.get(place) ?? 0);
    return;
  }
  const beside = place.split("/beside/");
  if (beside.length === 2 && trialAt(beside[0]) && trialAt(beside[1])) {
    page("trial");
    showBeside(pages.trial, trialAt(beside[0]), trialAt(beside[1]));
    window.scrollTo(0, 0);
    return;
  }
  const event = /^(.*)\/event\/(\d+)$/.exec(place);
  const trial = trialAt(event ? event[1] : place);
  page("trial");
  if (!trial) {
    opened = null;
    pages.trial.replaceChildren(el("h1", {}, "There is nothing at this place"), el("p", {}, el("code", {}, place)), el("p", {}, el("a", { href: "#/" }, "Overview")));
    return;
  }
  document.title = visible(`${trial.word}: ${trial.case} · ${trial.column} · trial ${trial.trial}`);
  if (opened?.trial !== trial) window.scrollTo(0, 0);
  showTrial(pages.trial, trial, event ? Number(event[2]) : undefined);
}

function page(name) {
  for (const [key, node] of Object.entries(pages)) node.hidden = key !== name;
  for (const link of document.querySelectorAll("#bar a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
