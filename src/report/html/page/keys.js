// The keyboard: j and k move, / filters, ? lists the keys.
function startKeys() {
  const help = document.getElementById("help");
  document.getElementById("show-help").addEventListener("click", () => help.showModal());
  document.getElementById("close-help").addEventListener("click", () => help.close());
  document.addEventListener("keydown", (press) => {
    const typing = press.target.closest?.("input[type=search], textarea, select");
    if (press.key === "Escape" && typing) return press.target.blur();
    if (typing || press.ctrlKey || press.metaKey || press.altKey || document.querySelector("dialog[open]")) return;
    const act = press.key === "Enter" && press.target.matches(".event") ? KEYS.o : KEYS[press.key];
    if (!act) return;
    press.preventDefault();
    act();
  });
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  n: () => turnPage(1),
  p: () => turnPage(-1),
  u: () => go(""),
  "/": () => [...document.querySelectorAll("input[type=search]")].find((it) => it.offsetParent)?.focus(),
  "?": () => document.getElementById("help").showModal(),
  w: () => here()?.querySelector(":scope > .head [data-do=wire]")?.click(),
  c: () => (here()?.querySelector(":scope > .head [data-do=copy]") ?? document.getElementById("copy-trial"))?.click(),
  o: openHere,
};

// Opens the link or the part with the focus, or else the first part of the event, cell or pair.
function openHere() {
  const own = document.activeElement?.matches("a, summary") ? document.activeElement : null;
  (own ?? here()?.querySelector("summary") ?? here()?.querySelector("a"))?.click();
}

function here() {
  return document.activeElement?.closest?.(".event, #cells td, .pair");
}

// Moves to the next or the previous event, cell or pair; opens the next section at the end of one.
function move(by) {
  const shown = [...document.querySelectorAll("main:not([hidden]) .event, main:not([hidden]) #cells tbody tr:not([hidden]) a, main:not([hidden]) .cases a, main:not([hidden]) .pair a")].filter((it) => it.offsetParent !== null);
  const current = document.activeElement?.closest?.(".event") ?? document.activeElement;
  const at = shown.indexOf(current);
  let next = shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : at + by];
  const section = current?.closest?.("details.section");
  const beyond = by > 0 ? section?.nextElementSibling : section?.previousElementSibling;
  if (section && beyond?.matches?.("details.section") && !beyond.open && !section.contains(next ?? null)) {
    beyond.build();
    beyond.open = true;
    const inner = [...beyond.querySelectorAll(".event")];
    next = by > 0 ? inner[0] : inner[inner.length - 1];
  }
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

// Goes to the next or the previous trial.
function turnPage(by) {
  const at = opened ? opened.trial.number + by : by > 0 ? 0 : trials.length - 1;
  if (trials[at]) go(trials[at].place);
}
