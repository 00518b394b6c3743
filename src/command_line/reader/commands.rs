//! One command: its words, its redirections, the programs that it runs, functions and aliases.

use std::mem;

use super::evaluated::{hides_value, is_declaration};
use super::groups::feeds;
use super::{MAX_COMMANDS, MAX_DEPTH, MAX_SHIFTED_ARGUMENTS, MAX_SOURCES_BYTES, Open, Reader, Source, Typed};
use crate::command_line::assignments::{Assignment, MAX_CHOSEN_VARIABLES, assignment_of_all};
use crate::command_line::code::{self, Call};
use crate::command_line::expanded::{Argument, Program, expand, joined, text_for_arithmetic};
use crate::command_line::powershell::{are_behind_value, is_comparison};
use crate::command_line::runners::{self, Inner};
use crate::command_line::tokens::{Piece, Redirection, Way, Word, is_name};
use crate::command_line::variables::{Value, Varying, has_code};
use crate::command_line::{Choice, Dialect, is_shell};

/// The maximum size in bytes of the texts of files that commands read or write.
const MAX_CONTENTS_BYTES: usize = 16 << 20;
/// The maximum number of commands of functions whose program is an argument.
const MAX_CALLED_COMMANDS: usize = 32;
/// The maximum size in bytes of the commands of a line.
const MAX_COMMANDS_BYTES: usize = 4 << 20;

/// Variables that tell programs which other programs to run.
const OF_COMMANDS: [&str; 24] = [
    "BROWSER",
    "EDITOR",
    "FCEDIT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "HGEDITOR",
    "KUBE_EDITOR",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PSQL_EDITOR",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SYSTEMD_EDITOR",
    "VISUAL",
];

/// Those of them that name a pager. For `cat`, the output is printed without a program.
const OF_PAGERS: [&str; 3] = ["GIT_PAGER", "MANPAGER", "PAGER"];

/// Programs that run no other program, whatever a variable names.
const ALONE: [&str; 24] = [
    "[", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "echo", "false", "grep", "head", "ls", "mkdir",
    "mv", "printf", "pwd", "rm", "tail", "test", "touch", "tr", "true", "wc",
];

/// The input and the output of a command, which are also those of the commands that it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    /// The redirections and the source in the normal form.
    pub(super) forms: Vec<String>,
    pub(super) source: Source,
    /// True if the source is a file that the line wrote before.
    pub(super) reads_file: bool,
    /// The file that gets the output.
    pub(super) written: Option<String>,
    /// True if the output is added to this file.
    pub(super) is_added: bool,
    /// True if a redirection replaces the input, false if it is from the terminal, absent if there is none.
    pub(super) feeds: Option<bool>,
    /// The text that a `<<<` of the command gives to it, if it is known.
    pub(super) given: Option<String>,
}

impl Reader {
    /// Reads a command with its words, and returns what it prints, if its words show it.
    pub(super) fn finish(&mut self, open: Open<'_>, source: &Source) -> Option<String> {
        if open.words.is_empty() && open.redirections.is_empty() {
            return None;
        }
        let is_around_fed = mem::replace(&mut self.is_fed, source.is_fed);
        let printed = self.finish_words(&open, source);
        self.is_fed = is_around_fed;
        printed
    }

    fn finish_words(&mut self, open: &Open<'_>, source: &Source) -> Option<String> {
        let words = open.words.as_slice();
        // Bash runs the commands of this file before those of a script.
        let mut begins = words.iter().filter_map(|word| word.pieces.first());
        if begins.any(|piece| matches!(piece, Piece::Text { text, .. } if text.starts_with("BASH_ENV="))) {
            self.cut();
        }
        let streams = self.streams_of(open, source);
        self.outputs_of_command(open, &streams);
        let assigned: Vec<_> = words.iter().map_while(|word| assignment_of_all(word, &mut self.variables)).collect();
        for word in words.iter().take(assigned.len()) {
            self.target(&text_for_arithmetic(&word.pieces));
        }
        let named = words.get(assigned.len()..).unwrap_or_default();
        self.found.others.extend(assigned.iter().map(|assignment| assignment.form.clone()));
        self.commands_of_variables(&assigned, named);
        if named.is_empty() {
            self.assign_alone(assigned, &streams);
            return None;
        }
        if named.first().and_then(|word| word.plain()).is_some_and(is_declaration) {
            self.declare(named);
        }
        let printed = self.each(named, &streams);
        self.read_into_variable(named, streams.given.as_deref());
        printed
    }

