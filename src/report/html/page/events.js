// Shows the events of a trial: filters, sections that are built when they are opened, one row for each event.
const ALL_OPEN = 400;
const FILTERED = 300;

function eventsView(trial, trace, target) {
  // In a long trace, the browser leaves out the layout of what is outside the window.
  const list = el("div", { class: trace.events.length > ALL_OPEN ? "events long" : "events" });
  const view = { trial, trace, list, relative: relativeTo(trace) };
  const filter = filters(view);
  showSections(view, target);
  view.goTo = (seq) => goTo(view, filter, seq);
  return [el("div", {}, filter.box, list), view];
}

function showSections(view, target) {
  const { trace, list } = view;
  list.replaceChildren();
  view.parts = trace.sections.map((section, number) => {
    const here = target !== undefined && trace.at.get(target) >= section.from && trace.at.get(target) < section.to;
    const open = trace.events.length <= ALL_OPEN || here || (number === 0 && target === undefined);
    return { section, node: fold(sectionTitle(trace, section), () => rows(view, trace.events.slice(section.from, section.to)), { class: "section", open }) };
  });
  add(list, view.parts.map((part) => part.node));
}

function sectionTitle(trace, section) {
  const [first, last] = [trace.events[section.from], trace.events[section.to - 1]];
  const parts = [section.turn ? `turn ${section.turn}` : "before the first turn"];
  if (section.steps.length) parts.push(section.steps[0] === section.steps[1] ? `step ${section.steps[0]}` : `steps ${section.steps[0]}–${section.steps[1]}`);
  parts.push(`events ${grouped(first.seq)}–${grouped(last.seq)}`);
  if (section.calls) parts.push(plural(section.calls, "tool call"));
  if (section.failed) parts.push(`${grouped(section.failed)} not ok`);
  if (trace.timed) parts.push(`${duration(first.at_ms)} to ${duration(last.at_ms)}`);
  return parts.join(" · ");
}

// Rows in order; steps get a heading, and what a sub-agent did is folded.
function rows(view, events) {
  const out = [];
  let step = -1;
  for (let n = 0; n < events.length; n += 1) {
    const event = events[n];
    if (event.parent) {
      // Usage and notices of the main agent do not divide what a sub-agent did; they follow it.
      const [own, aside, waiting] = [[], [], []];
      for (let end = n; end < events.length; end += 1) {
        if (events[end].parent) {
          own.push(events[end]);
          aside.push(...waiting.splice(0));
          n = end;
        } else if (events[end].type === "usage" || events[end].type === "notice") {
          waiting.push(events[end]);
        } else {
          break;
        }
      }
      out.push(subAgent(view, own), ...aside.map((it) => row(view, it)));
      continue;
    }
    if (event.type === "tool_call" && event.step !== step) {
      step = event.step;
      out.push(el("p", { class: "step" }, `Step ${step}`));
    }
    out.push(row(view, event));
  }
  return out;
}

function subAgent(view, events) {
  const parents = [...new Set(events.map((event) => event.parent))];
  const call = view.trace.calls.get(parents[0])?.call;
  const about = call ? oneLine(`${callTitle(call)} ${callAbout(view.trace, call)}`, 90) : parents[0];
  const title = `${parents.length > 1 ? `${parents.length} sub-agents` : "sub-agent"} of ${about} · ${plural(events.length, "event")}, #${events[0].seq} to #${events[events.length - 1].seq}`;
  const node = fold(title, () => events.map((event) => row(view, event)), { class: "sub" });
  node.holds = (seq) => events.some((event) => event.seq === seq);
  return node;
}

const TONES = { ok: "good", error: "bad", denied: "errored", cancelled: "open", unfinished: "open", allowed: "good", rejected: "bad" };

