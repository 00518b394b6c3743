//! Builds the command line of an agent: its manifest's words with placeholders replaced, and the model.

use crate::environment::Placeholders;
use crate::harness::{Manifest, ModelVia};
use crate::project;
use crate::text::{first_chars, marked, one_line};

/// The place of the model in a command.
const MODEL: &str = "{model}";

/// The maximum number of characters of an argument that a message quotes.
const MAX_QUOTED_CHARS: usize = 80;

/// Returns program and arguments, ready to run. A relative path to the program is resolved from the project's root,
/// if it exists there.
pub fn line(manifest: &Manifest, placeholders: &Placeholders) -> Vec<String> {
    let mut words = filled(manifest, placeholders);
    if let Some(program) = words.first_mut().filter(|program| program.contains('/'))
        && let path = project::root().join(&*program)
        && path.is_file()
    {
        *program = path.to_string_lossy().into_owned();
    }
    words
}

fn filled(manifest: &Manifest, placeholders: &Placeholders) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut end = None;
    let on_stdin = manifest.gives_on_stdin(&placeholders.prompt);
    for word in &manifest.command {
        if on_stdin && word == "{prompt}" {
            continue;
        }
        if word == "--" {
            end.get_or_insert(words.len());
        }
        if placeholders.model.is_none() && is_model_alone(word) {
            // Without a model, the flag of the argument is removed as well. It would take the next argument.
            if !word.starts_with('-') && words.len() > 1 && words.last().is_some_and(|flag| takes_value(flag)) {
                words.pop();
            }
            continue;
        }
        words.push(placeholders.fill(word));
    }
    // At the end: the program's first words may be a runner's, a script's or a subcommand's.
    let end = end.unwrap_or(words.len());
    words.splice(end..end, flags(manifest, placeholders));
    words
}

/// Checks that the command of an agent can be made without a model.
///
/// # Errors
/// Returns the reason why the command needs a model.
pub fn check_without_model(manifest: &Manifest) -> Result<(), String> {
    let Some(argument) = needs_model(manifest) else { return Ok(()) };
    let (name, argument) = (&manifest.name, quoted(argument));
    let way_out = match manifest.model_selection() {
        true => "pass --model, or set `default` under `model` in its manifest",
        false => "write `model: {via: flag}` in its manifest, and pass --model",
    };
    Err(format!("harness `{name}` needs a model for the argument `{argument}` of its command: {way_out}"))
}

/// Returns the first argument of a command that holds the model's placeholder and cannot be left out, because it holds
/// more than a model's name, or is the program. Without a model, such a command cannot be made.
fn needs_model(manifest: &Manifest) -> Option<&str> {
    let mut words = manifest.command.iter().map(String::as_str).enumerate();
    let needed = words.find(|(at, word)| word.contains(MODEL) && (*at == 0 || !is_model_alone(word)));
    needed.map(|(_, word)| word)
}

/// Returns an argument as a message quotes it: one line, cut to a maximum.
fn quoted(argument: &str) -> String {
    let line = one_line(argument);
    marked(first_chars(&line, MAX_QUOTED_CHARS), &line)
}

/// Returns true if an argument is a value made of the model's placeholder and signs of a model's name: `openai/{model}`,
/// `--model={model}`. Anything else may hold more than the model: a script, a file of settings, the prompt.
fn is_model_alone(word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "/:=._-@+,[]".contains(c);
    word.contains(MODEL) && word.replace(MODEL, "").chars().all(is_of_name)
}

/// Returns true if a word of the command may be a flag whose value is the next word.
fn takes_value(word: &str) -> bool {
    word.starts_with('-') && word != "--" && !word.contains('=')
}

