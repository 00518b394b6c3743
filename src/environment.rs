//! The environment of a trial: only an allow-list, the variables of manifest and case, and a private home.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::case::{Case, WorkspaceSource};
use crate::gateway::upstream::service_secrets;
use crate::harness::login::named_in_files;
use crate::harness::login_secrets::{self, Unread};
use crate::harness::{Home, Manifest, PLACEHOLDER_KEY};
use crate::own_environment::is_allowed;
use crate::project;
use crate::sandbox::TEMPORARY;
use crate::secrets::servers::named_values;
use crate::secrets::urls::UrlSecret;
use crate::secrets::{Masker, looks_secret, url_credentials};
use crate::workspace::git_source::{GitRepository, GitSource};

/// The values of a trial for the placeholders in commands.
#[derive(Debug, Clone, Default)]
pub struct Placeholders {
    /// The first prompt.
    pub prompt: String,
    /// The requested model.
    pub model: Option<String>,
    pub workspace: String,
    /// The private home.
    pub home: String,
    /// The trial's folder for temporary files.
    pub scratch: String,
    /// The address of the model server on loopback, if the trial has one.
    pub gateway: Option<String>,
    /// The path of this program.
    pub this_program: String,
    /// Scripts of the demo agent beside the case, by variant: `{script}` has no variant, `{script:x}` has `x`.
    pub scripts: BTreeMap<String, String>,
    /// The file with the first prompt, for agents that read their prompt from a file.
    pub prompt_file: Option<String>,
    /// The case's system prompt, for agents that take it as a flag.
    pub system_prompt: Option<String>,
    /// The file with the case's MCP servers, for agents that take it as a flag.
    pub servers_file: Option<String>,
    /// The folder of the manifest, if it was read from a file.
    pub manifest_dir: Option<String>,
}

