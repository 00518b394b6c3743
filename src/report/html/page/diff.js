// Compares two lists line by line (Myers), and shows changes side by side.
const MAX_EDITS = 1500;
const CONTEXT = 3;

// Returns runs of equal entries as [from, to, length]. Lists with very many edits share only their ends.
function equalRuns(old, now) {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const runs = head ? [[0, 0, head]] : [];
  const n = old.length - head - tail;
  const m = now.length - head - tail;
  const most = Math.min(n + m, MAX_EDITS);
  const edge = new Int32Array(2 * most + 3);
  const trace = [];
  let found = n === 0 || m === 0 ? -1 : null;
  for (let d = 0; d <= most && found === null; d += 1) {
    trace.push(edge.slice(most + 1 - d - 1, most + 1 + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && edge[most + k] < edge[most + k + 2]);
      let x = down ? edge[most + k + 2] : edge[most + k] + 1;
      let y = x - k;
      while (x < n && y < m && old[head + x] === now[head + y]) {
        x += 1;
        y += 1;
      }
      edge[most + 1 + k] = x;
      if (x >= n && y >= m) {
        found = d;
        break;
      }
    }
  }
  const middle = [];
  if (found !== null && found >= 0) {
    let x = n;
    let y = m;
    for (let d = found; d >= 0; d -= 1) {
      const before = trace[d];
      const at = (k) => before[k + d + 1];
      const k = x - y;
      const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
      const from = d === 0 ? 0 : down ? at(k + 1) : at(k - 1) + 1;
      const length = x - from;
      if (length > 0) middle.push([head + from, head + from - k, length]);
      if (d === 0) break;
      x = down ? from : from - 1;
      y = down ? from - k - 1 : from - k;
    }
  }
  middle.reverse().forEach((it) => runs.push(it));
  if (tail) runs.push([old.length - tail, now.length - tail, tail]);
  return runs;
}

