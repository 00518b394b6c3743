//! Folders: this trial's and those of others, as paths and as names made of paths.

use super::{replaced, replaced_below, replaced_in, same};

#[test]
fn a_name_made_of_the_working_folders_path_is_that_folder() {
    let mut rows = Vec::new();
    for (folder, text, shown) in [
        // As Claude Code, pi and others name the folder of a project.
        (
            "/tmp",
            "/tmp/evals-run-11-0/trial-VMA2VH/home/.claude/projects/-tmp-evals-run-11-0-trial-VMA2VH-workspace/memory/A.md",
            "{home}/.claude/projects/{workspace}/memory/A.md",
        ),
        (
            "/tmp",
            "ls /tmp/claude/-tmp-evals-run-11-0-trial-VMA2VH-workspace-sub/x",
            "ls {tmp}/claude/{workspace}-sub/x",
        ),
        ("/tmp", "a/--tmp-evals-run-11-0-trial-VMA2VH-workspace--/b", "a/{workspace}--/b"),
        ("/tmp", "a/-private-tmp-evals-run-11-0-trial-VMA2VH-workspace/b", "a/{workspace}/b"),
        ("/tmp", "a/_tmp_evals-run-11-0_trial-VMA2VH_workspace_b", "a/{workspace}_b"),
        ("/tmp", "a/_tmp_evals_run_11_0_trial_VMA2VH_workspace/b", "a/{workspace}/b"),
        ("/tmp", "a/tmp_evals-run-11-0_trial-VMA2VH_home/b", "a/{home}/b"),
        ("/tmp", "a/evals-run-11-0_trial-VMA2VH/b", "a/{trial}/b"),
        ("/tmp", "x?f=%2Ftmp%2Fevals-run-11-0%2Ftrial-VMA2VH%2Fworkspace%2Fa.rs", "x?f={workspace}%2Fa.rs"),
        ("/tmp", "x?f=%2ftmp%2fevals-run-11-0%2ftrial-VMA2VH%2ftmp", "x?f={tmp}"),
        ("/tmp", "'-tmp-evals-run-11-0-trial-VMA2VH-workspace'", "'{workspace}'"),
        ("/tmp", "a/-tmp-evals-run-11-0-trial-VMA2VH-workspaces", "a/{trial}-workspaces"),
        // Where the system has its temporary folders, and where the user says so.
        ("/var/folders/a1/b_2/T", "a/-var-folders-a1-b-2-T-evals-run-11-0-trial-VMA2VH-workspace", "a/{workspace}"),
        ("/data/tmp of/u", "a/-data-tmp-of-u-evals-run-11-0-trial-VMA2VH-workspace/b", "a/{workspace}/b"),
        ("/data/tmp of/u", "=%2Fdata%2Ftmp%20of%2Fu%2Fevals-run-11-0%2Ftrial-VMA2VH%2Fworkspace", "={workspace}"),
        // Another trial's.
        ("/tmp", "a/-tmp-evals-run-11-0-trial-aaaaaa-workspace/b", "a/{other-trial}/workspace/b"),
        ("/x", "a/-tmp-evals-run-12-0-trial-VMA2VH-workspace/b", "a/{other-trial}/workspace/b"),
        ("/x", "a/-var-folders-zz-b-2-T-evals-run-12-0-trial-aaaaaa/b", "a/{other-trial}/b"),
        ("/tmp", "=%2Ftmp%2Fevals-run-11-0%2Ftrial-aaaaaa%2Fhome", "={other-trial}/home"),
        // Given names around it, and such as only look like it.
        ("/tmp", "/tmp/my-tmp-evals-run-11-0-trial-VMA2VH", "{tmp}/my-tmp{trial}"),
        ("/tmp", "a/-tmp-evals-run-11-0-trial-VMA2VHx-workspace", "a/-tmp-evals-run-11-0-trial-VMA2VHx-workspace"),
        ("/tmp", "evals-run-of-a-trial-period", "evals-run-of-a-trial-period"),
        ("/tmp", "a/-tmp-workspace/b -workspace x_workspace", "a/-tmp-workspace/b -workspace x_workspace"),
    ] {
        rows.push((text.to_owned(), replaced_below(folder, text)[0].clone(), shown.to_owned()));
    }
    // Recorded elsewhere.
    for (cwd, text, shown) in [
        (
            "/Users/anna/my.app",
            "/Users/anna/.claude/projects/-Users-anna-my-app/a",
            "{home}/.claude/projects/{workspace}/a",
        ),
        ("/Users/anna/my.app", "a/_Users_anna_my.app/b", "a/{workspace}/b"),
        ("/Users/anna/my.app", "=%2FUsers%2Fanna%2Fmy.app%2Fa", "={workspace}%2Fa"),
        ("/workspace", "ls /tmp/claude/-workspace/x", "ls {tmp}/claude/{workspace}/x"),
        ("/workspace", "go -workspace _workspace a/-workspace-2", "go -workspace _workspace a/-workspace-2"),
        (
            "/Users/anna/my.app",
            "a/-Users-anna-my-app-2 --Users-anna-my-app",
            "a/-Users-anna-my-app-2 --Users-anna-my-app",
        ),
    ] {
        rows.push((text.to_owned(), replaced_in(cwd, text)[0].clone(), shown.to_owned()));
    }
    same(rows);
}

