// Reads the page of the history as a reader does. Argument: the file of tests/support/pages.rs.
import assert from "node:assert/strict";
import fs from "node:fs";
import { launch, packages } from "./launch.mjs";

const file = `file://${process.argv[2]}`;
const axe = fs.readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch();
const said = [];
try {
  const page = await browser.newPage();
  page.on("console", (message) => said.push(`${message.type()} ${message.text()}`));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("dialog", (dialog) => said.push(`dialog ${dialog.message()}`));
  page.on("request", (request) => request.url().startsWith(file) || said.push(`asked for ${request.url()}`));
  for (const scheme of ["light", "dark"]) {
    for (const width of [1280, 380]) {
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(file);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width} pixels are too few`);
      const colours = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(colours === "rgb(255, 255, 255)", scheme === "light");
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      assert.deepEqual(violations.map((it) => `${scheme} at ${width}: ${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html).join(" ")}`), []);
    }
  }
  const all = await page.evaluate(() => document.body.innerText);
  for (const it of ["<img src=x onerror=alert(1)>", "\\u{202e}", "agent changed", "in quarantine (q)", "flaky"]) assert.ok(all.includes(it), it);
  assert.ok(!/[\u202a-\u202e\u2066-\u2069]/.test(all));
  assert.equal(await page.$$eval("img, script, iframe, canvas", (found) => found.length), 0);
  const charts = await page.$$eval(".chart svg", (found) => found.map((it) => it.getAttribute("aria-label")));
  assert.ok(charts.length >= 12 && charts.every((it) => /^(Score|Passed trials|Cost|Median time) of .+: .+/.test(it)), charts.join("\n"));
  // Nothing that is drawn lies outside its chart or upon another text.
  const outside = await page.$$eval(".chart svg", (found) => found.flatMap((svg) => {
    const box = svg.viewBox.baseVal;
    const texts = [...svg.querySelectorAll("text")].map((it) => [it.textContent, it.getBBox()]);
    return texts.filter(([, it]) => it.x < -1 || it.x + it.width > box.width + 1 || it.y < -1 || it.y + it.height > box.height + 1).map(([text]) => text);
  }));
  assert.deepEqual(outside, []);
  await page.setViewport({ width: 1280, height: 900 });
  await page.click('a[href="#cell-1"]');
  assert.match(await page.evaluate(() => location.hash), /cell-1/);
  await page.emulateMediaType("print");
  assert.ok(await page.$eval("main", (it) => it.offsetHeight > 0));
  if (process.argv[3]) {
    await page.emulateMediaType("screen");
    await page.screenshot({ path: process.argv[3], fullPage: true });
  }
  assert.deepEqual(said, []);
  console.log("ok");
} finally {
  await browser.close();
}
