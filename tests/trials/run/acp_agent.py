#!/usr/bin/env python3
"""An agent over ACP whose prompts are programs: each is run with the functions below."""
import json, os, sys, threading, time

SESSION = "session-1"
STORE = os.path.join(os.environ["HOME"], "sessions.json")
number, answers, cancelled, told, logged_in = 0, {}, False, [], None

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def hear():
    """Takes a line: an answer is kept, a prompt or another request is given back."""
    global cancelled
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    if "method" not in message:
        answers[message["id"]] = message
    elif message["method"] == "session/cancel":
        cancelled = True
    else:
        return message

def later(method, **params):
    """Asks the client something and does not wait for the answer. A parameter `_` ends nothing."""
    global number
    number += 1
    params = {key.rstrip("_"): value for key, value in params.items()}
    send({"id": number, "method": method, "params": {"sessionId": SESSION, **params}})
    return number

def answer(number):
    while number not in answers:
        hear()
    return answers.pop(number)

def ask(method, **params):
    """The whole answer, a result or an error."""
    return answer(later(method, **params))

def get(method, **params):
    """The result."""
    told = ask(method, **params)
    assert "result" in told, (method, params, told)
    return told["result"]

def code(method, **params):
    """The code of the error."""
    told = ask(method, **params)
    assert "error" in told, (method, params, told)
    return told["error"]["code"]

def update(word, **fields):
    send({"method": "session/update", "params": {"sessionId": SESSION, "update": {"sessionUpdate": word, **fields}}})

def say(text):
    update("agent_message_chunk", content={"type": "text", "text": str(text)})

def call(id, word="tool_call", **fields):
    update(word, toolCallId=id, **fields)

def shows(terminal):
    return [{"type": "terminal", "terminalId": terminal}]

def terminal(line, **params):
    return get("terminal/create", command="sh", args=["-c", line], **params)["terminalId"]

def pause(seconds):
    """Lets time go by and hears nothing."""
    time.sleep(seconds)

def until_cancelled():
    while not cancelled:
        hear()

def of_env(name, default="null"):
    return json.loads(os.environ.get(name, default))

def opened():
    return {key: value for key, value in {"modes": of_env("MODES"), "configOptions": of_env("OPTIONS")}.items() if value}

def store():
    try:
        return json.load(open(STORE))
    except OSError:
        return []

while True:
    message = hear()
    if message is None:
        continue
    method, params, id = message["method"], message.get("params", {}), message.get("id")
    if method == "initialize":
        client = params["clientCapabilities"]
        methods = {"authMethods": of_env("METHODS")} if os.environ.get("METHODS") else {}
        send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities": of_env("CAN", "{}"), **methods}})
    elif method == "authenticate":
        error = os.environ.get("REFUSES_LOGIN")
        logged_in = params["methodId"]
        send({"id": id, **({"error": {"code": -32603, "message": error}} if error else {"result": {}})})
    elif method == "session/new" and os.environ.get("WANTS_LOGIN", logged_in) != logged_in:
        send({"id": id, "error": {"code": -32000, "message": "Authentication required"}})
    elif method == "session/new":
        send({"id": id, "result": {"sessionId": SESSION, **opened()}})
    elif method in ("session/load", "session/resume"):
        history = store()
        assert params["sessionId"] == SESSION and history, params
        if os.environ.get("REFUSES_LOAD"):
            send({"id": id, "error": {"code": -32002, "message": "no such session"}})
            continue
        if method == "session/load":
            for turn in history:
                update("user_message_chunk", content={"type": "text", "text": turn})
                say("I said something then")
            exec(os.environ.get("HISTORY", ""), globals())
        # What there is to choose from is not said again.
        send({"id": id, "result": None})
        exec(os.environ.get("LATE_HISTORY", ""), globals())
    elif method == "session/set_mode":
        told.append(params["modeId"])
        update("current_mode_update", currentModeId=os.environ.get("MODE_AFTER", params["modeId"]))
        error = os.environ.get("REFUSES_MODE")
        send({"id": id, **({"error": {"code": -32602, "message": error}} if error else {"result": {}})})
    elif method == "session/set_config_option":
        told.append(params["configId"] + "=" + params["value"])
        options = of_env("OPTIONS")
        for option in options:
            if option["id"] == params["configId"]:
                option["currentValue"] = os.environ.get("MODE_AFTER", params["value"])
        send({"id": id, "result": {"configOptions": options}})
    elif method == "session/prompt":
        cancelled = False
        prompt = params["prompt"]
        history = store() + [prompt[0]["text"]]
        json.dump(history, open(STORE, "w"))
        exec(prompt[0]["text"], globals())
        send({"id": id, "result": {"stopReason": "cancelled" if cancelled else "end_turn"}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "not served"}})
