# Runs the command of a criterion: sh with_task.sh COMMAND. Written by `evals convert`.
# The files of the task are in the home of the graders while the command runs, and `TASK_DIR` names their folder.
main() {
  # Before each grader the engine restores the folder, also if an earlier command took longer than its timeout.
  rm -rf "$HOME/.evals-task" && mv .evals-task "$HOME/" || exit 125
  TASK_DIR=$HOME/.evals-task/files
  export TASK_DIR
  sh -c "$1"
  code=$?
  rm -rf .evals-task && mv "$HOME/.evals-task" .evals-task || exit 125
  exit "$code"
}
# A shell that reads a script in parts has read all of it here.
main "$@"
