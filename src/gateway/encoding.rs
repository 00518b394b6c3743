//! Decompresses the body of a request, which an agent may have compressed, and of an answer, which a service may have.

use std::io::{self, Read};

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use flate2::bufread::GzDecoder;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use serde::de::IgnoredAny;

/// The maximum size of a compressed body in bytes, when it is decompressed.
pub const MAX_DECODED_BYTES: usize = 64 << 20;

/// The reason why the body of a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// There is no decoder for the encoding.
    #[error("the content encoding `{0}` of the request is unknown; known are `gzip` and `deflate`")]
    Unknown(String),
    /// The body does not have the encoding that its header names.
    #[error("the request does not have its content encoding `{encoding}`: {why}")]
    Damaged {
        encoding: String,
        /// The reason.
        why: String,
    },
    /// The body is too large.
    #[error("the request is larger than {0} bytes when its content encoding is undone")]
    TooLarge(usize),
}

/// The reason why a content encoding was not undone, or not to the end of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no decoder for the encoding.
    Unknown,
    /// The body does not have the encoding, with the reason.
    Damaged(String),
    /// The body ends before its encoding does.
    EndsEarly,
    /// The body is larger than the maximum.
    TooLarge,
}

/// Returns the content encoding that the headers of a body name. Empty if it has none.
pub fn name_of(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase());
    let names: Vec<String> = names.filter(|name| !name.is_empty() && name != "identity").collect();
    names.join(", ")
}

/// Returns the body of a request without its content encoding, of at most `most` bytes if it has one. JSON with a label that
/// names no compression, such as `utf-8` or `none`, is returned as it is.
///
/// # Errors
/// Returns an error if the body cannot be decompressed.
pub fn decoded(headers: &HeaderMap, body: &Bytes, most: usize) -> Result<Bytes, EncodingError> {
    let encoding = name_of(headers);
    if encoding.is_empty() || body.is_empty() || (names_no_compression(&encoding) && is_json(body)) {
        return Ok(body.clone());
    }
    match undone(&encoding, body, most) {
        (all, None) => Ok(all.into()),
        (_, Some(Obstacle::Unknown)) => Err(EncodingError::Unknown(encoding)),
        (_, Some(Obstacle::Damaged(why))) => Err(EncodingError::Damaged { encoding, why }),
        (_, Some(Obstacle::EndsEarly)) => Err(EncodingError::Damaged { encoding, why: "it ends too early".to_owned() }),
        (_, Some(Obstacle::TooLarge)) => Err(EncodingError::TooLarge(most)),
    }
}

/// Returns true if a content encoding names no compression. A request that names one is not read as plain text, unlike an answer:
/// a hostile agent could send a text that the service decompresses to another one.
fn names_no_compression(encoding: &str) -> bool {
    const COMPRESSIONS: [&str; 9] = ["br", "compress", "dcb", "dcz", "deflate", "gzip", "x-compress", "x-gzip", "zstd"];
    !encoding.split(", ").any(|name| COMPRESSIONS.contains(&name))
}

/// Returns true if a body is JSON in plain text. A text in another form may have an encoding, such as `base64`.
fn is_json(body: &[u8]) -> bool {
    is_text(body) && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

/// Returns a body without its content encoding, as far as the encoding could be undone and at most `most` bytes, and the reason
/// why the rest is missing.
pub fn undone(encoding: &str, body: &[u8], most: usize) -> (Vec<u8>, Option<Obstacle>) {
    match encoding {
        "gzip" | "x-gzip" => read_gzip(body, most),
        "deflate" if is_zlib(body) => read(ZlibDecoder::new(body), most),
        // Some programs leave out the head of the format.
        "deflate" => read(DeflateDecoder::new(body), most),
        _ => (Vec::new(), Some(Obstacle::Unknown)),
    }
}

/// Decompresses the members of a body in the gzip format. What follows the last of them, such as zeros that fill a block, is left
/// out, as other programs do.
fn read_gzip(body: &[u8], most: usize) -> (Vec<u8>, Option<Obstacle>) {
    /// The bytes with which each member begins.
    const BEGIN: [u8; 3] = [0x1f, 0x8b, 8];
    let (mut rest, mut all) = (body, Vec::new());
    loop {
        let (part, obstacle) = read(GzDecoder::new(&mut rest), most.saturating_sub(all.len()));
        all.extend_from_slice(&part);
        // Zeros may be between members.
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        rest = rest.get(zeros..).unwrap_or_default();
        if obstacle.is_some() || !rest.starts_with(&BEGIN) {
            return (all, obstacle);
        }
    }
}

fn read(from: impl Read, most: usize) -> (Vec<u8>, Option<Obstacle>) {
    let mut all = Vec::new();
    let enough = (most as u64).saturating_add(1);
    let read = from.take(enough).read_to_end(&mut all);
    if all.len() > most {
        all.truncate(most);
        return (all, Some(Obstacle::TooLarge));
    }
    let obstacle = read.err().map(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Obstacle::EndsEarly,
        _ => Obstacle::Damaged(error.to_string()),
    });
    (all, obstacle)
}

