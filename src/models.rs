//! Compares names of models: a case requests a model by one name, and the agent may report another.

use std::borrow::Cow;

/// Names that leave the choice to the agent: any answering model is the requested one.
const ANY: [&str; 4] = ["default", "auto", "best", "opusplan"];
/// Words with which agents state the reasoning effort.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// Returns true if the agent's name for its model can be the requested model. Names may differ in the provider
/// (`openai/gpt-5`), in the date (`claude-haiku-4-5-20251001`) and in effort or variant (`gpt-5[high]`, `opus[1m]`),
/// if one of the two omits it. The name of a family (`haiku`) matches each of its versions.
pub fn same(requested: &str, effective: &str) -> bool {
    if ANY.iter().any(|any| requested.trim().eq_ignore_ascii_case(any)) {
        return true;
    }
    let (requested, effective) = (Name::of(requested), Name::of(effective));
    let fits = |requested: &Option<String>, effective: &Option<String>| {
        requested.is_none() || effective.is_none() || requested == effective
    };
    fits(&requested.variant, &effective.variant)
        && fits(&requested.date, &effective.date)
        && fits(&requested.release, &effective.release)
        && (requested.words == effective.words
            || requested.is_end_of(&effective)
            || effective.is_end_of(&requested)
            || requested.is_family_of(&effective)
            || effective.is_family_of(&requested))
}

/// The parts of a model's name.
struct Name {
    /// The words and numbers in lower case, including the provider's, without a trailing date.
    words: Vec<String>,
    /// The number of words that may be the provider's, for each position where a provider's name may end.
    providers: Vec<usize>,
    /// The effort or variant, from brackets or after a `/`.
    variant: Option<String>,
    /// The digits of the date.
    date: Option<String>,
    /// A provider's release, such as `v1`.
    release: Option<String>,
}

impl Name {
    fn of(text: &str) -> Self {
        let mut text = Cow::from(text.trim().to_ascii_lowercase());
        // A remark for people, such as `mock-model(openai)`.
        if let Some(open) = text.rfind('(').filter(|open| *open > 0 && text.ends_with(')')) {
            text = text[..open].trim_end().to_owned().into();
        }
        let mut variant = None;
        if let Some(open) = text.rfind('[').filter(|open| *open > 0 && text.ends_with(']')) {
            variant = Some(text[open + 1..text.len() - 1].to_owned());
            text = text[..open].trim_end().to_owned().into();
        } else if let Some((name, last)) = text.rsplit_once('/')
            && EFFORTS.contains(&last)
        {
            variant = Some(last.to_owned());
            text = name.to_owned().into();
        }
        // Bedrock's `-v1:0`.
        if let Some((name, number)) = text.rsplit_once(':')
            && is_number(number, 1)
            && name.rsplit('-').next().is_some_and(is_release)
        {
            text = name.to_owned().into();
        }
        let mut words = Vec::new();
        let mut providers = Vec::new();
        let mut only_words = true;
        for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            if !word.is_empty() {
                words.push(word.to_owned());
                only_words &= !word.contains(|c: char| c.is_ascii_digit());
            }
            // A point ends a provider's name only if no version precedes it: `us.anthropic.claude-opus-4.8`.
            match piece.chars().last() {
                Some('/' | ':' | '|') => providers.push(words.len()),
                Some('.') if only_words => providers.push(words.len()),
                _ => {}
            }
        }
        let (mut date, mut release) = (None, None);
        while words.len() > 1 && words.last().is_some_and(|word| is_release(word)) {
            match words.pop() {
                Some(word) if word.starts_with('v') => release = Some(word),
                Some(word) if word != "latest" => date = Some(word),
                _ => {}
            }
        }
        // A date in three parts: 2025-08-07.
        if let [.., year, month, day] = words.as_slice()
            && words.len() > 3
            && is_number(year, 4)
            && is_number(month, 2)
            && is_number(day, 2)
        {
            date = Some(format!("{year}{month}{day}"));
            words.truncate(words.len() - 3);
        }
        Self { words, providers, variant, date, release }
    }

    /// Returns true if the other name is this name with a provider's name before it.
    fn is_end_of(&self, other: &Self) -> bool {
        let Some(rest) = other.words.len().checked_sub(self.words.len()) else { return false };
        rest > 0 && other.providers.contains(&rest) && other.words.ends_with(&self.words)
    }

    /// Returns true if this is the name of a family, without a version, and the other is one of its versions.
    fn is_family_of(&self, other: &Self) -> bool {
        let is_number = |word: &&String| word.contains(|c: char| c.is_ascii_digit());
        if self.words.is_empty()
            || self.release.is_some()
            || self.words.iter().any(|word| is_number(&word))
            || !other.words.iter().any(|word| is_number(&word))
        {
            return false;
        }
        let mut plain: Vec<&String> = other.words.iter().filter(|word| !is_number(word)).collect();
        while plain.len() > 1 && plain.last().is_some_and(|word| *word == "preview") {
            plain.pop();
        }
        // A word after the family's last word makes it another family: `flash-lite` is not `flash`.
        plain.last() == self.words.last().as_ref() && is_within(&self.words, &plain)
    }
}