    /// Returns the input and the output of a command. `source` is its input without its redirections.
    fn streams_of(&mut self, open: &Open<'_>, source: &Source) -> Streams {
        let is_fed = open.is_fed;
        let mut streams = Streams { source: source.clone(), feeds: is_fed.then_some(true), ..Streams::default() };
        streams.source.is_fed |= is_fed;
        if open.reads_stream {
            let text = Some(runners::NOT_SHOWN.to_owned());
            streams.source = Source { form: None, text, is_fed: streams.source.is_fed };
        }
        for redirection in &open.redirections {
            self.redirect(redirection, &mut streams);
        }
        streams.forms.extend(streams.source.form.iter().map(|form| format!("<|{form}")));
        streams
    }

    /// Reads a redirection of a command, and adds it to the command's streams.
    fn redirect(&mut self, redirection: &Redirection, streams: &mut Streams) {
        if !has_reader(&redirection.target) {
            self.outputs(&redirection.target.pieces);
        }
        let target = expand(&redirection.target, &self.variables);
        let text = target.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let sign = match redirection.way {
            Way::From => "<",
            Way::To => ">",
            Way::Append => ">>",
            Way::Text => "<<<",
        };
        let texts = self.texts_of_target(redirection).unwrap_or_else(|| vec![text.clone()]);
        streams.forms.extend(texts.iter().map(|text| format!("{sign}{}", joined(text))));
        streams.feeds = feeds(redirection, &text).or(streams.feeds);
        let is_fed = streams.feeds.unwrap_or(streams.source.is_fed);
        match redirection.way {
            Way::Text => {
                streams.given = Some(text.clone()).filter(|_| target.iter().all(Argument::is_known));
                streams.source = Source { form: None, text: Some(text), is_fed };
            }
            Way::From => {
                let file = self.text_of_file(&text);
                streams.reads_file = file.is_some();
                let text = target.into_iter().next().and_then(|word| word.content).or(file);
                streams.source = Source { form: None, text, is_fed };
            }
            Way::To | Way::Append => {
                (streams.written, streams.is_added) = (Some(text), redirection.way == Way::Append);
            }
        }
    }

    /// Returns the names of a file that has one of several: it is shown with all of them.
    fn texts_of_target(&mut self, redirection: &Redirection) -> Option<Vec<String>> {
        let varying = self.variables.varying(&[&redirection.target], redirection.way != Way::Text);
        let varying = varying.filter(|varying| !varying.is_loop)?;
        let mut texts = Vec::new();
        for value in &varying.values {
            self.variables.choose(&varying.name, value.clone());
            texts.extend(expand(&redirection.target, &self.variables).into_iter().map(|word| word.text));
        }
        self.variables.restore(varying);
        Some(texts)
    }

    /// Reads the commands in substitutions of a command's words. Those in `>(…)` read what the command prints.
    fn outputs_of_command(&mut self, open: &Open<'_>, streams: &Streams) {
        let words = || open.words.iter().copied();
        let targets = || open.redirections.iter().map(|redirection| &redirection.target);
        let printed = if words().chain(targets()).any(has_reader) {
            let words: Vec<Argument> = words().flat_map(|word| expand(word, &self.variables)).collect();
            runners::printed(&words, streams.source.text.as_deref())
        } else {
            None
        };
        for word in words().chain(targets().filter(|target| has_reader(target))) {
            self.outputs_of(&word.pieces, printed.as_deref());
        }
    }

