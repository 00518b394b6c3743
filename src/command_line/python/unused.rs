//! Whether a program shows that it makes a call.

use super::Program;
use super::expressions::is_in_name;
use crate::command_line::code::Origin;

/// The maximum number of lines between a call and the beginning of its function.
const MAX_LINES: usize = 1024;

impl Program<'_> {
    /// Returns true if nothing in a file shows that it runs the code at `at`: the code is in a function that the file does not name
    /// elsewhere, or, in a module, in any function. Functions that other code may call by themselves, such as tests and methods of
    /// a class with a base class, do not count as unused.
    pub(super) fn is_unused(&self, at: usize) -> bool {
        const CALLED_BY_OTHERS: [&str; 5] = ["__", "test", "pytest_", "setup", "teardown"];
        let (mut indent, mut function, mut has_base, mut is_guarded) = (usize::MAX, None, false, false);
        for line in self.masked.get(..at).unwrap_or_default().rsplit('\n').take(MAX_LINES) {
            let text = line.trim_start();
            let own = line.len() - text.len();
            if text.is_empty() || own >= indent {
                continue;
            }
            is_guarded |= text.starts_with("if __name__") || indent == usize::MAX && text.contains("lambda");
            has_base |= text.starts_with("class ") && text.contains('(');
            function = function.or_else(|| text.strip_prefix("async ").unwrap_or(text).strip_prefix("def "));
            indent = own;
        }
        match self.origin {
            Origin::Line => return false,
            Origin::Module if function.is_some() || is_guarded => return true,
            Origin::Module | Origin::File => {}
        }
        let name = function.and_then(|function| function.split('(').next()).unwrap_or_default().trim();
        let may_be_called = self.may_call_any || has_base || CALLED_BY_OTHERS.iter().any(|it| name.starts_with(it));
        indent == 0 && !name.is_empty() && !may_be_called && !self.is_named(name)
    }

    /// Returns true if the code names a function at another place than its definition.
    fn is_named(&self, name: &str) -> bool {
        self.masked.match_indices(name).any(|(at, _)| {
            let before = self.masked.get(..at).unwrap_or_default();
            let behind = self.masked.get(at + name.len()..).unwrap_or_default();
            let is_other = before.ends_with(is_in_name) || behind.starts_with(is_in_name);
            !is_other && !before.ends_with("subprocess.") && !before.trim_end().ends_with("def")
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::command_line::code::Origin;
    use crate::command_line::python::calls;

    #[test]
    fn a_call_in_a_function_that_no_code_names_is_unused() {
        let is_unused = |code: &str| calls(code, Origin::File).iter().all(|call| call.is_unused);
        assert!(is_unused("import os\ndef f():\n    os.system('rm a')"));
        assert!(!is_unused("import os\ndef f():\n    os.system('rm a')\nf()"));
    }
}