impl Placeholders {
    /// Replaces each placeholder in a text once. Placeholders in the inserted values are not replaced.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let found = rest[1..].split_once('}').and_then(|(word, after)| Some((self.value(word)?, after)));
            match found {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    fn value(&self, word: &str) -> Option<&str> {
        match word {
            "prompt" => Some(self.prompt_file.as_ref().unwrap_or(&self.prompt)),
            "model" => self.model.as_deref(),
            "workspace" => Some(&self.workspace),
            "home" => Some(&self.home),
            "gateway" => self.gateway.as_deref(),
            "key" => self.gateway.as_ref().map(|_| PLACEHOLDER_KEY),
            "self" => Some(&self.this_program),
            "project" => project::root().to_str(),
            "manifest-dir" => self.manifest_dir.as_deref(),
            "script" => self.scripts.get("").map(String::as_str),
            _ => self.scripts.get(word.strip_prefix("script:")?).map(String::as_str),
        }
    }
}

/// Returns the variables of the allow-list that the engine's environment contains.
pub fn allowed(engine: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    engine.iter().filter(|(name, _)| is_allowed(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the home of the user who runs this program.
fn user_home(engine: &BTreeMap<String, String>) -> Option<PathBuf> {
    engine.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// Returns the complete environment of an agent. `passed` names variables that the user passes on for this run.
pub fn of_agent(
    engine: &BTreeMap<String, String>,
    manifest: &Manifest,
    case: &BTreeMap<String, String>,
    passed: &[String],
    placeholders: &Placeholders,
) -> BTreeMap<String, String> {
    let mut env = of_commands(engine, &BTreeMap::new(), &placeholders.home, &placeholders.scratch);
    let named = named_in_files(manifest, user_home(engine).as_deref());
    let pass = |names: &[String], env: &mut BTreeMap<String, String>| {
        for name in names {
            if let Some(value) = engine.get(name) {
                env.insert(name.clone(), value.clone());
            }
        }
    };
    pass(&manifest.env.pass, &mut env);
    pass(&named, &mut env);
    if manifest.home == Home::Named(crate::harness::HomeName::User)
        && let Some(home) = engine.get("HOME")
    {
        env.insert("HOME".to_owned(), home.clone());
    }
    for (name, value) in &manifest.env.set {
        env.insert(name.clone(), placeholders.fill(value));
    }
    // Variables that the user names for this run override the manifest.
    pass(passed, &mut env);
    if let (crate::harness::ModelVia::Env, Some(name), Some(model)) =
        (manifest.model.via, &manifest.model.env, &placeholders.model)
    {
        env.insert(name.clone(), model.clone());
    }
    env.extend(case.iter().map(|(name, value)| (name.clone(), value.clone())));
    if matches!(manifest.home, Home::Private(_)) {
        // Last: no variable above may replace the private home.
        env.insert("HOME".to_owned(), placeholders.home.clone());
    }
    env
}

/// Returns the environment of setup and grading commands: the allow-list, the case's variables, and a home.
pub fn of_commands(
    engine: &BTreeMap<String, String>,
    case: &BTreeMap<String, String>,
    home: &str,
    scratch: &str,
) -> BTreeMap<String, String> {
    let mut env = allowed(engine);
    env.extend(TEMPORARY.iter().map(|name| ((*name).to_owned(), scratch.to_owned())));
    env.insert("HOME".to_owned(), home.to_owned());
    env.extend(case.iter().map(|(name, value)| (name.clone(), value.clone())));
    env
}

/// Settings of git that run programs. An agent can write them into the repository of the workspace.
const GIT_PROGRAMS: [(&str, &str); 5] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
];

/// Keeps files that an agent left in the workspace from being run by the graders' commands: git ignores the machine's
/// settings and takes none of [`GIT_PROGRAMS`] from the repository, Python reads no compiled modules from the
/// workspace unless it ignores its variables (`-I`, `-E`), and npm looks for no new version of itself. Variables that the
/// case sets are kept.
pub fn isolate_graders(env: &mut BTreeMap<String, String>, home: &Path) {
    env.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    let compiled = home.join(".cache/python").to_string_lossy().into_owned();
    env.entry("PYTHONPYCACHEPREFIX".to_owned()).or_insert(compiled);
    env.entry("GIT_CONFIG_NOSYSTEM".to_owned()).or_insert_with(|| "1".to_owned());
    // Otherwise, each first call of npm in a new home may look for a new version of npm, and change its cache.
    env.entry("NPM_CONFIG_UPDATE_NOTIFIER".to_owned()).or_insert_with(|| "false".to_owned());
    let own: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
    let set: Vec<String> =
        (0..own).filter_map(|n| env.get(&format!("GIT_CONFIG_KEY_{n}"))).map(|key| key.to_ascii_lowercase()).collect();
    let missing = GIT_PROGRAMS.iter().filter(|(key, _)| !set.contains(&key.to_ascii_lowercase()));
    let mut count = own;
    for (key, value) in missing {
        env.insert(format!("GIT_CONFIG_KEY_{count}"), (*key).to_owned());
        env.insert(format!("GIT_CONFIG_VALUE_{count}"), (*value).to_owned());
        count += 1;
    }
    env.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
}

/// Returns a masker for the secrets in the engine's environment, in the agent's environment, in the values that the
/// case gives, and in the login files that are copied to the agent's home. Passwords in URLs, such as the addresses of
/// proxies, are masked if the agent gets the variable or the setting.
///
/// # Errors
/// Returns an error if a login file exists and cannot be read, so its secrets would not be masked.
pub fn masker(
    engine: &BTreeMap<String, String>,
    agent: &BTreeMap<String, String>,
    manifest: &Manifest,
    given: &[(String, String)],
) -> Result<Masker, Unread> {
    let (masker, unread) = masker_of_what_is_known(engine, agent, manifest, given);
    unread.map_or(Ok(masker), Err)
}

/// Returns the masker without the secrets of unreadable login files, and the first of these files. The engine uses it
/// for its messages when no agent is run.
pub fn masker_of_what_is_known(
    engine: &BTreeMap<String, String>,
    agent: &BTreeMap<String, String>,
    manifest: &Manifest,
    given: &[(String, String)],
) -> (Masker, Option<Unread>) {
    let user = engine.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let given = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let home = user_home(engine);
    let found = login_secrets::in_login_files(manifest, home.as_deref());
    let in_files = found.secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let of_services = service_secrets(engine);
    let of_services = of_services.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let in_settings = named_in_files(manifest, home.as_deref());
    // A stored trial has no environment of its agent: the manifest names what the agent got.
    let passes = |name: &String| is_allowed(name) || manifest.env.pass.contains(name) || in_settings.contains(name);
    let passed = engine.iter().filter(|(name, _)| passes(name));
    // A manifest writes `{key}` for the key of a gateway, so the written value is not a secret.
    let set = manifest.env.set.iter().filter(|(_, value)| !value.contains("{key}"));
    let gets = passed.chain(set).chain(agent).map(|(name, value)| (name.as_str(), value.as_str()));
    let gets = gets.chain(given).chain(in_files.clone()).chain(of_services.clone());
    let mut named = manifest.env.secret.clone();
    named.extend(in_settings.iter().cloned());
    named.extend(in_files.chain(of_services).map(|(name, _)| name.to_owned()));
    (Masker::of_trial(user, gets, &named), found.unread)
}

/// Returns the named secrets that a case contains besides its environment: values for its MCP servers, and the
/// credentials in the URL of its repository.
pub fn given_by(case: &Case) -> Vec<(String, String)> {
    let mut given = named_values(&case.mcp_servers);
    if let WorkspaceSource::Git(GitSource { repository: GitRepository::Url(url), .. }) = &case.workspace.source {
        given.extend(UrlSecret::of(url).named().map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    given
}

/// Returns the names of secrets that the agent or its MCP servers get and that are too short to mask.
pub fn unmasked(
    masker: &Masker,
    agent: &BTreeMap<String, String>,
    manifest: &Manifest,
    servers: &[Value],
) -> Vec<String> {
    let servers = named_values(servers);
    let in_url = |name: &String| {
        let given = servers.iter().filter(|(given, _)| given == name).map(|(_, value)| value);
        agent.get(name).into_iter().chain(given).any(|value| !url_credentials(name, value).is_empty())
    };
    let secret = |name: &String| looks_secret(name) || manifest.env.secret.contains(name) || in_url(name);
    let gets = |name: &String| agent.contains_key(name) || servers.iter().any(|(given, _)| given == name);
    let mut names: Vec<String> = masker.too_short().iter().filter(|name| gets(name) && secret(name)).cloned().collect();
    names.sort();
    names.dedup();
    names
}

/// Fills a private home with the existing files from the user's home, and with the files of the manifest.
///
/// # Errors
/// Returns an error if a file cannot be copied or written.
pub fn fill_home(
    home: &Path,
    user_home: Option<&Path>,
    manifest: &Manifest,
    placeholders: &Placeholders,
) -> io::Result<()> {
    if let (Home::Private(private), Some(user)) = (&manifest.home, user_home) {
        for name in &private.copy {
            let (from, to) = (user.join(name), home.join(name));
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            if from.is_dir() {
                crate::workspace::copy_folder(&from, &to, true).map_err(io::Error::other)?;
            } else if from.is_file() {
                fs::copy(&from, &to)?;
            }
        }
    }
    for (name, text) in &manifest.files {
        let path = home.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, placeholders.fill(text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Adapter;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_agent_sees_the_allow_list_and_what_is_named() {
        let engine = map(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("https_proxy", "p"),
            ("HOME", "/home/me"),
            ("SSH_AUTH_SOCK", "s"),
            ("MY_API_KEY", "secret-value"),
            ("OTHER", "x"),
        ]);
        let mut manifest = Manifest::bare(Adapter::Acp);
        manifest.env.pass = vec!["MY_API_KEY".into()];
        manifest.env.set = map(&[("AT", "{workspace}/{nothing}")]);
        let placeholders = Placeholders {
            workspace: "/ws".into(),
            home: "/private".into(),
            scratch: "/scratch".into(),
            ..Default::default()
        };
        let env = of_agent(
            &engine,
            &manifest,
            &map(&[("CASE", "1")]),
            &["OTHER".to_owned(), "GONE".to_owned()],
            &placeholders,
        );
        let expected = map(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("https_proxy", "p"),
            ("HOME", "/private"),
            ("TMPDIR", "/scratch"),
            ("TMP", "/scratch"),
            ("TEMP", "/scratch"),
            ("MY_API_KEY", "secret-value"),
            ("AT", "/ws/{nothing}"),
            ("CASE", "1"),
            ("OTHER", "x"),
        ]);
        assert_eq!(env, expected);
        assert_eq!(
            masker(&engine, &env, &manifest, &[]).unwrap().mask("a secret-value b"),
            "a [redacted:MY_API_KEY] b"
        );
    }

    #[test]
    fn no_variable_replaces_a_private_home() {
        let engine = map(&[("HOME", "/home/me")]);
        let mut manifest = Manifest::bare(Adapter::Acp);
        manifest.env.pass = vec!["HOME".into()];
        manifest.env.set = map(&[("HOME", "/of-the-manifest")]);
        let placeholders = Placeholders { home: "/private".into(), ..Default::default() };
        let home = |manifest: &Manifest| {
            let env = of_agent(&engine, manifest, &BTreeMap::new(), &["HOME".to_owned()], &placeholders);
            env.get("HOME").cloned()
        };
        assert_eq!(home(&manifest).as_deref(), Some("/private"));
        manifest.home = Home::Named(crate::harness::HomeName::User);
        assert_eq!(home(&manifest).as_deref(), Some("/home/me"));
    }

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        let placeholders =
            Placeholders { prompt: "say {model} {self}".into(), model: Some("m".into()), ..Default::default() };
        assert_eq!(placeholders.fill("{prompt} {model} {x"), "say {model} {self} m {x");
    }
}