    /// Reads the commands in variables that are set for a command. `named` are its words, from the program on.
    fn commands_of_variables(&mut self, assigned: &[Assignment], named: &[&Word]) {
        let is_own = |name: &str| self.functions.contains_key(name) || self.aliases.contains_key(name);
        let program = named.first().and_then(|word| word.plain());
        if program.is_some_and(|name| ALONE.contains(&name) && !is_own(name)) {
            return;
        }
        for assignment in assigned {
            self.command_of_variable(&assignment.name, assignment.value.text());
        }
    }

    /// Assigns the variables of a command without a program, which may have redirections.
    fn assign_alone(&mut self, assigned: Vec<Assignment>, streams: &Streams) {
        self.found.changes_shell |= !assigned.is_empty();
        if !streams.forms.is_empty() {
            let form = format!(": {}", streams.forms.join(" "));
            self.note_words(&form, &[], streams.forms.len());
            self.found.commands.push(form);
        }
        assigned.into_iter().for_each(|assignment| self.variables.assign(assignment));
    }

    /// Assigns the variables of a declaration, such as `export` or `local`.
    fn declare(&mut self, words: &[&Word]) {
        let is_hidden = words.iter().filter_map(|word| word.plain()).any(hides_value);
        for word in words {
            match (assignment_of_all(word, &mut self.variables), word.plain()) {
                (Some(assignment), _) => {
                    self.found.others.push(assignment.form.clone());
                    if is_hidden {
                        self.variables.hide(&assignment.name);
                    }
                    self.variables.assign(assignment);
                }
                (None, Some(name)) if is_hidden && is_name(name) => self.variables.hide(name),
                _ => {}
            }
        }
    }

    /// Sets the variable that `read NAME <<< TEXT` sets.
    fn read_into_variable(&mut self, words: &[&Word], text: Option<&str>) {
        let words: Vec<Option<&str>> = words.iter().map(|word| word.plain()).collect();
        let name = match words.as_slice() {
            [Some("read"), Some("-r"), Some(name)] | [Some("read"), Some(name)] => *name,
            _ => return,
        };
        let text = text.filter(|text| is_name(name) && !text.contains('\\') && !self.variables.is_set("IFS"));
        if let Some(line) = text.and_then(|text| text.lines().next()) {
            let value = Value::One(line.trim().to_owned());
            self.variables.assign(Assignment { name: name.to_owned(), value, form: String::new() });
        }
    }

    /// Returns the text of a file that the line writes.
    fn text_of_file(&mut self, path: &str) -> Option<String> {
        let left = MAX_CONTENTS_BYTES.saturating_sub(self.contents);
        let text = self.variables.file(path)?;
        let text = (text.len() <= left).then(|| text.into_owned());
        match &text {
            Some(text) => self.contents += text.len(),
            None => self.cut(),
        }
        text
    }

