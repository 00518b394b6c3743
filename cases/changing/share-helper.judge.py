"""Says in which files of lib/ the function pad() is defined: it has to be lib/text.sh alone."""
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
