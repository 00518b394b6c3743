// The timeline of a trial: when tools ran and when the model did, and the slowest calls.
const MAX_BARS = 1500;

function timeline(trial, trace) {
  if (!trace.timed) return el("p", { class: "m-quiet" }, "The recording has no times, so there is no timeline.");
  const end = trace.events.at(-1)?.at_ms ?? 0;
  if (!end) return null;
  const calls = [...trace.calls.values()].filter((it) => it.result);
  const bars = calls.map((it) => ({ from: it.call.at_ms, to: it.result.at_ms, call: it.call, waited: it.response && it.request ? it.response.at_ms - it.request.at_ms : 0 }));
  const start = trace.events.find((it) => it.type === "message" && it.role === "user")?.at_ms ?? 0;
  const tools = union(bars.filter((it) => !it.call.parent));
  const waited = bars.reduce((sum, it) => sum + it.waited, 0);
  const model = Math.max(0, end - start - tools);
  const kinds = new Map();
  for (const it of bars) kinds.set(it.call.kind, (kinds.get(it.call.kind) ?? 0) + it.to - it.from);
  const deep = bars.some((it) => it.call.parent);
  const part = (ms) => `${duration(ms)} (${Math.round((100 * ms) / end)} %)`;
  const picture = shape("svg", { viewBox: deep ? "0 0 1000 38" : "0 0 1000 24", class: deep ? "deep" : "", preserveAspectRatio: "none", role: "img", "aria-label": `Timeline of ${duration(end)}: tools ${part(tools)}, model ${part(model)}` });
  picture.append(shape("rect", { x: 0, y: 4, width: 1000, height: 16, class: "t-model" }));
  if (start > 0) picture.append(shape("rect", { x: 0, y: 4, width: (start / end) * 1000, height: 16, class: "t-start" }, `start ${duration(start)}`));
  const shown = bars.length > MAX_BARS ? [...bars].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, MAX_BARS) : bars;
  for (const it of shown) {
    const bar = shape("rect", { x: (it.from / end) * 1000, y: it.call.parent ? 24 : 4, width: Math.max(1, ((it.to - it.from) / end) * 1000), height: it.call.parent ? 10 : 16, class: `t-bar k-${it.call.kind}` }, `#${it.call.seq} ${oneLine(callTitle(it.call), 60)} ${duration(it.to - it.from)}`);
    bar.addEventListener("click", () => go(`${trial.place}/event/${it.call.seq}`));
    picture.append(bar);
  }
  for (const event of trace.events) {
    if (event.type === "message" && event.role === "user" && !event.parent) picture.append(shape("rect", { x: (event.at_ms / end) * 1000, y: 0, width: 1.5, height: 24, class: "t-turn" }, `turn at ${duration(event.at_ms)}`));
  }
  const slow = [...bars].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 5).filter((it) => it.to - it.from > 0);
  return el("div", { class: "timeline" }, picture,
    el("p", { class: "legend" },
      el("span", {}, el("i", { class: "t-model" }), `model ${part(model)}`), el("span", {}, el("i", { class: "t-tool" }), `tools ${part(tools)}`),
      start > 100 ? el("span", {}, el("i", { class: "t-start" }), `start ${part(start)}`) : null, waited ? el("span", {}, `of it waiting for permission ${duration(waited)}`) : null,
      [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, ms]) => el("span", {}, el("i", { class: `k-${kind}` }), `${kind} ${duration(ms)}`)), el("span", { class: "m-quiet" }, `all ${duration(end)}`)),
    slow.length ? el("p", { class: "slow" }, el("span", { class: "m-quiet" }, "slowest "), slow.map((it) => [el("a", { href: `#/${trial.place}/event/${it.call.seq}` }, `#${it.call.seq} ${oneLine(callTitle(it.call), 40)}`), ` ${duration(it.to - it.from)} `])) : null);
}

// The time in which at least one call ran.
function union(bars) {
  const sorted = [...bars].sort((a, b) => a.from - b.from);
  let sum = 0;
  let until = 0;
  for (const bar of sorted) {
    sum += Math.max(0, bar.to - Math.max(bar.from, until));
    until = Math.max(until, bar.to);
  }
  return sum;
}
