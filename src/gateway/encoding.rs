//! Decompresses the body of a request, which an agent may have compressed, and of an answer, which a service may have.

use std::io::{self, Read};

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

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

/// Returns the body of a request without its content encoding, of at most `most` bytes if it has one.
///
/// # Errors
/// Returns an error if the body cannot be decompressed.
pub fn decoded(headers: &HeaderMap, body: &Bytes, most: usize) -> Result<Bytes, EncodingError> {
    let encoding = name_of(headers);
    if encoding.is_empty() || body.is_empty() {
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

/// Returns a body without its content encoding, as far as the encoding could be undone and at most `most` bytes, and the reason
/// why the rest is missing.
pub fn undone(encoding: &str, body: &[u8], most: usize) -> (Vec<u8>, Option<Obstacle>) {
    match encoding {
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(body), most),
        "deflate" if is_zlib(body) => read(ZlibDecoder::new(body), most),
        // Some programs leave out the head of the format.
        "deflate" => read(DeflateDecoder::new(body), most),
        _ => (Vec::new(), Some(Obstacle::Unknown)),
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
    fn a_body_that_ends_early_is_kept_as_far_as_it_came() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TEXT).unwrap();
        gzip.flush().unwrap();
        let begun = gzip.get_ref().clone();
        assert_eq!(undone("gzip", &begun, 100), (TEXT.to_vec(), Some(Obstacle::EndsEarly)));
        assert_eq!(undone("gzip", &begun, 5), (TEXT[..5].to_vec(), Some(Obstacle::TooLarge)));
        assert_eq!(undone("br", &begun, 100), (Vec::new(), Some(Obstacle::Unknown)));
    }
}
