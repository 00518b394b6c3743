"""An MCP server over standard input and output with one tool, `file_note`, which appends a line to notes.txt."""

import json
import sys

TOOL = {
    "name": "file_note",
    "description": "Files a note in the ledger of the lighthouse.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(method, params):
    """Returns the result of a request, or None if the method is unknown."""
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call" and params.get("name") == TOOL["name"]:
        text = params["arguments"]["text"]
        with open(sys.argv[1], "a", encoding="utf-8") as ledger:
            ledger.write(text + "\n")
        return {"content": [{"type": "text", "text": f"filed: {text}"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    # A notification has no id and gets no answer.
    if "id" not in message or "method" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    result = answer(message["method"], message.get("params") or {})
    if result is None:
        reply["error"] = {"code": -32601, "message": f"unknown: {message['method']}"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
