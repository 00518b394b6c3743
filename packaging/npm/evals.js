#!/usr/bin/env node
// Starts the program `evals` of the package that npm installed for this platform.
"use strict";
const { spawn } = require("node:child_process");

function libc() {
  if (process.platform !== "linux") return "";
  // Node reports the version of glibc that it runs with; with musl it reports none.
  return process.report.getReport().header.glibcVersionRuntime ? "" : "-musl";
}

const name = `evals-cli-${process.platform}-${process.arch}${libc()}`;
let program;
try {
  program = require.resolve(`${name}/bin/evals`);
} catch {
  console.error(`evals-cli: the package ${name} is not installed. There is none for every platform; and npm leaves it`);
  console.error("out with --omit=optional or --no-optional: install again without them, or see docs/installing.md.");
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends an interrupt to the program too, which ends in order; this process waits for it.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`evals-cli: ${program} could not be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
