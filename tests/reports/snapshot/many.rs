//! An agent that has not changed gives no difference, however often it is run.

use crate::project::Project;

#[test]
fn runs_of_an_unchanged_agent_give_no_difference() {
    an_unchanged_agent_gives_no_difference(24);
}

#[test]
#[ignore = "slow: 200 trials"]
fn two_hundred_runs_of_an_unchanged_agent_give_no_difference() {
    an_unchanged_agent_gives_no_difference(200);
}

fn an_unchanged_agent_gives_no_difference(trials: u64) {
    let project = Project::new();
    // What its commands print and when they end is another thing each time; it works in another folder, and it is told
    // where that is.
    let steps = "turns:
  - steps:
      - thought: I look around.
      - parallel:
          - read: {path: a.txt}
          - search: {pattern: one, path: .}
          - run: {command: 'echo $$ $PWD; date +%N; sleep 0.00$(($$ % 10))'}
      - usage: {input-tokens: 1000, output-tokens: 90}
      - edit: {path: a.txt, old: one, new: two, ask: true}
      - run: {command: 'mktemp -d; exit 3'}
      - say: 'Done.'
  - steps: [{delete: {path: b.txt, ask: true}}, {say: 'Gone.'}]
";
    let keys = "turns: [Change it., Delete b.txt.]\nsnapshot: {text: full}\nworkspace: {files: {a.txt: one, b.txt: x}}
graders: [{snapshot: {gate: true}}, {stop: {reason: [end_turn]}}]";
    project.case("a", keys, steps);
    project.evals(&["run", "--snapshot", "update", "--label", "first"]).exits(0).says("1 snapshot accepted");
    let many = trials.to_string();
    let args = ["run", "--trials", &many, "--jobs", "8", "--snapshot", "check", "--keep-workspace", "never"];
    let ran = project.evals(&args).exits(0).says(&format!("{trials} passed"));
    assert!(!ran.out.contains("snapshot"), "{}", ran.out);
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    let snapshot = &json["snapshots"][0];
    assert_eq!(
        (&snapshot["trials"], &snapshot["matching"], &snapshot["state"]),
        (&trials.into(), &trials.into(), &"same".into())
    );
}

