// Follows a run that is going on: tells what has finished since the page was loaded. The page changes when the reader asks
// for it, so that nothing moves under their eyes.
const live = JSON.parse(document.getElementById("live-state").textContent);

function seeRun(state) {
  const more = state.attempts - live.attempts;
  const own = opened?.trial?.place;
  const grown = own !== undefined && live.running[own] !== undefined && state.running[own] !== live.running[own];
  const parts = [state.going_on ? `This run is going on: ${state.text}.` : "This run has ended."];
  if (more > 0) parts.push(`${plural(more, "more trial")} ${more === 1 ? "has" : "have"} finished.`);
  else if (grown) parts.push("This trial has gone on.");
  liveTold(parts.join(" "), more > 0 || grown || !state.going_on);
  return state.going_on;
}

function startFollowing() {
  if (live.going_on) follow(seeRun, (why) => liveTold(why, false));
}
