// Aligns the items of two trials as src/snapshot/align.rs aligns snapshots; a test holds both to the same results.
const CALL = 100;
const MAX_CHANGE_COST = 150;
const OTHER = 60;
const MAX_TABLE_CELLS = 1 << 20;

function callKey(call) {
  return `${call.tool} ${call.details.join(",")} ${call.same}`;
}

function itemKey(item) {
  if (item.key === undefined) {
    item.key = item.kind === "step" ? `step ${item.calls.map(callKey).join("|")}` : `${item.kind} ${item.text}`;
  }
  return item.key;
}

function alignItems(old, now) {
  let head = 0;
  const same = (a, b) => itemKey(a) === itemKey(b);
  while (head < old.length && head < now.length && same(old[head], now[head])) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && same(old[old.length - 1 - tail], now[now.length - 1 - tail])) tail += 1;
  const oldRest = old.slice(head, old.length - tail);
  const nowRest = now.slice(head, now.length - tail);
  const middle = oldRest.length * nowRest.length > MAX_TABLE_CELLS ? alignEqual(oldRest, nowRest) : alignLeast(oldRest, nowRest);
  const pairs = [];
  for (let n = 0; n < head; n += 1) pairs.push([n, n]);
  for (const [n, m] of middle) pairs.push([n === null ? null : n + head, m === null ? null : m + head]);
  for (let n = 0; n < tail; n += 1) pairs.push([old.length - tail + n, now.length - tail + n]);
  return pairs;
}

function alignCalls(old, now) {
  const taken = now.map(() => false);
  const ofOld = old.map(() => null);
  const keys = now.map(callKey);
  old.forEach((call, n) => {
    const same = keys.findIndex((key, m) => !taken[m] && key === callKey(call));
    if (same >= 0) {
      ofOld[n] = same;
      taken[same] = true;
    }
  });
  const open = [];
  const left = old.map((_, n) => n).filter((n) => ofOld[n] === null).slice(0, 300);
  const others = now.map((_, m) => m).filter((m) => !taken[m]).slice(0, 300);
  for (const n of left) {
    for (const m of others) {
      const cost = callCost(old[n], now[m]);
      if (cost !== null) open.push([cost, n, m]);
    }
  }
  open.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  for (const [, n, m] of open) {
    if (ofOld[n] === null && !taken[m]) {
      ofOld[n] = m;
      taken[m] = true;
    }
  }
  const pairs = ofOld.map((m, n) => [n, m]);
  taken.forEach((is, m) => is || pairs.push([null, m]));
  return pairs;
}

function gapCost(item) {
  return item.kind === "step" ? CALL * Math.min(Math.max(item.calls.length, 1), 10000) : OTHER;
}

function itemCost(old, now) {
  if (itemKey(old) === itemKey(now)) return 0;
  if (old.kind !== now.kind) return null;
  if (old.kind !== "step") return OTHER - 10;
  let cost = 0;
  let shared = false;
  for (const [n, m] of alignCalls(old.calls, now.calls)) {
    if (n !== null && m !== null) {
      shared = true;
      cost += callCost(old.calls[n], now.calls[m]) ?? CALL;
    } else {
      cost += CALL;
    }
  }
  return shared ? cost : null;
}

function callCost(old, now) {
  if (callKey(old) === callKey(now)) return 0;
  if (old.tool !== now.tool) return null;
  const all = Math.max(old.details.length, now.details.length, 1);
  const there = new Set(now.details);
  const same = old.details.filter((detail) => there.has(detail)).length;
  const inner = old.same === now.same ? 0 : 10;
  return 10 + Math.floor(((MAX_CHANGE_COST - 20) * (all - Math.min(same, all))) / all) + inner;
}

function alignLeast(old, now) {
  const width = now.length + 1;
  const costs = new Float64Array((old.length + 1) * width);
  const pairing = new Float64Array(old.length * now.length).fill(-1);
  const gapsOld = old.map(gapCost);
  const gapsNow = now.map(gapCost);
  for (let n = old.length; n >= 0; n -= 1) {
    for (let m = now.length; m >= 0; m -= 1) {
      let cost = 0;
      if (n < old.length && m < now.length) {
        const both = itemCost(old[n], now[m]);
        if (both !== null) pairing[n * now.length + m] = both;
        cost = Math.min(
          both === null ? Infinity : costs[(n + 1) * width + m + 1] + both,
          costs[(n + 1) * width + m] + gapsOld[n],
          costs[n * width + m + 1] + gapsNow[m],
        );
      } else if (n < old.length) {
        cost = costs[(n + 1) * width + m] + gapsOld[n];
      } else if (m < now.length) {
        cost = costs[n * width + m + 1] + gapsNow[m];
      }
      costs[n * width + m] = cost;
    }
  }
  const pairs = [];
  let n = 0;
  let m = 0;
  while (n < old.length || m < now.length) {
    const cost = costs[n * width + m];
    const both = n < old.length && m < now.length ? pairing[n * now.length + m] : -1;
    if (both >= 0 && costs[(n + 1) * width + m + 1] + both === cost) {
      pairs.push([n, m]);
      n += 1;
      m += 1;
    } else if (n < old.length && costs[(n + 1) * width + m] + gapsOld[n] === cost) {
      pairs.push([n, null]);
      n += 1;
    } else {
      pairs.push([null, m]);
      m += 1;
    }
  }
  return pairs;
}

// For lists that are too long to look for similar items: equal ones alone.
function alignEqual(old, now) {
  const pairs = [];
  let n = 0;
  let m = 0;
  for (const [from, to, length] of equalRuns(old.map(itemKey), now.map(itemKey))) {
    for (; n < from; n += 1) pairs.push([n, null]);
    for (; m < to; m += 1) pairs.push([null, m]);
    for (let k = 0; k < length; k += 1) pairs.push([n + k, m + k]);
    n += length;
    m += length;
  }
  for (; n < old.length; n += 1) pairs.push([n, null]);
  for (; m < now.length; m += 1) pairs.push([null, m]);
  return pairs;
}
