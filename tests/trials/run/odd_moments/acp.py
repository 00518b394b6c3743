# What an agent that speaks ACP needs; a test adds what it does.
import json, os, sys, time


def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def say(*lines):
    # At once, so that they are read together.
    sys.stdout.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines))
    sys.stdout.flush()


def result(of, value):
    return {"id": of, "result": value}


def update(**keys):
    return {"method": "session/update", "params": {"sessionId": "s", "update": keys}}


def text(said):
    return update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": said})


def described(call, command):
    return {"toolCallId": call, "title": "Run", "kind": "execute", "status": "pending", "rawInput": {"command": command}}


def tool(call, command):
    return update(sessionUpdate="tool_call", **described(call, command))


def told(call, output):
    return update(sessionUpdate="tool_call_update", toolCallId=call, status="completed", rawOutput=output)


def ask(request, call, command, ids=("y", "n")):
    offered = [("allow_once", ids[0]), ("reject_once", ids[1])]
    options = [{"optionId": option, "kind": kind, "name": kind} for kind, option in offered]
    params = {"sessionId": "s", "toolCall": described(call, command), "options": options}
    return {"id": request, "method": "session/request_permission", "params": params}


def prompt():
    while True:
        line = hear()
        if line.get("method") == "session/prompt":
            return line["id"]


def end(turn):
    return result(turn, {"stopReason": "end_turn"})


def answer(request):
    while True:
        line = hear()
        if line.get("id") == request and "method" not in line:
            return line


can = json.loads(os.environ.get("CAN", "{}"))
say(result(hear()["id"], {"protocolVersion": 1, "agentCapabilities": can}))
say(result(hear()["id"], {"sessionId": "s"}))
