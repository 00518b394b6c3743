#!/usr/bin/env python3
"""Compares the verdicts of touchstone with those of the same cases after `evals convert --from touchstone`.

    benches/touchstone_verdicts.py EVALS TOUCHSTONE

TOUCHSTONE is the program of the package `touchstone-eval` (tested with 0.1.1). The published cases of touchstone name a
repository of fixtures that is not public, so the cases here are written for the comparison: one for each grader that judges
the result. Four agents play each case: one that does nothing, the solution, a part of the solution, and a wrong one. Prints
a table in Markdown. Exit code: 0 if all verdicts and scores agree.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = 'def add(a, b):\n    raise NotImplementedError\n\n\ndef sub(a, b):\n    raise NotImplementedError\n'
GOOD = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
PART = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return 0\n"
WRONG = "def add(a, b):\n    return a * b\n\n\ndef sub(a, b):\n    return b - a\n"
AGENTS = {"null": None, "oracle": GOOD, "part": PART, "wrong": WRONG}
PYTEST = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n\n\ndef test_sub():\n    assert calc.sub(5, 3) == 2\n\n\ndef test_old():\n    assert True\n"
BY_PYTEST = "cmd: python3 -m pytest -q test_calc.py, inject: [./hidden/test_calc.py]"
TAP = (
    "import calc\nprint('1..3')\nfor name, ok in [('add', lambda: calc.add(2, 3) == 5), ('sub', lambda: calc.sub(5, 3) == 2), ('old', lambda: True)]:\n"
    "    try:\n        held = ok()\n    except Exception:\n        held = False\n    print('ok' if held else 'not ok', '-', name)\n"
    "    PASS = globals().get('PASS', 0) + held\nprint(f'# tests 3\\n# pass {PASS}\\n# fail {3 - PASS}')\n"
)

CASES = {
    "command": ["{type: command, cmd: \"python3 -c 'import calc; assert calc.add(2, 3) == 5'\"}"],
    "command-exit": ["{type: command, cmd: \"python3 -c 'import calc, sys; sys.exit(calc.add(1, 2))'\", expect_exit: 3}"],
    "tests": [f"{{type: tests, {BY_PYTEST}}}"],
    "tests-part": [f"{{type: tests, {BY_PYTEST}}}", "EXPECT 0.6"],
    "tests-weights": [f"{{type: tests, weight: 3.0, {BY_PYTEST}}}", "{type: command, cmd: 'true'}", "EXPECT 0.75"],
    "tests-tap": ["{type: tests, cmd: python3 tap.py, inject: [./hidden/tap.py]}", "EXPECT 0.6"],
    "pytest": ["{type: pytest, inject: [./hidden/test_calc.py]}"],
    "files-patterns": ["{type: files, patterns: ['return a \\+ b', 'return a - b']}"],
    "files-expected": ["{type: files, expect_dir: ./expected}"],
    "implemented-gate": ["{type: implemented, gate: true, files: [calc.py]}", "{type: command, cmd: 'true'}"],
    "gate-and-part": [
        "{type: command, gate: true, cmd: \"python3 -c 'import calc; calc.sub(5, 3)'\"}",
        f"{{type: tests, {BY_PYTEST}}}",
        "EXPECT 0.6",
    ],
    "swebench": [
        "{type: swebench, inject: [./hidden/test_calc.py], fail_to_pass: ['test_calc.py::test_add', "
        "'test_calc.py::test_sub'], pass_to_pass: ['test_calc.py::test_old']}"
    ],
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> int:
    evals, touchstone = (str(Path(word).absolute()) for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name, text in AGENTS.items():
            script = "true" if text is None else f"cat > calc.py <<'EOF'\n{text}EOF"
            write(root / f"{name}.sh", f"{script}\necho done\n")
            write(root / "project/harnesses" / f"{name}.yaml", f"name: \"{name}\"\nadapter: output-only\ncommand: [sh, {root}/{name}.sh]\nprompt-via: stdin\n")
        write(root / "harnesses.yaml", json.dumps({name: {"argv": ["sh", f"{root}/{name}.sh"]} for name in AGENTS}))
        for name, graders in CASES.items():
            folder = root / "evals" / name
            least = next((line.split()[1] for line in graders if line.startswith("EXPECT")), "1.0")
            lines = "".join(f"  - {line}\n" for line in graders if not line.startswith("EXPECT"))
            write(
                folder / "case.yaml",
                f"id: {name}\ntask: {{prompt: Implement calc.py.}}\nsource: {{path: ./source}}\n"
                f"matrix: {{harnesses: {json.dumps(list(AGENTS))}, models: [none]}}\ngraders:\n{lines}expect: {{pass_threshold: {least}}}\n",
            )
            write(folder / "source/calc.py", STUB)
            write(folder / "hidden/test_calc.py", PYTEST)
            write(folder / "hidden/tap.py", TAP)
            write(folder / "expected/calc.py", GOOD)
        ran = subprocess.run(
            [touchstone, "--evals-dir", root / "evals", "--runs-dir", root / "runs", "run"], cwd=root, capture_output=True, text=True
        )
        theirs = {}
        for cell in sorted((root / "runs").glob("*/cells/*")):
            spec, score = (json.loads((cell / f"{name}.json").read_text()) for name in ("spec", "score"))
            theirs[spec["case"], spec["harness"]] = (score["overall_passed"], score["overall_score"])
        if not theirs:
            sys.exit(f"touchstone judged nothing:\n{ran.stdout}\n{ran.stderr}")
        project = root / "project"
        converted = subprocess.run([evals, "convert", "--from", "touchstone", root / "evals", "-o", "."], cwd=project, capture_output=True, text=True)
        command = [evals, "run", "--no-progress", "--reporter", f"json={root}/report.json"]
        command += [word for name in AGENTS for word in ("--harness", name)]
        ran = subprocess.run(command, cwd=project, capture_output=True, text=True)
        if not (root / "report.json").exists():
            sys.exit(f"{converted.stderr}\n{ran.stdout}\n{ran.stderr}")
        ours = {}
        for result in json.loads((root / "report.json").read_text())["results"]:
            ours[result["case"].split("/")[-1], result["harness"]] = (result["verdict"], result.get("score"))
        if "-v" in sys.argv:
            print(converted.stderr, ran.stdout)
    differ = 0
    told = {True: "pass", False: "fail"}
    print("| case | " + " | ".join(AGENTS) + " |\n| --- |" + " --- |" * len(AGENTS))
    for name in CASES:
        cells = []
        for agent in AGENTS:
            passed, score = theirs.get((name, agent), (None, None))
            verdict, own = ours.get((name, agent), ("not converted", None))
            same = told.get(passed) == verdict and (own is None or abs(own - (score or 0.0)) < 0.01)
            differ += not same
            told_ours = verdict if own is None else f"{verdict} {own:.2f}"
            cells.append(told_ours if same else f"**{told.get(passed)} {score}, here {told_ours}**")
        print(f"| `{name}` | " + " | ".join(cells) + " |")
    print(f"\n{len(CASES) * len(AGENTS)} trials, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