/// An agent whose tools print whatever environments make at random, and which uses it in arguments and words: names of
/// temporary files as mktemp, Python and Node make them, processes, short hashes (each third of figures alone), dates in every
/// form, and names made of its folder's path.
const OF_CHANCES: &str = r#"
import json, os, sys, time
digits, lower = "0123456789", "abcdefghijklmnopqrstuvwxyz"
everything, folder = digits + lower + lower.upper(), os.environ["TMPDIR"]
def below(n): return int.from_bytes(os.urandom(6), "big") % n
def some(signs, count): return "".join(signs[below(len(signs))] for _ in range(count))
def sha(): return some(["0123456789abcdef", "0123456789abcdef", digits][below(3)], 7)
def now(form): return time.strftime(form, time.gmtime(1700000000 + below(200000000)))
made, job = f"{folder}/tmp.{some(everything, 10)}", f"{folder}/job.{some(everything, 4)}"
python, node = f"{folder}/tmp{some(lower + digits + '_', 8)}", f"{folder}/work-{some(everything, 6)}"
cwd, home = os.getcwd(), os.environ["HOME"]
slug, encoded = "".join(c if c.isalnum() else "-" for c in cwd), cwd.replace("/", "%2F")
uuid = "-".join(os.urandom(n).hex() for n in (4, 2, 2, 2, 6))
pid, port, shas = 1000 + below(60000), 32768 + below(28000), [sha() for _ in range(4)]
at, stamp, iso, mail = 1700000000 + below(200000000), now("%Y%m%d-%H%M%S"), now("%Y-%m-%dT%H:%M:%SZ"), now("%a %b %d %H:%M:%S UTC %Y")
took = f"{1 + below(8)}m{10 + below(50)}.{below(9)}s"
calls = [
    ({"command": "mktemp -d; mktemp $TMPDIR/job.XXXX; python -c 'import tempfile; print(tempfile.mkdtemp())'; node -e \"fs.mkdtempSync(os.tmpdir() + '/work-')\""}, "\n".join([made, job, python, node])),
    ({"command": f"cp 42.txt {made}/out-42 && cat {job} {python}/a.py {node}/b.js"}, ""),
    ({"command": "git log --oneline"}, "\n".join(f"{it} Fix 1234567 of {n}" for n, it in enumerate(shas))),
    ({"command": f"git show {shas[0]} && git diff {shas[2]}..{shas[1]} -n 1234567"}, ""),
    ({"command": f"git commit -m 'fix 1234567'; git describe --always v1.2-3-g{shas[3]}"}, ""),
    ({"command": "./server & echo $!"}, f"{pid}\nListening on http://localhost:{port}/"),
    ({"command": f"kill {pid}; kill -9 {pid} %1; ps -p {pid} -o rss="}, ""),
    ({"command": "date +%s; ./backup; date -u"}, f"{at}\nwrote b-{stamp}.tar at {iso}\n{mail}\nreal {took}"),
    ({"command": f"tar cf b-{stamp}.tar {iso} v1.2.3"}, ""),
    ({"command": "uuidgen"}, uuid),
    ({"commit": shas[1], "pid": pid, "id": uuid, "at": at, "seed": 42}, ""),
    ({"text": f"index {shas[0]}..{shas[1]} 100644\n[main {shas[2]}] Fix it\nDate: {mail}\n"}, ""),
    ({"path": f"{home}/.claude/projects/{slug}/memory/MEMORY.md", "beside": "/tmp/a /home/anna/a"}, ""),
    ({"command": f"ls /tmp/claude/{slug}/x {cwd.replace('/', '_')}", "uri": f"x:{encoded}%2Fa"}, ""),
    ({"url": f"http://localhost:{port}/42"}, ""),
]
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**update): say(method="session/update", params={"sessionId": "s", "update": update})
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize": say(id=asked["id"], result={"protocolVersion": 1})
    elif asked["method"] == "session/new": say(id=asked["id"], result={"sessionId": "s"})
    else:
        for call, output in calls:
            name = f"call_{some(everything, 11)}7"
            update(sessionUpdate="tool_call", toolCallId=name, title="run", kind="execute", status="pending", rawInput=call)
            said = [{"type": "content", "content": {"type": "text", "text": output}}]
            update(sessionUpdate="tool_call_update", toolCallId=name, status="completed", content=said)
        words = f"Process {pid} ran {took} on port {port}; commit {shas[3]} has 42 files, at {iso}, v2.1.1."
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": words})
        say(id=asked["id"], result={"stopReason": "end_turn"})
"#;

#[test]
fn runs_full_of_chances_give_no_difference_and_keep_what_was_chosen() {
    chances_give_no_difference(24);
}

#[test]
#[ignore = "slow: 200 trials"]
fn two_hundred_runs_full_of_chances_give_no_difference_and_keep_what_was_chosen() {
    chances_give_no_difference(200);
}

fn chances_give_no_difference(trials: u64) {
    let project = Project::new();
    project.write("agent.py", OF_CHANCES);
    project.harness(
        "chances",
        &format!("adapter: acp\ncommand: [python3, -S, -E, {}]", project.path("agent.py").display()),
    );
    project.case("a", "snapshot: {text: full}\ngraders: [{snapshot: {gate: true}}]", "");
    project.evals(&["run", "--harness", "chances", "--snapshot", "update"]).exits(0);
    let text = project.read("cases/a.snapshots/chances.snap");
    insta::assert_snapshot!("chances", text);
    let many = trials.to_string();
    let args = ["run", "--harness", "chances", "--trials", &many, "--jobs", "4", "--snapshot", "check"];
    let ran = project.evals(&[&args[..], &["--keep-workspace", "never"]].concat());
    ran.exits(0).says(&format!("{trials} passed"));
}
