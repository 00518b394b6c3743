// Asks the server for the state again and again, until there is nothing to wait for. Only pages of `evals view` have this.
const PAUSE = 2000;

// `see` gets each state, and returns false when nothing more is to come; `lost` is told why no state comes any more.
async function follow(see, lost) {
  for (let failures = 0; ; ) {
    await new Promise((done) => setTimeout(done, PAUSE));
    if (document.hidden) continue;
    let state;
    try {
      const answer = await fetch("?state", { cache: "no-store", redirect: "error" });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      state = await answer.json();
      failures = 0;
    } catch {
      failures += 1;
      if (failures < 3) continue;
      return lost("evals view does not answer any more. This page shows what was known before.");
    }
    if (state.gone) return lost("The folder of the run is gone, or cannot be read any more. This page shows what was known before.");
    if (see(state) === false) return;
  }
}

// Shows a line above the page; with `more`, also the button that loads the newer page. The address keeps its place.
function liveTold(text, more) {
  const box = document.getElementById("live");
  const [line, button] = [box.querySelector("span"), box.querySelector("button")];
  if (line.textContent !== text) line.textContent = visible(text);
  button.hidden = !more;
  box.hidden = false;
}

document.querySelector("#live button").addEventListener("click", () => location.reload());
