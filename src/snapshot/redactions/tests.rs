//! Tests of the folders of a trial in every form, and of agents' texts that look like replaced values.

use super::*;
use crate::trace::{Agent, Seen};

fn replaced(cwd: &str, text: &str) -> [String; 2] {
    let mut header = Header::new("acp", Seen { tracing: true, interaction: true });
    header.cwd = Some(cwd.to_owned());
    header.agent = Some(Agent { name: "x".into(), version: Some("2.1.330".into()) });
    let redactions = Redactions::new(&header, Provenance::default(), &[]);
    [redactions.argument("", text, Numbering::Next), redactions.prose(text)]
}

#[test]
fn folders_of_the_trial_are_known_in_every_form() {
    let mut wrong = Vec::new();
    for (folder, text, shown) in [
        ("/tmp", "/tmp/evals-run-11-0/trial-VMA2VH/workspace/src/a.rs", "{workspace}/src/a.rs"),
        ("/tmp", "cd /tmp/evals-run-11-0/trial-VMA2VH/workspace", "cd {workspace}"),
        ("/tmp", "/tmp/evals-run-11-0/trial-VMA2VH/home/.x", "{home}/.x"),
        ("/tmp", "/tmp/evals-run-11-0/trial-VMA2VH/workspace-2/a", "{trial}/workspace-2/a"),
        ("/tmp", "file:///tmp/evals-run-11-0/trial-VMA2VH/tmp/a", "file://{tmp}/a"),
        ("/tmp", "/private/tmp/evals-run-11-0/trial-VMA2VH/tmp/a", "{tmp}/a"),
        ("/tmp", "ls /tmp/evals-run-11-0 /tmp", "ls {run} /tmp"),
        ("/tmp", "cat '/home/ann/.bashrc' /tmp/a", "cat '/home/ann/.bashrc' /tmp/a"),
        ("/tmp", "/tmp/evals-run-12-0/trial-VMA2VH/workspace", "/tmp/evals-run-12-0/trial-VMA2VH/workspace"),
        ("/tmp", "a/-tmp-evals-run-11-0-trial-VMA2VH-workspace/b", "a/{workspace}/b"),
        ("/tmp", "ls /tmp/claude/-tmp-evals-run-11-0-trial-VMA2VH-workspace-sub/x", "ls /tmp/claude/{workspace}-sub/x"),
        ("/tmp", "a/--tmp-evals-run-11-0-trial-VMA2VH-workspace--/b", "a/{workspace}--/b"),
        ("/tmp", "a/-private-tmp-evals-run-11-0-trial-VMA2VH-workspace/b", "a/{workspace}/b"),
        ("/tmp", "a/_tmp_evals_run_11_0_trial_VMA2VH_workspace/b", "a/{workspace}/b"),
        ("/tmp", "a/tmp_evals-run-11-0_trial-VMA2VH_home/b", "a/{home}/b"),
        ("/tmp", "a/evals-run-11-0_trial-VMA2VH/b", "a/{trial}/b"),
        ("/tmp", "x?f=%2Ftmp%2Fevals-run-11-0%2Ftrial-VMA2VH%2Fworkspace%2Fa.rs", "x?f={workspace}%2Fa.rs"),
        ("/tmp", "x?f=%2ftmp%2fevals-run-11-0%2ftrial-VMA2VH%2ftmp", "x?f={tmp}"),
        ("/tmp", "a/-tmp-evals-run-11-0-trial-VMA2VHx-workspace", "a/{run}-trial-VMA2VHx-workspace"),
        ("/data/tmp of/u", "a/-data-tmp-of-u-evals-run-11-0-trial-VMA2VH-workspace/b", "a/{workspace}/b"),
        ("/data/tmp of/u", "ls /data/tmp of/u/a /data/tmp of/us", "ls {tmpdir}/a /data/tmp of/us"),
        ("/data/tmp of/u", "=%2Fdata%2Ftmp%20of%2Fu%2Fevals-run-11-0%2Ftrial-VMA2VH%2Fworkspace", "={workspace}"),
        ("/tmp", "evals-run-of-a-trial-period x_workspace", "evals-run-of-a-trial-period x_workspace"),
        ("/data/x-", "-data-x--data-x- -data-x-", "{tmpdir}{tmpdir} {tmpdir}"),
    ] {
        let [argument, prose] = replaced(&format!("{folder}/evals-run-11-0/trial-VMA2VH/workspace"), text);
        if argument != shown || prose != shown {
            wrong.push(format!("{text}\n  is {argument}\n not {shown}"));
        }
    }
    // Sessions recorded on other machines.
    for (cwd, text, shown) in [
        (
            "/Users/anna/my.app",
            "/Users/anna/.claude/projects/-Users-anna-my-app/a",
            "/Users/anna/.claude/projects/{workspace}/a",
        ),
        ("/Users/anna/my.app", "a/_Users_anna_my.app/b", "a/{workspace}/b"),
        ("/Users/anna/my.app", "=%2FUsers%2Fanna%2Fmy.app%2Fa", "={workspace}%2Fa"),
        ("/workspace", "ls /tmp/claude/-workspace/x", "ls /tmp/claude/{workspace}/x"),
        ("/workspace", "go -workspace _workspace a/-workspace-2", "go -workspace _workspace a/-workspace-2"),
        ("/", "ls /", "ls /"),
        ("é/evals-run-11-0/trial-VMA2VH/workspace", "ls é/evals-run-11-0/trial-VMA2VH/workspace/a", "ls {workspace}/a"),
    ] {
        let [argument, _] = replaced(cwd, text);
        if argument != shown {
            wrong.push(format!("{text}\n  is {argument}\n not {shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_agents_version_goes_in_prose_and_stays_in_arguments() {
    assert_eq!(replaced("/w", "npm i x@2.1.330"), ["npm i x@2.1.330", "npm i x@{version}"]);
    // A folder that contains the version is the folder.
    let text = "x@2.1.330 is in /w/agent-2.1.330/src";
    assert_eq!(
        replaced("/w/agent-2.1.330", text),
        ["x@2.1.330 is in {workspace}/src", "x@{version} is in {workspace}/src"]
    );
}

#[test]
fn what_an_agent_writes_is_never_taken_for_a_replaced_value() {
    for (text, shown) in [
        ("cat {workspace}/a", "cat \\{workspace}/a"),
        ("echo {hash:1} \\{hash:1}", "echo \\{hash:1} \\\\{hash:1}"),
        ("${x} {} {a: 1} {hash} f'{n}'", "${x} {} {a: 1} {hash} f'{n}'"),
    ] {
        assert_eq!(replaced("/w", text)[0], shown);
    }
}
