// Starts the pinned headless Chromium that `tests/agents/install browser` put into target/agents, or into EVALS_AGENTS.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.join(process.env.EVALS_AGENTS || path.join(here, "../../../target/agents"), "browser/npm");
export const packages = createRequire(pathToFileURL(root + "/"));

export async function launch() {
  // The package unpacks the browser into the temporary folder, and with it the libraries of NSS, if it is told to.
  process.env.TMPDIR = path.join(root, "tmp");
  fs.mkdirSync(process.env.TMPDIR, { recursive: true });
  const folders = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
  if (!folders.some((folder) => fs.existsSync(path.join(folder, "libnss3.so")))) process.env.AWS_EXECUTION_ENV ??= "AWS_Lambda_nodejs22.x";
  const { default: puppeteer } = packages("puppeteer-core");
  const { default: chromium } = await import(pathToFileURL(path.join(root, "node_modules/@sparticuz/chromium/build/esm/index.js")));
  // A browser with one process, or without the rules of origins, would be another one than people have.
  const unlike = ["--single-process", "--no-zygote", "--in-process-gpu", "--disable-web-security", "--allow-running-insecure-content"];
  const executablePath = await chromium.executablePath();
  fs.accessSync(executablePath, fs.constants.X_OK);
  return (puppeteer ?? packages("puppeteer-core")).launch({ executablePath, args: chromium.args.filter((it) => !unlike.includes(it)), headless: "shell", protocolTimeout: 180000 });
}
