//! Reads instructions of a Dockerfile that change how a container of its image starts.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::parts::scalar;
use crate::command_line::is_shell;

/// Programs that start other programs and do nothing else.
const STARTERS: [&str; 4] = ["tini", "dumb-init", "env", "--"];

/// Fails if a container would start differently than in the source: as another user, or with an `ENTRYPOINT`, in whose
/// place the container waits here.
///
/// # Errors
/// Returns the reason.
pub fn check(dockerfile: &str) -> Result<(), String> {
    let user = instruction(dockerfile, "USER").filter(|user| !["root", "0"].contains(&user.as_str()));
    if let Some(user) = user {
        return Err(format!("the image sets the user `{user}`, and the agent runs as root here"));
    }
    let entry = instruction(dockerfile, "ENTRYPOINT").filter(|entry| !is_idle(&written(entry)));
    match entry {
        Some(entry) => Err(format!("the image starts the ENTRYPOINT `{entry}`, which is not started here")),
        None => Ok(()),
    }
}

/// Returns the value of the last instruction with this name that the last stage has, or the stage that it begins with.
pub fn instruction(dockerfile: &str, name: &str) -> Option<String> {
    let mut stages: HashMap<String, Option<String>> = HashMap::new();
    let (mut stage, mut found) = (String::new(), None);
    for line in lines(dockerfile) {
        let Some((word, rest)) = line.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim();
        if word.eq_ignore_ascii_case("FROM") {
            stages.insert(std::mem::take(&mut stage), found.take());
            let words: Vec<&str> = rest.split_whitespace().filter(|word| !word.starts_with("--")).collect();
            if let [base, as_, own] = words[..]
                && as_.eq_ignore_ascii_case("as")
            {
                stage = own.to_lowercase();
                found = stages.get(&base.to_lowercase()).cloned().flatten();
            } else {
                found = words.first().and_then(|base| stages.get(&base.to_lowercase()).cloned().flatten());
            }
        } else if word.eq_ignore_ascii_case(name) {
            found = Some(rest.to_owned());
        }
    }
    found
}

/// Returns the lines of a Dockerfile, continued ones as one, without comments and here-documents.
fn lines(dockerfile: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    let mut rest = dockerfile.lines();
    while let Some(line) = rest.next().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let part = line.strip_suffix('\\');
        let text = part.unwrap_or(line);
        match lines.last_mut().filter(|_| is_open) {
            Some(last) => last.push_str(text),
            None => lines.push(text.to_owned()),
        }
        is_open = part.is_some();
        let whole = lines.last().filter(|_| !is_open);
        for (mark, is_indented) in whole.map(|line| here_documents(line)).unwrap_or_default() {
            let is_end = |line: &str| mark == if is_indented { line.trim_start_matches('\t') } else { line };
            // Without an end, the mark was something else, such as an operator within a text.
            let mut after = rest.clone();
            if after.any(is_end) {
                rest = after;
            }
        }
    }
    lines
}

/// Returns the marks that end the here-documents of an instruction, and whether tabs before each mark are ignored.
fn here_documents(line: &str) -> Vec<(String, bool)> {
    let mut words = line.split_whitespace();
    let has_documents =
        words.next().is_some_and(|word| ["RUN", "COPY", "ADD"].iter().any(|name| word.eq_ignore_ascii_case(name)));
    let document = |word: &str| {
        let (number, mark) = word.split_once("<<")?;
        let (mark, is_indented) = mark.strip_prefix('-').map_or((mark, false), |mark| (mark, true));
        let mark = mark.trim_matches(['"', '\'']);
        let is_mark = number.chars().all(|c| c.is_ascii_digit()) && !mark.is_empty() && !mark.contains('<');
        is_mark.then(|| (mark.to_owned(), is_indented))
    };
    words.filter(|_| has_documents).filter_map(document).collect()
}

/// Returns a command as a Dockerfile has it: a JSON list, or a text.
pub fn written(text: &str) -> Value {
    serde_json::from_str(text).ok().filter(Value::is_array).unwrap_or_else(|| json!(text))
}

