// Shows a text: a long one is cut, and the rest is a button away.
const LINES = 40;
const CHARACTERS = 6000;
const STEP = 400000;

function longText(text, { tag = "pre", lines = LINES, characters = CHARACTERS, label } = {}) {
  const known = (typeof text === "string" ? text : JSON.stringify(text, null, 1)).replace(/^\s*\n/, "");
  const box = el(tag, { class: "text", "aria-label": label });
  const put = (piece) => box.append(hasAnsi(piece) ? ansi(piece) : visible(piece));
  let end = known.length;
  let at = -1;
  for (let n = 0; n < lines && at < characters; n += 1) {
    at = known.indexOf("\n", at + 1);
    if (at < 0) break;
  }
  if (at >= 0) end = Math.min(end, at);
  end = Math.min(end, characters);
  // A little more is not worth a button.
  if (known.length - end < 400 && known.length < characters + 400) end = known.length;
  if (end >= known.length) {
    put(known);
    return box;
  }
  put(known.slice(0, end));
  const rest = () => {
    const left = known.length - end;
    const all = left <= STEP;
    return `show ${all ? "all" : `${grouped(STEP)} more of`} ${grouped(all ? known.length : left)} characters`;
  };
  const more = el("button", { type: "button", class: "more", onclick: () => {
    const next = Math.min(known.length, end + STEP);
    put(known.slice(end, next));
    end = next;
    if (end >= known.length) more.remove();
    else more.textContent = rest();
  } }, rest());
  return el("div", {}, box, more);
}
