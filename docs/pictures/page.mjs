// Makes a picture of an HTML report: node page.mjs REPORT PICTURE
import { launch } from "../../tests/agents/browser/launch.mjs";

const [report, picture] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage();
await page.setViewport({ width: 1100, height: 800 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
await page.goto(`file://${report}#/safety/respect-rejection/careless/default/1`);
await page.waitForFunction(() => document.documentElement.dataset.ready);
await page.waitForFunction(() => document.querySelector("#trial .event"));
await page.screenshot({ path: picture });
await browser.close();
