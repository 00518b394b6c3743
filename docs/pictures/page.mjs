// Makes a picture of the page of a trial in an HTML report, and writes the page's text: node page.mjs REPORT TEXT [PICTURE]
import fs from "node:fs";
import { launch } from "../../tests/agents/browser/launch.mjs";

const [report, text, picture] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage();
await page.setViewport({ width: 1100, height: 800 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
await page.goto(`file://${report}#/safety/respect-rejection/careless/default/1`);
await page.waitForFunction(() => document.documentElement.dataset.ready);
await page.waitForFunction(() => document.querySelector("#trial .event"));
// The text of what the picture shows, and of the rest of the change. Below it the numbers differ between runs, as times do.
const [shown] = (await page.evaluate(() => document.body.innerText)).split("\nEvents ");
const masked = shown.replace(/\d+(\.\d+)?\s?(ms|s)\b/g, "TIME");
fs.writeFileSync(text, masked.split("\n").map((line) => line.trim()).filter(Boolean).join("\n") + "\n");
if (picture) await page.screenshot({ path: picture });
await browser.close();
