// Makes text harmless to look at: invisible characters and those that change the direction of text show their number.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]|[\u{e0000}-\u{e007f}]|\p{Surrogate}/u;
const EACH_HIDDEN = new RegExp(HIDDEN.source, "gu");

function visible(text) {
  const known = typeof text === "string" ? text : String(text);
  if (!HIDDEN.test(known)) return known;
  return known.replace(/\r\n?/g, "\n").replace(EACH_HIDDEN, (char) => {
    const code = char.codePointAt(0);
    if (code < 0x20) return "^" + String.fromCharCode(code + 0x40);
    return code === 0x7f ? "^?" : `\\u{${code.toString(16)}}`;
  });
}

// Returns one line of limited length.
function oneLine(value, most = 160) {
  const text = String(value ?? "");
  const start = text.length > most * 4 ? text.slice(0, most * 4) : text;
  const line = start.replace(/\s+/g, " ").trim();
  return line.length > most || start.length < text.length ? line.slice(0, most - 1) + "…" : line;
}

function plural(count, word) {
  return `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;
}

function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const rest = String(seconds % 60).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${rest}s`;
  return `${Math.floor(seconds / 3600)}h${String(Math.floor(seconds / 60) % 60).padStart(2, "0")}m`;
}

function short(count) {
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1e6).toFixed(2)}M`;
}

function money(usd) {
  return `$${usd.toFixed(usd >= 1 || usd === 0 ? 2 : 4)}`;
}

function share(part) {
  return part === 1 || part === 0 ? part.toFixed(2) : part.toFixed(part > 0.99 || part < 0.01 ? 4 : 2);
}
