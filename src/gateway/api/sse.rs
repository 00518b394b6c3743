//! Splits the bytes of a stream into events: server-sent events, and the elements of a JSON list.

/// A parser of server-sent events. Bytes may be split anywhere.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    after_return: bool,
    begun: bool,
    data: Option<String>,
}

impl Events {
    /// Adds bytes, and calls a function with the data of each complete event.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str)) {
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    self.end_line(each);
                }
                _ => {
                    self.after_return = false;
                    self.line.push(*byte);
                }
            }
        }
    }

    /// Ends the stream. An event without the empty line after it counts too.
    pub fn finish(mut self, each: &mut dyn FnMut(&str)) {
        self.end_line(each);
        self.dispatch(each);
    }

    fn end_line(&mut self, each: &mut dyn FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.begun { &*line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            self.dispatch(each);
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            }
        }
    }

    fn dispatch(&mut self, each: &mut dyn FnMut(&str)) {
        if let Some(data) = self.data.take().filter(|data| !data.trim().is_empty()) {
            each(&data);
        }
    }
}

/// A splitter of a JSON list into its objects, or of a single object. Bytes may be split anywhere.
#[derive(Default)]
pub(super) struct Elements {
    element: Vec<u8>,
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// True if the objects are in a list.
    pub is_list: bool,
}

impl Elements {
    /// Adds bytes, and calls a function with each complete object.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str)) {
        for byte in bytes {
            if self.depth == 0 && *byte != b'{' {
                self.is_list |= *byte == b'[';
                continue;
            }
            self.element.push(*byte);
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            if self.depth == 0 {
                let element = std::mem::take(&mut self.element);
                each(&String::from_utf8_lossy(&element));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for size in [1, 2, 3, 1000] {
            let mut events = Events::default();
            let mut all = Vec::new();
            for bytes in text.as_bytes().chunks(size) {
                events.push(bytes, &mut |data| all.push(data.to_owned()));
            }
            events.finish(&mut |data| all.push(data.to_owned()));
            assert!(found.is_empty() || found == all, "{text:?} in pieces of {size}");
            found = all;
        }
        found
    }

    #[test]
    fn events_are_found_with_every_line_end() {
        for end in ["\n", "\r\n", "\r"] {
            let text = "\u{feff}: hello|event: a|data: {\"ü\":1}||:ping||data:x|data: y|id: 3||data||data: last";
            assert_eq!(events(&text.replace('|', end)), ["{\"ü\":1}", "x\ny", "last"], "{end:?}");
        }
        assert_eq!(events(""), Vec::<String>::new());
        assert_eq!(events("no field at all\n\n"), Vec::<String>::new());
    }

    #[test]
    fn elements_are_found_in_a_list_and_alone() {
        for (text, wanted, is_list) in [
            ("[{\"a\":\"}]\\\"{\"}\r\n,\r\n{\"b\":[{}]}]", vec!["{\"a\":\"}]\\\"{\"}", "{\"b\":[{}]}"], true),
            (" {\"ü\": {}} ", vec!["{\"ü\": {}}"], false),
            ("[{\"a\":", vec![], true),
            ("]]}}", vec![], false),
        ] {
            for size in [1, 3, 1000] {
                let (mut elements, mut all) = (Elements::default(), Vec::new());
                for bytes in text.as_bytes().chunks(size) {
                    elements.push(bytes, &mut |element| all.push(element.to_owned()));
                }
                assert_eq!((all, elements.is_list), (wanted.iter().map(|it| (*it).to_owned()).collect(), is_list));
            }
        }
    }
}