/// Returns the flags of the agent. The file of MCP servers comes last, because a flag for several files takes
/// all words after it.
fn flags(manifest: &Manifest, placeholders: &Placeholders) -> Vec<String> {
    let named = manifest.command.iter().any(|word| word.contains(MODEL));
    let by_flag = manifest.model.via == ModelVia::Flag && !named;
    let model = (manifest.model.flag.as_ref(), placeholders.model.as_ref().filter(|_| by_flag));
    let system_prompt = (manifest.system_prompt.flag.as_ref(), placeholders.system_prompt.as_ref());
    let servers = manifest.mcp_servers.as_ref().and_then(|route| route.flag.as_ref());
    let all = [model, system_prompt, (servers, placeholders.servers_file.as_ref())];
    let pairs = all.into_iter().filter_map(|(flag, value)| Some([flag?.clone(), value?.clone()]));
    pairs.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Adapter;
    use crate::harness::{ServersRoute, ServersVia, SystemPromptRoute, SystemPromptVia};

    fn of(command: &[&str], flag: Option<&str>, model: Option<&str>) -> Vec<String> {
        let mut manifest = Manifest::bare(Adapter::OutputOnly);
        manifest.command = command.iter().map(|word| (*word).to_owned()).collect();
        manifest.model.via = ModelVia::Flag;
        manifest.model.flag = flag.map(str::to_owned);
        let model = model.map(str::to_owned);
        line(&manifest, &Placeholders { prompt: "-- do it".into(), model, ..Default::default() })
    }

    #[test]
    fn a_model_s_flag_stands_at_the_end_but_before_what_is_no_flag_any_more() {
        assert_eq!(of(&["npx", "agent", "{prompt}"], Some("-m"), Some("x")), ["npx", "agent", "-- do it", "-m", "x"]);
        assert_eq!(of(&["agent", "--", "{prompt}"], Some("-m"), Some("x")), ["agent", "-m", "x", "--", "-- do it"]);
        assert_eq!(of(&["agent", "{prompt}"], Some("-m"), None), ["agent", "-- do it"]);
    }

    #[test]
    fn system_prompt_and_servers_have_flags_too() {
        let mut manifest = Manifest::bare(Adapter::ClaudeCodeStream);
        manifest.command = ["claude", "-p", "{prompt}", "--", "x"].map(str::to_owned).to_vec();
        manifest.system_prompt = SystemPromptRoute { via: SystemPromptVia::Flag, flag: Some("--system".into()) };
        manifest.mcp_servers = Some(ServersRoute {
            via: ServersVia::Flag,
            flag: Some("--mcp".into()),
            transports: Vec::new(),
            listed: None,
            built_in: Vec::new(),
        });
        let mut placeholders = Placeholders { prompt: "--".into(), ..Default::default() };
        assert_eq!(line(&manifest, &placeholders), ["claude", "-p", "--", "--", "x"]);
        placeholders.system_prompt = Some("Be brief.".into());
        placeholders.servers_file = Some("/home/servers.json".into());
        let flags = ["--system", "Be brief.", "--mcp", "/home/servers.json"];
        assert_eq!(line(&manifest, &placeholders), [&["claude", "-p", "--"], &flags[..], &["--", "x"]].concat());
    }

    #[test]
    fn a_prompt_that_looks_like_an_option_is_none_to_pi_and_qwen() {
        let of = |harness: &str, prompt: &str| {
            let manifest = crate::harness::built_in::named(harness).unwrap();
            let words = line(manifest, &Placeholders { prompt: prompt.into(), ..Default::default() });
            (words.last().cloned().unwrap(), manifest.gives_on_stdin(prompt))
        };
        for prompt in ["do it", "--- a", "a -x", " @a"] {
            assert_eq!(of("pi", prompt), (prompt.to_owned(), false));
        }
        for prompt in ["- a", "-", "--yes", "--", "@a"] {
            assert_eq!(of("pi", prompt), ("-p".to_owned(), true), "{prompt}");
        }
        assert_eq!(of("qwen-stream", "- a"), ("--prompt=\"- a\"".to_owned(), false));
        // OpenCode puts an argument with blanks in quotes.
        assert!(of("opencode-stream", "Say \"hello world\".").1);
    }

    #[test]
    fn a_model_s_own_place_is_kept_and_left_out_without_a_model() {
        let command = ["agent", "-m", "{model}", "--is={model}", "{prompt}"];
        assert_eq!(of(&command, Some("-m"), Some("x")), ["agent", "-m", "x", "--is=x", "-- do it"]);
        assert_eq!(of(&command, None, None), ["agent", "-- do it"]);
        assert_eq!(of(&["agent", "use", "{model}"], None, None), ["agent", "use"]);
        for word in ["openai/{model}", "model={model}"] {
            let command = ["agent", "--model", word, "--message={prompt}"];
            assert_eq!(of(&command, None, None), ["agent", "--message=-- do it"]);
            assert_eq!(of(&command, None, Some("x"))[2], word.replace("{model}", "x"));
        }
        for flag in ["--", "--quiet=yes"] {
            assert_eq!(of(&["agent", flag, "{model}"], None, None), ["agent", flag]);
        }
    }

    #[test]
    fn only_a_model_s_name_is_left_out_and_any_other_argument_needs_a_model() {
        let needed = |command: &[&str]| {
            let mut manifest = Manifest::bare(Adapter::OutputOnly);
            manifest.command = command.iter().map(|word| (*word).to_owned()).collect();
            needs_model(&manifest).map(str::to_owned)
        };
        for word in ["{model}", "openai/{model}", "{model}:free", "--model={model}", "model={model}", "{model}[1m]"] {
            assert_eq!(needed(&["agent", "-m", word]), None, "{word}");
        }
        for word in [
            "my-agent --model \"{model}\"",
            "agent;{model}",
            "{\"model\":\"{model}\"}",
            "model={model} task={prompt}",
            "{model}/{workspace}",
            "-c\tmodel={model}",
        ] {
            assert_eq!(needed(&["bash", "-c", word]).as_deref(), Some(word));
            // The flag before the argument stays.
            assert_eq!(of(&["bash", "-c", word], None, None)[..2], ["bash", "-c"], "{word}");
        }
        assert_eq!(needed(&["agent-{model}", "{prompt}"]).as_deref(), Some("agent-{model}"));
        for manifest in crate::harness::built_in::built_in() {
            assert_eq!(needs_model(manifest), None, "{}", manifest.name);
        }
    }
}
