#!/usr/bin/env python3
"""Measures whether mined cases notice a broken fix: one hunk of each fix is left out, and the case must fail.

    benches/mutations.py EVALS PROJECT [--cases cases/mined] [--seed N] [--all] [--jobs N]

For each case, a copy with a script of the demo agent is written to `cases/mutated` of the project; the script applies
the patch of the case without one hunk, chosen by the seed (--all: without each hunk in turn). The copies are run with
`evals run` and removed. Prints a line for each mutation, and the share that was noticed. Exit code: 0 if at least nine of
ten were noticed.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def sections(patch: str) -> list[str]:
    """Splits a patch into the parts for each file."""
    parts = re.split(r"(?m)^(?=diff --git )", patch)
    return [part for part in parts if part.startswith("diff --git ")]


def hunks(section: str) -> tuple[str, list[str]]:
    """Splits the part for a file into its head and its hunks."""
    parts = re.split(r"(?m)^(?=@@ )", section)
    return parts[0], parts[1:]


def renames(files: list[tuple[str, list[str]]]) -> dict[int, int]:
    """Returns for each created file that was moved the deleted file that it was: half of their bytes are in common lines."""
    def lines(word: str, sign: str) -> dict[int, Counter]:
        own = {at: "".join(own).splitlines() for at, (head, own) in enumerate(files) if f"\n{word} file mode " in head}
        return {at: Counter(line[1:] + "\n" for line in all_of_it if line.startswith(sign)) for at, all_of_it in own.items()}
    def size(of: Counter) -> int:
        return sum(len(line) * count for line, count in of.items())
    old, new = lines("deleted", "-"), lines("new", "+")
    pairs = []
    for one, removed in old.items():
        for other, added in new.items():
            common, most = size(removed & added), max(size(removed), size(added))
            if most and common * 2 >= most:
                pairs.append((-common / most, one, other))
    found = {}
    for _, one, other in sorted(pairs):
        if one not in found.values() and other not in found:
            found[other] = one
    return found


def mutations(patch: str) -> list[tuple[str, str]]:
    """Returns the patch without each of its hunks, with a name for the hunk. The halves of a rename are one hunk."""
    files = [hunks(section) for section in sections(patch)]
    moved = renames(files)
    found = []
    for at, (head, own) in enumerate(files):
        if at in moved.values():
            continue
        for number, hunk in enumerate(own):
            rest = []
            for other, (other_head, other_own) in enumerate(files):
                kept = [it for n, it in enumerate(other_own) if (other, n) != (at, number) and other != moved.get(at)]
                if kept or not other_own:
                    rest.append(other_head + "".join(kept))
            name = head.splitlines()[0].split(" b/")[-1] + " " + hunk.splitlines()[0]
            found.append((name, "".join(rest)))
    return found


def applies(case: Path, patch: Path) -> bool:
    """Returns true if a patch fits the state before the fix: a patch that does not would leave it unchanged."""
    text = case.read_text()
    path, rev = (re.search(rf"(?m)^ +{key}: (.*)$", text).group(1).strip("'\"") for key in ("path", "rev"))
    with tempfile.NamedTemporaryFile() as index:
        index.close()
        env = {**os.environ, "GIT_INDEX_FILE": index.name}
        git = ["git", "-C", (case.parent / path).resolve()]
        subprocess.run([*git, "read-tree", rev], env=env, check=True)
        done = subprocess.run([*git, "apply", "--cached", "--check", "--whitespace=nowarn", patch], env=env)
        os.unlink(index.name)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evals", type=Path)
    parser.add_argument("project", type=Path)
    parser.add_argument("--cases", default="cases/mined")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", default="1")
    args = parser.parse_args()
    project, evals = args.project.resolve(), args.evals.resolve()
    mutated = project / "cases" / "mutated"
    shutil.rmtree(mutated, ignore_errors=True)
    mutated.mkdir(parents=True)
    chance = random.Random(args.seed)
    names = {}
    for case in sorted((project / args.cases).glob("*.yaml")):
        all_of_it = mutations(case.with_suffix(".patch").read_text(errors="surrogateescape"))
        for number, (name, rest) in enumerate(all_of_it if args.all else [chance.choice(all_of_it)]):
            stem = f"{case.stem}-{number}"
            names[f"mutated/{stem}"] = name
            patch = mutated / f"{stem}.patch"
            patch.write_text(rest, errors="surrogateescape")
            if rest and not applies(case, patch):
                sys.exit(f"{case.name}: the patch without {name} does not fit")
            text = case.read_text().replace(f"{case.stem}.patch", patch.name)
            (mutated / f"{stem}.yaml").write_text(text.replace(f"{case.stem}.hidden", f"{stem}.hidden"))
            shutil.copytree(case.with_suffix(".hidden"), mutated / f"{stem}.hidden", symlinks=True)
            command = f"git apply --whitespace=nowarn {patch}" if rest else "true"
            steps = [{"run": {"command": command}}, {"say": "Done."}]
            (mutated / f"{stem}.demo.yaml").write_text(json.dumps({"steps": steps}))
    report = project / ".evals" / "mutations.json"
    command = [evals, "run", "cases/mutated", "--harness", "demo", "--jobs", args.jobs, "--no-progress"]
    subprocess.run([*command, "--keep-workspace", "never", "--reporter", f"json={report}"], cwd=project, stdout=subprocess.DEVNULL)
    results = json.loads(report.read_text())["results"]
    noticed = 0
    for result in results:
        caught = result["verdict"] == "fail"
        noticed += caught
        print(f"{'noticed' if caught else result['verdict'].upper():8} {result['case']}: {names[result['case']]}")
    shutil.rmtree(mutated)
    print(f"{noticed} of {len(results)} mutations noticed")
    return 0 if noticed * 10 >= len(results) * 9 else 1


if __name__ == "__main__":
    sys.exit(main())
