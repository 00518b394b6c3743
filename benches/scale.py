#!/usr/bin/env python3
"""Measures how time and memory grow with the number of cases, results and calls, each figure beside its floor.

usage: cargo build --release && python3 benches/scale.py [--rounds 3]

Prints Markdown; see BENCHMARK.md. The floor of a row is what the work needs at least: reading the same files. What a trial
costs is measured by benches/trials.py.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from speed import EVALS, asked, measure, rounds, row, write

HERE = os.path.dirname(os.path.abspath(__file__))
READ = "import sys, os\nfor top, _, names in os.walk(sys.argv[1]):\n    for name in names: open(os.path.join(top, name), 'rb').read()"
PARSE = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"


# A script that reads all of its input, and nothing else.
SCRIPT = "import json, sys; print(json.dumps({'passed': len(json.load(sys.stdin)['calls']) > 10, 'reason': 'read'}))"


def within(figures, mib, seconds=None):
    """The note of a row for which this memory, and this time if any, was asked for."""
    limits = ([f"{seconds} s"] if seconds else []) + [f"{mib} MiB"]
    return asked(", ".join(limits), figures[2] <= mib and (seconds is None or figures[0] <= seconds))


def session(path, calls, one_step):
    """A Claude stream with this many calls, each in a step of its own, or all in one."""
    with open(path, "w") as out:
        say = lambda value: out.write(json.dumps(value) + "\n")
        say({"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "model": "m", "tools": ["Bash"]})
        result = lambda n: {"type": "user", "session_id": "s", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": f"t{n}", "content": str(n)}]}}
        for n in range(calls):
            use = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"echo {n}"}}
            say({"type": "assistant", "session_id": "s", "message": {
                "id": "m" if one_step else f"m{n}", "role": "assistant", "model": "m", "content": [use]}})
            if not one_step:
                say(result(n))
        for n in range(calls if one_step else 0):
            say(result(n))
        say({"type": "result", "subtype": "success", "is_error": False, "result": "ok", "session_id": "s"})


def graders(root, n):
    """One stored trial with many calls, graded again by one grader."""
    for calls in (1_000, 10_000, 100_000):
        for one_step in (False, True):
            suite = os.path.join(root, f"calls-{calls}-{one_step}")
            os.makedirs(suite)
            session(f"{suite}/session.jsonl", calls, one_step)
            write(f"{suite}/harnesses/h.yaml", f"name: h\nadapter: claude-code-stream\ncommand: [cat, {suite}/session.jsonl]\n")
            kinds = {"snapshot": "snapshot: {}"}
            if not one_step:
                kinds["expr"] = "expr: {cel: 'calls.size() > 10'}"
                kinds["script"] = f"script: {{run: {json.dumps([sys.executable, '-S', '-c', SCRIPT])}}}"
            for kind, text in kinds.items():
                write(f"{suite}/cases/a.yaml", f"prompt: x\ngraders: [{{{text}}}]\n")
                run = [EVALS, "run", "cases", "--harness", "h", "--no-progress", "--snapshot"]
                subprocess.run(run + ["update" if kind == "snapshot" else "off"], cwd=suite, capture_output=True)
                again, floor = rounds(
                    n,
                    lambda: measure([EVALS, "grade", "latest", "--format", "jsonl"], cwd=suite, ok=(0, 1, 3)),
                    lambda: measure([sys.executable, "-c", PARSE, f"{suite}/session.jsonl"]),
                )
                steps = "in one step" if one_step else "a step each"
                limit = asked("1 s", again[0] <= 1) if kind == "snapshot" and calls == 100_000 else ""
                row(f"`{kind}` on {calls:,} calls, {steps}, graded again", again, limit)
                if kind == "snapshot":
                    row("floor: python's `json.loads` of each line", floor)


def cases(root, n):
    """A suite of 10,000 cases in 100 folders."""
    suite = os.path.join(root, "cases-10000")
    write(f"{suite}/cases/suite.yaml", "limits: {time: 1m}\n")
    for number in range(10_000):
        text = f"description: case {number}\ntags: [t{number % 7}]\nprompt: do {number}\ngraders:\n  - output: {{contains: 'x{number}'}}\n  - stop: {{reason: [end_turn]}}\n"
        write(f"{suite}/cases/f{number % 100}/c{number}.yaml", text)
    commands = [["list", "cases"], ["check", "cases"], ["run", "cases", "--dry-run", "--harness", "command"]]
    told = [lambda command=command: measure([EVALS, *command], cwd=suite, ok=(0, 1)) for command in commands]
    figures = rounds(n, *told, lambda: measure([sys.executable, "-c", READ, f"{suite}/cases"]))
    for command, figure in zip(commands, figures):
        row(f"`evals {' '.join(command)}` of 10,000 cases", figure, within(figure, 100, 1))
    row("floor: python reads the same files", figures[-1])


def reports(root, n):
    """Reports of runs of 10,000 and 100,000 trials, from `results.jsonl`."""
    for number, (count, trials) in enumerate(((1_250, 8), (12_500, 8))):
        runs = os.path.join(root, f"runs-{number}")
        subprocess.run([sys.executable, os.path.join(HERE, "compare_runs.py"), runs, "--cases", str(count), "--trials", str(trials)], check=True)
        stored = f"{runs}/old/results.jsonl"
        formats = ["table", "json", "jsonl", "junit", "markdown", "github", "benchmark"]
        # A benchmark is written into a file of the working directory.
        command = [EVALS, "report", "old", "--out", runs, "--format"]
        told = [lambda name=name: measure([*command, name], cwd=runs, ok=(0, 1, 3)) for name in formats]
        figures = rounds(n, *told, lambda: measure([sys.executable, "-c", PARSE, stored]))
        for name, figure in zip(formats, figures):
            row(f"report of {count * trials:,} trials as `{name}`", figure, within(figure, 100))
        row("floor: python's `json.loads` of each result", figures[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["cases", "graders", "reports"])
    arguments = parser.parse_args()
    root = tempfile.mkdtemp(prefix="evals-scale-")
    print("| work | wall s | CPU s | peak MiB | note |\n| --- | --- | --- | --- | --- |")
    for part in (cases, graders, reports):
        if arguments.only in (None, part.__name__):
            part(root, arguments.rounds)
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
