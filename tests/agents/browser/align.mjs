// Aligns lists with the script of the page, and compares the pairs with those that the engine found.
import fs from "node:fs";

const page = new URL("../../../src/report/html/page/", import.meta.url);
const read = (name) => fs.readFileSync(new URL(name, page), "utf8");
const alignItems = new Function(`${read("align.js")}\n${read("diff.js")}\nreturn alignItems;`)();
const rows = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
let different = 0;
rows.forEach(({ old, new: now, pairs }, number) => {
  const found = alignItems(old, now);
  if (JSON.stringify(found) !== JSON.stringify(pairs)) {
    different += 1;
    if (different < 4) console.error(`list ${number} (${old.length} and ${now.length} items):\n${JSON.stringify(found)}\n${JSON.stringify(pairs)}`);
  }
});
console.log(`${rows.length} lists, ${different} differ`);
process.exit(different ? 1 : 0);
