//! Maven and Gradle, by the JUnit reports that both write.

use super::{Recipe, Runner, Step, Tree};
use crate::grader::test_run::Format;

/// Returns the recipes for a repository with a `pom.xml` or a `build.gradle`.
pub(super) fn recipes(tree: &Tree, parent: &Tree, _changed: &[&str]) -> Vec<Recipe> {
    let recipe = |runner, setup: String, run: String, report: &str, program: &str| Recipe {
        runner,
        setup: vec![Step::each(setup)],
        run,
        format: Format::Junit,
        report: Some(report.to_owned()),
        needs: if program.starts_with('.') { vec!["java".to_owned()] } else { vec![program.to_owned()] },
        keeps: Vec::new(),
        key: runner.word().to_owned(),
    };
    if tree.has("pom.xml") {
        let program = if tree.has("mvnw") && parent.has("mvnw") { "./mvnw" } else { "mvn" };
        // The reports of Surefire need the plugin of the test framework, which only a run of the tests downloads.
        let setup = format!("{program} -B -q -Dmaven.test.failure.ignore=true test");
        let run = format!("{program} -B -o -Dmaven.test.failure.ignore=true test");
        return vec![recipe(Runner::Maven, setup, run, "**/target/surefire-reports/*.xml", program)];
    }
    if tree.has("build.gradle") || tree.has("build.gradle.kts") {
        let program = if tree.has("gradlew") && parent.has("gradlew") { "./gradlew" } else { "gradle" };
        let setup = format!("{program} --no-daemon -q testClasses");
        let run = format!("{program} --no-daemon --offline --continue test");
        return vec![recipe(Runner::Gradle, setup, run, "**/build/test-results/**/*.xml", program)];
    }
    Vec::new()
}
