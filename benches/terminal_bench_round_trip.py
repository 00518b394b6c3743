#!/usr/bin/env python3
"""Compares two ways from a Terminal-Bench task to a case: our own, and by Harbor's own mapper.

    python3 benches/terminal_bench_round_trip.py EVALS [TASKS]

Needs the package `harbor` (Python 3.12 or later) in the Python that runs it; its mapper needs neither Docker nor a network.
TASKS is a folder of tasks of Terminal-Bench 1. Default: a few made here. Prints a line for each task, and exits with 1 if
the two cases differ in what they ask, in their limits, or in what the image and the verification are made from.
"""

import pathlib
import subprocess
import sys
import tempfile

import yaml
from harbor.mappers.terminal_bench import TerminalBenchMapper

COMPOSE = """services:
  client:
    build:
      dockerfile: Dockerfile
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
      - ${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
"""
BASE = {"instruction": "Create hello.txt with the text hi.\nNothing else.", "difficulty": "easy", "category": "files",
        "tags": ["text"], "parser_name": "pytest", "max_agent_timeout_sec": 100, "max_test_timeout_sec": 40}
MAPPED = "\n# Mapped from docker-compose.yaml\nENV TEST_DIR=/tests\n"
DOCKERFILE = "FROM python:3.13\nWORKDIR /app\n"
MADE = {
    "plain": (BASE, DOCKERFILE),
    "other-folder": (BASE, "FROM python:3.13\nWORKDIR /srv/work\n"),
    "default-limits": ({key: value for key, value in BASE.items() if not key.startswith("max_")}, DOCKERFILE),
    "unicode": (dict(BASE, instruction="Schreibe „hü“ — 'quoted' \"twice\" {{x}} $HOME"), DOCKERFILE),
}


def make(folder):
    for name, (task, dockerfile) in MADE.items():
        place = folder / name
        (place / "tests").mkdir(parents=True)
        (place / "task.yaml").write_text(yaml.safe_dump(task, allow_unicode=True), encoding="utf-8")
        (place / "Dockerfile").write_text(dockerfile)
        (place / "docker-compose.yaml").write_text(COMPOSE)
        (place / "run-tests.sh").write_text("#!/bin/bash\npytest $TEST_DIR/test_outputs.py -rA\n")
        (place / "tests/test_outputs.py").write_text("def test_hello():\n    assert open('hello.txt').read() == 'hi'\n")
        (place / "solution.sh").write_text("printf hi > hello.txt\n")
    return folder


def converted(evals, source, tasks, out):
    done = subprocess.run([evals, "convert", "--from", source, tasks, "-o", out], capture_output=True, text=True)
    cases = {path.stem: path for path in pathlib.Path(out).glob("cases/*/*.yaml")}
    return cases, done.stderr


def facts(path):
    """What the agent and its verification get, without what names the folder of the image."""
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    hidden = path.parent / case["hidden"]
    image = path.parents[2] / "images" / path.parent.name / path.stem
    return {
        "prompt": case["prompt"].strip(),
        "limits": case.get("limits"),
        "on-limit": case.get("on-limit"),
        "tags": sorted(case.get("tags", [])),
        "timeout": next(iter(case["graders"][0].values()))["timeout"],
        # It has the working directory, too. Harbor sets the folder of the tests in the image. Here the verification sets it.
        "dockerfile": (image / "Dockerfile").read_text().replace(MAPPED, "").strip(),
        "tests": {file.name: file.read_text() for file in hidden.rglob("tests/*.py")},
    }


def main():
    evals = str(pathlib.Path(sys.argv[1]).resolve())
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tasks = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else make(folder / "tasks")
        mapped = TerminalBenchMapper().map(tasks, folder / "harbor")
        for name, why in mapped.failed:
            print(f"{name}: not mapped by Harbor: {why}")
        own, notes = converted(evals, "terminal-bench", tasks, folder / "own")
        theirs, more = converted(evals, "harbor", folder / "harbor", folder / "theirs")
        for name in sorted(set(own) | set(theirs)):
            if name not in own or name not in theirs:
                side = "Terminal-Bench" if name in own else "Harbor"
                print(f"{name}: only from {side}")
                continue
            one, other = facts(own[name]), facts(theirs[name])
            differs = [key for key in one if one[key] != other[key]]
            wrong += bool(differs)
            print(f"{name}: " + ("equal" if not differs else "; ".join(f"{key}: {one[key]!r} != {other[key]!r}" for key in differs)))
        if not own or not theirs:
            sys.exit(f"nothing was compared\n{notes}{more}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
