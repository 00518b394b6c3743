#!/usr/bin/env python3
"""Measures the HTML report: its size, the time to write it, and what a browser needs to show it. Prints Markdown.

usage: tests/agents/install browser; cargo build --release && python3 benches/html.py [--trials 1000] [--events 1000] [--long 100000] [--evals PROGRAM]

Two run folders are made here: many trials with a trace and a wire log each, and one trial with a long trace. The browser is
that of tests/agents/browser; benches/html.mjs drives it.
"""
import argparse, json, os, random, resource, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = open(os.path.join(HERE, "..", "CONTEXT.md")).read().split()
KINDS = [("read", "Read"), ("search", "Grep"), ("edit", "Edit"), ("execute", "Bash")]


def words(chance, count):
    return " ".join(chance.choices(WORDS, k=count))


def events(chance, count):
    """The events of a trial: thoughts, calls of all kinds with results of several lines, usage, a stop."""
    yield {"type": "message", "role": "user", "text": words(chance, 60)}
    made, step = 1, 0
    while made < count - 2:
        yield {"type": "thought", "text": words(chance, 25)}
        kind, name = KINDS[step % 4]
        call = f"toolu_{step:06}"
        path = f"src/module_{chance.randrange(50)}/file_{chance.randrange(20)}.rs"
        given = {"command": f"cargo test {words(chance, 3)}"} if kind == "execute" else {"file_path": path}
        result = {"type": "tool_result", "call": call, "status": "error" if step % 17 == 0 else "ok"}
        if kind == "edit":
            old = [words(chance, 8) for _ in range(12)]
            result["diffs"] = [{"path": path, "old": "\n".join(old), "new": "\n".join(old[:5] + [words(chance, 8)] + old[6:])}]
        else:
            result["output"] = "\n".join(words(chance, 9) for _ in range(chance.randrange(2, 25)))
        yield {"type": "tool_call", "call": call, "step": step, "kind": kind, "name": name, "input": given}
        yield result
        made, step = made + 3, step + 1
    while made < count - 1:
        yield {"type": "message", "role": "agent", "text": words(chance, 20)}
        made += 1
    yield {"type": "stop", "reason": "end_turn", "output": words(chance, 40), "exit": {"code": 0, "signal": None}}


def make(folder, trials, count):
    """A run folder with so many trials of so many events."""
    run = "20261122-100000-be9c"
    root = os.path.join(folder, ".evals", "runs", run)
    os.makedirs(root)
    planned, results, journal, chance = [], [], [], random.Random(7)
    for number in range(trials):
        case, harness, trial = f"group-{number // 80}/case-{number // 8}", ("alpha", "beta")[number // 4 % 2], number % 4 + 1
        odd = chance.randrange(20)
        verdict = "pass" if odd < 14 else "fail" if odd < 18 else "errored" if odd == 18 else "ungraded"
        place = {"case": case, "harness": harness, "model": "m", "arm": "m", "trial": trial}
        planned.append(place)
        result = {
            **place, "model": {"requested": "m", "effective": "m-1"}, "verdict": verdict,
            "grades": [{"name": f"grader-{n}", "grader": "command", "outcome": "scored", "passed": n > 0 or verdict == "pass", "value": 1.0,
                        "weight": 1.0, "gate": n == 0, "diagnostic": False, "reason": words(chance, 30), "evidence": [3, 4, count - 3]} for n in range(4)],
            "metrics": {"duration_ms": chance.randrange(2000, 90000), "tool_calls": count // 3, "total_tokens": chance.randrange(9000), "cost_usd": 0.01},
            "stop": {"reason": "end_turn"}, "attempt": 1, "shape": [["read:Read"], ["edit:Edit"], ["execute:Bash"]] * 4, "warnings": [],
        }
        if verdict in ("pass", "fail"):
            result["score"] = 1.0 if verdict == "pass" else 0.0
        if verdict == "errored":
            result["error"] = {"category": "rate_limit", "message": f"the service answered 429 for {case}"}
        results.append(result)
        told = {**place, "attempt": 1}
        del told["arm"]
        journal += [{"at": "2026-11-22T10:00:00Z", "event": "started", **told}, {"at": "2026-11-22T10:00:01Z", "event": "finished", **told, "verdict": verdict}]
        at = os.path.join(root, "trials", case, harness, "m", str(trial))
        os.makedirs(at)
        header = {"type": "trace", "version": 1, "case": case, "harness": harness, "adapter": "acp", "trial": trial, "cwd": "/w",
                  "capabilities": {"tracing": True, "interaction": True}, "model": {"requested": "m", "effective": "m-1"}}
        with open(f"{at}/trace.jsonl", "w") as trace, open(f"{at}/wire.jsonl", "w") as wire:
            trace.write(json.dumps(header) + "\n")
            for seq, event in enumerate(events(chance, count)):
                line = json.dumps({"seq": seq, "at_ms": seq * 90, **event})
                trace.write(line + "\n")
                wire.write(json.dumps({"at_ms": seq * 90, "dir": "recv", "line": json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": event})}) + "\n")
        with open(f"{at}/workspace.patch", "w") as patch:
            patch.write("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-" + words(chance, 9) + "\n+" + words(chance, 9) + "\n")
    cases = sorted({it["case"] for it in planned})
    record = {
        "version": 1, "run": run, "started": "2026-11-22T10:00:00.000Z", "evals": "0.1.0", "argv": ["run"],
        "cases": [{"id": case, "path": f"{folder}/cases/{case}.yaml", "digest": "d", "pass": "all", "threshold": 1.0,
                   "limits": {}, "interaction": "auto-approve"} for case in cases],
        "harnesses": [], "trials": planned, "options": {},
    }
    for name, rows in [("run.json", [record]), ("results.jsonl", results), ("journal.jsonl", journal)]:
        with open(f"{root}/{name}", "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(root) for name in names)


def written(evals, folder):
    """Writes the report; returns its path, the seconds and the megabytes of memory that it took."""
    out, begun = os.path.join(folder, "out.html"), time.time()
    child = subprocess.Popen([evals, "report", "latest", "--format", "html", "-o", out], cwd=folder)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"the report could not be written: {status}")
    return out, time.time() - begun, used.ru_maxrss / 1024


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--trials", type=int, default=1000)
    parse.add_argument("--events", type=int, default=1000)
    parse.add_argument("--long", type=int, default=100000)
    parse.add_argument("--evals", default=os.path.join(HERE, "..", "target", "release", "evals"))
    parse.add_argument("--keep", help="keep the run folders here")
    args = parse.parse_args()
    print("| run | files | page | written in | memory | shown | trial shown | click | memory of the browser |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for title, trials, count in [(f"{args.trials} trials of {args.events} events", args.trials, args.events), (f"1 trial of {args.long} events", 1, args.long)]:
        folder = tempfile.mkdtemp(dir=args.keep)
        try:
            size = make(folder, trials, count)
            page, seconds, memory = written(os.path.abspath(args.evals), folder)
            seen = json.loads(subprocess.run(["node", os.path.join(HERE, "html.mjs"), page], check=True, capture_output=True, text=True).stdout)
            ms = lambda key: f"{seen[key] / 1000:.2f} s"
            print(f"| {title} | {size >> 20} MB | {os.path.getsize(page) >> 20} MB | {seconds:.1f} s | {memory:.0f} MB | {ms('shown')} | {ms('trial')} "
                  f"| {ms('click')} | {seen['memory']} MB |", flush=True)
        finally:
            if not args.keep:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
