//! Splits a command line at its operators into simple commands as they are written. Pure.

use super::tokens::{Operator, Piece, Token, Way, Word, split};

/// A simple command of a command line, and the operator behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The command as it is written, with parentheses beside it, and without the lines of a here-document.
    pub text: String,
    /// The words without their quotes. What a shell would replace is shown as `$NAME`, `${NAME…}` or `$(…)`. A redirection of
    /// the input is two words: `<` and the file. Of a text as the input, it is one: `<<` or `<<<`.
    pub words: Vec<String>,
    /// The operator behind the command; a line feed counts as one.
    pub after: Option<&'static str>,
    /// True if a redirection writes a file other than `/dev/null`.
    pub writes_file: bool,
    /// True if there are parentheses, braces or substitutions outside quotes.
    pub is_compound: bool,
    /// The text that the command gets as its input: a here-document or a here-string.
    pub input: Option<String>,
    /// True if the command has a here-document.
    pub has_document: bool,
    /// True if the command has a form that Bash knows and `sh` reads differently: `$'…'`, `&>` or `<<<`.
    pub is_of_bash: bool,
}

/// Splits a command line at its operators. Returns `None` if shells read the line in different ways, or if it is nested too deeply.
/// Commands within substitutions are part of their word.
pub fn simple_commands(line: &str) -> Option<Vec<SimpleCommand>> {
    let read = split(line, 0);
    if read.is_cut {
        return None;
    }
    let mut commands = Vec::new();
    let mut open = Open::default();
    for (token, place) in read.tokens.iter().zip(&read.places) {
        let written = line.get(place.clone()).unwrap_or_default();
        let operator = match token {
            Token::Operator(Operator::And) => Some("&&"),
            Token::Operator(Operator::Or) => Some("||"),
            Token::Operator(Operator::Pipe) => Some("|"),
            Token::Operator(Operator::Background) => Some("&"),
            Token::Operator(Operator::End) if written.starts_with('\n') => Some("\n"),
            Token::Operator(Operator::End | Operator::EndOfItem) => Some(";"),
            _ => None,
        };
        if operator.is_some() {
            commands.extend(open.ended(line, operator));
            continue;
        }
        let begin = open.place.map_or(place.start, |(begin, _)| begin);
        open.place = Some((begin, place.end));
        open.take(token, written);
    }
    commands.extend(open.ended(line, None));
    Some(commands)
}

/// A command of which more may follow.
#[derive(Default)]
struct Open {
    command: SimpleCommand,
    /// The begin and the end of its text.
    place: Option<(usize, usize)>,
}

impl Open {
    fn take(&mut self, token: &Token, written: &str) {
        let command = &mut self.command;
        match token {
            Token::Word(word) => {
                let shown = shown(word);
                command.is_compound |= word.pieces.iter().any(groups);
                command.is_of_bash |= written.contains("$'") && !shown.contains('$');
                command.words.push(shown);
            }
            Token::Redirection(redirection) => {
                let target = shown(&redirection.target);
                command.is_of_bash |= written.starts_with("&>") || written.contains("<<<");
                match redirection.way {
                    Way::From => command.words.extend(["<".to_owned(), target]),
                    Way::To | Way::Append => command.writes_file |= target != "/dev/null",
                    Way::Text => {
                        let is_document = !written.contains("<<<");
                        command.has_document |= is_document;
                        command.words.push(if is_document { "<<" } else { "<<<" }.to_owned());
                        command.input = Some(target);
                    }
                }
            }
            Token::Arithmetic(_) => {
                command.is_compound = true;
                command.words.push(written.to_owned());
            }
            Token::Operator(_) => command.is_compound = true,
            Token::Stream { .. } => {}
        }
    }

    /// Ends the command. Returns `None` if nothing was read.
    fn ended(&mut self, line: &str, after: Option<&'static str>) -> Option<SimpleCommand> {
        let Self { command, place } = std::mem::take(self);
        let (begin, end) = place?;
        let text = line.get(begin..end).unwrap_or_default().to_owned();
        Some(SimpleCommand { text, after, ..command })
    }
}