/// Returns true if a command of a container starts nothing that a task could need: a shell, or a program that waits. The
/// command is a text or a list of words, as a Dockerfile and a compose file have it.
pub fn is_idle(command: &Value) -> bool {
    let words: Vec<String> = match command {
        Value::Null => return true,
        Value::Array(list) => {
            let words: Option<Vec<String>> = list.iter().map(scalar).collect();
            words.unwrap_or_else(|| vec!["?".to_owned()])
        }
        other => scalar(other).unwrap_or_else(|| "?".to_owned()).split_whitespace().map(str::to_owned).collect(),
    };
    let words = words.iter().flat_map(|word| word.split_whitespace());
    let words: Vec<&str> = words.map(|word| word.trim_matches(['"', '\''])).filter(|word| !word.is_empty()).collect();
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let mut rest = words.as_slice();
    while let [first, more @ ..] = rest {
        let first = name(first);
        let is_option = ["-c", "-l", "-lc", "-i", "-s", "-g", "--login", "exec"].contains(&first.as_str());
        if !(is_shell(&first) || STARTERS.contains(&first.as_str()) || is_option) {
            break;
        }
        rest = more;
    }
    match rest {
        [] => true,
        [program, time] if name(program) == "sleep" => {
            *time == "infinity" || time.trim_end_matches(['s', 'm', 'h', 'd']).parse::<f64>().is_ok()
        }
        ["tail", options @ .., "/dev/null"] => options.iter().all(|option| ["-f", "-F"].contains(option)),
        ["cat"] | ["true"] | [":"] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_of_the_last_stage_counts() {
        for (text, expected) in [
            ("FROM a\nENTRYPOINT [\"/x\"]\n", Some("[\"/x\"]")),
            ("FROM a\nentrypoint /x \\\n  # no\n  --y\n", Some("/x --y")),
            ("FROM a AS b\nENTRYPOINT /x\nFROM c\n", None),
            ("FROM a AS b\nENTRYPOINT /x\nFROM --platform=x B\n", Some("/x")),
            ("FROM a AS b\nENTRYPOINT /x\nFROM b as c\nFROM c\nENTRYPOINT []\n", Some("[]")),
            ("FROM a\n# ENTRYPOINT /x\nRUN echo ENTRYPOINT /x\n", None),
            ("FROM a\nRUN <<EOF\nENTRYPOINT /x\nEOF\n", None),
            ("FROM a\nENTRYPOINT /x\nRUN cat <<-'EOF' \\\n  >f\nENTRYPOINT []\n\tEOF\n", Some("/x")),
            ("FROM a\nCOPY <<a <<b /c/\nENTRYPOINT 1\na\nENTRYPOINT 2\nb\nENTRYPOINT 3\n", Some("3")),
            // A mark without an end is none.
            ("FROM a\nRUN echo $((1 <<x))\nENTRYPOINT /x\n", Some("/x")),
        ] {
            assert_eq!(instruction(text, "ENTRYPOINT").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_waits_is_idle_and_what_serves_is_not() {
        for command in [
            json!(null),
            json!([]),
            json!(["sh", "-c", "sleep infinity"]),
            json!("sleep infinity"),
            json!("sh -c 'sleep 3600s'"),
            json!(["tail", "-f", "/dev/null"]),
            json!("/bin/bash"),
            json!(["/usr/bin/tini", "--"]),
            json!(["/bin/sh", "-c"]),
        ] {
            assert!(is_idle(&command), "{command}");
        }
        for command in [
            json!(["sh", "-c", "/start-server & sleep infinity"]),
            json!(["bash", "/srv.sh"]),
            json!("python -m http.server"),
            json!("sleep infinity & /srv.sh"),
            json!(["tail", "-f", "/var/log/x"]),
            json!({"a": 1}),
            json!([["sh"]]),
        ] {
            assert!(!is_idle(&command), "{command}");
        }
    }
}
