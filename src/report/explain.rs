//! Explains a recording line by line: each line, the rule that handled it, and the resulting events.

use std::io::{self, Write};

use super::event_line::{self, Names};
use super::text::{BLUE, DIM, Look, YELLOW, harmless, one_line};
use crate::adapter::explain::Explained;
use crate::trace::Body;
use crate::wire::Dir;

/// A writer that shows explained lines in order.
pub struct Page<'a> {
    look: Look,
    names: Names,
    out: &'a mut dyn Write,
}

impl<'a> Page<'a> {
    /// Starts at the first line.
    pub fn new(look: Look, out: &'a mut dyn Write) -> Self {
        Self { look, names: Names::new(None), out }
    }

    /// Shows a line, its rule and its events.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn line(&mut self, explained: &Explained) -> io::Result<()> {
        let look = self.look;
        let width = look.columns().saturating_sub(8);
        let arrow = match explained.dir {
            None => " ",
            Some(Dir::Send) => ">",
            Some(Dir::Recv) => "<",
            Some(Dir::Stderr) => "!",
            Some(Dir::Engine | Dir::Exit) => "*",
        };
        let number = explained.line.map(|line| line.to_string()).unwrap_or_default();
        let text =
            if explained.line.is_some() { one_line(&explained.text, width, &look) } else { "the end".to_owned() };
        writeln!(self.out, "{}", look.paint(DIM, &format!("{number:>5} {arrow} {text}")))?;
        if let Some(rule) = &explained.rule {
            writeln!(self.out, "        {} {}", look.paint(DIM, "rule"), look.paint(BLUE, &harmless(rule)))?;
        }
        if let Some(header) = &explained.header {
            let agent = header.agent.as_ref().map(|agent| {
                let version = agent.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
                format!("agent {}{version}", agent.name)
            });
            let model = header.model.as_ref().map(|model| format!("model {model}"));
            let cwd = header.cwd.as_ref().map(|cwd| format!("in {cwd}"));
            let parts: Vec<String> = agent.into_iter().chain(model).chain(cwd).collect();
            let line = one_line(&format!("header: {}", parts.join(", ")), width, &look);
            writeln!(self.out, "        {} {line}", look.paint(DIM, "new "))?;
        }
        for touched in &explained.events {
            self.names.before(&touched.event);
            let what = if touched.new { "new " } else { "more" };
            let pending = if touched.pending { " (pending)" } else { "" };
            let room = width.saturating_sub(6 + pending.len());
            let shown = event_line::line(&touched.event, &self.names, room, &look);
            let notice = matches!(touched.event.body, Body::Notice { .. });
            let shown = if notice { look.paint(YELLOW, &shown) } else { shown };
            let (what, pending) = (look.paint(DIM, what), look.paint(DIM, pending));
            writeln!(self.out, "        {what} {shown}{pending}")?;
            self.names.after(&touched.event);
        }
        for what in &explained.not_found {
            let what = one_line(&format!("absent: {what}"), width, &look);
            writeln!(self.out, "        {}", look.paint(DIM, &what))?;
        }
        let silent = explained.events.is_empty() && explained.header.is_none() && explained.dir == Some(Dir::Recv);
        if silent && !explained.text.trim().is_empty() {
            writeln!(self.out, "        {}", look.paint(DIM, "no event"))?;
        }
        Ok(())
    }
}