/// The superuser's home, put together: no path of a machine stands in these files.
fn superusers() -> String {
    ["", "root"].join("/")
}

#[test]
fn what_is_this_trials_is_told_from_what_is_others() {
    let mut rows = Vec::new();
    for (text, shown) in [
        ("/tmp/evals-run-11-0/trial-VMA2VH/home/.x", "{home}/.x"),
        ("/private/tmp/evals-run-11-0/trial-VMA2VH/tmp/a", "{tmp}/a"),
        ("/elsewhere/evals-run-11-0/trial-VMA2VH/workspace/a", "{workspace}/a"),
        ("/tmp/evals-run-11-0/trial-VMA2VH/x", "{trial}/x"),
        ("/tmp/evals-run-11-0/trial-aaaaaa/workspace/a", "{other-trial}/workspace/a"),
        ("/tmp/evals-run-12-0/trial-VMA2VH/home/.x", "{other-trial}/home/.x"),
        ("/tmp/evals-run-12-0/trial-VMA2VH/tmp/tmp.Ab12Cd9xYz/a", "{other-trial}/tmp/tmp.{made}/a"),
        ("ls /tmp/evals-run-11-0/trial-aaaaaa", "ls {other-trial}"),
        ("ls /tmp/evals-run-11-0 /tmp/evals-run-12-3/x", "ls {tmp}/evals-run-{made} {tmp}/evals-run-{made}/x"),
        ("ls /tmp/evals-run-notes", "ls {tmp}/evals-run-notes"),
        ("cat /home/ann/.bashrc /Users/b/x", "cat {user-home}/.bashrc {user-home}/x"),
        (&format!("ls {}/.ssh", superusers()), "ls {user-home}/.ssh"),
        ("ls src/home/ann /roots", "ls src/home/ann /roots"),
    ] {
        rows.push((text.to_owned(), replaced(text)[0].clone(), shown.to_owned()));
    }
    // A session that was recorded elsewhere has no home but its user's, and no trial of its own.
    for (text, shown) in [
        ("/Users/anna/project/a", "{workspace}/a"),
        (&format!("/Users/anna/.bashrc {}/x", superusers()), "{home}/.bashrc {home}/x"),
        ("/tmp/evals-run-11-0/trial-aaaaaa/workspace/a", "{workspace}/a"),
    ] {
        rows.push((text.to_owned(), replaced_in("/Users/anna/project", text)[0].clone(), shown.to_owned()));
    }
    same(rows);
}