function row(view, event) {
  const { trial, trace } = view;
  const { what, text } = summary(trace, event);
  const place = `#/${trial.place}/event/${event.seq}`;
  const tone = TONES[event.status ?? event.outcome] ?? "";
  const tools = el("span", { class: "do" },
    el("button", { type: "button", title: "Lines of the wire log (w)", "data-do": "wire", "aria-label": `wire lines of event ${event.seq}`, onclick: () => toggleWire(view, event, node) }, "wire"),
    el("button", { type: "button", title: "Copy as Markdown (c)", "data-do": "copy", "aria-label": `copy event ${event.seq} as Markdown`, onclick: () => copy(eventMarkdown(trial, trace, event), `event ${event.seq}`) }, "copy"));
  const head = el("p", { class: "head" },
    el("a", { class: "seq", href: place }, `#${event.seq}`),
    trace.timed ? el("span", { class: "at" }, duration(event.at_ms)) : null,
    el("span", { class: `what ${tone && `m-${tone}`}` }, what),
    event.host ? el("span", { class: "tag" }, "by the engine") : null,
    headText(view, event, text),
    tools);
  const node = el("article", { class: `event e-${event.type.replaceAll("_", "-")}`, id: `event-${event.seq}`, tabindex: "-1", "aria-label": `event ${event.seq}` }, head, content(view, event));
  return node;
}

// The text beside the head, for events that need no more.
function headText(view, event, text) {
  if (["message", "thought", "plan", "tool_result", "notice"].includes(event.type)) {
    if (event.type === "notice" && event.line !== undefined) return el("span", { class: "m-quiet" }, `wire log line ${event.line}`);
    if (event.type !== "tool_result") return null;
    const call = view.trace.calls.get(event.call)?.call;
    const took = call && view.trace.timed ? `took ${duration(event.at_ms - call.at_ms)}` : "";
    return el("span", { class: "m-quiet" }, took, event.truncated ? " cut by the agent" : null, call ? [" ", el("a", { href: `#/${view.trial.place}/event/${call.seq}` }, `of #${call.seq}`)] : null);
  }
  const line = oneLine(text, 400);
  return el(event.type === "tool_call" ? "code" : "span", { class: "about" }, line);
}

function content(view, event) {
  const out = [];
  if (event.type === "message" || event.type === "thought") out.push(longText(event.text ?? "", { tag: "div", lines: 60, characters: 8000 }));
  if (event.type === "notice" && event.text) out.push(longText(event.text, { tag: "div" }));
  for (const it of event.attachments ?? []) out.push(el("p", { class: "m-quiet" }, `[${[it.kind, it.media_type, it.uri, it.bytes !== undefined && `${grouped(it.bytes)} bytes`].filter(Boolean).join(", ")}]`));
  if (event.type === "plan") out.push(el("ul", { class: "plan" }, (event.entries ?? []).map((it) => el("li", {}, `${it.status === "completed" ? "[x]" : it.status === "in_progress" ? "[>]" : "[ ]"} ${it.text}`))));
  if (event.type === "tool_call") out.push(inputView(view, event));
  if (event.type === "permission_request" && event.asked) out.push(jsonFold("what was asked", event.asked));
  if (event.type === "permission_response" && event.updated_input !== undefined) out.push(jsonFold("with the input", event.updated_input));
  if (event.type === "tool_result") {
    if (event.output) out.push(longText(event.output, { lines: 16, characters: 2500 }));
    for (const diff of event.diffs ?? []) out.push(fileDiff(diff, view.relative));
  }
  if (event.type === "stop" && event.output) out.push(el("p", { class: "m-quiet" }, "final answer"), longText(event.output, { tag: "div", lines: 60, characters: 8000 }));
  return out;
}

function jsonFold(title, value) {
  return fold(title, () => longText(JSON.stringify(value, null, 1)), { class: "json" });
}

// The input of a call, if the line above does not say it all; edits are shown as a change.
function inputView(view, event) {
  const input = event.input;
  if (input === undefined || input === null) return null;
  const edit = editOf(input);
  const out = [];
  const shown = view.trace.calls.get(event.call)?.result?.diffs?.length;
  if (edit && !shown) out.push(fileDiff(edit, view.relative));
  const keys = typeof input === "object" ? Object.keys(input) : [];
  const said = keys.length <= 1 && JSON.stringify(input).length < 300;
  if (!said) out.push(jsonFold("input", input));
  return out;
}

function editOf(input) {
  const path = input.file_path ?? input.path ?? input.filePath;
  if (typeof path !== "string") return null;
  const [old, now] = [input.old_string ?? input.oldText ?? input.old_str ?? input.old, input.new_string ?? input.newText ?? input.new_str ?? input.new];
  if (typeof old === "string" && typeof now === "string") return { path, old, new: now };
  return typeof input.content === "string" ? { path, new: input.content } : null;
}