    /// Reads a command once for each value of its variables.
    pub(super) fn each(&mut self, words: &[&Word], streams: &Streams) -> Option<String> {
        let has_room = self.depth < MAX_DEPTH && !self.is_full();
        match self.variables.varying(words, has_room && self.chosen < MAX_CHOSEN_VARIABLES) {
            Some(varying) if has_room => return self.each_value(varying, words, streams),
            // No loop is read further.
            Some(_) => self.read = MAX_COMMANDS,
            None => {}
        }
        self.read += 1;
        if self.is_full() {
            self.cut();
        }
        let mut arguments: Vec<Argument> = words.iter().flat_map(|word| expand(word, &self.variables)).collect();
        let before = self.variables.branches();
        if arguments.iter().any(|word| changes_folder(&word.text)) {
            self.variables.leave_folder();
        }
        for (index, argument) in arguments.iter_mut().enumerate().filter(|(_, argument)| argument.content.is_none()) {
            let is_program = index == 0 && !argument.text.contains('/');
            let text = self.text_of_file(&argument.text);
            argument.content = text.filter(|text| !is_program || text != runners::NOT_SHOWN);
        }
        for (index, path) in code::files(&arguments) {
            if let (Some(text), Some(argument)) = (self.text_of_file(&path), arguments.get_mut(index)) {
                match argument.content.as_mut().filter(|_| text != runners::NOT_SHOWN) {
                    Some(content) => content.extend(["\n", text.as_str()]),
                    None => argument.content = Some(text),
                }
            }
        }
        self.variables.undo(&before);
        words.iter().for_each(|word| self.variables.set_defaults(word));
        // No program has such a name, so the variable before it has another value.
        if self.chosen > 0 && arguments.first().is_some_and(|word| word.text.starts_with('-')) {
            self.is_impossible = true;
            return None;
        }
        // `$x = Get-Content a` and `$x -eq 1` in PowerShell.
        let is_value = |word: &Argument| self.may_be_value(word) && word.program() == Program::Unknown;
        let arguments = match arguments.as_slice() {
            [first, sign, rest @ ..] if is_value(first) && matches!(sign.text.as_str(), "=" | "+=") => rest,
            [first, sign, ..] if is_value(first) && is_comparison(&sign.text) => &[],
            all => all,
        };
        match self.body_of(arguments) {
            Some(body) => self.call_function(&body, arguments, streams),
            None => self.command(arguments, streams),
        }
        let of_function = || {
            let first = arguments.first()?;
            self.variables.printed_by(&first.text).map(str::to_owned)
        };
        let printed = runners::printed(arguments, streams.source.text.as_deref()).or_else(of_function);
        // Only one of several texts is printed.
        let printed = printed.map(|text| if self.chosen > 0 { runners::NOT_SHOWN.to_owned() } else { text });
        let texts =
            printed.iter().flat_map(|text| runners::files_of_tee(arguments).into_iter().map(move |file| (file, text)));
        let written = streams.written.iter().cloned().zip(printed.iter());
        let texts = texts.chain(written).map(|(file, text)| (file, text.as_str()));
        let edited = runners::edited(arguments);
        let edited = edited.iter().map(|(file, text)| (file.clone(), text.as_str()));
        for (file, text) in texts.chain(runners::copied(arguments)).chain(edited) {
            self.contents += text.len();
            if self.contents > MAX_CONTENTS_BYTES {
                self.cut();
                break;
            }
            let is_added = self.is_conditional || streams.is_added || arguments.iter().any(|word| adds(&word.text));
            self.variables.write(&file, text, is_added);
        }
        if !runners::keeps_files(arguments) {
            arguments.iter().filter(|word| word.content.is_some()).for_each(|word| self.variables.change(&word.text));
        }
        if let Some(file) = streams.written.as_ref().filter(|_| printed.is_none()) {
            self.variables.change(file);
        }
        printed
    }

    fn each_value(&mut self, varying: Varying, words: &[&Word], streams: &Streams) -> Option<String> {
        let (mut printed, mut readings) = (Vec::new(), Vec::new());
        let chosen = usize::from(!varying.is_loop);
        let folder = self.variables.folder();
        self.depth += 1;
        self.chosen += chosen;
        for value in &varying.values {
            if self.is_full() {
                break;
            }
            let before = self.found.commands.len();
            self.variables.choose(&varying.name, value.clone());
            printed.extend(self.each(words, streams));
            if !mem::take(&mut self.is_impossible) {
                readings.push(before..self.found.commands.len());
            }
        }
        self.depth -= 1;
        self.chosen -= chosen;
        if self.variables.folder() != folder {
            self.variables.leave_folder();
        }
        if !varying.is_loop {
            self.found.choices.push(Choice { readings });
            printed.dedup();
        }
        self.variables.restore(varying);
        Some(printed.join("\n")).filter(|printed| !printed.is_empty())
    }

    /// Returns true if no more commands are read.
    pub(super) fn is_full(&self) -> bool {
        self.read >= MAX_COMMANDS || self.size > MAX_COMMANDS_BYTES
    }

    /// Returns true if a word may begin with a variable of PowerShell: `$x.Count`, `"$($x.Name)"`. One that the line sets as Bash
    /// does is not.
    fn may_be_value(&self, word: &Argument) -> bool {
        let Some(rest) = word.text.strip_prefix("$($").or(word.text.strip_prefix('$')) else { return false };
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        self.dialect != Dialect::Posix && !name.is_empty() && !self.variables.is_set(name)
    }

