"""Checks which files of lib/ define the function pad(): it must be lib/text.sh only."""
import json
import pathlib
import re
import sys

told = json.load(sys.stdin)
root = pathlib.Path(told["workspace"])
define = re.compile(r"^\s*(function\s+)?pad\s*\(\)", re.MULTILINE)
found = [str(path.relative_to(root)) for path in sorted((root / "lib").rglob("*.sh")) if define.search(path.read_text())]
passed = found == ["lib/text.sh"]
json.dump({"passed": passed, "reason": f"pad() is defined in {', '.join(found) or 'no file of lib/'}"}, sys.stdout)
