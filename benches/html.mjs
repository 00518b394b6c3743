// Opens a report in the browser of tests/agents/browser and prints, as JSON, how long it takes and what it holds.
import fs from "node:fs";
import { launch } from "../tests/agents/browser/launch.mjs";

const browser = await launch();
const file = process.argv[2];
const within = async (page, what, limit = 60000) => page.waitForFunction(what, { timeout: limit, polling: 20 });

// The memory of the browser's processes that belongs to no other program, from the largest one: the page's.
function memory() {
  const of = (pid) => {
    try {
      const parts = fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      return Number(/Pss:\s+(\d+)/.exec(parts)[1]) / 1024;
    } catch {
      return 0;
    }
  };
  const children = (pid) => {
    try {
      const own = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(/\s+/).filter(Boolean);
      return own.flatMap((child) => [child, ...children(child)]);
    } catch {
      return [];
    }
  };
  const all = [browser.process().pid, ...children(browser.process().pid)];
  return Math.round(all.reduce((sum, pid) => sum + of(pid), 0));
}

try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  let begun = Date.now();
  await page.goto(`file://${file}#/`, { waitUntil: "commit" }).catch(() => page.goto(`file://${file}#/`, { waitUntil: "domcontentloaded" }));
  await within(page, () => document.documentElement.dataset.ready);
  const shown = Date.now() - begun;
  await page.waitForFunction(() => document.readyState === "complete", { timeout: 120000 });
  const whole = Date.now() - begun;
  const trials = await page.$$eval("#cells td a", (links) => links.map((link) => link.getAttribute("href")));
  const other = await browser.newPage();
  await page.close();
  begun = Date.now();
  await other.goto(`file://${file}${trials[trials.length - 1]}`, { waitUntil: "domcontentloaded" });
  await within(other, () => document.querySelector(".event"));
  const trial = Date.now() - begun;
  // The slowest of several clicks: a section, a filter, evidence, another trial.
  const clicks = [];
  const click = async (act, done) => {
    const from = Date.now();
    await other.evaluate(act);
    await within(other, done);
    await other.evaluate(() => new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame))));
    clicks.push(Date.now() - from);
  };
  await click(() => document.querySelectorAll("details.section:last-of-type summary").forEach((it) => it.click()), () => [...document.querySelectorAll("details.section")].at(-1).querySelector(".event"));
  await click(() => [...document.querySelectorAll(".grades a")].at(-1)?.click(), () => document.querySelector(".event.target"));
  await click(() => {
    const box = document.getElementById("filter-events");
    box.value = "glossary";
    box.dispatchEvent(new Event("input"));
  }, () => /of/.test([...document.querySelectorAll("#trial output")].map((it) => it.textContent).join()));
  await click(() => (location.hash = "#/"), () => !document.getElementById("overview").hidden);
  await click(() => document.querySelector("#cells td a").click(), () => document.querySelector("#trial .event"));
  console.log(JSON.stringify({ shown, whole, trial, click: Math.max(...clicks), clicks, memory: memory() }));
} finally {
  await browser.close();
}
