//! Graders in real runs: wrong expressions with their place, scripts, test runners, and the examples of the documentation.

use crate::project::Project;

#[test]
fn a_wrong_expression_is_told_by_its_line_and_column() {
    let project = Project::new();
    let graders = "graders:\n  - stop: {reason: end_turn}\n  - expr:\n      cel: |\n        size(calls) < 9\n          && calls.exists(c, c.knid == 'edit')\n";
    project.case("a", graders, "");
    project.write("cases/suite.yaml", "graders:\n  - expr: {cel: \"output == 'ab' && siez(calls) > 1\"}\n");
    project
        .evals(&["check"])
        .exits(2)
        .says("cases/a.yaml:7:32")
        .says("a call has no `knid`")
        .says("did you mean `kind`?");
    project.evals(&["check"]).exits(2).says("cases/suite.yaml:2:36").says("there is no function `siez`");
    // The same in a named grader, in each way in which it may be written.
    for text in ["expr: {cel: 'out == 1'}", "grader: {expr: {cel: 'out == 1'}}", "graders: [{expr: {cel: 'out == 1'}}]"]
    {
        let project = Project::new();
        project.case("a", "graders: [{use: mine}]", "");
        project.write("graders/mine.yaml", &format!("description: d\n{text}\n"));
        let column = text.find("out").unwrap() + 1;
        project
            .evals(&["check"])
            .exits(2)
            .says(&format!("graders/mine.yaml:2:{column}"))
            .says("nothing is named `out`");
    }
}
