#!/usr/bin/env python3
"""Prints a made-up Claude Code session of LINES lines, for measuring: claude_session.py [LINES] [SEED]"""

import json
import random
import sys

WORDS = "module value parser error trace build pass fail line token index cache retry limit worker queue".split()


def tool(number, rng):
    """The name and the input of the next call."""
    path = f"/workspace/src/part_{number % 41}.rs"
    return [
        ("Read", {"file_path": path}),
        ("Grep", {"pattern": rng.choice(WORDS), "path": "/workspace"}),
        ("Bash", {"command": f"cargo test case_{number}", "description": "run a test"}),
        ("Edit", {"file_path": path, "old_string": f"old_{number}", "new_string": f"new_{number}"}),
    ][number % 4]


def prose(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


def assistant(number, content):
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": content,
        "stop_reason": None,
        "usage": {"input_tokens": 1200 + number, "output_tokens": 1, "cache_read_input_tokens": 9000},
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


def session(count, seed):
    for line in lines_of(count, seed):
        yield {**line, "session_id": f"00000000-0000-4000-8000-{seed:012}"}


def lines_of(count, seed):
    rng = random.Random(seed)
    yield {"type": "system", "subtype": "init", "cwd": "/workspace", "model": "claude-opus-4-8",
           "claude_code_version": "2.1.330", "tools": ["Bash", "Read", "Edit", "Grep"]}
    printed, number = 1, 0
    while printed < count - 2:
        name, given = tool(number, rng)
        call = f"toolu_{seed}_{number}"
        content = [{"type": "tool_use", "id": call, "name": name, "input": given}]
        if number % 3 == 0:
            content.insert(0, {"type": "text", "text": prose(rng, 20)})
        if number % 10 == 0:
            content.insert(0, {"type": "thinking", "thinking": prose(rng, 20), "signature": "s"})
        yield assistant(number, content)
        output = "\n".join(prose(rng, 12) for _ in range(8))
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": number % 17 == 0}
        yield {"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": None}
        printed += 2
        number += 1
    answer = "All done: the answer is 42."
    yield assistant(number, [{"type": "text", "text": answer}])
    yield {"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn", "result": answer,
           "num_turns": number + 1, "total_cost_usd": 1.25,
           "usage": {"input_tokens": 600000, "output_tokens": 40000}}


if __name__ == "__main__":
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1001
    for line in session(lines, int(sys.argv[2]) if len(sys.argv) > 2 else 1):
        print(json.dumps(line, separators=(",", ":")))
