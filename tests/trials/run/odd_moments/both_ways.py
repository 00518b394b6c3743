# What a program that speaks Claude Code's control protocol needs; a test adds what it does.
import json, os, sys, time


def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def say(*lines):
    # At once, so that they are read together.
    sys.stdout.write("".join(json.dumps({**line, "session_id": "s"}) + "\n" for line in lines))
    sys.stdout.flush()


messages = 0
spoken = "done"


def assistant(block):
    global messages, spoken
    messages += 1
    spoken = block.get("text", spoken)
    message = {"id": f"m{messages}", "role": "assistant", "model": "model-1", "content": [block]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


def text(said):
    return assistant({"type": "text", "text": said})


def tool(call, command):
    return assistant({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}})


def ask(request, call, command):
    asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}, "tool_use_id": call}
    return {"type": "control_request", "request_id": request, "request": asked}


def told(call, output):
    block = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None}


def result(**keys):
    ended = {"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn", "result": spoken}
    return {**ended, "total_cost_usd": 0.01, **keys}


def accepts(request):
    return {"type": "control_response", "response": {"subtype": "success", "request_id": request, "response": {}}}


def prompt():
    while True:
        line = hear()
        if line["type"] == "user":
            return line


def answer(request):
    while True:
        line = hear()
        if line["type"] == "control_response" and line["response"]["request_id"] == request:
            return line["response"]


say(accepts(hear()["request_id"]))