/// Returns true if a piece of a word has braces or a substitution outside quotes.
fn groups(piece: &Piece) -> bool {
    match piece {
        Piece::Text { text, is_quoted } => !is_quoted && text.contains(['{', '}']),
        Piece::Variable { is_changed, is_quoted, .. } => *is_changed && !is_quoted,
        Piece::Output { is_quoted, .. } => !is_quoted,
        Piece::Group { .. } => true,
    }
}

fn shown(word: &Word) -> String {
    word.pieces.iter().map(of_piece).collect()
}

fn of_piece(piece: &Piece) -> String {
    match piece {
        Piece::Text { text, .. } => text.clone(),
        Piece::Variable { name, is_changed: false, .. } => format!("${name}"),
        Piece::Variable { name, inner, .. } => format!("${{{name}{}}}", inner.iter().map(of_piece).collect::<String>()),
        Piece::Output { text, .. } => format!("$({text})"),
        Piece::Group { sign, text, .. } => format!("{sign}({text})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_at_its_operators() {
        let split = |line: &str| -> Vec<(String, Option<&str>)> {
            simple_commands(line).unwrap().into_iter().map(|it| (it.text, it.after)).collect()
        };
        let of = |parts: &[(&str, Option<&'static str>)]| -> Vec<(String, Option<&'static str>)> {
            parts.iter().map(|(text, after)| ((*text).to_owned(), *after)).collect()
        };
        for (line, expected) in [
            ("", &[][..]),
            ("&&", &[]),
            (
                "a 'b; c' && d \"e | f\" | g # h; i",
                &[("a 'b; c'", Some("&&")), ("d \"e | f\"", Some("|")), ("g", None)],
            ),
            ("# it's\na; b &\nc || d", &[("a", Some(";")), ("b", Some("&")), ("c", Some("||")), ("d", None)]),
            ("a 2>&1 >/dev/null;", &[("a 2>&1 >/dev/null", Some(";"))]),
            ("2>/dev/null a\nb", &[("2>/dev/null a", Some("\n")), ("b", None)]),
            ("(a b; c)", &[("(a b", Some(";")), ("c)", None)]),
            ("cat <<'E'\nit's; x\nE\na", &[("cat <<'E'", Some("\n")), ("a", None)]),
            ("a $(b; c) `d | e` && f", &[("a $(b; c) `d | e`", Some("&&")), ("f", None)]),
            ("a \\\n b", &[("a \\\n b", None)]),
        ] {
            assert_eq!(split(line), of(expected), "{line}");
        }
        // A shell without `$'…'` reads another line.
        assert_eq!(simple_commands(r"echo $'it\'s' && pytest -k 'a'"), None);
    }

    #[test]
    fn words_and_redirections_are_shown() {
        let one = |line: &str| simple_commands(line).unwrap().remove(0);
        for (line, words) in [
            (r#"a 'b c' "d\"e" f\ g"#, &["a", "b c", "d\"e", "f g"][..]),
            ("a $HOME/x \"${Y:-z}\" \"$(b c)\"", &["a", "$HOME/x", "${Y:-z}", "$(b c)"]),
            ("a < b 2>&1 > /dev/null", &["a", "<", "b"]),
        ] {
            let command = one(line);
            assert_eq!(command.words, words, "{line}");
            assert!(!command.writes_file && !command.is_compound, "{line}");
        }
        assert!(one("a > b").writes_file && one("a &> b").writes_file && !one("grep '>= 3' a").writes_file);
        for line in ["(a)", "a {b,c}", "a ${b:-c}", "a `b`", "a <(b)", "((a))"] {
            assert!(one(line).is_compound, "{line}");
        }
        assert_eq!(one("sh <<E\na; b\nE").input.as_deref(), Some("a; b\n"));
        assert_eq!(one("sh <<< 'a; b'").input.as_deref(), Some("a; b"));
        assert!(one("sh <<E\na\nE").has_document && !one("sh <<< a").has_document);
        for (line, is_of_bash) in
            [(r"echo $'it\'s'", true), ("a &> b", true), ("a <<< b", true), ("a 'b$' 2>&1", false)]
        {
            assert_eq!(one(line).is_of_bash, is_of_bash, "{line}");
        }
    }
}