function linesOf(text) {
  if (!text) return [];
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

// Returns rows {old, now, n, m, kind} of two texts; stretches without a change are one row {skipped}.
function diffRows(oldText, nowText) {
  const old = linesOf(oldText);
  const now = linesOf(nowText);
  const rows = [];
  let n = 0;
  let m = 0;
  const changed = (untilN, untilM) => {
    while (n < untilN || m < untilM) {
      const row = { kind: "change" };
      if (n < untilN) [row.n, row.old, n] = [n + 1, old[n], n + 1];
      if (m < untilM) [row.m, row.now, m] = [m + 1, now[m], m + 1];
      rows.push(row);
    }
  };
  const runs = equalRuns(old, now);
  runs.forEach(([from, to, length], at) => {
    changed(from, to);
    const first = from === 0 && to === 0 ? 0 : CONTEXT;
    const last = at === runs.length - 1 && from + length === old.length && to + length === now.length ? 0 : CONTEXT;
    for (let k = 0; k < length; k += 1) {
      if (length > first + last + 1 && k === first) {
        const skipped = length - first - last;
        rows.push({ skipped });
        k += skipped;
        if (k >= length) {
          n += length;
          m += length;
          return;
        }
      }
      rows.push({ kind: "same", n: n + k + 1, m: m + k + 1, old: old[from + k], now: now[to + k] });
    }
    n += length;
    m += length;
  });
  changed(old.length, now.length);
  return rows;
}

// Marks the part of two lines that differs.
function marked(line, other, tag) {
  if (line === undefined) return [];
  if (other === undefined || line.length > 2000 || other.length > 2000) return [line];
  let head = 0;
  while (head < line.length && head < other.length && line[head] === other[head]) head += 1;
  let tail = 0;
  while (tail < line.length - head && tail < other.length - head && line[line.length - 1 - tail] === other[other.length - 1 - tail]) tail += 1;
  if (head + tail < line.length * 0.3) return [line];
  const middle = line.slice(head, line.length - tail);
  return [line.slice(0, head), middle && el(tag, {}, middle), line.slice(line.length - tail)];
}

const MAX_ROWS = 400;
const MAX_LINE_CHARS = 2000;

function diffTable(rows, label) {
  const body = el("tbody");
  const cut = (line) => (line !== undefined && line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}… (${grouped(line.length - MAX_LINE_CHARS)} more characters)` : line);
  const put = (from, to) => {
    for (const row of rows.slice(from, to)) {
      if (row.skipped || row.title) {
        const text = row.title ?? `${plural(row.skipped, "unchanged line")}`;
        body.append(el("tr", { class: "skipped" }, el("td", { colspan: 4 }, text)));
        continue;
      }
      const [old, now] = [cut(row.old), cut(row.now)];
      const change = row.kind === "change";
      body.append(
        el(
          "tr",
          {},
          el("td", { class: "no" }, row.n ?? ""),
          el("td", { class: change && old !== undefined ? "line del" : "line" }, change ? marked(old, now, "del") : old),
          el("td", { class: "no" }, row.m ?? ""),
          el("td", { class: change && now !== undefined ? "line ins" : "line" }, change ? marked(now, old, "ins") : now),
        ),
      );
    }
  };
  put(0, MAX_ROWS);
  const columns = el("colgroup", {}, ["no", "", "no", ""].map((name) => el("col", { class: name || undefined })));
  const table = el("table", { class: "diff", "aria-label": label }, columns, body);
  const box = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, table);
  if (rows.length <= MAX_ROWS) return box;
  let shown = MAX_ROWS;
  const more = el("button", { type: "button", onclick: () => {
    const next = shown + 5000;
    put(shown, next);
    shown = next;
    if (shown >= rows.length) more.remove();
  } }, `show all ${grouped(rows.length)} lines`);
  return el("div", {}, box, more);
}

function fileDiff(diff, relative) {
  const what = diff.old === undefined ? "whole file" : diff.new === undefined ? "deleted" : "changed";
  const path = relative(diff.path);
  return el("div", { class: "file" }, el("p", { class: "path" }, el("code", {}, path), ` ${what}`), diffTable(diffRows(diff.old ?? "", diff.new ?? ""), `Change of ${path}`));
}

const LETTERS = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

// Returns the real name of a file that git quotes: `"gr\303\274n"` is `grün`. Names that are not UTF-8, or that have control
// characters, stay quoted, because the page could not tell them from others.
function unquoted(name) {
  if (!/^".*"$/.test(name)) return name;
  const bytes = [];
  for (const [, octal, letter, plain] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (letter) bytes.push(LETTERS[letter] ?? letter.charCodeAt(0));
    else for (const byte of new TextEncoder().encode(plain)) bytes.push(byte);
  }
  try {
    const real = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
    return /[\u0000-\u001f\u007f]/.test(real) ? name : real;
  } catch {
    return name;
  }
}

// Returns the path that the first line of a file's diff names, without `a/` or `b/`; undefined if it is no such line. Both
// names are equal unless the file was renamed.
function pathOf(line) {
  const names = /^diff --git (.*)$/.exec(line)?.[1];
  if (names === undefined) return undefined;
  const half = names.slice((names.length + 1) / 2);
  if (names === `${half.replace(/^("?)b\//, "$1a/")} ${half}`) return bare(half);
  return bare(/ ("b\/.*"|b\/.*)$/.exec(names)?.[1] ?? names);
}

function bare(name) {
  const real = unquoted(name);
  return real.startsWith('"') ? real.replace(/^"[ab]\//, '"') : real.replace(/^[ab]\//, "");
}

// Returns the files of a unified diff: {path, rows, added, removed}.
function patchFiles(text) {
  const files = [];
  let file = null;
  let [n, m] = [0, 0];
  let [gone, come] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) file.rows.push({ kind: "change", ...gone[at], ...come[at] });
    [gone, come] = [[], []];
  };
  let inHunk = [0, 0];
  for (const line of linesOf(text)) {
    if (inHunk[0] <= 0 && inHunk[1] <= 0) {
      const path = pathOf(line);
      if (path !== undefined || (!file && line.startsWith("--- "))) {
        if (file) flush();
        file = { path: path ?? bare(line.slice(4)), rows: [], notes: [], added: 0, removed: 0 };
        files.push(file);
        continue;
      }
      if (!file) continue;
      const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
      if (hunk) {
        flush();
        [n, m] = [Number(hunk[1]), Number(hunk[3])];
        inHunk = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
        file.rows.push({ title: line });
      } else if (!/^(index |--- |\+\+\+ )/.test(line)) {
        file.notes.push(line.replace(/"(?:[^"\\]|\\.)*"/g, unquoted));
      }
      continue;
    }
    const rest = line.slice(1);
    if (line[0] === "-") {
      gone.push({ n, old: rest });
      n += 1;
      inHunk[0] -= 1;
      file.removed += 1;
    } else if (line[0] === "+") {
      come.push({ m, now: rest });
      m += 1;
      inHunk[1] -= 1;
      file.added += 1;
    } else if (line[0] !== "\\") {
      flush();
      file.rows.push({ kind: "same", n, m, old: rest, now: rest });
      n += 1;
      m += 1;
      inHunk = [inHunk[0] - 1, inHunk[1] - 1];
    }
    if (inHunk[0] <= 0 && inHunk[1] <= 0) flush();
  }
  if (file) flush();
  return files;
}

function patchView(text) {
  const files = patchFiles(text);
  if (!files.length) return longText(text);
  return files.map((file) =>
    fold(
      [el("code", {}, file.path), el("span", { class: "m-quiet" }, ` ${grouped(file.added)} added, ${grouped(file.removed)} removed`), file.notes.length ? el("span", { class: "m-quiet" }, ` ${oneLine(file.notes.join("; "), 120)}`) : null],
      () => (file.rows.length ? diffTable(file.rows, `Change of ${file.path}`) : el("p", { class: "m-quiet" }, "no lines to show")),
      { class: "file", open: files.length <= 10 && file.rows.length < 2000 },
    ),
  );
}
