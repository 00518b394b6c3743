// Runs an assertion of promptfoo that is code, and prints its grade. Written by `evals convert`.
import { readFileSync, writeSync } from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { pathToFileURL } from "node:url";

const spec = JSON.parse("SPECIFICATION");
const trial = JSON.parse(readFileSync(0, "utf8"));

// What the source knew and a trial does not must not be taken for a value, also if the code catches the error.
let unknown;
class Unknown extends Error {
  constructor(message) {
    super(message);
    unknown ??= message;
  }
}
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

// The environment with the variables of a trial. Modules that the code loads, and those of Node.js, may ask for others.
const variables = () => {
  const isKnown = (target, key) => typeof key === "symbol" || key in target || ["then", "toJSON"].includes(key);
  const demand = (target, key) => {
    if (!isKnown(target, key) && isAskedByCode()) {
      const way = "write it into `env` of the case";
      throw new Unknown(`the assertion reads the variable \`${key}\`, which a trial does not have; ${way}`);
    }
  };
  return new Proxy(process.env, {
    get(target, key) {
      demand(target, key);
      return target[key];
    },
    has(target, key) {
      demand(target, key);
      return key in target;
    },
    getOwnPropertyDescriptor(target, key) {
      demand(target, key);
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
    ownKeys(target) {
      // Whether the code looks for a name in the list, or in a copy, is not shown.
      if (isAskedByCode()) {
        throw new Unknown("the assertion lists or copies the environment, and a trial does not have all of its variables");
      }
      return Reflect.ownKeys(target);
    },
    set(target, key, value) {
      target[key] = value;
      return true;
    },
  });
};
const isAskedByCode = () => {
  const isInline = (line) => line.includes("eval at ") && line.includes(import.meta.url);
  const isPassed = (line) => line.endsWith("(<anonymous>)") || (line.includes(import.meta.url) && !isInline(line));
  const frame = new Error().stack.split("\n").find((line, at) => at > 0 && !isPassed(line)) ?? "";
  const file = process.argv[2];
  return spec.code === undefined ? [file, pathToFileURL(file).href].some((name) => frame.includes(name)) : isInline(frame);
};

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
  process.env = variables();
  syncBuiltinESMExports();
  if (spec.code !== undefined) {
    const require = createRequire(process.cwd() + "/");
    const shim = Object.assign(Object.create(process), { mainModule: { require } });
    return await new Function("output", "context", "process", body(spec.code))(output, context, shim);
  }
  let module;
  try {
    module = await import(pathToFileURL(process.argv[2]).href);
  } catch (error) {
    if (error instanceof Unknown) throw error;
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
// A callback of the code, such as that of a timer, may ask for an unknown value, too: its error ends the program, or the result
// never comes.
process.on("exit", () => {
  if (printed !== undefined || unknown === undefined) return;
  writeSync(1, JSON.stringify({ ungraded: unknown }) + "\n");
  process.exit(0);
});
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
if (unknown !== undefined) printed = { ungraded: unknown };
process.stdout.write(JSON.stringify(printed) + "\n", () => process.exit(0));
