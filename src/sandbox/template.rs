//! `command`: a command line of the user that wraps the agent's, such as docker's or ssh's.

use std::collections::BTreeMap;

use super::Places;

/// Fills in the template. Without `{command}`, the command is added at the end.
pub(super) fn around(
    template: &[String],
    places: &Places,
    command: Vec<String>,
    env: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut words = Vec::new();
    let mut command = Some(command);
    for word in template {
        match word.as_str() {
            "{command}" => words.extend(command.take().into_iter().flatten()),
            // Only the names are passed: a value in the arguments would be visible to everyone on the machine.
            "{env}" => words.extend(env.keys().flat_map(|name| ["--env".to_owned(), name.clone()])),
            word => words.push(
                word.replace("{workspace}", &places.workspace.to_string_lossy())
                    .replace("{home}", &places.home.to_string_lossy()),
            ),
        }
    }
    words.extend(command.into_iter().flatten());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_takes_the_command_its_folders_and_the_names_of_its_variables() {
        let places = Places { workspace: "/t/ws".into(), home: "/t/home".into(), ..Places::default() };
        let env = [("KEY".to_owned(), "secret".to_owned())].into();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let run = |template: &str| around(&words(template), &places, words("agent {workspace}"), &env).join(" ");
        assert_eq!(
            run("docker run -i {env} -v {workspace}:{workspace} -w {workspace} img {command} end"),
            "docker run -i --env KEY -v /t/ws:/t/ws -w /t/ws img agent {workspace} end"
        );
        assert_eq!(run("nice -n {home}"), "nice -n /t/home agent {workspace}");
    }
}
