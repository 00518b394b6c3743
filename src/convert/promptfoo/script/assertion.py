"""Runs an assertion of promptfoo that is code, and prints its grade. Written by `evals convert`."""
import contextlib
import importlib.util
import json
import math
import os
import sys
import textwrap

spec = json.loads("SPECIFICATION")
trial = json.load(sys.stdin)


class Unknown(BaseException):
    """What the source knew and a trial does not must not be taken for a value, also if the code catches the error."""

    first = None

    def __init__(self, message):
        super().__init__(message)
        Unknown.first = Unknown.first or message


class Known(dict):
    def __missing__(self, key):
        raise Unknown(f"the assertion reads `context[{key!r}]`, which a trial does not have")

    def get(self, key, default=None):
        return self[key]

    def __contains__(self, key):
        return self[key] is not None


def is_asked_by_code():
    """Returns true if the code calls the method that calls this function."""
    frame = sys._getframe(2)
    while frame and frame.f_globals.get("__name__") in ("os", "posixpath", "collections.abc", "_collections_abc"):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == CODE


def unset(key):
    key, way = os.fsdecode(key), "write it into `env` of the case"
    return Unknown(f"the assertion reads the variable `{key}`, which a trial does not have; {way}")


# Whether the code looks for a name in the list, or in a copy, is not shown.
LISTED = "the assertion lists or copies the environment, and a trial does not have all of its variables"


class Variables(type(os.environ)):
    """The environment with the variables of a trial. Modules that the code loads may ask for others."""

    def __getitem__(self, key):
        try:
            return super().__getitem__(key)
        except KeyError:
            if is_asked_by_code():
                raise unset(key)
            raise

    def __iter__(self):
        if is_asked_by_code():
            raise Unknown(LISTED)
        return super().__iter__()

    def __repr__(self):
        if is_asked_by_code():
            raise Unknown(LISTED)
        return super().__repr__()

    def copy(self):
        return Copy(super().copy())

    def __or__(self, other):
        return Copy(super().__or__(other))

    def __ror__(self, other):
        return Copy(super().__ror__(other))


def lookup(name):
    """Returns the method of `dict` with a key, for variables of which a trial may not have all."""

    def method(self, key, *rest):
        if not dict.__contains__(self, key) and is_asked_by_code():
            raise unset(key)
        return getattr(dict, name)(self, key, *rest)

    return method


def listing(name):
    """Returns the method of `dict` that lists it, for variables of which a trial may not have all."""

    def method(self):
        if is_asked_by_code():
            raise Unknown(LISTED)
        return getattr(dict, name)(self)

    return method


class Copy(dict):
    """A copy of the environment, for a program that the code starts."""

    LOOKUPS = ("__getitem__", "__contains__", "__delitem__", "get", "pop", "setdefault")
    __getitem__, __contains__, __delitem__, get, pop, setdefault = map(lookup, LOOKUPS)
    LISTINGS = ("__iter__", "__reversed__", "__repr__", "keys", "values", "items")
    __iter__, __reversed__, __repr__, keys, values, items = map(listing, LISTINGS)

    def copy(self):
        return Copy(super().copy())

    def __or__(self, other):
        return Copy(super().__or__(other))

    def __ror__(self, other):
        return Copy(super().__ror__(other))


CODE = "assertion_code"
os.environ.__class__ = Variables
os.environb.__class__ = Variables


def result(output, context):
    if "code" in spec:
        code = spec["code"]
        lines = code if "\n" in code else "return " + code.strip()
        text = "import json\n\ndef main(output, context):\n" + textwrap.indent(lines, "    ") + "\n"
        scope = {"__name__": CODE}
        exec(compile(text, "assertion", "exec"), scope)
        return scope["main"](output, context)
    try:
        loader = importlib.util.spec_from_file_location(CODE, sys.argv[1])
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
if Unknown.first is not None:
    printed = {"ungraded": Unknown.first}
print(json.dumps(printed))
