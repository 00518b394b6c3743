//! Whether an interpreter gets its program from its input, or data.

use super::is_javascript;
use crate::command_line::expanded::Argument;
use crate::command_line::python::is_python;

/// The options of an interpreter that decide where its program comes from.
struct Options {
    /// The letters before code, a module or a program file.
    code: &'static str,
    /// The letters before another operand.
    operand: &'static str,
    /// The letter of an interactive interpreter, which also reads its input.
    interactive: &'static str,
}

/// Long options before code.
const LONG_CODE: [&str; 3] = ["--eval", "--print", "--test"];
/// Long options before another operand.
const LONG_OPERAND: [&str; 6] =
    ["--require", "--import", "--loader", "--experimental-loader", "--conditions", "--preload"];
/// The modules of Python, and the words among the arguments of a script, that read a program.
const CONSOLES: [&str; 9] =
    ["code", "IPython", "asyncio", "shell", "shell_plus", "shell-plus", "console", "runner", "tinker"];
/// The calls by which a program runs a text.
const EVALUATIONS: [&str; 5] = ["exec(", "eval(", "interact(", "runInThisContext(", "Function("];

fn options_of(program: &str) -> Options {
    match program {
        name if is_python(name) => Options { code: "cm", operand: "XWQ", interactive: "i" },
        name if is_javascript(name) => Options { code: "ep", operand: "rC", interactive: "i" },
        "perl" => Options { code: "eE", operand: "I", interactive: "" },
        "ruby" => Options { code: "e", operand: "rIC", interactive: "" },
        "php" => Options { code: "rRBEf", operand: "dcz", interactive: "a" },
        _ => Options { code: "e", operand: "l", interactive: "i" },
    }
}

/// Returns true if an interpreter with these arguments reads its program from its input. A program that evaluates texts may do so.
pub(in crate::command_line) fn is_program(program: &str, arguments: &[Argument]) -> bool {
    if program.ends_with("awk") {
        let is_file = |two: &[Argument]| matches!(two, [f, file] if f.text == "-f" && is_input(&file.text));
        return arguments.windows(2).any(is_file);
    }
    let evaluates = |text: &str| EVALUATIONS.iter().any(|call| text.contains(call));
    let reads = |word: &Argument| {
        CONSOLES.contains(&word.text.as_str())
            || evaluates(&word.text)
            || word.content.as_deref().is_some_and(evaluates)
    };
    !names_program(program, arguments) || arguments.iter().any(reads)
}

fn is_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Returns true if the arguments name a program file, a module, or code.
fn names_program(program: &str, arguments: &[Argument]) -> bool {
    let options = options_of(program);
    let mut words = arguments.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            None if matches!(word, "run" | "repl") && matches!(program, "bun" | "deno") => {}
            None => return !is_input(word),
            Some("") => return false,
            // A module of Perl.
            Some(letters) if program == "perl" && letters.starts_with(['M', 'm']) => {}
            Some("-") => return words.next().is_some_and(|word| word != "-"),
            Some(name) if name.starts_with('-') => match word.split_once('=') {
                None if LONG_CODE.contains(&word) => return true,
                Some((name, _)) if LONG_CODE.contains(&name) => return true,
                None if LONG_OPERAND.contains(&word) => {
                    words.next();
                }
                _ => {}
            },
            Some(letters) => {
                let decides = |letter: char| {
                    [options.interactive, options.code, options.operand].iter().any(|all| all.contains(letter))
                };
                let Some((at, letter)) = letters.char_indices().find(|(_, letter)| decides(*letter)) else { continue };
                if !options.operand.contains(letter) {
                    return options.code.contains(letter);
                }
                if at + 1 == letters.len() {
                    words.next();
                }
            }
        }
    }
    false
}
