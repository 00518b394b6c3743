// Runs an assertion of promptfoo that is code, and prints its grade. Written by `evals convert`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const spec = JSON.parse("SPECIFICATION");
const trial = JSON.parse(readFileSync(0, "utf8"));

// What the source knew and a trial does not must not be taken for a value.
class Unknown extends Error {}
const known = (values, name) =>
  new Proxy(values, {
    get(target, key) {
      if (typeof key === "symbol" || key in target || key === "then" || key === "toJSON") return target[key];
      throw new Unknown(`the assertion reads \`${name}.${key}\`, which a trial does not have`);
    },
    has(target, key) {
      if (key in target) return true;
      throw new Unknown(`the assertion asks for \`${name}.${String(key)}\`, which a trial does not have`);
    },
  });

function body(code) {
  const text = code.trimEnd();
  if (text.includes("\n")) return text;
  const line = text.trim().replace(/;+\s*$/, "");
  if (!/^(const|let|var)\s/.test(line)) return `return ${line}`;
  // The last statement is the result; where it begins depends on the grammar, so each `;` is tried from the end.
  for (let at = line.lastIndexOf(";"); at >= 0; at = line.lastIndexOf(";", at - 1)) {
    const candidate = `${line.slice(0, at + 1)} return (${line.slice(at + 1)});`;
    try {
      new Function("output", "context", "process", candidate);
      return candidate;
    } catch {}
  }
  return line;
}

async function result(output, context) {
  if (spec.code !== undefined) {
    const require = createRequire(process.cwd() + "/");
    const shim = Object.assign(Object.create(process), { mainModule: { require } });
    return await new Function("output", "context", "process", body(spec.code))(output, context, shim);
  }
  let module;
  try {
    module = await import(pathToFileURL(process.argv[2]).href);
  } catch (error) {
    throw new Unknown(`the code cannot be loaded: ${error.message}`);
  }
  const main = module.default?.default ?? module.default ?? module;
  const called = spec.function ? (module[spec.function] ?? main[spec.function]) : main;
  if (typeof called !== "function") throw new Unknown("the code exports no function of that name");
  return await called(output, context);
}

function grade(value) {
  let pass;
  let score;
  let reason = "";
  if (typeof value === "boolean") {
    pass = value !== spec.inverse;
    score = pass ? 1 : 0;
  } else if (typeof value === "number" && Number.isFinite(value)) {
    pass = (spec.threshold === null ? value > 0 : value >= spec.threshold) !== spec.inverse;
    score = value;
  } else if (value && typeof value === "object" && typeof value.pass === "boolean" && Number.isFinite(value.score)) {
    // The source takes the object as it is, without the threshold of the assertion.
    pass = value.pass !== spec.inverse;
    score = value.score;
    reason = String(value.reason ?? "");
  } else {
    return { passed: false, reason: `the code returned ${typeof value}, which is no grade` };
  }
  const told = reason || `the code returned ${JSON.stringify(value)}`;
  if (!spec.scored) return { passed: pass, reason: told };
  // If the test has a threshold, scores count and not whether each assertion passed. The source adds any number.
  if (score < 0 || score > 1) return { ungraded: `the code gives the score ${score}, which is not from 0 to 1` };
  return score === 1 ? { passed: true, reason: told } : { passed: false, value: score, reason: told };
}

let printed;
try {
  if (typeof trial.output !== "string") throw new Unknown("the trial has no final answer");
  const config = spec.config === null ? {} : { config: spec.config };
  const context = known({ vars: spec.vars, prompt: spec.prompt, ...config }, "context");
  printed = grade(await result(trial.output, context));
} catch (error) {
  printed =
    error instanceof Unknown
      ? { ungraded: error.message }
      : { passed: false, reason: `the code threw an error: ${error?.message ?? error}` };
}
process.stdout.write(JSON.stringify(printed) + "\n", () => process.exit(0));
