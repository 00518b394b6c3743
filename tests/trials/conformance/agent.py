"""An ACP agent without a model, good or with one defect, named by its argument."""

import json
import os
import subprocess
import sys
import time
import urllib.request

DEFECT = sys.argv[1] if len(sys.argv) > 1 else "none"
MODELS = ["good", "better"]
next_id = 100
model = "good"
workspace = "."


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def lines():
    for line in sys.stdin:
        yield json.loads(line)
    leave()


def leave():
    if DEFECT == "holds-on":
        time.sleep(600)
    sys.exit(3 if DEFECT == "bad-exit" else 0)


INPUT = lines()


def update(body):
    send({"method": "session/update", "params": {"sessionId": "s", "update": body}})


def say(text):
    pieces = [text] if DEFECT == "one-piece" else [text[:20], text[20:40], text[40:]]
    for piece in pieces:
        update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}})


def options():
    values = [{"value": name, "name": name} for name in MODELS]
    return [{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": model, "options": values}]


def allowed(call):
    global next_id
    next_id += 1
    choices = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    params = {"sessionId": "s", "toolCall": {"toolCallId": call}, "options": choices}
    send({"id": next_id, "method": "session/request_permission", "params": params})
    for message in INPUT:
        if message.get("id") == next_id:
            return message["result"]["outcome"].get("optionId") == "yes"


def tool(call, kind, title, given, act, asks=False):
    if asks and DEFECT in ("disobeys-other", "calls-all-other"):
        kind = "other"
    body = {"sessionUpdate": "tool_call", "toolCallId": call, "kind": kind, "title": title}
    if DEFECT != "no-input":
        body["rawInput"] = given
    update(body)
    done = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed"}
    if asks and DEFECT != "never-asks" and not allowed(call):
        if DEFECT in ("disobeys", "disobeys-other"):
            act()
        update({**done, "status": "failed"})
        return
    output = act()
    if DEFECT != "no-result":
        update({**done, "content": [{"type": "content", "content": {"type": "text", "text": output}}]})


def write(name):
    with open(os.path.join(workspace, name), "w") as file:
        file.write("heron\n")
    return "written"


def read(name):
    with open(os.path.join(workspace, name)) as file:
        return file.read()


def run(command):
    return subprocess.run(command, shell=True, cwd=workspace, capture_output=True, text=True).stdout


def ask_model(text):
    """One request to the model that the environment points at, as an agent with a gateway makes it."""
    offered = {"read_file": ["path"], "write_file": ["path", "content"], "bash": ["command"]}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {key: {} for key in keys}}}}
        for name, keys in offered.items()
    ]
    body = {"model": os.environ["FAKE_MODEL"], "messages": [{"role": "user", "content": text}], "tools": tools}
    request = urllib.request.Request(
        os.environ["FAKE_GATEWAY"] + "/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("FAKE_API_KEY", "none")},
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()


def prompt(text):
    if "FAKE_GATEWAY" in os.environ:
        ask_model(text)
    if "sleep 20" in text:
        update({"sessionUpdate": "tool_call", "toolCallId": "long", "kind": "execute", "title": "sleep 20"})
        for message in INPUT:
            if message.get("method") == "session/cancel" and DEFECT != "ignores-cancel":
                return "end_turn" if DEFECT == "cancel-is-an-end" else "cancelled"
    if "refused.txt" in text:
        tool("w", "edit", "refused.txt", {"path": "refused.txt"}, lambda: write("refused.txt"), asks=True)
        tool("x", "execute", "touch", {"command": "touch refused-too.txt"}, lambda: run("touch refused-too.txt") or "ok", asks=True)
        say("I did what I was allowed to do, and left what I was not.")
    elif "notes.txt" in text:
        tool("r", "read", "notes.txt", {"path": "notes.txt"}, lambda: read("notes.txt"))
        tool("w", "edit", "made.txt", {"path": "made.txt"}, lambda: write("made.txt"), asks=True)
        tool("x", "execute", "touch", {"command": "touch checked.txt"}, lambda: run("touch checked.txt") or "ok", asks=True)
        say("All three things are done, one after the other, each with a tool.")
    else:
        if DEFECT == "orphan":
            subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if DEFECT == "runaway":
            quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.Popen(["sleep", "300"], start_new_session=True, **quiet)
        say("A test that cannot fail tells the same whatever the code does, so it tells nothing.")
    return "end_turn"


if DEFECT == "dies":
    sys.stderr.write("no configuration was found\n")
    sys.exit(1)
if DEFECT == "noise":
    print("Welcome to the agent!", flush=True)

for message in INPUT:
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        continue
    answer = {"id": message["id"]}
    if method == "initialize":
        version = 2 if DEFECT == "version-2" else 1
        send({**answer, "result": {"protocolVersion": version, "agentInfo": {"name": "fake", "version": "7.7"}}})
    elif method == "session/new":
        workspace = params["cwd"]
        if DEFECT == "login":
            send({**answer, "error": {"code": -32000, "message": "Authentication required"}})
        elif DEFECT == "no-session":
            send({**answer, "error": {"code": -32603, "message": "the database is locked"}})
        else:
            send({**answer, "result": {"sessionId": "s", "configOptions": options()}})
    elif method == "session/set_config_option":
        if DEFECT == "silent-model":
            continue
        if DEFECT == "accepts-any":
            model = params["value"]
        elif params["value"] in MODELS:
            model = params["value"]
        elif DEFECT != "keeps-its-model":
            send({**answer, "error": {"code": -32602, "message": "unknown model"}})
            continue
        send({**answer, "result": {"configOptions": options()}})
    elif method == "session/prompt":
        reason = prompt(params["prompt"][0]["text"])
        result = {"stopReason": reason}
        if DEFECT != "no-usage":
            result["usage"] = {"inputTokens": 40, "outputTokens": 20, "totalTokens": 60}
        send({**answer, "result": result})
    else:
        send({**answer, "error": {"code": -32601, "message": "method not found"}})
