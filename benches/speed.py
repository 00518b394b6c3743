#!/usr/bin/env python3
"""Measures the speed and memory of evals, each figure beside its floor. Prints Markdown; see BENCHMARK.md.

usage: cargo build --release && python3 benches/speed.py [--rounds 5]
"""
import argparse, os, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
EVALS = os.path.join(HERE, "..", "target", "release", "evals")


def measure(command, cwd=None, stdout=subprocess.DEVNULL, ok=(0,)):
    """Wall seconds, CPU seconds (children included) and peak MiB of a command."""
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begun
    code = os.waitstatus_to_exitcode(status)
    if code not in ok:
        sys.exit(f"{command} exited {code}: {said.decode(errors='replace')[-2000:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def rounds(n, *commands):
    """Medians of each command; the commands take turns, so that noise meets all of them."""
    seen = [[] for _ in commands]
    for _ in range(n):
        for command, figures in zip(commands, seen):
            figures.append(command())
    return [tuple(statistics.median(column) for column in zip(*figures)) for figures in seen]


def row(what, figures, note=""):
    wall, cpu, memory = figures
    print(f"| {what} | {wall:.3f} | {cpu:.3f} | {memory:.0f} | {note} |")


def asked(limits, reached):
    """The note of a row with what was asked for, and whether it is reached."""
    return f"asked for: {limits}; {'reached' if reached else 'not reached'}"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    n = arguments.rounds
    root = tempfile.mkdtemp(prefix="evals-speed-")
    version = subprocess.run([EVALS, "--version"], capture_output=True, text=True).stdout.strip()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"{version}, {os.cpu_count()} cores ({cpu}), medians of {n} rounds\n")
    print("| work | wall s | CPU s | peak MiB | note |\n| --- | --- | --- | --- | --- |")

    start, floor = rounds(max(n, 20), lambda: measure([EVALS, "--version"]), lambda: measure(["/bin/true"]))
    row("`evals --version`", start, asked("0.010 s", start[0] <= 0.010))
    row("floor: `/bin/true`", floor)

    # 100 sessions of 1,001 lines of a Claude stream, each graded three ways. Before the thousand: ext4 searches longer
    # for a free inode for minutes after many were removed, and that would be counted here.
    suite = os.path.join(root, "stream")
    session = subprocess.run([sys.executable, os.path.join(HERE, "claude_session.py"), "1001", "1"], capture_output=True, text=True, check=True).stdout
    write(f"{suite}/session.jsonl", session)
    lines = session.count("\n")
    write(f"{suite}/cases/session.yaml", "prompt: work\ntrials: 100\ngraders:\n  - tool-calls: {order: [{kind: read}, {kind: search}, {kind: execute}, {kind: edit}]}\n  - tool-calls: {min: 10, max: 100000}\n  - output: {contains: '42'}\n")
    write(f"{suite}/harnesses/session.yaml", f"name: session\nadapter: claude-code-stream\ncommand: [cat, {suite}/session.jsonl]\n")
    engine = lambda: measure([EVALS, "run", "cases", "--harness", "session", "--jobs", "8", "--no-progress"], cwd=suite)
    spawn = f"seq 100 | xargs -P8 -I@ cat {suite}/session.jsonl"
    sessions, bare = rounds(n, engine, lambda: measure(["sh", "-c", spawn]))
    row(f"100 trials of a Claude stream of {lines} lines, 8 at a time, 3 graders", sessions, asked("0.65 s of CPU, 60 MiB", sessions[1] <= 0.65 and sessions[2] <= 60))
    row("floor: `xargs -P8 cat` of the same", bare)

    # The same hundred, as they are stored, graded again.
    again = lambda: measure([EVALS, "grade", "latest", "--format", "jsonl"], cwd=suite)
    graded, = rounds(n, again)
    row("the same 100 trials, graded again", graded, asked("0.5 s of CPU, 60 MiB", graded[1] <= 0.5 and graded[2] <= 60))

    # One session of a million lines, imported, and graded as a trial.
    long = f"{suite}/long.jsonl"
    with open(long, "w") as out:
        subprocess.run([sys.executable, os.path.join(HERE, "claude_session.py"), "1000001", "1"], stdout=out, check=True)
    small = f"{suite}/small.jsonl"
    with open(small, "w") as out:
        subprocess.run([sys.executable, os.path.join(HERE, "claude_session.py"), "10001", "1"], stdout=out, check=True)
    parse = "import json, sys\nfor line in open(sys.argv[1]): json.loads(line)"
    for name, path in (("10,001", small), ("1,000,001", long)):
        figures, bare = rounds(
            n,
            lambda: measure([EVALS, "import", "--adapter", "claude-code-stream", path]),
            lambda: measure([sys.executable, "-c", parse, path]),
        )
        size = os.path.getsize(path)
        rate = size / 1e6 / figures[0]
        # Of a short session, the start of the program is a large part.
        note = "; " + asked("300 MB/s, memory that does not grow with the lines", rate >= 300) if path == long else ""
        row(f"import of one session of {name} lines", figures, f"{size / 2**20:.0f} MiB of input, {rate:.0f} MB/s{note}")
        row("floor: python's `json.loads` of each line", bare)
    write(f"{suite}/cases/session.yaml", open(f"{suite}/cases/session.yaml").read().replace("trials: 100\n", ""))
    write(f"{suite}/harnesses/session.yaml", f"name: session\nadapter: claude-code-stream\ncommand: [cat, {long}]\n")
    for name, path in (("10,001", small), ("1,000,001", long)):
        subprocess.run([EVALS, "import", "--adapter", "claude-code-stream", path, "-o", f"{path}.trace"], check=True)
        command = [EVALS, "grade", f"{path}.trace", "--case", "cases/session.yaml", "--format", "jsonl"]
        row(f"the trace of a session of {name} lines, graded", measure(command, cwd=suite, ok=(0, 1)), f"{os.path.getsize(path + '.trace') / 2**20:.0f} MiB of trace")
    row("floor: `wc -l` of the same", measure(["wc", "-l", long]))
    row("one trial of 1,000,001 lines, graded", measure([EVALS, "run", "cases", "--harness", "session", "--no-progress"], cwd=suite, ok=(0, 1)))

    # 1,000 trials of a command that does nothing, in a workspace of ten files.
    suite = os.path.join(root, "true")
    for number in range(10):
        write(f"{suite}/cases/ws/f{number}.txt", "text\n" * 20)
    write(f"{suite}/cases/nothing.yaml", "prompt: do nothing\nworkspace: {copy: ws}\ntrials: 1000\ngraders: [{stop: {reason: end_turn}}]\n")
    write(f"{suite}/harnesses/true.yaml", "name: 'true'\nadapter: output-only\ncommand: [/bin/true]\n")
    engine = lambda: measure([EVALS, "run", "cases", "--harness", "true", "--jobs", "8", "--no-progress"], cwd=suite)
    spawn = f"seq 1000 | xargs -P8 -I@ sh -c 'cp -r {suite}/cases/ws {root}/copy-@ && /bin/true && rm -r {root}/copy-@'"
    trials, bare = rounds(n, engine, lambda: measure(["sh", "-c", spawn]))
    row("1,000 trials of `/bin/true`, 8 at a time", trials, f"{trials[0] / bare[0]:.2f} × the floor's wall time; {asked('2 ×, 60 MiB', trials[0] <= 2 * bare[0] and trials[2] <= 60)}")
    row("floor: `xargs -P8` with the same spawns and copies", bare)

    # Two runs of 10,000 trials each, compared from their results alone.
    runs = os.path.join(root, "runs")
    subprocess.run([sys.executable, os.path.join(HERE, "compare_runs.py"), runs], check=True)
    compared, = rounds(n, lambda: measure([EVALS, "compare", "old", "new", "--out", runs], ok=(0, 1, 3)))
    row("`compare` of two runs of 10,000 trials, 1,250 cases", compared, asked("1 s, 100 MiB", compared[0] <= 1 and compared[2] <= 100))
    lines = "import json, sys\nfor path in sys.argv[1:]:\n    for line in open(path): json.loads(line)"
    stored = [os.path.join(runs, run, "results.jsonl") for run in ("old", "new")]
    row("floor: python's `json.loads` of each result", measure([sys.executable, "-c", lines, *stored]))
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
