#!/bin/sh
# Runs the verifier of a Harbor task in its container, and prints the rewards as grades. Written by `evals convert`.
ungraded() {
  printf '{"ungraded": "%s"}\n' "$1"
  exit 0
}
[ -f /.evals/workdir ] || ungraded "the verifier runs only in the container of the task"
[ -f /.evals/set-up ] || ungraded "the container of the trial has ended, and its state is gone"
here=$(cd "$(dirname "$0")" && pwd)
# As in the source, the verifier finds nothing of its own in the working directory while it runs.
if [ "$here" != /.evals/verifier ]; then
  rm -rf /.evals/verifier && mv "$here" /.evals/verifier && exec sh /.evals/verifier/verify.sh "$here"
  ungraded "the verifier could not be moved out of the working directory"
fi
[ -d /root ] && HOME=/root && export HOME
@ENV@
rm -rf /tests && mkdir -p /tests /logs/verifier && cp -R "$here/tests/." /tests/ || ungraded "the tests could not be copied to /tests"
# A reward from before the verification must not count.
rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
[ ! -e /logs/verifier/reward.txt ] && [ ! -e /logs/verifier/reward.json ] || ungraded "an earlier reward could not be removed"
chmod +x /tests/test.sh
(cd "$(cat /.evals/workdir)" && /tests/test.sh >/logs/verifier/test-stdout.txt 2>&1 </dev/null)
tail -c 4000 /logs/verifier/test-stdout.txt >&2
# The trial ends with its verification, so its container does too.
trap '(sleep 1; kill 1) >/dev/null 2>&1 &' EXIT
# Later graders find the hidden files again.
rm -rf "$1" && cp -pR /.evals/verifier "$1" || ungraded "the verifier could not be put back into the workspace"
if [ -f /logs/verifier/reward.json ]; then
  file=/logs/verifier/reward.json kind=json
elif [ -f /logs/verifier/reward.txt ]; then
  file=/logs/verifier/reward.txt kind=text
else
  ungraded "the verifier wrote neither reward.txt nor reward.json"
fi
awk -v kind="$kind" '
function failed(why) { printf "{\"ungraded\": \"%s\"}\n", why; bad = 1; exit 0 }
function grade(name, text,   v, share) {
  if (kind == "json" && text == "true") text = "1"
  if (kind == "json" && text == "false") text = "0"
  if (text !~ /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/) failed("the reward " name " is not a finite number")
  v = text + 0
  if (v > 1.000000001) failed("the reward " name " is above 1, so its scale is unknown")
  if (v >= 0.999999999) return "{\"name\": \"" name "\", \"passed\": true, \"reason\": \"the reward is 1\"}"
  share = v < 0 ? 0 : v
  return "{\"name\": \"" name "\", \"passed\": false, \"value\": " sprintf("%.6f", share) ", \"reason\": \"the reward is " text "\"}"
}
{ all = all $0 " " }
END {
  if (bad) exit 0
  gsub(/[ \t\r\n]+$/, "", all); gsub(/^[ \t\r\n]+/, "", all)
  if (all == "") failed("the reward file is empty")
  if (kind == "text") { out = grade("reward", all); if (!bad) print out; exit 0 }
  if (all !~ /^\{.*\}$/) failed("reward.json is no object of numbers")
  rest = substr(all, 2, length(all) - 2); out = ""; n = 0
  while (1) {
    sub(/^[ \t]+/, "", rest)
    if (!match(rest, /^"[A-Za-z0-9_. \/:-]+"[ \t]*:[ \t]*/)) failed("reward.json is no object of numbers, or has a name that cannot be read")
    head = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
    split(head, part, "\""); name = part[2]
    if (name in seen) failed("reward.json has a name twice")
    seen[name] = 1
    if (!match(rest, /^[^, \t]+/)) failed("reward.json has no number for a name")
    item = grade(name, substr(rest, 1, RLENGTH)); if (bad) exit 0
    rest = substr(rest, RLENGTH + 1); sub(/^[ \t]+/, "", rest)
    out = out (n++ ? ", " : "") item
    if (rest == "") break
    if (substr(rest, 1, 1) != ",") failed("reward.json is no object of numbers")
    rest = substr(rest, 2)
  }
  print "[" out "]"
}' "$file"
