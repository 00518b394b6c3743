"""Runs an assertion of promptfoo that is code, and prints its grade. Written by `evals convert`."""
import contextlib
import importlib.util
import json
import math
import sys
import textwrap

spec = json.loads("SPECIFICATION")
trial = json.load(sys.stdin)


class Unknown(BaseException):
    """What the source knew and a trial does not must not be taken for a value."""


class Known(dict):
    def __missing__(self, key):
        raise Unknown(f"the assertion reads `context[{key!r}]`, which a trial does not have")

    def get(self, key, default=None):
        return self[key]

    def __contains__(self, key):
        return self[key] is not None


def result(output, context):
    if "code" in spec:
        code = spec["code"]
        lines = code if "\n" in code else "return " + code.strip()
        text = "import json\n\ndef main(output, context):\n" + textwrap.indent(lines, "    ") + "\n"
        scope = {}
        exec(compile(text, "assertion", "exec"), scope)
        return scope["main"](output, context)
    try:
        loader = importlib.util.spec_from_file_location("assertion_code", sys.argv[1])
        module = importlib.util.module_from_spec(loader)
        loader.loader.exec_module(module)
    except Exception as error:
        raise Unknown(f"the code cannot be loaded: {error}")
    called = getattr(module, spec["function"] or "get_assert", None)
    if called is None:
        raise Unknown("the code has no function of that name")
    return called(output, context)


def grade(value):
    threshold, inverse, reason = spec["threshold"], spec["inverse"], ""
    if isinstance(value, str):
        low = value.strip().lower()
        if low in ("true", "false"):
            value = low == "true"
        else:
            value = json.loads(value)
    if isinstance(value, bool):
        passed = value != inverse
        score = 1.0 if passed else 0.0
    elif isinstance(value, (int, float)) and math.isfinite(value):
        passed = (value > 0 if threshold is None else value >= threshold) != inverse
        score = value
    elif isinstance(value, dict) and isinstance(value.get("pass", value.get("pass_")), bool) and "score" in value:
        score = value["score"]
        passed = value.get("pass", value.get("pass_")) and (threshold is None or score >= threshold)
        passed = passed != inverse
        reason = str(value.get("reason") or "")
    else:
        return {"passed": False, "reason": f"the code returned {type(value).__name__}, which is no grade"}
    told = reason or f"the code returned {value!r}"
    if not spec["scored"]:
        return {"passed": passed, "reason": told}
    # If the test has a threshold, scores count and not whether each assertion passed. The source adds any number.
    if not 0 <= score <= 1:
        return {"ungraded": f"the code gives the score {score}, which is not from 0 to 1"}
    if score == 1:
        return {"passed": True, "reason": told}
    return {"passed": False, "value": float(score), "reason": told}


try:
    if not isinstance(trial.get("output"), str):
        raise Unknown("the trial has no final answer")
    context = Known(vars=spec["vars"], prompt=spec["prompt"])
    if spec["config"] is not None:
        context["config"] = spec["config"]
    with contextlib.redirect_stdout(sys.stderr):
        printed = grade(result(trial["output"], context))
except Unknown as error:
    printed = {"ungraded": str(error)}
except Exception as error:
    printed = {"passed": False, "reason": f"the code raised an error: {error!r}"}
print(json.dumps(printed))
