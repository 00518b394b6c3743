//! Builds of an agent that must not stand in for the protected and hidden files of its case.

use serde_json::json;

use crate::project::Project;

/// Runs cases, each with an ID, its keys and the agent's command, and returns their verdicts.
fn verdicts<const N: usize>(project: &Project, cases: [(&str, String, &str); N]) -> [String; N] {
    for (id, keys, act) in &cases {
        project.case(id, keys, &format!("steps: [{{run: {{command: {}}}}}]", json!(act)));
    }
    project.evals(&["run", "--keep-workspace", "always"]);
    cases.map(|(id, ..)| project.result(&format!("{id}/demo/default/1"))["verdict"].as_str().unwrap().to_owned())
}

#[test]
fn what_an_agent_built_of_other_tests_is_built_again() {
    let project = Project::new();
    let test = "grep -q 42 a.txt";
    project.write("cases/sum.hidden/tests/t.sh", test);
    // As build tools do, the grader builds only what is not newer than its input.
    let run = "test built -nt tests/t.sh || cp tests/t.sh built; sh built";
    let files = json!({".gitignore": "built", "tests/t.sh": test, "package.json": "{}"});
    let workspace = format!("workspace: {{files: {files}, protect: ['tests/**', package.json], protect-strict: true}}");
    let protected = format!("{workspace}\ngraders: [{{command: {{run: '{run}'}}}}]");
    let keys = "workspace: {files: {a.txt: ''}}\nhidden: sum.hidden";
    let hidden = format!("{keys}\ngraders: [{{command: {{run: '{run}'}}}}]");
    let later = format!("{workspace}\ngraders: [{{command: {{run: sh build.sh}}}}, {{command: {{run: '{run}'}}}}]");
    let installed = format!("{workspace}\ngraders: [{{command: {{run: 'test ! package.json -nt installed'}}}}]");
    let moved = "mv tests t; mkdir tests; echo true > tests/t.sh; cp tests/t.sh built; touch -d 2096-01-01 built; \
                 rm -r tests; mv t tests";
    let wrapped = format!("echo '{moved}' > build.sh");
    // Nothing touches the protected files after setup.
    let waits = "setup: ['until touch k && test k -nt tests/t.sh; do :; done; rm k']";
    let elsewhere = protected.replace("workspace: {", &format!("workspace: {{{waits}, "));
    let copied = "cp -a . ~/x; cd ~/x; echo true > tests/t.sh; cp tests/t.sh $OLDPWD/built";
    let undone = "cp -p tests/t.sh k; echo true > tests/t.sh; cp tests/t.sh built; cat k > tests/t.sh; \
                  touch -r k tests/t.sh; rm k";
    let found = verdicts(
        &project,
        [
            ("undone", protected.clone(), undone),
            ("moved", protected.clone(), moved),
            ("elsewhere", elsewhere, copied),
            ("hidden", hidden, "echo true > built; touch -d 2096-01-01 built"),
            // Code of the agent does the same while an earlier grader runs.
            ("later", later, &*wrapped),
            ("honest", protected, "echo 42 > a.txt; cp tests/t.sh built"),
            ("installed", installed, "touch installed"),
        ],
    );
    assert_eq!(found, ["fail", "fail", "fail", "fail", "fail", "pass", "pass"]);
    // The kept workspaces are judged alike.
    let again = project.evals(&["grade", "latest", "--format", "json"]).json();
    for result in again["results"].as_array().unwrap() {
        let is_honest = ["honest", "installed"].contains(&result["case"].as_str().unwrap());
        assert!(is_honest || result["verdict"] != "pass", "{result}");
    }
}

#[test]
fn a_compiled_module_beside_protected_files_is_not_read_in_the_isolated_mode() {
    let project = Project::new();
    let files = json!({
        ".gitignore": "__pycache__/\n",
        "tests/run.py": "import sys\nsys.path.insert(0, 'tests')\nimport rules\nrules.check()\n",
        "tests/rules.py": "import os, sys\ndef check():\n    sys.exit(not os.path.exists('a.txt'))\n",
    });
    let keys = format!(
        "workspace: {{files: {files}, protect: ['tests/**'], protect-strict: true}}\n\
         graders: [{{command: {{run: python3 -I tests/run.py}}}}]"
    );
    let forged = "mv tests/rules.py k; echo 'def check(): pass' > tests/rules.py; python3 -c \"import py_compile as p; \
                  p.compile('tests/rules.py', invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)\"; \
                  mv k tests/rules.py";
    let honest = "touch a.txt; python3 tests/run.py";
    let found = verdicts(&project, [("forged", keys.clone(), forged), ("honest", keys, honest)]);
    assert_eq!(found, ["fail", "pass"]);
}
