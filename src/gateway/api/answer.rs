//! Reads the answers of all APIs: their texts, whether they call tools, and whether the model finished.

use serde_json::Value;

use super::Api;
use crate::gateway::words::{listed, text, text_of};

/// The content of a model's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The id of the answer. Empty if it has none.
    pub id: String,
    /// The texts, without thoughts.
    pub text: String,
    /// True if the answer calls tools of the agent.
    pub calls: bool,
    /// True if the service reports the reason why the model stopped.
    pub finished: bool,
    /// True if the output limit of the model ended the answer.
    pub at_limit: bool,
    /// True if a content filter of the service ended the answer.
    pub filtered: bool,
}

/// The reasons by which Gemini states that a content filter ended an answer.
const GEMINI_FILTERS: [&str; 5] = ["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"];

impl Api {
    /// Returns the answer of a model in a response. Returns `None` if the response contains nothing of an answer.
    pub fn model_answer(self, response: &Value) -> Option<ModelAnswer> {
        if let Value::Array(elements) = response {
            return elements.iter().find_map(|element| self.model_answer(element));
        }
        match self {
            Api::Anthropic => anthropic(response),
            Api::OpenaiResponses => openai_responses(response),
            Api::OpenaiChat => openai_chat(response),
            Api::Gemini => gemini(response),
        }
    }
}

fn anthropic(response: &Value) -> Option<ModelAnswer> {
    let blocks = response.get("content")?.as_array()?;
    Some(ModelAnswer {
        id: text(response, "id").to_owned(),
        text: text_of(&response["content"]),
        calls: blocks.iter().any(|block| text(block, "type") == "tool_use"),
        finished: response["stop_reason"].is_string(),
        at_limit: text(response, "stop_reason") == "max_tokens",
        filtered: text(response, "stop_reason") == "refusal",
    })
}

fn openai_responses(response: &Value) -> Option<ModelAnswer> {
    let items = response.get("output")?.as_array()?;
    let status = text(response, "status");
    if matches!(status, "failed" | "cancelled") {
        return None;
    }
    let texts = items.iter().filter(|item| text(item, "type") == "message").map(|item| text_of(&item["content"]));
    let is_incomplete = |why: &str| status == "incomplete" && text(&response["incomplete_details"], "reason") == why;
    Some(ModelAnswer {
        id: text(response, "id").to_owned(),
        text: texts.collect::<Vec<_>>().join("\n"),
        // The service itself carries out calls that have no such id.
        calls: items.iter().any(|item| text(item, "type").ends_with("_call") && item.get("call_id").is_some()),
        finished: matches!(status, "completed" | "incomplete"),
        at_limit: is_incomplete("max_output_tokens"),
        filtered: is_incomplete("content_filter"),
    })
}

fn openai_chat(response: &Value) -> Option<ModelAnswer> {
    let choices = response.get("choices")?.as_array()?;
    choices.first()?;
    let calls = |choice: &Value| {
        let message = &choice["message"];
        !listed(&message["tool_calls"]).is_empty() || message["function_call"].is_object()
    };
    let texts = choices.iter().map(|choice| text_of(&choice["message"]["content"]));
    Some(ModelAnswer {
        id: text(response, "id").to_owned(),
        text: texts.collect::<Vec<_>>().join("\n"),
        calls: choices.iter().any(calls),
        finished: choices.iter().all(|choice| !text(choice, "finish_reason").is_empty()),
        at_limit: choices.iter().any(|choice| text(choice, "finish_reason") == "length"),
        filtered: choices.iter().any(|choice| text(choice, "finish_reason") == "content_filter"),
    })
}

fn gemini(response: &Value) -> Option<ModelAnswer> {
    let candidates = listed(&response["candidates"]);
    let is_blocked = response["promptFeedback"]["blockReason"].is_string();
    if candidates.is_empty() && !is_blocked {
        return None;
    }
    let parts = || candidates.iter().flat_map(|candidate| listed(&candidate["content"]["parts"]));
    let texts = parts().filter(|part| part["thought"] != true).map(|part| text(part, "text"));
    Some(ModelAnswer {
        id: text(response, "responseId").to_owned(),
        text: texts.collect::<Vec<_>>().join("\n"),
        calls: parts().any(|part| part.get("functionCall").is_some()),
        finished: candidates.iter().all(|candidate| candidate["finishReason"].is_string()),
        at_limit: candidates.iter().any(|candidate| text(candidate, "finishReason") == "MAX_TOKENS"),
        filtered: is_blocked
            || candidates.iter().any(|candidate| GEMINI_FILTERS.contains(&text(candidate, "finishReason"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::script::Stop;
    use crate::gateway::{Call, Reply};

    #[test]
    fn an_answer_is_read_in_the_form_of_its_api() {
        for api in Api::ALL {
            let mut reply = Reply { text: Some("Done.".to_owned()), id: "1".to_owned(), ..Reply::default() };
            let read = api.model_answer(&api.whole(&reply)).unwrap();
            assert_eq!((&*read.text, read.calls, read.finished), ("Done.", false, true), "{api:?}");
            assert!(read.id.ends_with('1'), "{api:?}: {}", read.id);
            assert!(!read.at_limit && !read.filtered, "{api:?}");
            let cut = Reply { stop: Stop::MaxTokens, ..reply.clone() };
            assert!(api.model_answer(&api.whole(&cut)).unwrap().at_limit, "{api:?}");
            let filtered = Reply { stop: Stop::ContentFilter, ..reply.clone() };
            assert!(api.model_answer(&api.whole(&filtered)).unwrap().filtered, "{api:?}");
            let input = serde_json::json!({});
            reply.calls = vec![Call {
                call: "c1".to_owned(),
                kind: "tool".into(),
                tool: "sh".to_owned(),
                group: None,
                input,
                through: None,
                freeform: false,
            }];
            reply.stop = Stop::ToolCalls;
            assert!(api.model_answer(&api.whole(&reply)).unwrap().calls, "{api:?}");
        }
    }

    #[test]
    fn a_response_without_an_answer_is_none() {
        for response in
            [r#"{"detail": "Unauthorized"}"#, "{}", r#"{"choices": [], "candidates": []}"#, "\"text\"", "[]"]
        {
            let response: Value = serde_json::from_str(response).unwrap();
            for api in Api::ALL {
                assert_eq!(api.model_answer(&response), None, "{api:?}: {response}");
            }
        }
        let failed = serde_json::json!({"status": "failed", "error": null, "output": []});
        assert_eq!(Api::OpenaiResponses.model_answer(&failed), None);
        let blocked = serde_json::json!({"promptFeedback": {"blockReason": "SAFETY"}});
        assert!(Api::Gemini.model_answer(&blocked).unwrap().finished);
    }
}
