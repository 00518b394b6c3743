"""Checks that the answer is one line of the form SERVICE CODE, and that it names an existing log."""
import json
import pathlib
import re
import sys

told = json.load(sys.stdin)
lines = [line for line in told["output"].splitlines() if line.strip()]
form = len(lines) == 1 and re.fullmatch(r"\W*(\S+?)\W+(E\d+)\W*", lines[0])
grades = [{"passed": bool(form), "reason": f"the answer has {len(lines)} lines" if len(lines) != 1 else f"the line is {lines[0]!r}"}]
if form:
    logs = sorted(path.stem for path in pathlib.Path(told["workspace"], "logs").glob("*.log"))
    grades.append({
        "name": "a service that has a log",
        "passed": form.group(1).strip("`*") in logs,
        "reason": f"the logs are of {', '.join(logs)}",
    })
json.dump(grades, sys.stdout)
