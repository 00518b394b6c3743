# Runs the command of a grader: sh with_hidden.sh COMMAND [FILE PATH]... Written by `evals convert`.
# The hidden files are in the home of the graders while the command runs. Each FILE of them is copied to its PATH.
kept=$HOME/.evals-hidden
# From the top, so that nothing behind a link is removed.
make_way() {
  if [ "$1" = . ]; then return; fi
  make_way "$(dirname "$1")"
  if [ -L "$1" ] || [ ! -d "$1" ]; then rm -f "$1"; fi
}
put() {
  make_way "$2"
  mkdir -p "$(dirname "$2")" && rm -rf "$(dirname "$2")/__pycache__" && cp -p "$kept/$1" "$2"
}
# A file that the command changed is changed in the folder of the hidden files, too, which the engine compares.
keep() {
  file=$2
  if [ -d "$file" ]; then file=$file/${1##*/}; fi
  cp -f "$file" "$kept/$1" 2>/dev/null || rm -f "$kept/$1"
}
each() {
  action=$1
  shift
  while [ $# -gt 1 ]; do
    "$action" "$1" "$2" || return 1
    shift 2
  done
}
main() {
  command=$1
  shift
  # Before each grader the engine restores the folder, also if an earlier command took longer than its timeout.
  rm -rf "$kept" && mv .evals-hidden "$kept" && each put "$@" || exit 125
  sh -c "$command"
  code=$?
  each keep "$@"
  rm -rf .evals-hidden && mv "$kept" .evals-hidden || exit 125
  exit "$code"
}
# A shell that reads a script in parts has read all of it here.
main "$@"
