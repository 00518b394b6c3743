// Shows a trial: its result, its grades with links to their evidence, its events, its change, its traffic.
let opened = null;

function gradeWord(grade) {
  if (grade.outcome === "ungraded" || grade.passed === undefined) return "ungraded";
  return grade.passed ? "passed" : "failed";
}

function facts(trial) {
  const result = trial.result;
  if (!result) return [["state", trial.word]];
  const { metrics } = result;
  const least = (key) => (metrics.lower_bounds?.includes(key) ? "≥ " : "");
  const list = [];
  if (result.score !== undefined) list.push(["score", share(result.score)]);
  const stopped = (result.warnings ?? []).some((warning) => warning.code === "engine_stopped");
  if (metrics.duration_ms !== undefined && !stopped) list.push(["time", duration(metrics.duration_ms)]);
  if (metrics.cost_usd !== undefined) list.push(["cost", `${least("cost_usd")}${money(metrics.cost_usd)}${metrics.cost_source ? ` (${metrics.cost_source})` : ""}`]);
  const tokens = USAGE.filter(([, key]) => metrics[key] !== undefined).map(([name, key]) => `${name} ${least(key)}${short(metrics[key])}`);
  if (tokens.length) list.push(["tokens", tokens.join(", ")]);
  if (metrics.tool_calls !== undefined) list.push(["tool calls", `${grouped(metrics.tool_calls)}${metrics.failed_calls ? `, ${metrics.failed_calls} failed` : ""}`]);
  if (metrics.steps !== undefined) list.push(["steps", grouped(metrics.steps)]);
  if (metrics.changed_files !== undefined) list.push(["changed files", `${least("changed_files")}${grouped(metrics.changed_files)}`]);
  if (metrics.permissions) list.push(["permissions", `${metrics.permissions.requested} requested, ${metrics.permissions.rejected} rejected`]);
  if (result.stop) list.push(["stop", `${result.stop.reason}${result.stop.detail ? `: ${oneLine(result.stop.detail, 80)}` : ""}`]);
  const { requested, effective } = result.model ?? {};
  if (effective || requested) list.push(["model", effective ? (requested && requested !== effective ? `${effective} (asked for ${requested})` : effective) : `asked for ${requested}`]);
  if (result.agent) list.push(["agent", `${result.agent.name}${result.agent.version ? ` ${result.agent.version}` : ""}`]);
  if (result.attempt > 1) list.push(["attempt", String(result.attempt)]);
  if (result.flaky) list.push(["flaky", "passed after it failed in an earlier run"]);
  return list;
}

function asideTag(trial) {
  return trial.quarantine ? el("span", { class: "tag" }, "in quarantine") : null;
}

function heading(trial) {
  const all = sameCell(trial);
  const other = trials.filter((it) => it !== trial && it.case === trial.case);
  const select = el("select", { "aria-label": "Compare with another trial of this case", onchange: (change) => change.target.value && go(`${trial.place}/beside/${change.target.value}`) },
    el("option", { value: "" }, "side by side with …"), other.slice(0, 400).map((it) => el("option", { value: it.place }, `${it.column} · trial ${it.trial} · ${it.word}`)));
  return [
    el("p", { class: "crumbs" }, el("a", { href: "#/" }, "Overview"), " / ", trial.case, " / ", trial.column),
    el("h1", {}, trial.case, " ", el("span", { class: "sub" }, `${trial.column} · trial ${trial.trial}`), " ", verdict(trial.word), asideTag(trial)),
    el("p", { class: "siblings" },
      all.length > 1 ? el("span", { class: "trials" }, all.map((it) => [it === trial ? el("strong", {}, `${it.trial} ${it.word}`) : el("a", { class: `v-${it.word.replace(/ /g, "-")}`, href: `#/${it.place}` }, `${it.trial} ${it.word}`), " "])) : null,
      other.length ? select : null,
      el("button", { type: "button", id: "copy-trial", onclick: () => copy(trialMarkdown(trial), `trial ${trial.trial}`) }, "copy as Markdown")),
  ];
}

function gradesTable(trial) {
  const grades = trial.result?.grades ?? [];
  if (!grades.length) return null;
  const links = (grade) => {
    const seqs = grade.evidence ?? [];
    const link = (seq) => [el("a", { href: `#/${trial.place}/event/${seq}` }, `#${seq}`), " "];
    return [seqs.slice(0, 20).map(link), seqs.length > 20 ? fold(`and ${seqs.length - 20} more`, () => seqs.slice(20, 2000).map(link)) : null];
  };
  const line = (grade) => el("tr", {},
    el("td", {}, el("span", { class: `m-${{ passed: "good", failed: "bad", ungraded: "open" }[gradeWord(grade)]}` }, gradeWord(grade))),
    el("th", { scope: "row" }, grade.name, grade.name === grade.grader ? null : el("span", { class: "m-quiet" }, ` ${grade.grader}`), grade.gate ? el("span", { class: "tag" }, "gate") : null, grade.diagnostic ? el("span", { class: "tag" }, "diagnostic") : null),
    el("td", { class: "num" }, grade.value === undefined ? "" : share(grade.value)),
    el("td", { class: "num" }, grade.weight ?? ""),
    el("td", { class: "reason" }, grade.reason ? longText(grade.reason, { tag: "div", lines: 12, characters: 1500 }) : null, judgeOf(grade)),
    el("td", {}, links(grade)));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Grades" }, el("table", { class: "grades" },
    el("thead", {}, el("tr", {}, ["grade", "grader", "value", "weight", "reason", "evidence"].map((name) => el("th", { scope: "col", class: name === "value" || name === "weight" ? "num" : undefined }, name)))),
    el("tbody", {}, grades.map(line))));
}

