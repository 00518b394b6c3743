// Uses `evals view` as a reader does while a run goes on: the list, the run, a running trial, and what finishes meanwhile.
// Arguments: the address of the list, the name of the run, and the files whose appearance lets the trials end.
import assert from "node:assert/strict";
import fs from "node:fs";
import { launch, packages } from "./launch.mjs";

const [url, run, first, second] = process.argv.slice(2);
const axe = fs.readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch();
const said = [];
const asked = [];
const page = await browser.newPage();
page.on("console", (message) => said.push(`${message.type()} ${message.text()}`));
page.on("pageerror", (error) => said.push(error.message));
page.on("request", (request) => {
  if (!request.url().startsWith(url)) said.push(`asked for ${request.url()}`);
  if (request.url().endsWith("?state")) asked.push(Date.now());
});
await page.setViewport({ width: 1280, height: 900 });

const text = (selector) => page.$eval(selector, (node) => node.innerText);
// By time and not by frames: a browser that is busy draws none, and then a page that is ready would not be noticed.
const until = (what, ...args) => page.waitForFunction(what, { timeout: 60000, polling: 100 }, ...args);
const ready = () => until(() => document.documentElement.dataset.ready);

// Clicks on what leads to another page, and waits until that page is ready: the old page is ready too, while it is left.
async function follow(selector) {
  const [answer] = await Promise.all([page.waitForNavigation({ timeout: 60000 }), page.click(selector)]);
  await ready();
  return answer;
}

async function accessible(what) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(violations.map((it) => `${what} in ${scheme}: ${it.id}: ${it.nodes.map((node) => node.html).join(" ")}`), []);
  }
}

try {
  // The list tells which run goes on, in words, and leads to it.
  await page.goto(url);
  await ready();
  assert.match(await text("#runs"), /going on 0 of 2 trials finished, 1 running/);
  await accessible("the list");
  await follow(`a[href="${run}/"]`);
  assert.match(await text("#live"), /^This run is going on: 0 of 2 trials finished, 1 running\.$/);
  assert.match(await text("#cells"), /running/);
  await accessible("the run");

  // A running trial shows its events so far.
  await page.click('#cells a[href="#/waits/1/demo/default/1"]');
  await until(() => document.querySelector("#trial .event"));
  assert.match(await text("#trial"), /This trial is running/);
  assert.match(await text("#trial .events"), /words of trial 1/);
  await page.goto(`${url}${run}/#/waits/1/demo/default/1/event/1`);
  await until(() => document.querySelector("#event-1.target"));

  // What finishes is told and changes nothing by itself: the event stays open and in its place.
  fs.writeFileSync(first, "");
  await until(() => /1 more trial has finished/.test(document.querySelector("#live").innerText));
  assert.ok(await page.$("#event-1.target"));
  assert.match(await text("#trial"), /This trial is running/);
  await accessible("the news");
  const newer = await follow("#live button");
  assert.equal(newer?.status() ?? 200, 200);
  await until(() => document.querySelector("#event-1.target"));
  assert.match(await text("#trial h1"), /pass/);
  assert.equal(await page.evaluate(() => location.hash), "#/waits/1/demo/default/1/event/1");

  // A finished run stops asking.
  fs.writeFileSync(second, "");
  await until(() => /This run has ended/.test(document.querySelector("#live").innerText));
  const count = asked.length;
  await new Promise((done) => setTimeout(done, 5000));
  assert.equal(asked.length, count, "the page asks after the end of the run");
  await follow("#live button");
  assert.equal(await page.$eval("#live", (it) => it.hidden), true);
  await follow('#bar a[href="../"]');
  assert.match(await text("#runs"), /2 passed/);
  await page.setViewport({ width: 380, height: 900 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "the list is too wide");
  await accessible("the narrow list");
  assert.deepEqual(said, []);
  console.log("ok");
} finally {
  await browser.close();
}
