#!/usr/bin/env python3
"""Makes two run folders of N trials each, as `evals compare` reads them: run.json, journal.jsonl, results.jsonl.

usage: benches/compare_runs.py FOLDER [--cases 1250] [--trials 8] [--seed 1] [--better 0.02]
       evals compare old new --out FOLDER
"""
import argparse, json, os, random

KINDS = [("read", "Read"), ("edit", "Edit"), ("execute", "Bash"), ("search", "Grep")]


def one_run(folder, name, cases, trials, rng, better):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    manifest = {"name": "agent", "adapter": "acp", "command": ["agent"]}
    plan, results, journal = [], [], []
    for n in range(cases):
        case = f"group-{n % 25}/case-{n}"
        chance = min(1.0, random.Random(n).betavariate(2, 1) + better)
        for trial in range(1, trials + 1):
            place = {"case": case, "harness": "agent", "trial": trial}
            plan.append({**place, "arm": "default"})
            passed = rng.random() < chance
            shape = [[f"{kind}:{word}"] for kind, word in (rng.choice(KINDS) for _ in range(rng.randint(4, 20)))]
            kinds = {kind: sum(step[0].startswith(kind) for step in shape) for kind, _ in KINDS}
            grades = [
                {"name": grader, "grader": grader, "outcome": "scored", "value": float(passed), "passed": passed,
                 "weight": 1.0, "gate": False, "diagnostic": False, "reason": "the file is as it should be" * 2,
                 "evidence": [3, 5, 8]}
                for grader in ("files", "tests", "rules")
            ]
            results.append({
                **place, "model": {}, "verdict": "pass" if passed else "fail", "score": float(passed),
                "grades": grades, "arm": "default", "attempt": 1, "shape": shape, "warnings": [],
                "metrics": {"duration_ms": rng.randint(5000, 90000), "tool_calls": len(shape), "steps": len(shape),
                            "tool_calls_by_kind": kinds, "input_tokens": rng.randint(1000, 9000),
                            "output_tokens": rng.randint(200, 3000), "cost_usd": rng.uniform(0.01, 0.2)},
                "stop": {"reason": "end_turn"},
            })
            for event in ("started", "finished"):
                line = {"at": "2026-11-21T20:15:00Z", "event": event, "case": case, "harness": "agent",
                        "model": "default", "trial": trial, "attempt": 1}
                journal.append({**line, "verdict": results[-1]["verdict"]} if event == "finished" else line)
    ids = sorted({trial["case"] for trial in plan})
    record = {
        "version": 1, "run": name, "started": "2026-11-21T20:15:00.000Z", "evals": "0.1.0", "argv": ["run"],
        "cases": [{"id": id, "path": f"cases/{id}.yaml", "digest": "d", "tags": [id.split("/")[0]], "pass": "all",
                   "threshold": 1.0, "limits": {}, "interaction": "auto-approve"} for id in ids],
        "harnesses": [{"name": "agent", "origin": "built in", "digest": "d", "manifest": manifest}],
        "trials": plan, "options": {},
    }
    with open(os.path.join(folder, name, "run.json"), "w") as out:
        json.dump(record, out, indent=2)
    for file, lines in (("journal.jsonl", journal), ("results.jsonl", results)):
        with open(os.path.join(folder, name, file), "w") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cases", type=int, default=1250)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--better", type=float, default=0.02)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    one_run(asked.folder, "old", asked.cases, asked.trials, rng, 0.0)
    one_run(asked.folder, "new", asked.cases, asked.trials, rng, asked.better)


main()
