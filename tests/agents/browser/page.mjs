// Uses the page of tests/support/pages.rs as a reader does, and fails at the first thing that is not as it should be.
import assert from "node:assert/strict";
import fs from "node:fs";
import { launch, packages } from "./launch.mjs";

const file = `file://${process.argv[2]}`;
const axe = fs.readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch();
const said = [];

async function open(place, { scheme = "light", width = 1280, script = true } = {}) {
  const page = await browser.newPage();
  page.on("console", (message) => said.push(`${place}: ${message.type()} ${message.text()}`));
  page.on("pageerror", (error) => said.push(`${place}: ${error.message}`));
  page.on("request", (request) => request.url().startsWith(file) || said.push(`${place}: asked for ${request.url()}`));
  page.on("dialog", (dialog) => said.push(`${place}: dialog ${dialog.message()}`));
  await page.setJavaScriptEnabled(script);
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(file + place);
  if (script) await until(page, () => document.documentElement.dataset.ready);
  return page;
}

const text = (page, selector) => page.$eval(selector, (node) => node.innerText);
// Also what is outside the window, whose layout the browser leaves out.
const content = (page, selector) => page.$eval(selector, (node) => node.textContent);
const count = (page, selector) => page.$$eval(selector, (nodes) => nodes.filter((it) => it.offsetParent !== null).length);
// By time and not by frames: a browser that is busy draws none.
const until = (page, what, ...args) => page.waitForFunction(what, { timeout: 60000, polling: 100 }, ...args);
const shown = (page) => until(page, () => document.querySelector("#trial .event, #trial .pair"));

