// The list of runs: follows the runs that are going on.
const list = JSON.parse(document.getElementById("list").textContent);

function seeList(state) {
  const before = Object.keys(list.going_on);
  for (const cell of document.querySelectorAll(".state")) {
    const text = state.going_on[cell.dataset.run];
    if (text !== undefined && cell.textContent !== text) cell.textContent = visible(text);
  }
  const ended = before.filter((name) => state.going_on[name] === undefined).length;
  const other = state.runs.length !== list.runs.length || state.runs.some((name, at) => name !== list.runs[at]);
  const begun = Object.keys(state.going_on).some((name) => !before.includes(name));
  if (ended) liveTold(`${plural(ended, "run")} ended.`, true);
  else if (other || begun) liveTold("The list has changed.", true);
  return Object.keys(state.going_on).length > 0;
}

if (Object.keys(list.going_on).length) follow(seeList, (why) => liveTold(why, false));
document.documentElement.dataset.ready = "true";