/// Returns true if a body is text in UTF-8, whose last character may be cut. Compressed bytes are none: the head of the formats is
/// no UTF-8, or they have control characters.
pub fn is_text(body: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    let is_utf8 = || std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true);
    !body.iter().any(is_control) && is_utf8()
}

/// Returns true if a body begins with the head of the zlib format.
fn is_zlib(body: &[u8]) -> bool {
    let [first, second, ..] = body else { return false };
    (first & 0x0f) == 8 && u16::from_be_bytes([*first, *second]).is_multiple_of(31)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use axum::http::HeaderValue;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"{\"model\":\"m\",\"messages\":[]}";

    fn decode(encoding: &'static str, body: &[u8], most: usize) -> Result<Bytes, EncodingError> {
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(encoding))]);
        decoded(&headers, &Bytes::copy_from_slice(body), most)
    }

    #[test]
    fn a_compressed_body_is_read_up_to_its_maximum() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TEXT).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(TEXT).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(TEXT).unwrap();
        let raw = raw.finish().unwrap();
        for (encoding, body) in [
            ("gzip", &gzip[..]),
            ("X-GZIP, identity", &gzip[..]),
            ("deflate", &zlib[..]),
            ("deflate", &raw[..]),
            ("", TEXT),
        ] {
            assert_eq!(decode(encoding, body, 100).unwrap(), TEXT, "{encoding}");
        }
        assert_eq!(decode("gzip", &gzip, TEXT.len()).unwrap(), TEXT);
        assert_eq!(decode("gzip", &gzip, TEXT.len() - 1), Err(EncodingError::TooLarge(TEXT.len() - 1)));
        assert!(matches!(decode("gzip", TEXT, 100), Err(EncodingError::Damaged { .. })));
        assert!(matches!(decode("gzip", &gzip[..20], 100), Err(EncodingError::Damaged { .. })));
        assert_eq!(decode("zstd", TEXT, 100), Err(EncodingError::Unknown("zstd".to_owned())));
        assert_eq!(decode("gzip, br", TEXT, 100), Err(EncodingError::Unknown("gzip, br".to_owned())));
    }

    #[test]
    fn a_label_that_names_no_compression_leaves_json_as_it_is() {
        for label in ["none", "UTF-8", "utf-8, identity"] {
            assert_eq!(decode(label, TEXT, 100).unwrap(), TEXT, "{label}");
        }
        for (label, body) in [("base64", &b"eyJtb2RlbCI6Im0ifQ=="[..]), ("none", &b"\x01{}"[..]), ("utf-8, br", TEXT)] {
            assert!(matches!(decode(label, body, 100), Err(EncodingError::Unknown(_))), "{label}");
        }
    }

    #[test]
    fn a_body_that_ends_early_is_kept_as_far_as_it_came() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TEXT).unwrap();
        gzip.flush().unwrap();
        let begun = gzip.get_ref().clone();
        assert_eq!(undone("gzip", &begun, 100), (TEXT.to_vec(), Some(Obstacle::EndsEarly)));
        assert_eq!(undone("gzip", &begun, 5), (TEXT[..5].to_vec(), Some(Obstacle::TooLarge)));
        assert_eq!(undone("br", &begun, 100), (Vec::new(), Some(Obstacle::Unknown)));
    }

    #[test]
    fn what_follows_the_members_of_a_body_is_left_out() {
        let member = |text: &[u8]| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(text).unwrap();
            gzip.finish().unwrap()
        };
        let (whole, begin, end) = (member(TEXT), member(&TEXT[..9]), member(&TEXT[9..]));
        for body in [
            [&whole[..], &[0; 16]].concat(),
            [&whole[..], &[0; 3]].concat(),
            [&whole[..], b"garbage"].concat(),
            [&begin[..], &end[..]].concat(),
            [&begin[..], &[0; 5], &end[..], &[0x1f, 0x8b]].concat(),
        ] {
            assert_eq!(undone("gzip", &body, 100), (TEXT.to_vec(), None), "{body:?}");
        }
        assert_eq!(undone("gzip", &whole[..whole.len() - 8], 100), (TEXT.to_vec(), Some(Obstacle::EndsEarly)));
        let both = [&begin[..], &end[..]].concat();
        assert_eq!(undone("gzip", &both, 12), (TEXT[..12].to_vec(), Some(Obstacle::TooLarge)));
        let mut other = whole.clone();
        let at = other.len() - 8;
        other[at] ^= 1;
        assert!(matches!(undone("gzip", &other, 100), (_, Some(Obstacle::Damaged(_)))));
    }

    #[test]
    fn compressed_bytes_are_no_text() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
        gzip.write_all(TEXT).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::none());
        zlib.write_all(TEXT).unwrap();
        let zlib = zlib.finish().unwrap();
        assert!(!is_text(&gzip) && !is_text(&gzip[..1]) && !is_text(&zlib) && !is_text(b"(\xb5/\xfd"));
        let cut = "data: \u{e4}\r\n".as_bytes();
        assert!(is_text(TEXT) && is_text(cut) && is_text(&cut[..7]) && !is_text(b"\xe4\xe4\xe4"));
    }
}
