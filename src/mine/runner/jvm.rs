//! Maven and Gradle, by the JUnit reports that both write.

use super::{Recipe, Runner, Step, TestFiles, Tree};
use crate::grader::test_run::Format;

/// A command that removes earlier builds, because Maven uses a compiled class that is newer than its source. The plugin
/// that does the same would have to be downloaded.
const CLEAN: &str = r"find . -name pom.xml -execdir rm -rf target \;";

/// Returns the recipes for a repository with a `pom.xml` or a `build.gradle`.
pub(super) fn recipes(tree: &Tree, parent: &Tree, _tests: &TestFiles<'_>) -> Vec<Recipe> {
    let recipe = |runner, setup: String, run: String, report: &str, program: &str| Recipe {
        runner,
        folder: String::new(),
        setup: vec![Step::each(setup)],
        run,
        format: Format::Junit,
        report: Some(report.to_owned()),
        needs: if program.starts_with('.') { vec!["java".to_owned()] } else { vec![program.to_owned()] },
        mounted: Vec::new(),
        keeps: Vec::new(),
        key: runner.word().to_owned(),
    };
    if tree.has("pom.xml") {
        let program = if tree.has("mvnw") && parent.has("mvnw") { "./mvnw" } else { "mvn" };
        // The reports of Surefire need the plugin of the test framework, which only a run of the tests downloads. Java
        // does not take its home from `HOME`.
        let maven = format!(r#"MAVEN_OPTS="-Duser.home=$HOME" {program} -B -Dmaven.test.failure.ignore=true"#);
        let setup = format!("{maven} -q test");
        let run = format!("{CLEAN} && {maven} -o test");
        return vec![recipe(Runner::Maven, setup, run, "**/target/surefire-reports/*.xml", program)];
    }
    if tree.has("build.gradle") || tree.has("build.gradle.kts") {
        let program = if tree.has("gradlew") && parent.has("gradlew") { "./gradlew" } else { "gradle" };
        let gradle = format!(r#"GRADLE_USER_HOME="$HOME/.gradle" {program} --no-daemon"#);
        let setup = format!("{gradle} -q testClasses");
        // Tests that ran before are up to date for Gradle, and are not run again.
        let run = format!("{gradle} --offline --no-build-cache --continue clean test");
        return vec![recipe(Runner::Gradle, setup, run, "**/build/test-results/**/*.xml", program)];
    }
    Vec::new()
}