    /// Adds a command, and those that it runs.
    pub(super) fn command(&mut self, arguments: &[Argument], streams: &Streams) {
        let Some((first, rest)) = arguments.split_first() else { return };
        if self.depth >= MAX_DEPTH || self.found.commands.len() >= MAX_COMMANDS {
            return self.cut();
        }
        // `xargs` and `find` replace `{}` by a text that the line does not show.
        let program = if first.text.contains("{}") { Program::Unknown } else { first.program() };
        let name = match program {
            Program::Named(name) => joined(name),
            Program::Output | Program::Unknown => first.form(),
        };
        let behind: String = rest
            .iter()
            .map(Argument::form)
            .chain(streams.forms.iter().cloned())
            .map(|word| format!(" {word}"))
            .collect();
        if has_own_folder(&first.text) {
            let form = format!("{}{behind}", first.form());
            self.note_words(&form, rest, streams.forms.len());
            self.found.others.push(form);
        }
        let piped = code_of_interpreter(&name, rest, streams).map(|text| format!(" <<<{}", joined(text)));
        let piped = piped.unwrap_or_default();
        let form = format!("{name}{behind}{piped}");
        self.note_words(&form, rest, streams.forms.len() + usize::from(!piped.is_empty()));
        self.size += form.len();
        if self.size > MAX_COMMANDS_BYTES {
            return self.cut();
        }
        // Within a function, these are the words that it is called with.
        let is_named = matches!(program, Program::Named(_));
        let is_known_later = !is_named && first.is_argument_of_function() && !self.read_functions.is_empty();
        if !is_known_later {
            if !streams.source.is_fed && !self.is_input_replaced {
                self.typed.push(Typed::Command(self.found.commands.len()));
            }
            self.found.commands.push(form);
        }
        if let Some(text) = &first.content {
            self.other_shell(|reader| {
                if !rest.is_empty() {
                    reader.variables.set_arguments(rest, false);
                }
                reader.script(text, streams.source.clone(), false);
            });
        }
        match program {
            Program::Named(name) => self.named_program(name, rest, streams),
            Program::Output | Program::Unknown => self.unknown_program(arguments, is_known_later),
        }
    }

    /// Records a command whose program is not shown. If `is_known_later` is true, the program is an argument of the function that
    /// contains the command.
    fn unknown_program(&mut self, arguments: &[Argument], is_known_later: bool) {
        let Some((first, rest)) = arguments.split_first() else { return };
        self.runs_arguments |= is_known_later;
        if is_known_later && !first.is_quoted {
            self.evaluated.insert(first.text.trim_start_matches('$').parse().unwrap_or_default());
        }
        if is_known_later && !self.called.iter().any(|words| words == arguments) {
            let number = first.text.trim_start_matches('$').parse::<usize>().unwrap_or_default();
            self.runs_first |= number <= 1;
            match self.called.len() < MAX_CALLED_COMMANDS {
                true => self.called.push(arguments.to_vec()),
                false => self.cut(),
            }
        }
        self.found.has_unknown |= !is_known_later;
        let word = |index: usize| rest.get(index).map_or("", |word| word.text.as_str());
        let is_alone = first.text.contains('=') || rest.is_empty() || are_behind_value(word(0), word(1));
        self.is_posix |= first.text.starts_with('$') && !(is_alone && self.may_be_value(first));
    }

    /// Reads what a program does to the shell, and the commands that it runs.
    fn named_program(&mut self, name: &str, rest: &[Argument], streams: &Streams) {
        self.depth += 1;
        self.change_shell(name, rest, streams);
        let closed = runners::closes_input(name, rest).then(|| {
            let mut closed = streams.clone();
            closed.source.is_fed = true;
            closed
        });
        let streams = closed.as_ref().unwrap_or(streams);
        for inner in runners::inner(name, rest, streams.source.text.as_deref()) {
            match inner {
                Inner::Words(words) => self.command(words, streams),
                Inner::Split(words) => self.command(&words, streams),
                Inner::Script { text, arguments } => self.inner_script(name, &text, arguments, streams),
            }
        }
        // Words in a program of another language may be no commands, so what is unknown about them counts for nothing.
        let code = code::command_lines(name, rest, streams.source.text.as_deref());
        let has_unknown = self.found.has_unknown || code.has_unknown;
        self.other_shell(|reader| {
            let source = || Source::unseen(streams.source.is_fed);
            code.lines.iter().for_each(|line| reader.script(line, source(), false));
            reader.found.has_unknown = has_unknown || reader.is_cut;
            code.calls.iter().for_each(|call| reader.call(call, streams.source.is_fed));
        });
        self.depth -= 1;
    }

