//! Checks the MCP servers of cases, suites and variants: their keys, and how an agent reaches them.

use serde_json::{Map, Value};

use super::Case;
use crate::yaml::words;

/// The keys that agents read in a server: those of ACP's `session/new`, and those of the files that agents take by a flag. An
/// agent may read others.
const KEYS: [&str; 28] = [
    "name",
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "httpUrl",
    "headers",
    "headersHelper",
    "oauth",
    "timeout",
    "tools",
    "includeTools",
    "excludeTools",
    "trust",
    "alwaysLoad",
    "description",
    "_meta",
    "transport",
    "disabled",
    "enabled",
    "autoApprove",
    "alwaysAllow",
    "auth",
    // The names that Goose gives to three of the keys above.
    "cmd",
    "envs",
    "uri",
];

/// The keys that name the program of a server, or its address.
const WAYS: [&str; 5] = ["command", "cmd", "url", "httpUrl", "uri"];

/// An error in a server.
#[derive(Debug, PartialEq)]
pub(crate) struct WrongServer {
    /// The key with the error, or `None` if the server as a whole has it.
    pub(crate) key: Option<String>,
    /// True if it is about several keys, which may be in several files.
    pub(crate) is_of_several: bool,
    pub(crate) message: String,
    pub(crate) help: String,
}

const HELP: &str = "write `command: …` for a server that the agent starts, or `type: http` and `url: …`";

/// Returns the errors of a server that is a map. If `is_whole` is false, another file may hold its other keys.
pub(crate) fn wrong(server: &Value, is_whole: bool) -> Vec<WrongServer> {
    let Some(map) = server.as_object() else { return Vec::new() };
    let at = |key: Option<&str>, message: String, help: &str| WrongServer {
        key: key.map(str::to_owned),
        is_of_several: false,
        message,
        help: help.to_owned(),
    };
    let mut found: Vec<WrongServer> = unknown(map)
        .filter(|key| is_nearly_known(key))
        .map(|key| {
            let message = format!("unknown key `{}` of an MCP server", words::short(key));
            at(Some(key), message, &words::known_words(key, &KEYS, "keys of a server"))
        })
        .collect();
    for key in WAYS {
        match map.get(key) {
            Some(Value::String(text)) if text.trim().is_empty() => {
                found.push(at(Some(key), format!("`{key}` of an MCP server is empty"), HELP));
            }
            Some(value) if !value.is_string() => {
                found.push(at(Some(key), format!("`{key}` of an MCP server must be a text"), HELP));
            }
            _ => {}
        }
    }
    match (map.contains_key("command"), map.contains_key("url")) {
        (true, true) => {
            let message = "an MCP server has both `command` and `url`".to_owned();
            found.push(WrongServer { is_of_several: true, ..at(Some("url"), message, "keep one of them") });
        }
        // An agent may read the way to the server from a key that is not known here.
        (false, false)
            if is_whole
                && found.is_empty()
                && unknown(map).next().is_none()
                && !WAYS.iter().any(|key| map.contains_key(*key)) =>
        {
            let message = "an MCP server has neither `command` nor `url`".to_owned();
            found.push(WrongServer { is_of_several: true, ..at(None, message, HELP) });
        }
        _ => {}
    }
    found
}

/// Returns a note for each server of a case with keys that are not known here, which agents get as they are.
pub(crate) fn notes(case: &Case) -> Vec<String> {
    let notes = case.mcp_servers.iter().filter_map(|server| {
        let map = server.as_object()?;
        let keys: Vec<String> = unknown(map).map(|key| format!("`{}`", words::short(key))).collect();
        let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
        let shown = case.shown().display();
        (!keys.is_empty()).then(|| {
            format!(
                "{shown}: the MCP server `{}` has keys that evals does not know, and that agents get as they are: {}",
                words::short(name),
                keys.join(", ")
            )
        })
    });
    notes.collect()
}

fn unknown(server: &Map<String, Value>) -> impl Iterator<Item = &String> {
    server.keys().filter(|key| !KEYS.contains(&key.as_str()))
}

/// Returns true if a key is probably a known one with a typing error. A known key in another style or with an addition, such as
/// `http_url` and `timeoutMs`, may be a key of an agent.
fn is_nearly_known(key: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    KEYS.iter().any(|known| {
        let most = if known.len() < 6 { 1 } else { 2 };
        let is_other_style = key.contains(['_', '-']) && plain(key) == plain(known);
        let is_longer = key.strip_prefix(known).is_some_and(|added| added.chars().count() > 1);
        let edits = strsim::osa_distance(&key.to_lowercase(), &known.to_lowercase());
        !is_other_style && !is_longer && edits <= most
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_has_known_keys_and_one_way_to_it() {
        for server in [
            json!({"name": "a", "command": "serve", "args": ["-x"], "env": {"A": "1"}}),
            json!({"name": "a", "type": "http", "url": "http://x", "headers": {"K": "v"}}),
            json!({"name": "a", "httpUrl": "http://x", "disabled": false, "autoApprove": ["read"]}),
            json!({"name": "a", "command": "serve", "http_url": "x", "envFile": ".env", "timeoutMs": 9}),
            json!({"name": "a", "serverUrl": "http://x"}),
        ] {
            assert_eq!(wrong(&server, true), [], "{server}");
        }
        for (server, why) in [
            (json!({"name": "a", "comand": "serve"}), "unknown key `comand`"),
            (json!({"name": "a", "command": "serve", "Args": []}), "unknown key `Args`"),
            (json!({"name": "a", "httpUrl": ""}), "`httpUrl` of an MCP server is empty"),
            (json!({"command": " "}), "`command` of an MCP server is empty"),
            (json!({"command": ["serve"]}), "`command` of an MCP server must be a text"),
            (json!({"command": "serve", "url": "http://x"}), "both `command` and `url`"),
            (json!({"name": "a"}), "neither `command` nor `url`"),
        ] {
            let found = wrong(&server, true);
            assert!(found.len() == 1 && found[0].message.contains(why), "{server}: {found:?}");
        }
        assert_eq!(wrong(&json!({"env": {"A": "1"}}), false), [], "the suite has the command");
    }
}
