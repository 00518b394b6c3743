//! The addresses of the server, after the token: the list, and the runs by the names of their folders.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The target of an address.
#[derive(Debug, PartialEq, Eq)]
pub enum Address {
    /// The list of runs.
    List(Wanted),
    /// A run, by a name as bytes. Nothing is known about the name.
    Run(Vec<u8>, Wanted),
    /// A run, without the slash that places in its page need.
    WithoutSlash(Vec<u8>),
    Nothing,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A document.
    Page,
    /// The current state as JSON, which the script of a document requests.
    State,
}

impl Address {
    /// Reads the path after the token, and the query.
    pub fn of(path: &str, query: Option<&str>) -> Self {
        let wanted = match query {
            None | Some("") => Wanted::Page,
            Some("state") => Wanted::State,
            Some(_) => return Self::Nothing,
        };
        match path.split_once('/') {
            None if path.is_empty() => Self::List(wanted),
            None => decoded(path).map_or(Self::Nothing, Self::WithoutSlash),
            Some((name, "")) if !name.is_empty() => decoded(name).map_or(Self::Nothing, |name| Self::Run(name, wanted)),
            Some(_) => Self::Nothing,
        }
    }
}

/// Encodes the name of a folder as a part of an address.
pub fn encoded(name: &OsStr) -> String {
    let mut out = String::new();
    for byte in name.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes a part of an address once. `None` if an escape is not complete.
fn decoded(part: &str) -> Option<Vec<u8>> {
    let mut bytes = part.bytes();
    let mut out = Vec::with_capacity(part.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_list_or_a_name() {
        let run = |name: &str| Address::Run(name.as_bytes().to_vec(), Wanted::Page);
        assert_eq!(Address::of("", None), Address::List(Wanted::Page));
        assert_eq!(Address::of("", Some("state")), Address::List(Wanted::State));
        assert_eq!(Address::of("a/", None), run("a"));
        assert_eq!(Address::of("a%20b/", None), run("a b"));
        assert_eq!(Address::of("a", None), Address::WithoutSlash(b"a".to_vec()));
        assert_eq!(Address::of("%252e/", None), run("%2e"));
        for nothing in ["/", "a//", "a/b", "a/../", "%zz/", "%4/", "%+4/"] {
            assert_eq!(Address::of(nothing, None), Address::Nothing, "{nothing}");
        }
        assert_eq!(Address::of("a/", Some("other")), Address::Nothing);
        let name = OsStr::from_bytes(b"a b\xff%/");
        assert_eq!(encoded(name), "a%20b%FF%25%2F");
        assert_eq!(decoded(&encoded(name)).as_deref(), Some(name.as_bytes()));
    }
}
