//! The command line of an agent: its manifest's words with everything in its place, and the model where it takes one.

use std::path::Path;

use crate::environment::Placeholders;
use crate::harness::{Manifest, ModelVia};

/// Program and arguments, ready to run. A path to the program counts from where the command runs, if it is there.
pub fn line(manifest: &Manifest, placeholders: &Placeholders) -> Vec<String> {
    let mut words = filled(manifest, placeholders);
    if let Some(program) = words.first_mut().filter(|program| program.contains('/'))
        && Path::new(program).is_file()
        && let Ok(path) = std::path::absolute(&*program)
    {
        *program = path.to_string_lossy().into_owned();
    }
    words
}

fn filled(manifest: &Manifest, placeholders: &Placeholders) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in &manifest.command {
        if word.contains("{model}") && placeholders.model.is_none() {
            // Without a model there is nothing to say of one: its flag goes with it.
            if word == "{model}" && words.len() > 1 && words.last().is_some_and(|flag| flag.starts_with('-')) {
                words.pop();
            }
            continue;
        }
        words.push(placeholders.fill(word));
    }
    let named = manifest.command.iter().any(|word| word.contains("{model}"));
    if let (ModelVia::Flag, Some(flag), Some(model), false) =
        (manifest.model.via, &manifest.model.flag, &placeholders.model, named)
    {
        // At the end: the program's first words may be a runner's, a script's or a subcommand's.
        let end = manifest.command.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(end..end, [flag.clone(), model.clone()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapter;

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
    fn a_model_s_own_place_is_kept_and_left_out_without_a_model() {
        let command = ["agent", "-m", "{model}", "--is={model}", "{prompt}"];
        assert_eq!(of(&command, Some("-m"), Some("x")), ["agent", "-m", "x", "--is=x", "-- do it"]);
        assert_eq!(of(&command, None, None), ["agent", "-- do it"]);
        assert_eq!(of(&["agent", "use", "{model}"], None, None), ["agent", "use"]);
    }
}