/// Returns true if `among` contains all of these words, in the same order.
fn is_within(words: &[String], among: &[&String]) -> bool {
    let mut among = among.iter();
    words.iter().all(|word| among.any(|other| *other == word))
}

/// Returns true if a word marks a release by a provider, which does not change the model.
fn is_release(word: &str) -> bool {
    let number = word.strip_prefix('v').is_some_and(|number| number.len() == 1 && is_number(number, 1));
    word == "latest" || number || is_number(word, 8)
}

fn is_number(word: &str, length: usize) -> bool {
    word.len() == length && word.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_model() {
        for (requested, effective) in [
            ("haiku", "claude-haiku-4-5-20251001"),
            ("haiku", "claude-3-5-haiku-20241022"),
            ("opus", "claude-opus-4-8"),
            ("opus[1m]", "claude-opus-4-8[1m]"),
            ("opus", "claude-opus-4-8[1m]"),
            ("Opus", "Claude Opus 4.8"),
            ("claude-opus-4-8", "Claude Opus 4.8"),
            ("claude-haiku-4-5-20251001", "haiku"),
            ("claude-haiku-4-5", "claude-haiku-4-5-20251001"),
            ("claude-haiku-4-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
            ("haiku", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
            ("claude-sonnet-4-5", "claude-sonnet-4-5@20250929"),
            ("openai/gpt-5.1", "gpt-5.1"),
            ("gpt-5.1", "openrouter/openai/gpt-5.1"),
            ("gpt-5.1[high]", "gpt-5.1"),
            ("gpt-5.1-codex/high", "gpt-5.1-codex[high]"),
            ("gpt-5", "gpt-5-2025-08-07"),
            ("gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("flash", "gemini-3-flash-preview"),
            ("mock-model", "$runtime|openai|mock-model(openai)"),
            ("mistral-large", "mistral-large-latest"),
            ("default", "anything"),
            ("auto", "claude-opus-4-8"),
            ("m", "m"),
            ("M/1", "m/1"),
        ] {
            assert!(same(requested, effective), "{requested} and {effective}");
        }
    }

    #[test]
    fn names_of_two_models() {
        for (requested, effective) in [
            ("haiku", "claude-opus-4-8"),
            ("opus", "default"),
            ("claude-opus-4-8", "default"),
            ("gpt-5", "gpt-5-mini"),
            ("gpt-5", "gpt-5.1"),
            ("gpt-5.1", "gpt-51"),
            ("gpt-5[high]", "gpt-5[low]"),
            ("gpt-5/high", "gpt-5[low]"),
            ("a/m", "b/m"),
            ("gemini-flash", "gemini-2.5-flash-lite"),
            ("claude-opus-4-1", "claude-opus-4-8"),
            ("claude-haiku-4-5", "claude-opus-4-5"),
            ("good", "not-good"),
            ("model-2", "other-model-2"),
            ("asked-for", "another"),
            ("m", ""),
            ("m", "mm"),
            ("gpt-4", "gpt-4o"),
            ("claude-3-5-sonnet-20240620", "claude-3-5-sonnet-20241022"),
            ("gpt-4o-2024-05-13", "gpt-4o-2024-11-20"),
            ("deepseek-v3", "deepseek-v2"),
            ("deepseek-v3", "deepseek-v3.1"),
        ] {
            assert!(!same(requested, effective), "{requested} and {effective}");
        }
    }
}