function judgeOf(grade) {
  const judge = grade.judge;
  if (!judge?.model) return null;
  const parts = [`judge model ${judge.model}`, judge.calibrated === false && "not calibrated", judge.cost_usd !== undefined && money(judge.cost_usd)];
  return el("p", { class: "m-quiet" }, parts.filter(Boolean).join(", "));
}

function aboutResult(trial) {
  const result = trial.result;
  const out = [];
  if (trial.quarantine) out.push(el("p", { class: "note" }, `Not counted: the case is ${trial.quarantine}`));
  if (trial.running) out.push(el("p", { class: "note" }, result ? "This trial is being run again. The result is that of the attempt before." : "This trial is running. Its events so far are read from its wire log; there is no result yet."));
  else if (!result) out.push(el("p", { class: "note" }, "This trial was not run, or is still running: it has no result."));
  if (result?.skipped) out.push(el("p", { class: "note" }, `Skipped: ${result.skipped}`));
  if (result?.error) out.push(el("div", { class: "note bad" }, el("p", {}, el("strong", {}, `errored: ${result.error.category}`)), longText(result.error.message, { tag: "div" })));
  if (result?.was) out.push(el("p", { class: "note" }, `Graded again: the verdict was ${result.was.verdict}, and is ${trial.word}.`));
  for (const warning of result?.warnings ?? []) out.push(el("p", { class: "note" }, `Warning: ${warning.text ?? warning.code ?? warning}`));
  const earlier = result?.earlier_attempts;
  if (earlier) out.push(el("p", { class: "note" }, `${plural(earlier.count, "earlier attempt")} ended in an error and ${earlier.count === 1 ? "was" : "were"} retried${earlier.cost_usd ? `, for ${money(earlier.cost_usd)}` : ""}; attempts/ in the trial's folder has their files.`));
  return out;
}

async function showTrial(box, trial, seq) {
  if (opened?.trial === trial && box.isConnected && box.firstChild) {
    if (seq !== undefined) opened.view?.goTo(seq);
    else box.querySelector(".event.target")?.classList.remove("target");
    return;
  }
  opened = { trial };
  const own = opened;
  const body = el("div", { class: "waiting", "aria-live": "polite" }, "reading the trace …");
  box.replaceChildren();
  add(box, [
    heading(trial), el("dl", { class: "facts" }, facts(trial).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    aboutResult(trial), gradesTable(trial), body,
  ]);
  let trace;
  try {
    trace = await readTrace(trial);
  } catch (error) {
    body.textContent = `The trace could not be read: ${visible(error.message)}`;
    cache.delete(trial.number);
    return;
  }
  if (opened !== own) return;
  body.replaceChildren();
  body.className = "";
  const missed = el("div");
  if (trace.unread) add(missed, [el("p", { class: "note" }, `${plural(trace.unread, "line")} of the trace could not be read.`)]);
  // The end of a long page may still be on its way.
  leftOut(trial).then((missing) => add(missed, missing.map((it) => el("p", { class: "note" }, `Left out of this page: ${PARTS[it.part] ?? it.part}: ${it.why}.`))));
  const part = (id, title, build, open) => {
    const place = el("div");
    blockOf(`t${trial.number}-${id}`).then((there) => there && place.replaceWith(fold(el("h2", {}, title), (inner) => later(inner, build), { class: "part", open })));
    return place;
  };
  let events = null;
  if (trace.there && trace.events.length) {
    const [node, view] = eventsView(trial, trace, seq);
    own.view = view;
    const stopped = trace.events.at(-1).type === "stop";
    events = [el("h2", {}, `Events `, el("span", { class: "m-quiet" }, plural(trace.events.length, "event"))), timeline(trial, trace), node, stopped ? null : el("p", { class: "note" }, trial.running ? "These are the events so far." : "The trace ends here, without a stop.")];
  } else {
    events = el("p", { class: "m-quiet" }, trial.running ? "There are no events yet." : "This page has no trace of the trial.");
  }
  add(body, [
    missed,
    part("patch", "Change of the workspace", async () => patchView(await wholePart(trial, "patch")), trace.events.length <= ALL_OPEN),
    events,
    part("model", "Model traffic", () => modelTraffic(trial)),
    part("wire", "Wire log", () => wireLog(trial)),
    part("stderr", "Standard error", async () => longText(await wholePart(trial, "stderr"))),
    trial.show ? el("p", { class: "copy" }, el("span", { class: "m-quiet" }, "in a terminal "), el("code", {}, trial.show)) : null,
  ]);
  if (seq !== undefined) own.view?.goTo(seq);
}

const PARTS = { events: "events", patch: "the change of the workspace", stderr: "standard error", shape: "the alignment with other trials", model: "model traffic", wire: "the wire log" };

// Puts something into a fold that takes a while to read.
function later(box, build) {
  const waiting = el("p", { class: "waiting" }, "reading …");
  Promise.resolve(build()).then((node) => {
    waiting.remove();
    add(box, [node]);
  }, (error) => (waiting.textContent = `could not be read: ${visible(error.message)}`));
  return waiting;
}
