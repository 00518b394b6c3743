//! The reservations about a mined case, as texts: for the file of the case and for the report.

use crate::text::some_of;

/// The reservation about a commit message.
pub const THIN: &str = "the message says nothing about the task; write the prompt";

/// The maximum number of settings that a text names.
const SHOWN: usize = 5;

/// Returns the reservation about settings that are not protected, or `None` if there are none.
pub fn open_settings(settings: &[String]) -> Option<String> {
    let some = some_of(settings.iter().map(|path| format!("`{path}`")), SHOWN);
    (!settings.is_empty()).then(|| {
        format!(
            "{some} cannot be protected, because a test needs the commit's change of it: an agent can use it to replace the \
             packages of the tests"
        )
    })
}

/// Returns a reservation with a capital letter and a full stop.
pub fn sentence(reservation: &str) -> String {
    let mut rest = reservation.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_name_what_an_agent_can_change() {
        assert_eq!(open_settings(&[]), None);
        let open = open_settings(&["Cargo.toml".to_owned()]).unwrap();
        assert!(open.starts_with("`Cargo.toml` cannot be protected, "), "{open}");
        assert_eq!(sentence(THIN), "The message says nothing about the task; write the prompt.");
        assert_eq!(sentence(""), ".");
    }
}
