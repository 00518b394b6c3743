//! Parses JUnit XML in the variants of common runners.

use roxmltree::{Document, Node};

use super::report::{Report, Status};

/// Parses a report.
///
/// # Errors
/// Returns an error if the text is not XML, or contains no test suite.
pub fn read(text: &str) -> Result<Report, String> {
    let document = Document::parse(text).map_err(|error| format!("it is not XML: {error}"))?;
    let root = document.root_element();
    if !["testsuites", "testsuite", "testcase"].contains(&root.tag_name().name()) {
        return Err(format!("it begins with `{}`, not with `testsuites`", root.tag_name().name()));
    }
    let mut report = Report::default();
    for case in root.descendants().filter(|node| node.has_tag_name("testcase")) {
        let has = |name: &str| case.children().any(|child| child.has_tag_name(name));
        // Tests marked as still to be done may fail.
        let status = if has("skipped") {
            Status::Skipped
        } else if has("failure") || has("error") {
            Status::Failed
        } else {
            Status::Passed
        };
        // Two tests may have the same name if a runner does not report their classes.
        report.add_another(names(&case), status);
    }
    let counted = |node: &Node<'_, '_>, key: &str| node.attribute(key).and_then(|count| count.parse::<u64>().ok());
    for suite in root.descendants().filter(|node| node.has_tag_name("testsuite")) {
        let cases = suite.descendants().filter(|node| node.has_tag_name("testcase")).count() as u64;
        let errors = counted(&suite, "errors").unwrap_or(0) + counted(&suite, "failures").unwrap_or(0);
        if cases == 0 && errors > 0 {
            let name = suite.attribute("name").unwrap_or("a suite");
            report.problems.push(format!("{name} failed before any of its tests"));
        }
    }
    Ok(report)
}

fn names(case: &Node<'_, '_>) -> Vec<String> {
    let name = case.attribute("name").unwrap_or_default();
    let suite = case.parent().and_then(|suite| suite.attribute("name"));
    let owners = [case.attribute("classname"), case.attribute("file"), suite];
    let owners = owners.into_iter().flatten().filter(|owner| !owner.is_empty());
    let full = owners.flat_map(|owner| [format!("{owner}.{name}"), format!("{owner}::{name}")]);
    full.chain([name.to_owned()]).collect()
}
