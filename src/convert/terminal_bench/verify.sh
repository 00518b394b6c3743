#!/bin/sh
# Runs the tests of a Terminal-Bench task in its container. Written by `evals convert`.
if [ ! -f /.evals/set-up ]; then
  echo "the tests run only in the container of the trial" >&2
  exit 127
fi
here=$(cd "$(dirname "$0")" && pwd)
# As in the source, the tests find nothing of their own in the working directory while they run.
if [ "$here" != /.evals/verifier ]; then
  rm -rf /.evals/verifier && mv "$here" /.evals/verifier && exec sh /.evals/verifier/verify.sh "$here"
  echo "the tests could not be moved out of the working directory" >&2
  exit 127
fi
[ -d /root ] && HOME=/root && export HOME
rm -rf /tests && mkdir -p /tests && cp -R "$here/tests/." /tests/ && cp "$here/run-tests.sh" /tests/ || exit 127
TEST_DIR=/tests && export TEST_DIR
# The trial ends with its tests, so its container does too.
trap '(sleep 1; kill 1) >/dev/null 2>&1 &' EXIT
cd "$(cat /.evals/workdir)" || exit 127
rm -rf /.evals/test-output
bash /tests/run-tests.sh </dev/null >/.evals/test-output
code=$?
cat /.evals/test-output
# The engine compares the hidden files with those in the workspace. Without them, passed tests are ungraded.
rm -rf "$1" && cp -pR /.evals/verifier "$1"
# In the source, a test that passes although it is marked as failing (XPASS) has failed.
grep -Eq '^XPASS |[0-9] xpassed' /.evals/test-output
case $? in
  0)
    echo "a test passed although it is marked as failing (XPASS), which Terminal-Bench counts as failed" >&2
    exit 1
    ;;
  1) exit "$code" ;;
  *) exit 127 ;;
esac
