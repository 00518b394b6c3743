// Shows the part of the page that the address names.
const pages = { "": document.getElementById("overview"), compare: document.getElementById("compare"), trial: document.getElementById("trial") };
const left = new Map();
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

// Returns what a place names: a trial, an event of it, or two trials. The links of this page encode `beside` and `event` in
// names. Older links do not, so that each division is tried.
function namedBy(place) {
  if (byPlace.has(place)) return { trial: byPlace.get(place) };
  for (let at = place.indexOf("/beside/"); at >= 0; at = place.indexOf("/beside/", at + 1)) {
    const [one, other] = [trialAt(place.slice(0, at)), trialAt(place.slice(at + "/beside/".length))];
    if (one && other) return { one, other };
  }
  const event = /^(.*)\/event\/(\d+)$/.exec(place);
  const trial = event ? trialAt(event[1]) : undefined;
  return trial ? { trial, event: Number(event[2]) } : { trial: trialAt(place) };
}

function nameOf(trial) {
  return `${trial.case} · ${trial.column} · trial ${trial.trial}`;
}

function show() {
  const place = location.hash.replace(/^#\/?/, "").replace(/\/$/, "");
  left.set(last, { scroll: window.scrollY, focus: document.activeElement });
  last = place;
  tell("");
  if (place === "" || place === "compare") {
    page(place);
    document.title = `${place ? "Comparison · " : ""}${visible(run.label ? `${run.label} · ` : "")}${visible(run.run)} · evals`;
    const before = left.get(place);
    before?.focus?.focus({ preventScroll: true });
    window.scrollTo(0, before?.scroll ?? 0);
    return;
  }
  const { trial, event, one, other } = namedBy(place);
  page("trial");
  if (one) {
    document.title = visible(`side by side: ${nameOf(one)} and ${nameOf(other)}`);
    showBeside(pages.trial, one, other);
    window.scrollTo(0, 0);
    return;
  }
  if (!trial) {
    opened = null;
    document.title = "There is nothing at this place · evals";
    pages.trial.replaceChildren(el("h1", {}, "There is nothing at this place"), el("p", {}, el("code", {}, place)), el("p", {}, el("a", { href: "#/" }, "Overview")));
    return;
  }
  document.title = visible(`${trial.word}${trial.quarantine ? " in quarantine" : ""}: ${nameOf(trial)}`);
  if (opened?.trial !== trial) window.scrollTo(0, 0);
  showTrial(pages.trial, trial, event);
}

function page(name) {
  for (const [key, node] of Object.entries(pages)) node.hidden = key !== name;
  for (const link of document.querySelectorAll("#bar a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
