//! Parses JUnit XML in the variants of common runners.

use roxmltree::{Document, Node};

use super::report::{Report, Status};

/// Parses a report.
///
/// # Errors
/// Returns an error if the text is not XML, or contains no test suite.
pub fn read(text: &str) -> Result<Report, String> {
    // Some runners write control characters of test names as references, which XML does not have.
    let readable: String;
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            readable = without_forbidden(text);
            Document::parse(&readable).map_err(|_| format!("it is not XML: {error}"))?
        }
    };
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

/// Returns a text in which characters that XML forbids, raw or as references, are replaced.
fn without_forbidden(text: &str) -> String {
    let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("&#") {
        let (before, reference) = rest.split_at(at);
        plain.push_str(before);
        let end = reference.find(';').filter(|end| *end <= 12);
        let number = end.and_then(|end| reference.get(2..end));
        let code = number.and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
            None => number.parse().ok(),
        });
        match (end, code) {
            (Some(end), Some(code)) if !char::from_u32(code).is_some_and(is_allowed) => {
                plain.push('\u{fffd}');
                rest = &reference[end + 1..];
            }
            _ => {
                plain.push_str("&#");
                rest = &reference[2..];
            }
        }
    }
    plain.push_str(rest);
    plain.replace(|c| !is_allowed(c), "\u{fffd}")
}

fn names(case: &Node<'_, '_>) -> Vec<String> {
    let name = case.attribute("name").unwrap_or_default();
    let suite = case.parent().and_then(|suite| suite.attribute("name"));
    let owners = [case.attribute("classname"), case.attribute("file"), suite];
    let owners = owners.into_iter().flatten().filter(|owner| !owner.is_empty());
    let full = owners.flat_map(|owner| [format!("{owner}.{name}"), format!("{owner}::{name}")]);
    full.chain([name.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_forbids_do_not_hide_a_report() {
        let text = "<testsuite><testcase classname='a' name='nul &#x0; bell &#7; \u{1b}[0m &#233; &#60;'/></testsuite>";
        let report = read(text).unwrap();
        assert_eq!(report.tests()[0].names[0], "a.nul \u{fffd} bell \u{fffd} \u{fffd}[0m \u{e9} <");
        assert!(read("<testsuite><testcase &#x0;").is_err());
    }
}
