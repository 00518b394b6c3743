//! Applies the patch that the result of an edit shows to the content before the edit. Pure.

use super::lenient::{List, Object};
use super::lines::Hunk;

/// Returns the lines of a file after an edit, or `None` if there is no patch or it does not fit. `new` are the texts that the edit
/// inserted.
pub(super) fn patched<'a>(
    before: &'a str,
    hunks: &'a List<Object<Hunk<'_>>>,
    new: impl IntoIterator<Item = &'a str>,
) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = before.split('\n').collect();
    let mut after = Vec::with_capacity(lines.len());
    let mut at = 0usize;
    let mut shows_tab = false;
    for hunk in &hunks.0 {
        let hunk = hunk.0.as_ref()?;
        let start = usize::try_from(hunk.old_start.0?).ok()?.saturating_sub(1);
        after.extend_from_slice(lines.get(at..start)?);
        at = start;
        for line in &hunk.lines.0 {
            let line = line.get()?;
            let (sign, text) = line.split_at_checked(1)?;
            match sign {
                "+" => {
                    shows_tab |= text.contains('\t');
                    after.push(text);
                }
                " " | "-" => {
                    let known = *lines.get(at)?;
                    if known.trim_end() != text.trim_end() {
                        return None;
                    }
                    at += 1;
                    if sign == " " {
                        after.push(known);
                    }
                }
                // `\ No newline at end of file`
                "\\" => {}
                _ => return None,
            }
        }
    }
    after.extend_from_slice(lines.get(at..)?);
    // Some versions show a tab as blanks.
    let hides_tabs = !shows_tab && new.into_iter().any(|text| text.contains('\t'));
    (!hunks.0.is_empty() && !hides_tabs).then_some(after)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_patch_that_fits_shows_the_lines_after_the_edit() {
        let before = "a\n\u{201c}b\u{201d}\nc\n";
        let of = |hunks: Value, new: &str| {
            let text = hunks.to_string();
            let hunks: List<Object<Hunk<'_>>> = serde_json::from_str(&text).unwrap();
            patched(before, &hunks, [new]).map(|lines| lines.join("\n"))
        };
        let hunk = |start: u64, lines: &[&str]| json!({"oldStart": start, "lines": lines});
        let quoted = hunk(1, &[" a", "-\u{201c}b\u{201d}", "+\u{201c}x\u{201d}", " c"]);
        assert_eq!(of(json!([quoted]), "\"x\"").as_deref(), Some("a\n\u{201c}x\u{201d}\nc\n"));
        let two = json!([hunk(1, &["-a"]), hunk(3, &[" c", "+d", "\\ No newline at end of file"])]);
        assert_eq!(of(two, "d").as_deref(), Some("\u{201c}b\u{201d}\nc\nd\n"));
        for odd in [
            json!([]),
            json!([hunk(1, &["-b"])]),
            json!([hunk(9, &["+b"])]),
            json!([hunk(3, &["-c"]), hunk(1, &["-a"])]),
            json!([hunk(1, &[""])]),
            json!([{"lines": ["+b"]}]),
            json!(["+b"]),
        ] {
            assert_eq!(of(odd.clone(), "b"), None, "{odd}");
        }
        assert_eq!(of(json!([hunk(1, &[" a", "+    b"])]), "\tb"), None);
    }
}
