#!/bin/sh
# Runs the tests of a Terminal-Bench task in its container. Written by `evals convert`.
if [ ! -f /.evals/set-up ]; then
  echo "the tests run only in the container of the trial" >&2
  exit 127
fi
here=$(cd "$(dirname "$0")" && pwd)
[ -d /root ] && HOME=/root && export HOME
rm -rf /tests && mkdir -p /tests && cp -R "$here/tests/." /tests/ && cp "$here/run-tests.sh" /tests/ || exit 127
TEST_DIR=/tests && export TEST_DIR
# The trial ends with its tests, so its container does too.
trap '(sleep 1; kill 1) >/dev/null 2>&1 &' EXIT
cd "$(cat /.evals/workdir)" || exit 127
bash /tests/run-tests.sh </dev/null
