//! Finds the fenced blocks of code in a text of Markdown.

/// A fenced block.
pub struct Block<'a> {
    /// The text behind the opening fence, such as `json title="a.json"`.
    info: &'a str,
    /// The lines between the fences, or up to the end of the text if the block is not closed.
    pub text: &'a str,
}

impl Block<'_> {
    /// Returns the language: the first word behind the fence, or an empty text.
    pub fn word(&self) -> &str {
        self.info.split([' ', '\t', '{', ',']).next().unwrap_or_default()
    }

    /// Returns true if the language is JSON.
    pub fn is_json(&self) -> bool {
        ["json", "jsonc"].iter().any(|word| self.word().eq_ignore_ascii_case(word))
    }
}

/// Returns the blocks of a text. A block ends with a fence of the same character that is at least as long as the fence
/// that opens it. Source: CommonMark 0.31, section 4.5. Agents also write a fence behind other text: a fence at the end of a
/// line closes or opens a block, and one with the word `json` opens one.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(char, usize, &str, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        match open {
            None => open = opening(line).map(|(mark, length, info)| (mark, length, info, at)),
            Some((mark, least, info, from)) => {
                let before = line.trim_end();
                let kept = before.trim_end_matches(mark);
                if before.len() - kept.len() >= least {
                    found.push(Block { info, text: &text[from..begin + kept.len()] });
                    open = None;
                }
            }
        }
    }
    if let Some((_, _, info, from)) = open {
        found.push(Block { info, text: &text[from..] });
    }
    found
}

/// Parses a line that opens a block: the character and the length of its fence, and the text behind it.
fn opening(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim();
    let (begin, mark) = match line.find("```") {
        Some(begin) => (begin, '`'),
        None => (line.find("~~~").filter(|begin| *begin == 0)?, '~'),
    };
    let fence = &line[begin..];
    let info = fence.trim_start_matches(mark);
    let length = fence.len() - info.len();
    let info = info.trim();
    let opens = begin == 0 || info.is_empty() || Block { info, text: "" }.is_json();
    (opens && !(mark == '`' && info.contains('`'))).then_some((mark, length, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_markdown() {
        let found = |text: &str| -> Vec<(String, String)> {
            blocks(text).iter().map(|block| (block.word().to_owned(), block.text.to_owned())).collect()
        };
        let one = |word: &str, text: &str| vec![(word.to_owned(), text.to_owned())];
        assert_eq!(found("a\n~~~json\n{}\n~~~\n"), one("json", "{}\n"));
        assert_eq!(found("````json\n\"```\"\n```\n````\n"), one("json", "\"```\"\n```\n"));
        assert_eq!(found("```json title=\"r.json\"\n1\n```"), one("json", "1\n"));
        assert_eq!(found("```\n1\n"), one("", "1\n"));
        assert_eq!(found("- a:\n     ```JSON\n     1\n     ```\n"), one("JSON", "     1\n     "));
        assert_eq!(found("Here: ```json\n{}```\n"), one("json", "{}"));
        assert_eq!(found("It is ```\n{}\n```\n"), one("", "{}\n"));
        assert_eq!(found("`a` and ```b``` and ``` c\n"), Vec::new());
        assert_eq!(found("```js\n1\n```\n```\n2\n```\n").len(), 2);
        assert!(blocks("```JSON\n").iter().all(Block::is_json) && !blocks("```jsonl\n").iter().any(Block::is_json));
    }
}
