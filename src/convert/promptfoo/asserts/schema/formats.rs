//! The formats of JSON schemas that promptfoo checks (ajv-formats), as keywords that check them here.

use serde_json::{Map, Value, json};

/// Returns the keywords that check a format, none if the source checks nothing, or `None` if the source does not know the
/// format.
pub fn keywords(format: &str) -> Option<Map<String, Value>> {
    let pattern = |pattern: &str| json!({"pattern": pattern});
    let keywords = match format {
        "date"
        | "date-time"
        | "hostname"
        | "ipv4"
        | "ipv6"
        | "json-pointer"
        | "regex"
        | "relative-json-pointer"
        | "time"
        | "uri"
        | "uri-reference"
        | "uri-template" => json!({"format": format}),
        // Draft 7 has no such formats, and its `email` accepts more.
        "byte" => pattern(BYTE),
        "duration" => pattern(DURATION),
        "email" => pattern(EMAIL),
        "iso-date-time" => pattern(ISO_DATE_TIME),
        "iso-time" => pattern(ISO_TIME),
        "json-pointer-uri-fragment" => pattern(JSON_POINTER_URI_FRAGMENT),
        "url" => pattern(URL),
        "uuid" => pattern(UUID),
        "int32" => json!({"multipleOf": 1, "minimum": i32::MIN, "maximum": i32::MAX}),
        "int64" => json!({"multipleOf": 1}),
        "binary" | "double" | "float" | "password" => json!({}),
        _ => return None,
    };
    keywords.as_object().cloned()
}

/// A text of which one line is base64.
const BYTE: &str =
    r"(?:^|[\n\r\u2028\u2029])(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?:[\n\r\u2028\u2029]|$)";
const DURATION: &str =
    r"^P(?!$)(?:(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?|(?:[0-9]+W)?)$";
const EMAIL: &str = r"^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$";
/// A date of a year with its leap day, and a time.
const ISO_DATE_TIME: &str = r"^(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)[tT\s](?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?|23:59:60(?:\.[0-9]+)?(?:[zZ]|[+-]00(?::?00)?)?)$";
/// A time with or without its offset. Of the leap seconds, only those of UTC are known.
const ISO_TIME: &str = r"^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?|23:59:60(?:\.[0-9]+)?(?:[zZ]|[+-]00(?::?00)?)?)$";
const JSON_POINTER_URI_FRAGMENT: &str = r"^#(?:/(?:[a-zA-Z0-9_\-.!$&'()*+,;:=@]|%[0-9a-fA-F]{2}|~0|~1)*)*$";
/// An address that is not in a private network.
const URL: &str = r"^(?:[hH][tT][tT][pP][sS]?|[fF][tT][pP])://(?:\S+(?::\S*)?@)?(?:(?!(?:10|127)(?:\.[0-9]{1,3}){3})(?!(?:169\.254|192\.168)(?:\.[0-9]{1,3}){2})(?!172\.(?:1[6-9]|2[0-9]|3[0-1])(?:\.[0-9]{1,3}){2})(?:[1-9][0-9]?|1[0-9][0-9]|2[01][0-9]|22[0-3])(?:\.(?:1?[0-9]{1,2}|2[0-4][0-9]|25[0-5])){2}(?:\.(?:[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-4]))|(?:(?:[a-zA-Z0-9\u00a1-\uffff]+-)*[a-zA-Z0-9\u00a1-\uffff]+)(?:\.(?:[a-zA-Z0-9\u00a1-\uffff]+-)*[a-zA-Z0-9\u00a1-\uffff]+)*(?:\.[a-zA-Z\u00a1-\uffff]{2,}))(?::[0-9]{2,5})?(?:/\S*)?$";
const UUID: &str = r"^(?:[uU][rR][nN]:[uU][uU][iI][dD]:)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_accepts_what_the_source_accepts() {
        let accepts = |format: &str, value: Value| {
            let schema = Value::Object(keywords(format).unwrap());
            jsonschema::options().should_validate_formats(true).build(&schema).unwrap().is_valid(&value)
        };
        for (format, good, bad) in [
            ("uuid", json!("urn:uuid:550E8400-e29b-41d4-a716-446655440000"), json!("550e8400e29b41d4a716446655440000")),
            ("duration", json!("P1DT2H"), json!("P1DT")),
            ("duration", json!("P2W"), json!("P")),
            ("url", json!("https://example.com/a?b"), json!("https://10.1.2.3/")),
            ("url", json!("HTTP://bücher.example"), json!("example.com")),
            ("int32", json!(-2_147_483_648), json!(2_147_483_648_u64)),
            ("int32", json!("no number"), json!(1.5)),
            ("int64", json!(1e20), json!(0.5)),
            ("byte", json!("aGk="), json!("aGk")),
            ("iso-date-time", json!("2024-02-29 12:00:00"), json!("2023-02-29T12:00:00")),
            ("iso-time", json!("12:00:00.5+0100"), json!("24:00:00")),
            ("iso-time", json!("23:59:60"), json!("12:00:60")),
            ("json-pointer-uri-fragment", json!("#/a/b~0"), json!("/a")),
            ("email", json!("A.b+c@d-e.example"), json!("a@localhost")),
            ("email", json!("a@b.ch"), json!("\"a b\"@c.de")),
            ("date", json!("2024-02-29"), json!("2023-02-29")),
        ] {
            assert!(accepts(format, good.clone()), "{format}: {good}");
            assert!(!accepts(format, bad.clone()), "{format}: {bad}");
        }
        assert_eq!((keywords("password"), keywords("iri")), (Some(Map::new()), None));
    }
}
