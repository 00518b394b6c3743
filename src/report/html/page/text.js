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

// Returns a number with this many decimals. An exact half is rounded to the even digit, as in the program's other reports.
function fixed(value, places) {
  const exact = value.toFixed(places + 40);
  const [cut, rest] = [exact.slice(0, -40), exact.slice(-40)];
  return /^50*$/.test(rest) && /[02468]$/.test(cut) ? cut : value.toFixed(places);
}

// The next four functions format figures as src/report/text.rs and src/rounding.rs do.
function duration(ms) {
  const rounded = Math.round(ms);
  const two = (part) => String(Math.floor(part)).padStart(2, "0");
  if (rounded < 1000) return `${rounded}ms`;
  if (rounded < 59950) return `${fixed(rounded / 1000, 1)}s`;
  if (rounded < 60000) return "1m00s";
  if (rounded < 3600000) return `${Math.floor(rounded / 60000)}m${two((rounded % 60000) / 1000)}s`;
  return `${Math.floor(rounded / 3600000)}h${two((rounded % 3600000) / 60000)}m`;
}

function short(count) {
  if (count < 10000) return String(count);
  return count < 999950 ? `${fixed(count / 1000, 1)}k` : `${fixed(count / 1e6, 2)}M`;
}

function money(usd) {
  if (usd >= 1e12) return `$${usd.toExponential(2).replace("e+", "e")}`;
  if (usd === 0 || usd >= 0.09995) return `$${fixed(usd, 2)}`;
  if (usd >= 0.01) return `$${fixed(usd, 4)}`;
  if (!(usd >= 1e-9)) return "<$0.000000001";
  const places = Math.min(12, Math.max(4, 2 - Math.floor(Math.log10(usd))));
  return `$${fixed(usd, places).replace(/(\.\d{4}\d*?)0+$/, "$1")}`;
}

function share(part) {
  if (part <= 1e-12 || part >= 1 - 1e-12) return part.toFixed(2);
  for (let places = 2; places <= 4; places += 1) {
    const text = fixed(part, places);
    if (Number(text) > 0 && Number(text) < 1) return text;
  }
  return part < 0.5 ? "<0.0001" : ">0.9999";
}
