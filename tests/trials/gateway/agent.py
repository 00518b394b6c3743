"""A small coding agent: asks a model over Anthropic's API, does what it says, and tells of it as Claude Code does."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

SESSION = str(uuid.uuid4())

TOOLS = [
    {"name": "Write", "input_schema": {"type": "object", "required": ["file_path", "content"], "properties": {
        "file_path": {"type": "string", "description": "The absolute path of the file"},
        "content": {"type": "string"}}}},
    {"name": "Bash", "input_schema": {"type": "object", "required": ["command"], "properties": {
        "command": {"type": "string"}}}},
]


def say(line):
    print(json.dumps(line), flush=True)


def ask(messages):
    """One answer of the model, put together from its stream."""
    body = {"model": os.environ.get("AGENT_MODEL", "none"), "max_tokens": 1000, "stream": True, "tools": TOOLS,
            "messages": messages}
    if os.environ.get("AGENT_TELLS"):  # where and when it works, as most agents do
        body["system"] = "Working directory: %s\nHome: %s\nSession: %s\nTime: %s\n" % (
            os.getcwd(), os.environ["HOME"], SESSION, time.strftime("%Y-%m-%dT%H:%M:%SZ"))
        body["metadata"] = {"user_id": SESSION}
    request = urllib.request.Request(os.environ["AGENT_URL"] + "/v1/messages", json.dumps(body).encode(),
                                     {"content-type": "application/json", "x-api-key": os.environ["AGENT_API_KEY"]})
    message, blocks = {}, []
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        if os.environ.get("AGENT_MODE") != "goes-on":
            raise
        return {"content": [{"type": "text", "text": "I go on without %s." % error.code}],
                "usage": {"input_tokens": 0, "output_tokens": 0}}
    with answer:
        for line in answer:
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            if event["type"] == "message_start":
                message = event["message"]
            elif event["type"] == "content_block_start":
                blocks.append(event["content_block"])
                blocks[-1]["parts"] = ""
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                blocks[-1]["parts"] += delta.get("text") or delta.get("thinking") or delta.get("partial_json") or ""
            elif event["type"] == "message_delta":
                message.update(event["delta"], usage=event["usage"])
    for block in blocks:
        text = block.pop("parts")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
        else:
            block[block["type"]] = text
    return dict(message, content=blocks)


def carry_out(call):
    given = call["input"]
    if call["name"] == "Write":
        with open(given["file_path"], "w") as file:
            file.write(given["content"])
        return "written", False
    done = subprocess.run(given["command"], shell=True, capture_output=True, text=True)
    failed = done.returncode != 0
    return ("Exit code %d\n" % done.returncode if failed else "") + done.stdout + done.stderr, failed


def main():
    say({"type": "system", "subtype": "init", "session_id": "s", "cwd": os.getcwd(),
         "model": os.environ.get("AGENT_MODEL", "none"), "tools": [tool["name"] for tool in TOOLS]})
    if os.environ.get("AGENT_CONFIG"):
        with open(os.path.join(os.environ["HOME"], os.environ["AGENT_CONFIG"])) as file:
            os.environ.update(json.load(file))
    total = {"input_tokens": 0, "output_tokens": 0}
    prompt = {"role": "user", "content": sys.argv[1]}
    messages = [prompt]
    opening = os.environ.get("AGENT_MODE")
    if opening == "context":  # words that the program puts into the model's mouth
        messages = [{"role": "user", "content": "This is where you work."},
                    {"role": "assistant", "content": "Thanks for the context!"}, prompt]
    elif opening == "warm-up":  # a first exchange that is real
        hello = [{"role": "user", "content": "hi"}]
        messages = [*hello, {"role": "assistant", "content": ask(hello)["content"]}, prompt]
    elif opening == "title":  # asked beside the conversation, with tools all the same
        ask([{"role": "user", "content": "Write a short title for this conversation:\n" + sys.argv[1]}])
    elif opening == "riddle":  # the prompt in a form of its own
        messages = [{"role": "user", "content": sys.argv[1][::-1]}]
    text = ""
    while True:
        message = ask(messages)
        for key in total:
            total[key] += message["usage"][key]
        messages.append({"role": "assistant", "content": message["content"]})
        for block in message["content"]:
            say({"type": "assistant", "session_id": "s", "message": dict(message, content=[block])})
            text = block.get("text", text)
        results = []
        for call in [block for block in message["content"] if block["type"] == "tool_use"]:
            output, failed = carry_out(call)
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": output, "is_error": failed})
        if not results:
            break
        messages.append({"role": "user", "content": results})
        say({"type": "user", "session_id": "s", "message": {"role": "user", "content": results}})
    say({"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s",
         "usage": total, "env": sorted(os.environ), "argv": sys.argv[2:]})


main()