async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map((it) => `${it.id}: ${it.help}: ${it.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
  return told.map((it) => `${what}: ${it}`);
}

const checks = {
  async "the matrix shows every verdict in words, and filters"() {
    const page = await open("#/");
    const all = await text(page, "#cells");
    for (const word of ["pass", "fail", "errored", "ungraded", "skipped"]) assert.match(all, new RegExp(word));
    assert.equal(await count(page, "#cells tbody tr"), 7);
    await page.keyboard.press("/");
    await page.keyboard.type("edits");
    assert.equal(await count(page, "#cells tbody tr"), 1);
    await page.keyboard.press("Escape");
    await page.$eval("#filter-cases", (box) => {
      box.value = "";
      box.dispatchEvent(new Event("input"));
    });
    for (const word of ["pass", "fail", "ungraded", "skipped"]) await page.click(`#overview input[value=${word}]`);
    assert.match(await text(page, "#cells tbody"), /^errored/);
    assert.equal(await text(page, "#shown-cases"), "1 of 7 cases");
  },
  async "charts are pictures with a description"() {
    const page = await open("#/");
    const told = await page.$$eval(".chart svg", (all) => all.map((it) => it.getAttribute("aria-label")));
    assert.ok(told.length >= 2 && told.every((it) => it.length > 10), told.join("\n"));
  },
  async "a link leads to a trial, and evidence to its event"() {
    const page = await open("#/");
    await page.click('#cells a[href="#/edits/change/demo/default/1"]');
    await shown(page);
    assert.match(await text(page, "#trial h1"), /edits\/change.*demo · trial 1.*pass/s);
    assert.match(await page.title(), /^pass: edits\/change/);
    const link = await page.$(".grades a[href*='/event/']");
    const place = await link.evaluate((it) => it.getAttribute("href"));
    await link.click();
    await until(page, () => document.querySelector(".event.target"));
    assert.equal(await page.evaluate(() => location.hash), place);
    assert.equal(await page.evaluate(() => document.activeElement.id), `event-${place.split("/").at(-1)}`);
    await page.goBack();
    await page.goBack();
    await until(page, () => !document.getElementById("overview").hidden);
  },
  async "a place is a link that can be shared"() {
    const page = await open("#/edits/change/other/default/2/event/4");
    await until(page, () => document.querySelector("#event-4.target"));
    const nothing = await open("#/no/such/place/1");
    assert.match(await text(nothing, "#trial"), /nothing at this place/);
  },
  async "the title and the messages are those of the place"() {
    const page = await open("#/edits/change/demo/default/1");
    const go = (place) => page.evaluate((it) => (location.hash = it), place);
    const told = () => page.$eval("#told", (it) => it.textContent);
    await shown(page);
    await go("#/hostile/text/demo/default/1/beside/hostile/text/other/default/1");
    await until(page, () => document.querySelector("#trial .pair"));
    assert.equal(await page.title(), "side by side: hostile/text · demo · trial 1 and hostile/text · other · trial 1");
    await go("#/no/such/place/1");
    await until(page, () => /nothing at this place/.test(document.title));
    await go("#/edits/change/demo/default/1/event/4000");
    await until(page, () => document.getElementById("told").textContent);
    assert.equal(await told(), "the trace has no event 4000");
    await go("#/edits/change/demo/default/2");
    await until(page, () => /trial 2/.test(document.title));
    assert.equal(await told(), "");
  },
  async "the name of a case does not divide a link, also in an older link"() {
    const page = await open("#/compare");
    const place = "odd/%62eside/%65vent/demo/default/1";
    await page.click(`#compare a[href='#/${place}/beside/odd/%62eside/%65vent/other/default/1']`);
    await shown(page);
    assert.match(await text(page, "#trial"), /\d+ equal parts, 0 differences/);
    for (const it of [`#/${place}/event/1`, "#/odd/beside/event/demo/default/1/event/1"]) {
      const event = await open(it);
      await until(event, () => document.querySelector("#event-1.target"));
    }
    const old = "odd/beside/event/demo/default/1";
    await shown(await open(`#/${old}`));
    const older = await open(`#/${old}/beside/${old.replace("demo", "other")}`);
    await until(older, () => document.querySelector("#trial .pair"));
  },
  async "a quarantine is marked wherever the verdict is"() {
    const page = await open("#/");
    const rows = await page.$$eval("#cells tbody tr", (all) => all.map((it) => it.innerText));
    assert.deepEqual(rows.map((it) => it.split("in quarantine").length - 1), [0, 0, 0, 0, 3, 0, 0]);
    const trial = await open("#/quarantined/demo/default/1");
    await shown(trial);
    assert.match(await trial.title(), /^fail in quarantine: quarantined/);
    assert.match(await text(trial, "#trial h1"), /fail\s*in quarantine$/);
    assert.match(await text(trial, "#trial"), /Not counted: the case is in quarantine until 2999-01-01: the mirror loses connections/);
    const beside = await open("#/quarantined/demo/default/1/beside/quarantined/other/default/1");
    await shown(beside);
    assert.match(await text(beside, ".beside thead"), /in quarantine[^]*in quarantine/);
  },
  async "changed files have their real names"() {
    const page = await open("#/quarantined/demo/default/1");
    await until(page, () => document.querySelector(".part .file > summary code"));
    assert.equal(await text(page, ".part .file > summary code"), "grün b/ü.txt");
  },
  async "events, decisions, changes and times are text"() {
    const page = await open("#/edits/change/demo/default/1");
    await shown(page);
    const all = await text(page, "#trial");
    assert.match(await content(page, "#trial"), /permission rejected/);
    assert.match(all, /by scripted, rule no-commands/);
    assert.match(all, /model [\d.]+m?s \(\d+ %\)\s+tools/);
    assert.match(all, /Change of the workspace/);
    assert.equal(await text(page, ".part .diff del"), "two");
    assert.equal(await text(page, ".part .diff ins"), "zwei");
    assert.match(all, /turn 1 · steps 0–2 · events 0–\d+ · 4 tool calls/);
    // The browser's own search reads the texts of the document, and nothing of it is drawn only.
    assert.equal(await page.$$eval("canvas, main img", (it) => it.length), 0);
    assert.match(await content(page, "#event-9"), /rule no-commands/);
  },
  async "filters keep what they name"() {
    const page = await open("#/edits/change/demo/default/1");
    await shown(page);
    const before = await count(page, ".event");
    await page.click("#trial input[value='tool read']");
    const after = await count(page, ".event");
    assert.equal(after, before - 4);
    await page.type("#filter-events", "zwei");
    await until(page, () => document.querySelectorAll(".event").length === 2);
    await page.$eval("#filter-events", (box) => {
      box.value = "";
      box.dispatchEvent(new Event("input"));
    });
    await page.click("#trial input[value='tool read']");
    await until(page, (wanted) => document.querySelectorAll(".event").length === wanted, before);
    await page.click("#trial input[name=failed]");
    assert.match(await content(page, ".events"), /denied/);
    assert.equal(await count(page, ".event.e-thought"), 0);
  },
  async "the wire lines of an event are those it was made from"() {
    const page = await open("#/edits/change/demo/default/1");
    await shown(page);
    await page.$eval("#event-0 [data-do=wire]", (it) => it.click());
    await until(page, () => document.querySelector("#event-0 .wires .wire"));
    assert.match(await text(page, "#event-0 .wires"), /1 line of wire.jsonl, from which the event was made/);
    assert.match(await text(page, "#event-0 .wires"), /session\/prompt[^]*Do it\./);
    await page.$$eval(".part > summary", (all) => all.at(-1).click());
    await until(page, () => document.querySelector(".part .body > .wire"));
  },
  async "the keyboard moves, helps and goes back"() {
    const page = await open("#/edits/change/demo/default/1");
    await shown(page);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    assert.equal(await page.evaluate(() => document.activeElement.id), "event-1");
    await page.keyboard.press("k");
    assert.equal(await page.evaluate(() => document.activeElement.id), "event-0");
    await page.keyboard.press("w");
    await until(page, () => document.querySelector("#event-0 .wires"));
    await page.keyboard.press("?");
    assert.ok(await page.$eval("#help", (it) => it.open));
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await until(page, () => /trial 2/.test(document.querySelector("#trial h1").innerText));
    await page.keyboard.press("u");
    await until(page, () => !document.getElementById("overview").hidden);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("o");
    await until(page, () => /trial 2$/.test(document.title));
    await page.keyboard.press("u");
    await until(page, () => !document.getElementById("overview").hidden);
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await until(page, () => /trial 1$/.test(document.title));
  },
  async "two trials stand side by side"() {
    const page = await open("#/compare");
    assert.match(await text(page, "#compare"), /Case by case: demo and other/);
    await page.click("#compare a[href='#/edits/change/demo/default/1/beside/edits/change/other/default/1']");
    await shown(page);
    assert.match(await text(page, "#trial"), /\d+ equal parts, 0 differences/);
    const other = await open("#/edits/change/demo/default/1/beside/hostile/text/demo/default/1");
    await shown(other);
    assert.match(await text(other, "#trial"), /only left|different/);
  },
  async "a trial is copied as Markdown"() {
    const page = await open("#/hostile/text/demo/default/1");
    await shown(page);
    // The page may not write to the clipboard here, and shows the text instead.
    await page.click("#copy-trial");
    await until(page, () => document.querySelector(".copied textarea") || document.getElementById("told").textContent);
    const copied = await page.evaluate(() => document.querySelector(".copied textarea")?.value ?? "");
    if (copied) assert.match(copied, /^### fail: `hostile\/text`[^]*- failed `<b>bold<\/b>`/);
  },
  async "hostile texts do nothing, and are shown"() {
    const page = await open("#/hostile/text/demo/default/1");
    await shown(page);
    const all = await content(page, "#trial");
    for (const it of ["</script><script>", "<img src=x", "javascript:", "<!-- <style>", "<b>plain</b>", "<b>bold</b>", "\\u{202e}txt.exe\\u{202c}", "zero\\u{200b}width"]) assert.ok(all.includes(it), it);
    assert.ok(!/[\u202a-\u202e\u2066-\u2069]/.test(all));
    assert.match(await page.title(), /^fail: hostile/);
    assert.equal(await page.$$eval("main img, main script, main style, main iframe, main b, main i, main [onmouseover]", (all) => all.filter((it) => !it.closest(".legend")).length), 0);
    assert.deepEqual(await page.$$eval("a", (all) => all.map((it) => it.getAttribute("href")).filter((it) => !it.startsWith("#/"))), []);
    assert.equal(await text(page, ".c-red"), "red");
    assert.ok(!all.includes("\u001b") && !/plain<\/b> \]0;title/.test(all));
  },
  async "a text of 10 MB is cut, and can be shown"() {
    const page = await open("#/hostile/text/demo/default/1");
    await shown(page);
    const long = await page.$$eval(".event .text", (all) => Math.max(...all.map((it) => it.textContent.length)));
    assert.ok(long < 20000, `${long} characters are shown at first`);
    const button = await page.$(".event .more");
    assert.match(await button.evaluate((it) => it.textContent), /^show (all|[\d,]+ more of) [\d,]+ characters/);
    const begun = Date.now();
    await button.evaluate((it) => it.click());
    assert.ok(Date.now() - begun < 2000);
  },
  async "a link to an event that is taller than the window shows its beginning"() {
    const page = await open("#/hostile/text/demo/default/1");
    await shown(page);
    await page.setViewport({ width: 500, height: 300 });
    const id = await page.$$eval(".event", (all) => all.sort((a, b) => b.offsetHeight - a.offsetHeight)[0].id);
    await page.evaluate((it) => (location.hash += it.replace("event-", "/event/")), id);
    await until(page, (it) => document.getElementById(it).matches(".target"), id);
    await until(page, (it) => ((top) => top > 0 && top < 150)(document.getElementById(it).getBoundingClientRect().top), id);
    assert.ok(await page.$eval(`#${id}`, (it) => it.offsetHeight > 300));
  },
  async "a narrow screen and paper need no scrolling to the side"() {
    for (const place of ["#/", "#/edits/change/demo/default/1", "#/compare"]) {
      const page = await open(place, { width: 380 });
      if (place.includes("edits")) await shown(page);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), place);
      await page.emulateMediaType("print");
      assert.equal(await count(page, "#bar"), 0);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${place} on paper`);
      await page.close();
    }
  },
  async "paper is white in dark mode, and shows that a text is cut"() {
    const page = await open("#/hostile/text/demo/default/1", { scheme: "dark", width: 794 });
    await shown(page);
    await page.emulateMediaType("print");
    const colours = await page.evaluate(() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]);
    assert.deepEqual(colours, ["rgb(27, 31, 36)", "rgb(255, 255, 255)"]);
    assert.ok((await count(page, ".event .more")) > 0);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  },
  async "without scripts the overview is there"() {
    const page = await open("#/", { script: false });
    const content = await page.content();
    assert.match(content, /edits\/change/);
    assert.match(content, /trials are shown by the script/);
  },
  async "everybody can use it, in light and dark"() {
    const told = [];
    for (const scheme of ["light", "dark"]) {
      for (const place of ["#/", "#/compare", "#/edits/change/demo/default/1", "#/hostile/text/demo/default/1", "#/errored/demo/default/1", "#/quarantined/demo/default/1", "#/edits/change/demo/default/1/beside/hostile/text/demo/default/1"]) {
        const page = await open(place, { scheme });
        if (/\d$/.test(place) && !place.includes("errored")) await shown(page);
        told.push(...(await accessible(page, `${place} in ${scheme}`)));
        await page.close();
      }
    }
    assert.deepEqual(told, []);
  },
};

let failed = 0;
try {
  for (const [what, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok: ${what}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED: ${what}: ${error.stack}`);
    }
    for (const page of (await browser.pages()).slice(1)) await page.close();
  }
  if (said.length) {
    failed += 1;
    console.log(`FAILED: the console is silent:\n${said.join("\n")}`);
  }
} finally {
  await browser.close();
}
process.exit(failed ? 1 : 0);
