// Shows the exchanges between the agent and its model.
async function modelTraffic(trial) {
  const exchanges = [];
  let bad = 0;
  const there = await eachLine(trial, "model", (line) => {
    try {
      exchanges.push(JSON.parse(line));
    } catch {
      bad += 1;
    }
  });
  if (!there) return el("p", { class: "m-quiet" }, "No exchange with a model was recorded.");
  const views = inPages(exchanges, 50, exchange, (from, to) => `exchanges ${grouped(from + 1)} to ${grouped(to)}`);
  return [views, bad ? el("p", {}, `${plural(bad, "line")} could not be read`) : null];
}

function exchange(it) {
  const models = [it.model?.asked, it.model?.answered].filter((name, at, all) => name && all.indexOf(name) === at).join(" → ");
  const usage = it.usage ? usageText(it.usage) : "";
  const head = [
    el("span", { class: "seq" }, `#${it.n}`), ` ${duration(it.at_ms ?? 0)} `, el("code", {}, `${it.method ?? ""} ${it.path ?? ""}`), ` ${models} `,
    el("span", { class: it.status >= 400 || it.error ? "m-bad" : "m-quiet" }, it.status ?? "no answer", it.error ? ` ${it.error.kind ?? "error"}` : null), ` ${usage}`, el("span", { class: "tag" }, it.source ?? ""),
  ];
  return fold(head, () => [
    it.error?.message ? el("p", { class: "m-bad" }, it.error.message) : null,
    el("h4", {}, "request"), longText(JSON.stringify(it.request, null, 1) ?? "", { lines: 30 }),
    el("h4", {}, "response"), longText(typeof it.response === "string" ? it.response : JSON.stringify(it.response, null, 1) ?? "", { lines: 30 }),
  ], { class: "exchange" });
}
