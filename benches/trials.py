#!/usr/bin/env python3
"""Measures what a trial costs beside the agent's own work, each figure beside its floor.

usage: cargo build --release && python3 benches/trials.py [--rounds 5] [--only cost|growth|idle]

Prints Markdown; see BENCHMARK.md. The floor is benches/floor.c, compiled here with cc: the same copies, processes, evidence,
syncs and removals without an engine. A round runs the engine and the floor in turns. `EVALS` names another binary.
"""
import argparse, os, shutil, signal, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import speed
from speed import asked, measure, rounds, row, write

HERE = os.path.dirname(os.path.abspath(__file__))
EVALS = os.path.abspath(os.environ.get("EVALS", speed.EVALS))
HARNESS = "name: h\nadapter: output-only\ncommand: [{}]\n"
CASE = "prompt: x\ntrials: {}\nworkspace: {{copy: ws}}\ngraders: [{{stop: {{reason: [end_turn]}}}}]\n"


def suite_of(root, name, trials, command, files):
    suite = os.path.join(root, name)
    os.makedirs(f"{suite}/cases/ws", exist_ok=True)
    for number in range(files):
        write(f"{suite}/cases/ws/f{number}.txt", "text\n" * 20)
    write(f"{suite}/cases/a.yaml", CASE.format(trials))
    write(f"{suite}/harnesses/h.yaml", HARNESS.format(command))
    return suite


def engine(suite, jobs):
    """Runs the suite. Each round has a run folder of its own, as files that were just removed slow ext4 down."""
    return measure([EVALS, "run", "cases", "--harness", "h", "--jobs", str(jobs), "--no-progress"], cwd=suite)


def floor(program, suite, trials, jobs):
    """Runs the floor, with its folders where the engine has its own."""
    out = tempfile.mkdtemp(dir=suite)
    with tempfile.TemporaryDirectory(prefix="evals-floor-") as private:
        return measure([program, str(trials), str(jobs), f"{suite}/cases/ws", out, private, "/bin/true"])


def both(root, program, n, trials, jobs, files, note):
    """Prints the rows of the engine and the floor. `note` makes a note of both. Returns the engine's CPU seconds a trial."""
    suite = suite_of(root, f"{trials}-{jobs}-{files}", trials, "/bin/true", files)
    ran, least = rounds(n, lambda: engine(suite, jobs), lambda: floor(program, suite, trials, jobs))
    each = lambda seconds: f"{seconds / trials * 1000:.2f}"
    ratios = f"{ran[1] / least[1]:.2f} × the floor's CPU, {ran[0] / least[0]:.2f} × its time"
    row(f"{trials:,} trials of `/bin/true`, {files} files, `--jobs {jobs}`", ran, f"{each(ran[1])} ms of CPU, {each(ran[0])} ms a trial; {ratios}; {note(ran, least)}")
    row("floor: `benches/floor.c`", least, f"{each(least[1])} ms of CPU, {each(least[0])} ms a trial")
    return ran[1] / trials


def cost(root, program, n):
    note = lambda ran, least: asked("1.3 × of both", ran[1] <= 1.3 * least[1] and ran[0] <= 1.3 * least[0])
    both(root, program, n, 1_000, 2, 0, note)
    both(root, program, n, 1_000, 8, 10, note)
    both(root, program, n, 200, 1, 0, note)


def growth(root, program, n):
    """The CPU of a trial must not depend on how many there are."""
    first = both(root, program, n, 100, 2, 0, lambda ran, least: "asked for: the same CPU a trial with more of them")
    for trials in (1_000, 10_000):
        note = lambda ran, least: f"{ran[1] / trials / first:.2f} × the CPU of a trial of 100; asked for: the same"
        both(root, program, 1 if trials == 10_000 else n, trials, 2, 0, note)


def idle(root, program, n):
    """1,000 agents that do nothing, at once: the engine's own memory, descriptors and CPU, once all of them run."""
    suite = suite_of(root, "idle", 1_000, "sleep, '120'", 0)
    seen = []
    for _ in range(n):
        run = subprocess.Popen([EVALS, "run", "cases", "--harness", "h", "--jobs", "1000", "--no-progress"], cwd=suite, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stat = lambda: open(f"/proc/{run.pid}/stat").read().rsplit(")", 1)[1].split()
        sleeping = lambda: sum(1 for pid in os.listdir("/proc") if pid.isdigit() and is_agent(pid))
        deadline = time.monotonic() + 120
        while sleeping() < 1_000:
            if run.poll() is not None or time.monotonic() > deadline:
                run.send_signal(signal.SIGINT)
                sys.exit("the agents did not start")
            time.sleep(0.2)
        time.sleep(2)
        ticks = lambda: sum(int(field) for field in stat()[11:13])
        before = ticks()
        time.sleep(5)
        core = (ticks() - before) / os.sysconf("SC_CLK_TCK") / 5
        memory = next(int(line.split()[1]) for line in open(f"/proc/{run.pid}/status") if line.startswith("VmRSS"))
        seen.append((memory / 1024, len(os.listdir(f"/proc/{run.pid}/fd")) / 1_000, core))
        run.send_signal(signal.SIGINT)
        run.wait()
        shutil.rmtree(f"{suite}/.evals")
    memory, files, core = (statistics.median(column) for column in zip(*seen))
    print(f"| 1,000 idle agents at once | | | {memory:.0f} | {files:.1f} descriptors each, {core * 100:.1f} % of a core; {asked('100 MiB', memory <= 100)} |")


def is_agent(pid):
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"sleep") and words[1:2] == [b"120"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["cost", "growth", "idle"])
    arguments = parser.parse_args()
    root = tempfile.mkdtemp(prefix="evals-trials-")
    program = os.path.join(root, "floor")
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, os.path.join(HERE, "floor.c")], check=True)
    print("| work | wall s | CPU s | peak MiB | note |\n| --- | --- | --- | --- | --- |")
    for part in (cost, growth, idle):
        if arguments.only in (None, part.__name__):
            part(root, program, arguments.rounds)
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
