#!/usr/bin/env python3
"""Measures `evals report` in each format over a run of many trials. Prints Markdown; see BENCHMARK.md.

usage: cargo build --release && python3 benches/reports.py [--trials 10000] [--rounds 5] [--evals PROGRAM]

The run folder is made here: cases of eight trials, two columns, four verdicts, graders with reasons, and a short trace for each trial.
"""
import argparse, json, os, shutil, tempfile

import speed


def make(folder, trials):
    """A run folder with so many trials."""
    run = "20261122-100000-be9c"
    root = os.path.join(folder, ".evals", "runs", run)
    os.makedirs(root)
    cells, columns, each = trials // 8, ("alpha", "beta"), 8
    cases = [f"group-{n % 20}/case-{n}" for n in range(cells // len(columns))]
    planned, results, journal = [], [], []
    for number, case in enumerate(cases):
        for harness in columns:
            for trial in range(1, each + 1):
                odd = (number * 31 + trial * 7 + len(harness)) % 20
                verdict = "pass" if odd < 14 else "fail" if odd < 18 else "errored" if odd == 18 else "ungraded"
                planned.append({"case": case, "harness": harness, "model": "m", "arm": "m", "trial": trial})
                result = {
                    "case": case, "harness": harness, "model": {"requested": "m", "effective": "m-1"}, "trial": trial,
                    "verdict": verdict,
                    "grades": [grade(f"grader-{n}", verdict if n == 0 else "pass") for n in range(3)],
                    "metrics": {"duration_ms": 1000 + odd * 37, "tool_calls": 12, "total_tokens": 4000 + odd, "cost_usd": 0.01},
                    "stop": {"reason": "end_turn"}, "attempt": 1, "arm": "m",
                    "shape": [["read:Read", "search:Grep"], ["edit:Edit"], ["execute:Bash"]] * 4, "warnings": [],
                }
                if verdict in ("pass", "fail"):
                    result["score"] = 1.0 if verdict == "pass" else 0.0
                if verdict == "errored":
                    result["error"] = {"category": "rate_limit", "message": f"the service answered 429 for {case}"}
                results.append(result)
                place = {"case": case, "harness": harness, "model": "m", "trial": trial, "attempt": 1}
                journal.append({"at": "2026-11-22T10:00:00Z", "event": "started", **place})
                journal.append({"at": "2026-11-22T10:00:01Z", "event": "finished", **place, "verdict": verdict})
                trace(os.path.join(root, "trials", case, harness, "m", str(trial)), result)
    record = {
        "version": 1, "run": run, "started": "2026-11-22T10:00:00.000Z", "evals": "0.1.0", "argv": ["run"],
        "cases": [{"id": case, "path": f"{folder}/cases/{case}.yaml", "digest": "d", "pass": "all", "threshold": 1.0,
                   "limits": {}, "interaction": "auto-approve"} for case in cases],
        "harnesses": [], "trials": planned, "options": {},
    }
    lines(f"{root}/run.json", [record])
    lines(f"{root}/results.jsonl", results)
    lines(f"{root}/journal.jsonl", journal)
    return len(results)


def grade(name, verdict):
    graded = {"name": name, "grader": "command", "outcome": "scored", "weight": 1.0, "gate": False, "diagnostic": False,
              "reason": f"`cargo test` of {name} said what it said, line after line", "evidence": [3, 4]}
    if verdict == "ungraded":
        return {**graded, "outcome": "ungraded"}
    return {**graded, "value": 0.0 if verdict == "fail" else 1.0, "passed": verdict != "fail"}


def trace(folder, result):
    os.makedirs(folder)
    header = {"type": "trace", "version": 1, "adapter": "acp", "capabilities": {"tracing": True, "interaction": True}}
    call = {"type": "tool_call", "call": "c", "step": 0, "kind": "read", "name": "Read", "input": {"path": "a"}}
    lines(f"{folder}/trace.jsonl", [
        header,
        {"seq": 0, "at_ms": 0, "type": "message", "role": "user", "text": "Do it."},
        {"seq": 1, "at_ms": 10, **call},
        {"seq": 2, "at_ms": 20, "type": "tool_result", "call": "c", "status": "ok", "output": "text\n" * 100},
        {"seq": 3, "at_ms": 30, "type": "message", "role": "agent", "text": "Done. " * 50},
        {"seq": 4, "at_ms": 40, "type": "stop", "reason": "end_turn", "output": "Done. " * 50},
    ])


def lines(path, objects):
    with open(path, "w") as out:
        for it in objects:
            out.write(json.dumps(it, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--evals", default=speed.EVALS)
    arguments = parser.parse_args()
    root = tempfile.mkdtemp(prefix="evals-reports-")
    count = make(root, arguments.trials)
    print(f"a run of {count:,} trials, medians of {arguments.rounds} rounds\n")
    print("| format | wall s | CPU s | peak MiB | size |\n| --- | --- | --- | --- | --- |")
    for form in ("table", "json", "jsonl", "junit", "markdown", "github", "benchmark"):
        out = os.path.join(root, f"out.{form}")
        command = [os.path.abspath(arguments.evals), "report", "latest", "--format", form, "-o", out]
        figures, = speed.rounds(arguments.rounds, lambda: speed.measure(command, cwd=root))
        speed.row(f"`{form}`", figures, f"{os.path.getsize(out) / 2**20:.2f} MiB")
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
