//! Converts files that a case sends to content blocks of the kinds that the agent accepts.

use serde_json::{Value, json};

use crate::attachment::{Attached, Content, Kind, MAX_INLINE_BYTES};

/// Returns the blocks of a prompt. A file that the agent does not accept, or that is too large, becomes a link to a
/// copy that the agent can reach.
pub(crate) fn of(attached: &[Attached], can: &Value) -> Vec<Value> {
    let takes = |key: &str| can.pointer(&format!("/promptCapabilities/{key}")).and_then(Value::as_bool) == Some(true);
    let (image, audio, embedded) = (takes("image"), takes("audio"), takes("embeddedContext"));
    let mut room = MAX_INLINE_BYTES;
    let mut block = |file: &Attached| {
        let fits = file.content.size() <= room;
        let media = (file.kind == Kind::Image && image) || (file.kind == Kind::Audio && audio);
        if !fits || !(media || embedded) {
            return link(file);
        }
        room -= file.content.size();
        if media {
            let kind = if file.kind == Kind::Image { "image" } else { "audio" };
            return json!({"type": kind, "mimeType": file.media_type, "data": file.content.base64()});
        }
        let mut resource = json!({"uri": file.uri(), "mimeType": file.media_type});
        match &file.content {
            Content::Text(text) => resource["text"] = json!(text),
            Content::Bytes(_) => resource["blob"] = json!(file.content.base64()),
        }
        json!({"type": "resource", "resource": resource})
    };
    attached.iter().map(&mut block).collect()
}

fn link(file: &Attached) -> Value {
    json!({
        "type": "resource_link",
        "uri": file.uri(),
        "name": file.name,
        "mimeType": file.media_type,
        "size": file.content.size(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: &[u8]) -> Attached {
        Attached::new(name.to_owned(), format!("/home/x y/{name}").into(), bytes.to_vec())
    }

    fn kinds(attached: &[Attached], can: Value) -> Vec<String> {
        let can = json!({"promptCapabilities": can});
        of(attached, &can).iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_file_is_sent_as_the_agent_takes_it() {
        let files = [file("a.png", b"png"), file("b.wav", b"wav"), file("c.md", b"text"), file("d.bin", &[0xff])];
        assert_eq!(
            kinds(&files, json!({"image": true, "audio": true})),
            ["image", "audio", "resource_link", "resource_link"]
        );
        assert_eq!(kinds(&files, json!({"embeddedContext": true})), ["resource"; 4]);
        assert_eq!(kinds(&files, json!({})), ["resource_link"; 4]);
        assert_eq!(kinds(&files, json!({"image": "yes"})), ["resource_link"; 4]);
        let blocks = of(&files, &json!({"promptCapabilities": {"embeddedContext": true, "image": true}}));
        assert_eq!(blocks[0], json!({"type": "image", "mimeType": "image/png", "data": "cG5n"}));
        assert_eq!(
            blocks[2]["resource"],
            json!({"uri": "file:///home/x%20y/c.md", "mimeType": "text/markdown", "text": "text"})
        );
        assert_eq!(blocks[3]["resource"]["blob"], "/w==");
        assert_eq!(of(&files[..1], &Value::Null)[0]["size"], 3);
    }

    #[test]
    fn what_is_too_much_for_a_prompt_is_linked() {
        let half = vec![b'x'; MAX_INLINE_BYTES as usize / 2 + 1];
        let files = [file("a.txt", &half), file("b.txt", &half), file("c.txt", b"short")];
        assert_eq!(kinds(&files, json!({"embeddedContext": true})), ["resource", "resource_link", "resource"]);
    }
}
