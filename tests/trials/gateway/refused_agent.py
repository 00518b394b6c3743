"""The beginning of agents that go on whatever their model answers. The header `x-want` tells the service what to answer."""

import gzip
import json
import os
import sys
import urllib.request

PROMPT = sys.argv[1]
USER = {"role": "user", "content": PROMPT}
CALL = {"role": "assistant", "content": None,
        "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "sh", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "c0", "content": "x"}
OTHER = {"role": "user", "content": "Look through the folder"}
TITLE = {"role": "system", "content": "Write a title"}
TOOLS = [{"type": "function", "function": {"name": "sh", "parameters": {"type": "object"}}}]
RESPONSE_TOOLS = [{"type": "function", "name": "sh", "parameters": {"type": "object"}}]


def ask(path, body, want, timeout=20, encoding=None):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["AGENT_API_KEY"],
               "x-want": want}
    data = json.dumps(dict(body, model="m")).encode()
    if encoding:
        headers["content-encoding"] = encoding
        data = gzip.compress(data)
    request = urllib.request.Request(os.environ["AGENT_URL"] + path, data, headers)
    try:
        urllib.request.urlopen(request, timeout=timeout).read()
    except Exception:
        pass


def chat(want, *messages, tools=TOOLS, timeout=20, encoding=None, **more):
    body = dict(more, messages=messages)
    if tools:
        body["tools"] = tools
    ask("/chat/completions", body, want, timeout, encoding)


def respond(want, **body):
    ask("/responses", body, want)