    /// Records what a program does to the variables, functions, aliases and the input of the shell.
    fn change_shell(&mut self, name: &str, rest: &[Argument], streams: &Streams) {
        if self.functions.contains_key(name) {
            self.note_call(name, streams);
        }
        if name == "exec"
            && rest.is_empty()
            && let Some(is_fed) = streams.feeds
        {
            self.is_input_replaced = is_fed;
        }
        if is_declaration(name) || matches!(name, "env" | "sudo" | "doas" | "cross-env") {
            for word in rest {
                if let Some((variable, text)) = word.text.split_once('=') {
                    self.command_of_variable(variable, Some(text));
                }
            }
        }
        self.remember(name, rest);
        self.alias(name, rest, &streams.source);
        if let Some(changed) = self.functions.get(name) {
            self.feeds |= streams.source.text.is_some();
            changed.iter().for_each(|(name, value)| self.variables.may_be(name, value));
            if self.runs_arguments {
                self.arguments_of_function(rest, streams);
            }
        }
        let is_reader = matches!(name, "read" | "mapfile" | "readarray");
        self.reads_code |= is_reader && streams.source.text.as_deref().is_some_and(has_code);
        self.feeds |= name == "exec" && rest.is_empty() && streams.source.text.is_some();
        self.waits |= streams.source.text.is_none() && streams.source.form.is_none() && reads_commands(name, rest);
    }

    /// Reads a text that a program runs in a shell: in this one, as `eval` does, or in another one.
    fn inner_script(&mut self, program: &str, text: &str, arguments: &[Argument], streams: &Streams) {
        // A shell that reads its commands leaves nothing to read.
        let is_read = streams.source.text.as_deref() == Some(text);
        let source = if is_read { Source::unseen(streams.source.is_fed) } else { streams.source.clone() };
        let read = |reader: &mut Self| {
            if !arguments.is_empty() {
                reader.variables.set_arguments(arguments, false);
            }
            reader.script(text, source, true);
        };
        match program {
            "eval" | "." | "source" => read(self),
            "trap" => {
                let own = self.variables.branches();
                read(self);
                self.variables.undo(&own);
            }
            _ => self.other_shell(read),
        }
    }

    /// Reads commands of another shell, which has not the functions of this one and does not change its variables.
    fn other_shell(&mut self, read: impl FnOnce(&mut Self)) {
        let (own, bodies) = (self.variables.branches(), mem::take(&mut self.bodies));
        let is_replaced = self.is_input_replaced;
        read(self);
        self.is_input_replaced = is_replaced;
        self.bodies = bodies;
        self.variables.undo(&own);
    }

    /// Reads the command lines of a call in another language.
    fn call(&mut self, call: &Call, is_fed: bool) {
        let has_unknown = self.found.has_unknown;
        let mut readings = Vec::new();
        for line in &call.lines {
            let before = self.found.commands.len();
            self.script(line, Source::unseen(is_fed), false);
            readings.push(before..self.found.commands.len());
        }
        if call.is_choice && readings.len() > 1 {
            self.found.choices.push(Choice { readings });
        }
        if call.is_unused {
            self.found.has_unknown = has_unknown || self.is_cut;
        }
    }

    /// Adds the commands that a function may run if it runs its arguments.
    pub(super) fn arguments_of_function(&mut self, arguments: &[Argument], streams: &Streams) {
        if self.runs_first {
            self.command(arguments, streams);
        }
        self.possible_in_function(arguments, streams);
    }

