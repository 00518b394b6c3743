// Finds the lines of the wire log that belong to an event, and shows the whole log page by page.
const wires = new Map();

function readWire(trial) {
  if (!wires.has(trial.number)) {
    if (wires.size > 1) wires.clear();
    wires.set(trial.number, (async () => {
      const lines = [];
      const there = await eachLine(trial, "wire", (text, number) => {
        let line = { line: text };
        try {
          line = JSON.parse(text);
        } catch {
          // A torn last line is shown as it is.
        }
        line.number = number;
        lines.push(line);
      });
      return there ? lines : null;
    })());
  }
  return wires.get(trial.number);
}

// The lines that became each event, as the engine found them; null if the log was too long to be translated again.
async function linesOfEvents(trial, trace) {
  const text = await wholePart(trial, "lines");
  const found = text ? JSON.parse(text) : null;
  return found?.events === trace.events.length ? found.lines : null;
}

// Without these, the time and the call's id lead to the lines.
function wireOf(trace, event, lines, exact) {
  if (exact) {
    const runs = exact[event.seq] ?? [];
    return lines.filter((it) => runs.some((from, at) => at % 2 === 0 && it.number >= from && it.number <= runs[at + 1]));
  }
  if (event.line !== undefined) return lines.filter((it) => it.number === event.line);
  const later = trace.events.slice(trace.at.get(event.seq) + 1).find((it) => it.at_ms > event.at_ms);
  const joined = event.type === "message" || event.type === "thought";
  const until = joined && later ? later.at_ms : event.at_ms + 1;
  const near = trace.timed ? lines.filter((it) => it.at_ms >= event.at_ms && it.at_ms < Math.max(until, event.at_ms + 1)) : lines;
  const id = event.request ?? event.call;
  const own = event.call === undefined ? [] : near.filter((it) => it.line?.includes(event.call));
  if (own.length) return own;
  return trace.timed ? near : id === undefined ? [] : lines.filter((it) => it.line?.includes(id));
}

function wireRow(line) {
  let text = line.line ?? "";
  try {
    const value = JSON.parse(text);
    if (value && typeof value === "object") text = JSON.stringify(value, null, 1);
  } catch {
    // Lines of standard error are no JSON.
  }
  return el("div", { class: "wire" }, el("p", {}, el("span", { class: "seq" }, `line ${line.number}`), ` ${line.dir ?? "not a line of the log"}`, line.at_ms === undefined ? null : ` at ${duration(line.at_ms)}`, line.cut ? ` (${grouped(line.cut)} bytes were cut)` : null), longText(text, { lines: 24, characters: 3000 }));
}

async function wireView(trial, trace, event) {
  const lines = await readWire(trial);
  if (!lines) return el("p", { class: "m-quiet" }, "This page does not have the wire log of the trial.");
  trace.exact ??= linesOfEvents(trial, trace);
  const exact = await trace.exact;
  const own = wireOf(trace, event, lines, exact);
  if (!own.length) return el("p", { class: "m-quiet" }, "No line of the wire log belongs to this event.");
  const how = exact ? "from which the event was made" : event.line !== undefined ? "named by the event" : "found by time and call";
  return el("div", {}, el("p", { class: "m-quiet" }, `${plural(own.length, "line")} of wire.jsonl, ${how}`), own.slice(0, 50).map(wireRow), own.length > 50 ? el("p", {}, `and ${plural(own.length - 50, "more line")}, in the wire log below`) : null);
}

async function wireLog(trial) {
  const lines = await readWire(trial);
  if (!lines) return el("p", { class: "m-quiet" }, "This page does not have the wire log of the trial.");
  return inPages(lines, 100, (line) => wireRow(line), (from, to) => `lines ${grouped(lines[from].number)} to ${grouped(lines[to - 1].number)}`);
}

// Divides a list into parts that are built when they are opened.
function inPages(list, size, render, title) {
  if (list.length <= size) return list.map(render);
  const parts = [];
  for (let from = 0; from < list.length; from += size) {
    const to = Math.min(from + size, list.length);
    parts.push(fold(title(from, to), () => list.slice(from, to).map(render), { open: from === 0 }));
  }
  return parts;
}
