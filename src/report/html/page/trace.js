// Reads the trace of a trial into events, calls and sections, and says what each event is in a few words.
const SECTION = 200;
const cache = new Map();

// Keeps the traces of the last trials, as people go back and forth between two.
function readTrace(trial) {
  const known = cache.get(trial.number);
  if (known) return known;
  if (cache.size > 3) cache.delete(cache.keys().next().value);
  const read = parseTrace(trial);
  cache.set(trial.number, read);
  return read;
}

async function parseTrace(trial) {
  const trace = { header: {}, events: [], calls: new Map(), unread: 0 };
  trace.there = await eachLine(trial, "events", (line, number) => {
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      trace.unread += 1;
      return;
    }
    if (number === 1 && value.type === "trace") trace.header = value;
    else if (typeof value.seq === "number" && typeof value.type === "string") trace.events.push(value);
    else trace.unread += 1;
  });
  for (const event of trace.events) {
    if (event.type === "tool_call") trace.calls.set(event.call, { call: event });
    const call = trace.calls.get(event.call);
    if (!call) continue;
    if (event.type === "tool_result") call.result = event;
    if (event.type === "permission_request") call.request = event;
    if (event.type === "permission_response") call.response = event;
  }
  trace.timed = trace.header.timed !== false;
  trace.sections = sections(trace.events);
  trace.at = new Map(trace.events.map((event, index) => [event.seq, index]));
  return trace;
}

// Divides events at the user's messages, and at the beginning of a step once a section is long.
function sections(events) {
  const list = [];
  let turn = 0;
  let step = -1;
  let current = null;
  events.forEach((event, index) => {
    const begins = event.type === "message" && event.role === "user" && !event.parent;
    if (begins) turn += 1;
    const newStep = event.type === "tool_call" && !event.parent && event.step !== step;
    if (newStep) step = event.step;
    const size = current ? index - current.from : 0;
    if (!current || (begins && size > 0) || (size >= SECTION && newStep) || size >= 2 * SECTION) {
      current = { from: index, to: index, turn, steps: [], calls: 0, failed: 0 };
      list.push(current);
    }
    current.to = index + 1;
    if (event.type === "tool_call") {
      current.calls += 1;
      if (!event.parent) {
        current.steps[0] ??= event.step;
        current.steps[1] = event.step;
      }
    }
    if (event.type === "tool_result" && event.status !== "ok") current.failed += 1;
  });
  return list;
}

function relativeTo(trace) {
  const cwd = trace.header.cwd?.replace(/\/+$/, "");
  return (path) => (cwd && path?.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path ?? "");
}

function callTitle(call) {
  if (!call) return "";
  const name = call.name || call.title || "";
  if (!name) return call.kind;
  return name.toLowerCase() === call.kind ? name : `${call.kind} ${name}`;
}

function callAbout(trace, call) {
  const input = call.input;
  const relative = relativeTo(trace);
  if (input && typeof input === "object" && !Array.isArray(input)) {
    for (const key of ["command", "cmd"]) {
      if (typeof input[key] === "string") return input[key];
      if (Array.isArray(input[key])) return input[key].join(" ");
    }
    for (const key of ["file_path", "path", "filePath", "pattern", "query", "url"]) if (typeof input[key] === "string") return relative(input[key]);
    if (!Object.keys(input).length) return call.title ?? "";
  }
  if (call.locations?.length) return call.locations.map((it) => relative(it.path)).join(", ");
  if (input !== undefined) return typeof input === "string" ? input : JSON.stringify(input);
  return call.title ?? "";
}

const USAGE = [["input", "input_tokens"], ["output", "output_tokens"], ["cache read", "cache_read_tokens"], ["cache write", "cache_write_tokens"], ["thought", "thought_tokens"], ["total", "total_tokens"]];

function usageText(usage) {
  const least = (key) => (usage.lower_bounds?.includes(key) ? "≥ " : "");
  const parts = USAGE.filter(([, key]) => usage[key] !== undefined).map(([name, key]) => `${name} ${least(key)}${short(usage[key])}`);
  if (usage.context_used !== undefined) parts.push(`context ${short(usage.context_used)}${usage.context_size ? ` of ${short(usage.context_size)}` : ""}`);
  if (usage.cost_usd !== undefined) parts.push(`${least("cost_usd")}${money(usage.cost_usd)}${usage.source ? ` (${usage.source})` : ""}`);
  if (usage.model) parts.push(usage.model);
  return parts.join(", ");
}

// The event in a few words: `what` it is, and the text of it.
function summary(trace, event) {
  const call = event.call === undefined ? null : trace.calls.get(event.call)?.call;
  const of = callTitle(call) || event.call || "";
  switch (event.type) {
    case "message": return { what: event.role, text: event.text };
    case "thought": return { what: "thought", text: event.text };
    case "plan": return { what: "plan", text: (event.entries ?? []).map((it) => it.text).join("; ") };
    case "tool_call": return { what: callTitle(event), text: callAbout(trace, event) };
    case "tool_result": return { what: `${of} ${event.status}${event.exit_code === undefined ? "" : ` (exit ${event.exit_code})`}`, text: event.output ?? "" };
    case "permission_request": return { what: "permission", text: `asked for ${of} (${(event.options ?? []).map((it) => it.kind).join(", ")})` };
    case "permission_response": return { what: `permission ${event.outcome}`, text: [`for ${of}`, event.policy && `by ${event.policy}`, event.rule && `rule ${event.rule}`, event.option && `option ${event.option}`, event.reason].filter(Boolean).join(", ") };
    case "usage": return { what: "usage", text: `of the ${event.scope === "call" ? "model call" : event.scope === "turn" ? "turn" : "session so far"}: ${usageText(event)}` };
    case "notice": return { what: `notice ${event.code}`, text: event.text ?? "" };
    case "stop": return { what: `stop ${event.reason}`, text: [event.category, event.detail, event.exit && (event.exit.code !== 0) && `exit ${event.exit.code ?? `by signal ${event.exit.signal}`}`].filter(Boolean).join(", ") };
    default: return { what: event.type, text: JSON.stringify(event) };
  }
}

// Everything that an event says, for the filter and for copies.
function fullText(trace, event) {
  const { what, text } = summary(trace, event);
  const parts = [what, text];
  if (event.type === "tool_call" && event.input !== undefined) parts.push(JSON.stringify(event.input, null, 1));
  if (event.type === "stop" && event.output) parts.push(event.output);
  for (const diff of event.diffs ?? []) parts.push(diff.path, diff.old ?? "", diff.new ?? "");
  return parts.filter(Boolean).join("\n");
}

// The group that the filter knows an event by.
function groupOf(trace, event) {
  if (event.type === "tool_call" || event.type === "tool_result") return `tool ${trace.calls.get(event.call)?.call?.kind ?? "other"}`;
  if (event.type.startsWith("permission")) return "permission";
  if (event.type === "message") return event.role === "user" ? "user" : "agent";
  return event.type;
}