    /// Adds the commands that a function may run if it evaluates its arguments as texts, or drops some of them.
    fn possible_in_function(&mut self, arguments: &[Argument], streams: &Streams) {
        // The arguments of calls within these commands are not read again.
        self.runs_arguments = false;
        let before = self.found.commands.len();
        let mut texts: Vec<String> = Vec::new();
        for number in &self.evaluated {
            match number.checked_sub(1) {
                None => texts.push(runners::text_of(arguments)),
                Some(first) => {
                    let possible = arguments.iter().skip(first).take(self.shifted.saturating_add(1));
                    texts.extend(possible.map(|word| word.text.clone()));
                }
            }
        }
        for text in texts {
            self.sources += text.len();
            self.script(&text, streams.source.clone(), true);
        }
        for words in self.called.clone() {
            if self.is_full() || self.sources > MAX_SOURCES_BYTES {
                break;
            }
            for dropped in 0..=self.shifted.min(MAX_SHIFTED_ARGUMENTS) {
                let words = with_arguments(&words, arguments.get(dropped..).unwrap_or_default());
                self.command(&words, streams);
            }
        }
        if self.shifted > 0 {
            for dropped in 1..arguments.len().min(MAX_SHIFTED_ARGUMENTS + 1) {
                let has_unknown = self.found.has_unknown;
                self.command(arguments.get(dropped..).unwrap_or_default(), streams);
                if dropped > self.shifted {
                    self.found.has_unknown = has_unknown || self.is_cut;
                }
            }
        }
        self.runs_arguments = true;
        let run = self.take_from(before);
        self.sources += run.iter().map(String::len).sum::<usize>();
        if self.found.possible.len() >= MAX_COMMANDS || self.sources > MAX_SOURCES_BYTES {
            return self.cut();
        }
        self.found.possible.extend(run);
    }

