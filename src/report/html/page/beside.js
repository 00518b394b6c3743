// Shows two trials side by side, aligned as snapshots are.
async function showBeside(box, one, other) {
  opened = null;
  box.replaceChildren();
  const body = el("div", { class: "waiting" }, "aligning …");
  add(box, [
    el("p", { class: "crumbs" }, el("a", { href: "#/" }, "Overview"), " / ", el("a", { href: "#/compare" }, "Comparison"), " / side by side"),
    el("h1", {}, one.case === other.case ? one.case : `${one.case} and ${other.case}`, " ", el("span", { class: "sub" }, "side by side")),
    body,
  ]);
  let left, right, leftTrace, rightTrace;
  try {
    [left, right, leftTrace, rightTrace] = await Promise.all([shapeOf(one), shapeOf(other), readTrace(one), readTrace(other)]);
  } catch (error) {
    body.textContent = `The trials could not be read: ${visible(error.message)}`;
    for (const trial of [one, other]) cache.delete(trial.number);
    return;
  }
  body.className = "";
  body.replaceChildren();
  const head = (trial) => el("th", { scope: "col" }, el("a", { href: `#/${trial.place}` }, `${one.case === other.case ? "" : `${trial.case} · `}${trial.column} · trial ${trial.trial}`), " ", verdict(trial.word), asideTag(trial), el("p", { class: "m-quiet" }, facts(trial).slice(0, 4).map(([name, value]) => `${name} ${value}`).join(" · ")));
  if (!left || !right) return add(body, [el("p", { class: "note" }, "These trials cannot be aligned: this page has no trace of one of them, or it is too long.")]);
  const pairs = alignItems(left, right);
  const same = pairs.filter(([n, m]) => n !== null && m !== null && itemKey(left[n]) === itemKey(right[m])).length;
  const only = el("input", { type: "checkbox" });
  const rows = pairs.map(([n, m]) => {
    const kind = n === null ? "added" : m === null ? "removed" : itemKey(left[n]) === itemKey(right[m]) ? "same" : "changed";
    const word = { added: "only right", removed: "only left", same: "same", changed: "different" }[kind];
    return el("tr", { class: `pair p-${kind}` }, el("td", {}, n === null ? null : itemView(one, leftTrace, left[n])), el("td", { class: "mark" }, word), el("td", {}, m === null ? null : itemView(other, rightTrace, right[m])));
  });
  const table = el("table", { class: "beside" }, el("thead", {}, el("tr", {}, head(one), el("th", { scope: "col" }, "alignment"), head(other))), el("tbody", {}, rows.slice(0, 2000)));
  only.addEventListener("change", () => table.classList.toggle("differences", only.checked));
  add(body, [
    el("div", { class: "tools" }, el("output", {}, `${plural(same, "equal part")}, ${plural(pairs.length - same, "difference")}`), el("label", { class: "check" }, only, "only differences")),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Two trials side by side" }, table),
    rows.length > 2000 ? el("p", { class: "note" }, `and ${plural(rows.length - 2000, "more part")}`) : null,
  ]);
}

async function shapeOf(trial) {
  const text = await wholePart(trial, "shape");
  return text === null ? null : JSON.parse(text);
}

function itemView(trial, trace, item) {
  const seqs = item.kind === "step" ? item.calls.map((call) => call.events[0]) : item.events;
  return seqs.map((seq) => {
    const event = trace.events[trace.at.get(seq)];
    if (!event) return el("p", {}, `#${seq}`);
    const { what, text } = summary(trace, event);
    const result = event.type === "tool_call" ? trace.calls.get(event.call)?.result : null;
    const ended = result && result.status !== "ok" ? el("span", { class: `m-${TONES[result.status]}` }, ` ${result.status}`) : null;
    const more = event.type === "tool_call" ? el("code", {}, oneLine(text, 200)) : el("span", {}, oneLine(text, 300));
    return el("p", {}, el("a", { class: "seq", href: `#/${trial.place}/event/${event.seq}` }, `#${event.seq}`), " ", el("span", { class: "what" }, what), " ", more, ended);
  });
}