async function toggleWire(view, event, node) {
  const open = node.querySelector(":scope > .wires");
  if (open) return open.remove();
  const box = el("div", { class: "wires" }, "reading the wire log …");
  node.append(box);
  box.replaceChildren(await wireView(view.trial, view.trace, event));
}

// The filter: groups of events, and a text. What it finds is one list.
function filters(view) {
  const { trace, list } = view;
  const counts = new Map();
  for (const event of trace.events) {
    const group = groupOf(trace, event);
    counts.set(group, (counts.get(group) ?? 0) + 1);
  }
  const groups = [...counts.keys()].sort();
  const off = new Set();
  const words = el("input", { type: "search", id: "filter-events", placeholder: "text in events", autocomplete: "off" });
  const found = el("output", {}, plural(trace.events.length, "event"));
  const failed = el("input", { type: "checkbox", name: "failed" });
  let wait = 0;
  const apply = () => {
    const wanted = words.value.toLowerCase();
    if (!wanted && !off.size && !failed.checked) {
      showSections(view);
      found.textContent = plural(trace.events.length, "event");
      return;
    }
    const hits = trace.events.filter((event) => !off.has(groupOf(trace, event)) && (!failed.checked || (event.status && event.status !== "ok") || event.outcome === "rejected" || event.type === "notice") && (!wanted || fullText(trace, event).toLowerCase().includes(wanted)));
    found.textContent = `${grouped(hits.length)} of ${plural(trace.events.length, "event")}`;
    list.replaceChildren();
    view.parts = [];
    let shown = 0;
    const more = el("button", { type: "button", onclick: () => next() });
    const next = () => {
      more.before(...hits.slice(shown, shown + FILTERED).map((event) => row(view, event)));
      shown += FILTERED;
      more.textContent = `show ${grouped(Math.min(FILTERED, hits.length - shown))} more`;
      if (shown >= hits.length) more.remove();
    };
    list.append(more);
    next();
  };
  const soon = () => {
    clearTimeout(wait);
    wait = setTimeout(apply, trace.events.length > 20000 ? 300 : 80);
  };
  words.addEventListener("input", soon);
  failed.addEventListener("change", apply);
  const check = (group) => el("label", { class: "check" }, el("input", { type: "checkbox", name: "group", value: group, checked: true, onchange: (change) => {
    if (change.target.checked) off.delete(group);
    else off.add(group);
    apply();
  } }), `${group} ${grouped(counts.get(group))}`);
  const box = el("div", { class: "tools" }, el("label", {}, "Filter ", words), el("fieldset", {}, el("legend", {}, "Kinds"), groups.map(check)), el("label", { class: "check" }, failed, "only failed, rejected and notices"), found);
  const clear = () => {
    words.value = "";
    failed.checked = false;
    off.clear();
    box.querySelectorAll("input[name=group]").forEach((it) => (it.checked = true));
    apply();
  };
  return { box, clear, active: () => words.value || off.size || failed.checked };
}

// Opens what holds an event, and moves to it.
function goTo(view, filter, seq) {
  const index = view.trace.at.get(seq);
  document.querySelectorAll(".event.target").forEach((it) => it.classList.remove("target"));
  if (index === undefined) return tell(`the trace has no event ${seq}`);
  if (filter.active()) filter.clear();
  const part = view.parts.find((it) => index >= it.section.from && index < it.section.to);
  part.node.build();
  part.node.open = true;
  for (const sub of part.node.querySelectorAll("details.sub")) {
    if (sub.holds?.(seq)) {
      sub.build();
      sub.open = true;
    }
  }
  const node = document.getElementById(`event-${seq}`);
  if (!node) return;
  node.classList.add("target");
  node.focus({ preventScroll: true });
  // Of an event that is taller than the window, the beginning is shown.
  const see = () => node.scrollIntoView({ block: node.offsetHeight > window.innerHeight / 2 ? "start" : "center" });
  see();
  // What lies above gets its true height only now.
  requestAnimationFrame(see);
}