    /// Records the aliases that a command defines, and reads the commands of the alias that it may be.
    pub(super) fn alias(&mut self, program: &str, arguments: &[Argument], source: &Source) {
        if program == "alias" {
            // Those of zsh that replace words at any place.
            if arguments.iter().any(|word| matches!(word.text.as_str(), "-g" | "-s")) {
                self.cut();
            }
            let defined = arguments.iter().filter_map(|word| word.text.split_once('='));
            return self.aliases.extend(defined.map(|(name, text)| (name.to_owned(), text.to_owned())));
        }
        let Some(text) = self.aliases.remove(program) else { return };
        let words = arguments.iter().map(|word| word.text.as_str());
        let line = [text.as_str()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        self.sources += line.len();
        if self.found.possible.len() >= MAX_COMMANDS || self.sources > MAX_SOURCES_BYTES {
            return self.cut();
        }
        let before = self.found.commands.len();
        self.script(&line, source.clone(), false);
        let run = self.take_from(before);
        self.found.possible.extend(run);
        self.aliases.insert(program.to_owned(), text);
    }

    /// Reads the command in a variable that names the program to run for another one: `GIT_PAGER='less -R' git log`.
    fn command_of_variable(&mut self, variable: &str, text: Option<&str>) {
        let is_no_program = |text: &str| text == ":" || text == "cat" && OF_PAGERS.contains(&variable);
        if !OF_COMMANDS.contains(&variable) || text.is_some_and(|text| is_no_program(text.trim())) {
            return;
        }
        // Of an unknown value, the commands are unknown. `LESSOPEN='|lesspipe %s'` begins a pipe.
        let text = text.unwrap_or(runners::NOT_SHOWN).trim_start_matches(['|', '-']);
        self.sources += text.len();
        if self.found.possible.len() >= MAX_COMMANDS || self.sources > MAX_SOURCES_BYTES {
            return self.cut();
        }
        let before = self.found.commands.len();
        self.other_shell(|reader| reader.script(text, Source::unseen(true), false));
        let run = self.take_from(before);
        self.found.possible.extend(run);
    }

    /// Notes what the form of a command does not show of its words. `rest` are those behind the program.
    pub(super) fn note_words(&mut self, form: &str, rest: &[Argument], redirections: usize) {
        let mut unknown = (1..).zip(rest).filter(|(_, word)| !word.is_known()).map(|(place, _)| place).peekable();
        if redirections == 0 && unknown.peek().is_none() {
            return;
        }
        // Two commands may have the same form.
        let written = self.found.written.entry(form.to_owned()).or_default();
        written.redirections = written.redirections.max(redirections);
        written.unknown.extend(unknown);
    }

    /// Takes the commands from an index on.
    fn take_from(&mut self, from: usize) -> Vec<String> {
        self.found.choices.retain(|choice| choice.readings.last().is_none_or(|last| last.end <= from));
        self.typed.retain(|it| !matches!(it, Typed::Command(place) if *place >= from));
        self.definitions.retain(|(_, body)| body.end <= from);
        self.found.commands.split_off(from)
    }
}

/// Returns the code that an interpreter gets by a pipe, or in a file that the line writes.
fn code_of_interpreter<'a>(name: &str, rest: &'a [Argument], streams: &'a Streams) -> Option<&'a str> {
    let is_hidden = streams.source.form.is_some() || streams.reads_file;
    let piped = streams.source.text.as_deref().filter(|_| is_hidden);
    let program_file = rest.iter().find(|word| !word.text.starts_with('-'));
    let written = || program_file.and_then(|word| word.content.as_deref());
    let runs_code = code::is_interpreter(name) && !code::is_check(name, rest);
    piped.filter(|_| code::is_program(name, rest)).or_else(written).filter(|_| runs_code)
}

/// Returns the words of a command of a function, with the arguments of a call in their places.
fn with_arguments(words: &[Argument], arguments: &[Argument]) -> Vec<Argument> {
    let mut found: Vec<Argument> = Vec::new();
    for word in words {
        if !word.is_argument_of_function() {
            found.push(word.clone());
            continue;
        }
        let placed = match word.text.trim_start_matches('$').parse::<usize>() {
            Ok(number) => number.checked_sub(1).and_then(|index| arguments.get(index..=index)).unwrap_or_default(),
            Err(_) => arguments,
        };
        for argument in placed {
            // The shell splits a value without quotes.
            match word.is_quoted || !argument.is_known() {
                true => found.push(argument.clone()),
                false => found.extend(argument.text.split_whitespace().map(Argument::of)),
            }
        }
    }
    found
}

/// Returns true if a program is a shell that reads its commands from its input.
pub(super) fn reads_commands(program: &str, arguments: &[Argument]) -> bool {
    let is_input = |inner: &Inner| matches!(inner, Inner::Script { text, .. } if text == runners::NOT_SHOWN);
    is_shell(program) && runners::inner(program, arguments, Some(runners::NOT_SHOWN)).iter().any(is_input)
}

/// Returns true if a word may be an option that runs a command in another folder: `env -C FOLDER`, `docker exec -w FOLDER`.
fn changes_folder(word: &str) -> bool {
    const OPTIONS: [&str; 12] = [
        "-C",
        "-D",
        "-w",
        "-execdir",
        "-okdir",
        "--chdir",
        "--cwd",
        "--directory",
        "--prefix",
        "--project",
        "--wd",
        "--workdir",
    ];
    let name = word.split('=').next().unwrap_or_default();
    OPTIONS.contains(&name) || word.starts_with("-C") && word.len() > 2
}

/// Returns true if a word may be the option of `tee` that keeps the text of the file.
fn adds(word: &str) -> bool {
    word == "--append" || word.starts_with('-') && !word.starts_with("--") && word.contains('a')
}

/// Returns true if a word has `>(…)`, whose commands read what the command prints.
fn has_reader(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Group { sign: '>', .. }))
}

/// Returns true if a program is named with a folder that is not one of the system's.
fn has_own_folder(program: &str) -> bool {
    const SYSTEM: [&str; 8] = [
        "/bin/",
        "/sbin/",
        "/usr/bin/",
        "/usr/sbin/",
        "/usr/local/bin/",
        "/usr/local/sbin/",
        "/opt/homebrew/bin/",
        "/snap/bin/",
    ];
    let folder = program.rfind('/').and_then(|at| program.get(..=at));
    folder.is_some_and(|folder| !SYSTEM.contains(&folder))
}
