// Reads the data blocks of the document: the results at once, the evidence of a trial when it is asked for.
const run = JSON.parse(document.getElementById("run").textContent);
const trials = JSON.parse(document.getElementById("trials").textContent);
trials.forEach((trial, number) => {
  trial.number = number;
  trial.word = trial.result?.verdict ?? (trial.running ? "running" : "not run");
});
const byPlace = new Map(trials.map((trial) => [trial.place, trial]));

function sameCell(trial) {
  return trials.filter((other) => other.case === trial.case && other.harness === trial.harness && other.arm === trial.arm);
}

// Waits until the browser has read a block. The document may be long, and is shown while the browser reads on.
async function blockOf(id) {
  for (;;) {
    const ended = document.readyState !== "loading";
    const node = document.getElementById(id);
    if (node && (ended || node.nextSibling)) return node;
    if (ended) return null;
    await new Promise((done) => setTimeout(done, 30));
  }
}

async function leftOut(trial) {
  const node = await blockOf("left-out");
  return node ? JSON.parse(node.textContent).filter((it) => it.place === trial.place) : [];
}

// Gives the text of a part piece by piece; null where the page has no such part.
async function pieces(trial, part) {
  const node = await blockOf(`t${trial.number}-${part}`);
  if (!node) return null;
  const text = node.textContent;
  const step = 1 << 20;
  let at = 0;
  const bytes = new ReadableStream({
    pull(controller) {
      if (at >= text.length) return controller.close();
      const raw = atob(text.slice(at, at + step));
      at += step;
      const chunk = new Uint8Array(raw.length);
      for (let n = 0; n < raw.length; n += 1) chunk[n] = raw.charCodeAt(n);
      controller.enqueue(chunk);
    },
  });
  return bytes.pipeThrough(new DecompressionStream("deflate")).pipeThrough(new TextDecoderStream()).getReader();
}

async function wholePart(trial, part) {
  const reader = await pieces(trial, part);
  if (!reader) return null;
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
  }
}

// Calls `see` with each line of a part; returns false where the page has no such part.
async function eachLine(trial, part, see) {
  const reader = await pieces(trial, part);
  if (!reader) return false;
  let rest = [];
  let number = 0;
  const line = (text) => {
    number += 1;
    if (text.trim()) see(text, number);
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    let from = 0;
    for (let end = value.indexOf("\n"); end >= 0; end = value.indexOf("\n", from)) {
      line(rest.length ? rest.join("") + value.slice(from, end) : value.slice(from, end));
      rest = [];
      from = end + 1;
    }
    if (from < value.length) rest.push(value.slice(from));
  }
  if (rest.length) line(rest.join(""));
  return true;
}
