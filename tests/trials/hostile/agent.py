"""An agent that misbehaves: one way for each name in HOSTILE_MODE, over the protocol that its argument names."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = os.environ["HOSTILE_MODE"]
OUT, IN = sys.stdout.buffer, sys.stdin.buffer
SESSION = "s-1"


def raw(data):
    OUT.write(data)
    OUT.flush()


def send(message):
    raw(json.dumps(message).encode() + b"\n")


def result(of, value):
    send({"jsonrpc": "2.0", "id": of, "result": value})


def error(of, value):
    send({"jsonrpc": "2.0", "id": of, "error": value})


def request(of, method, params):
    send({"jsonrpc": "2.0", "id": of, "method": method, "params": params})


def update(body, session=SESSION):
    params = {"sessionId": session, "update": body}
    send({"jsonrpc": "2.0", "method": "session/update", "params": params})


def say(text, session=SESSION):
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}, session)


def call(of, **more):
    update({"sessionUpdate": "tool_call", "toolCallId": of, "title": "a call", "kind": "execute", **more})


def call_update(of, **more):
    update({"sessionUpdate": "tool_call_update", "toolCallId": of, **more})


def ask(of, of_call, options=None, session=SESSION, **more):
    if options is None:
        options = [
            {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
            {"optionId": "no", "kind": "reject_once", "name": "No"},
        ]
    params = {"sessionId": session, "toolCall": {"toolCallId": of_call, **more}, "options": options}
    request(of, "session/request_permission", params)


def hear():
    """The next message of the engine; the agent ends with its input."""
    line = IN.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def wait_for(method):
    while True:
        message = hear()
        if message.get("method") == method:
            return message


def hear_answer(of):
    while True:
        message = hear()
        if "method" not in message and message.get("id") == of:
            return message


def hang():
    while True:
        time.sleep(60)


def die(how):
    sys.stdout.flush()
    sys.stderr.flush()
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(int(how))


def child(code, *words, **more):
    """A process of our own that runs this Python."""
    return subprocess.Popen([sys.executable, "-c", code, *words], **more)


BEAT = """
import sys, time
while True:
    with open(sys.argv[1], "a") as out:
        out.write("x")
    time.sleep(0.01)
"""


def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


# What is done between the prompt and its answer. Each may answer itself, and then returns True.


def answer(of, reason="end_turn"):
    result(of, {"stopReason": reason})
    return True


def answers_late(of):
    wait_for("session/cancel")
    say(" late")
    return answer(of)


def cancel_wrong_reason(of):
    wait_for("session/cancel")
    return answer(of, "refusal")


def ignores_cancel(of):
    stubborn()
    hang()


def answers_twice(of):
    say("done")
    answer(of)
    return answer(of, "refusal")


def unknown_id(of):
    result(4711, {"stopReason": "refusal"})
    error("nobody", {"code": 1, "message": "for nobody"})


def odd_ids(of):
    for odd in ["text", "", -7, 1.5, 1e300, None, 2**70]:
        request(odd, "no/such/method", {})


def colliding_ids(of):
    call("c")
    ask(of, "c")
    said = hear_answer(of)
    say("allowed " if said["result"]["outcome"].get("optionId") == "yes" else "refused ")
    call_update("c", status="completed")


def stop_reason_of(value):
    return lambda of: answer(of, value)


def no_answer(of):
    result(of, None)
    return True


def error_of(value):
    def run(of):
        error(of, value)
        return True

    return run


def raw_of(data):
    return lambda of: raw(data)


def long_line(of):
    raw(b"x" * 1_000_000 * 100 + b"\n")


def long_answer(of):
    text = b"y" * (1 << 20)
    body = json.dumps({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "TEXT"}})
    line = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":' + body.encode() + b"}}\n"
    for _ in range(20):
        raw(line.replace(b"TEXT", text))


def tiny_updates(of):
    count = int(os.environ.get("HOSTILE_COUNT", "1000000"))
    one = b'{"method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"."}}}}\n'
    flood(one, count)


def tiny_events(of):
    """Messages and thoughts in turns, behind a call that never ends: nothing of it may pile up."""
    call("open")
    one = b'{"method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"."}}}}\n'
    two = one.replace(b"message_chunk", b"thought_chunk")
    flood(one + two, 75_000)


def same_call(of):
    one = b'{"method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call","toolCallId":"c"}}}\n'
    two = b'{"method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}\n'
    flood(one + two, 50_000)


def flood(lines, count):
    block = lines * 1000
    for _ in range(count // 1000):
        OUT.write(block)
    OUT.flush()


def flood_for_ever(of):
    while True:
        raw(b"noise\n" * 10_000)


def asks_and_does_not_read(of):
    n = 0
    while True:
        n += 1
        request(n, "no/such/method", {})


def closes_stdout(of):
    os.close(1)
    hang()


def closes_stdin(of):
    os.close(0)
    time.sleep(0.2)


def open_call(of):
    call("open", rawInput={"command": "sleep 9"})
    hang()


def exits_mid_turn(of):
    call("open", rawInput={"command": "sleep 9"})
    print("Traceback: it broke", file=sys.stderr)
    die("3")


def dies_at(how):
    return lambda of: die(how)


def login_needed(of):
    print("Error: not logged in. Please run `agent login`.", file=sys.stderr)
    die("1")


def after_answer(what):
    def run(of):
        say("done")
        answer(of)
        what()
        return True

    return run


def hang_stubborn():
    stubborn()
    hang()


def hang_polite():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    hang()


def holds_stdout(of):
    child("import time; time.sleep(600)")
    say("done")
    answer(of)
    die("0")


def holds_stdout_and_dies(of):
    child("import time; time.sleep(600)")
    die("3")


def holds_stdout_and_floods(of):
    child("import os\nn = 0\nwhile os.write(1, b'noise\\n' * 1000):\n    n += 1\n    n == 2 and open('flooding', 'w').close()")
    while not os.path.exists("flooding"):
        time.sleep(0.01)
    die("3")


def grandchild_setsid(of):
    child("import time; time.sleep(600)", start_new_session=True)


def grandchild_daemon(of):
    """Forked twice, in a session of its own, with nothing left of our environment, our folder or our pipes."""
    code = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(600)"
    null = subprocess.DEVNULL
    child(code, os.environ["HOSTILE_MARK"], env={}, cwd="/", stdin=null, stdout=null, stderr=null).wait()


def grandchild_stubborn(of):
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(600)"
    one = child(code, stdout=subprocess.PIPE)
    one.stdout.readline()


def grandchild_writes(of):
    null = subprocess.DEVNULL
    child(BEAT, "beat.txt", start_new_session=True, stdin=null, stdout=null, stderr=null)
    while not os.path.exists("beat.txt"):
        time.sleep(0.01)


def other_session(of):
    say("for another", session="s-2")
    call("c")
    ask(1, "c", session="s-2")
    hear_answer(1)
    call_update("c", status="completed")


def late_updates(of):
    say("done")
    answer(of)
    say(" and more")
    call("late")
    return True


def unknown_call(of):
    call_update("nobody", status="completed", content=[{"type": "content", "content": {"type": "text", "text": "x"}}])


def status_twice(of):
    call("c")
    call_update("c", status="completed")
    call_update("c", status="failed")


def never_ending_calls(of):
    for n in range(50):
        call(f"c{n}")


def already_completed(of):
    call("c", status="completed", rawInput={"command": "true"})


def empty_input(of):
    call("c", rawInput={"command": "make test"})
    call_update("c", rawInput={})
    call_update("c", rawInput=None, status="completed")


def unknown_words(of):
    update({"sessionUpdate": "telepathy", "waves": 3})
    update({"sessionUpdate": 7})
    update("no object")
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "smell", "of": "coffee"}})
    update({"sessionUpdate": "agent_message_chunk", "content": 5})
    call("c", kind="juggle", status="flying", content=[{"type": "smell"}])
    call_update("c", status="completed")


def permission(of_call="c", announce=True, options=None):
    def run(of):
        if announce:
            call("c")
        ask(1, of_call, options)
        outcome = hear_answer(1)["result"]["outcome"]
        say(f"[{outcome['outcome']}] ")

    return run


def permission_pending(of):
    call("c")
    call("d")
    ask(1, "c")
    ask(2, "d")
    ask(1, "d")
    for one in [1, 2, 1]:
        hear_answer(one)


def permission_after_cancel(of):
    call("c")
    wait_for("session/cancel")
    ask(1, "c")
    outcome = hear_answer(1)["result"]["outcome"]
    say(f"[{outcome['outcome']}] ")
    return answer(of, "cancelled")


def unknown_methods(of):
    for n, method in enumerate(["fs/read_text_file", "terminal/create", "x/y", "session/update"]):
        request(100 + n, method, {"sessionId": SESSION})
        hear_answer(100 + n) if method != "session/update" else None


def steps(of):
    n = 0
    while True:
        n += 1
        call(f"c{n}")
        call_update(f"c{n}", status="completed")
        time.sleep(0.05)


def parallel_calls(of):
    for n in range(100):
        call(f"c{n}")
    hang()


def spends(of):
    for n in range(1, 1000):
        cost = {"amount": n / 10, "currency": "USD"}
        update({"sessionUpdate": "usage_update", "used": n, "size": 1000, "cost": cost})
        time.sleep(0.02)


def counts(of):
    for n in range(1, 1000):
        usage = {"input_tokens": 100, "output_tokens": 10}
        body = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "."}}
        update({**body, "_meta": {"usage": usage}})
        time.sleep(0.02)


def fails_once(of):
    state = os.environ["HOSTILE_STATE"]
    tries = int(open(state).read()) if os.path.exists(state) else 0
    with open(state, "w") as out:
        out.write(str(tries + 1))
    if tries == 0:
        error(of, {"code": -32603, "message": "API Error: 529 overloaded"})
        return True


PROMPTED = {
    "silent-prompt": lambda of: hang(),
    "silent-idle": lambda of: hang(),
    "pending-call-is-no-idling": open_call,
    "answers-after-the-limit": answers_late,
    "ignores-cancel": ignores_cancel,
    "cancel-wrong-reason": cancel_wrong_reason,
    "answers-twice": answers_twice,
    "answers-an-unknown-id": unknown_id,
    "asks-with-odd-ids": odd_ids,
    "asks-with-our-ids": colliding_ids,
    "answers-null": no_answer,
    "answers-with-a-stop-reason-of-5": stop_reason_of(5),
    "answers-with-an-unknown-stop-reason": stop_reason_of("bored"),
    "cancels-by-itself": stop_reason_of("cancelled"),
    "error-without-a-message": error_of({"code": -32603}),
    "error-that-is-no-object": error_of(["broken"]),
    "error-login": error_of({"code": -32000, "message": "Authentication required"}),
    "error-401": error_of({"code": -32603, "message": "Internal error", "data": {"status": 401, "error": "x"}}),
    "error-429": error_of({"code": -32603, "message": "API Error: 429 slow down"}),
    "error-500": error_of({"code": -32603, "message": "Internal error", "data": "API Error: 500"}),
    "noise": raw_of(b"npm warn deprecated\nDebugger attached.\n"),
    "blank-lines": raw_of(b"\n\n   \n\t\n"),
    "scalars": raw_of(b'5\nnull\ntrue\n"text"\n1e999\n'),
    "arrays": raw_of(b"[]\n[1,[2]]\n[{}]\n"),
    "broken-json": raw_of(b'{"jsonrpc":"2.0","method":"session/upd\n{"a":}\n}{\n'),
    "invalid-utf8": raw_of(b'{"jsonrpc":"2.0","method":"x/\xff\xfe"}\n\xc3\x28\n'),
    "nul": raw_of(b'\0\n{"method":"x\0"}\n'),
    "bom": raw_of(b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'
                  b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"bom "}}}}\n'),
    "crlf": raw_of(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'
                   b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"crlf "}}}}\r\n'),
    "deep-nesting": raw_of(b"[" * 100_000 + b"\n" + b'{"a":' * 100_000 + b"\n"),
    "line-of-100-mb": long_line,
    "text-of-20-mib": long_answer,
    "million-updates": tiny_updates,
    "events-behind-an-open-call": tiny_events,
    "one-id-for-50000-calls": same_call,
    "noise-for-ever": flood_for_ever,
    "asks-and-does-not-read": asks_and_does_not_read,
    "closes-stdout": closes_stdout,
    "closes-stdin": closes_stdin,
    "exits-0-at-prompt": dies_at("0"),
    "exits-3-at-prompt": dies_at("3"),
    "killed-at-prompt": dies_at("kill"),
    "exits-3-in-a-call": exits_mid_turn,
    "dies-for-want-of-a-login": login_needed,
    "exits-3-after-answer": after_answer(lambda: die("3")),
    "killed-after-answer": after_answer(lambda: die("kill")),
    "no-exit-after-answer": after_answer(hang_stubborn),
    "exits-0-only-on-sigterm": after_answer(hang_polite),
    "noise-after-answer": after_answer(lambda: flood_for_ever(None)),
    "child-holds-stdout": holds_stdout,
    "child-holds-stdout-of-the-dead": holds_stdout_and_dies,
    "child-floods-stdout-of-the-dead": holds_stdout_and_floods,
    "child-in-its-own-session": grandchild_setsid,
    "child-is-a-daemon": grandchild_daemon,
    "child-ignores-sigterm": grandchild_stubborn,
    "child-writes-into-the-workspace": grandchild_writes,
    "updates-of-another-session": other_session,
    "updates-after-the-answer": late_updates,
    "update-of-an-unknown-call": unknown_call,
    "terminal-status-twice": status_twice,
    "calls-that-never-end": never_ending_calls,
    "call-arrives-completed": already_completed,
    "empty-input-after-a-full-one": empty_input,
    "unknown-words": unknown_words,
    "permission-without-options": permission(options=[]),
    "permission-with-unknown-kinds": permission(options=[{"optionId": "a", "kind": "shrug", "name": "Allow"}]),
    "permission-for-an-unknown-call": permission(of_call="nobody", announce=False),
    "permission-while-another-is-pending": permission_pending,
    "permission-after-cancel": permission_after_cancel,
    "unknown-methods": unknown_methods,
    "too-many-steps": steps,
    "too-many-calls": parallel_calls,
    "too-many-tokens": counts,
    "too-much-money": spends,
    "fails-once": fails_once,
}


def stage(name):
    """What goes wrong at a stage before the prompt."""
    if MODE == f"exits-0-at-{name}":
        die("0")
    if MODE == f"exits-3-at-{name}":
        print("fatal: no luck", file=sys.stderr)
        die("3")
    if MODE == f"killed-at-{name}":
        die("kill")


def acp():
    if MODE == "stderr-flood":
        sys.stderr.write("a warning that is said again and again\n" * 200_000)
    if MODE == "answers-before-asked":
        values = [{"protocolVersion": 1}, {"sessionId": SESSION}, {"stopReason": "end_turn"}]
        answers = [{"jsonrpc": "2.0", "id": of, "result": value} for of, value in enumerate(values)]
        # At once: one that came after its question would be an answer.
        raw("".join(json.dumps(answer) + "\n" for answer in answers).encode())
        hang()
    stage("start")
    of = wait_for("initialize")["id"]
    if MODE == "silent-initialize":
        hang()
    stage("initialize")
    version = 2 if MODE == "version-2" else 1
    if MODE == "answers-with-ids-of-text":
        of = str(of)
    result(of, {"protocolVersion": version, "agentCapabilities": {}, "agentInfo": {"name": "hostile", "version": "1"}})
    of = wait_for("session/new")["id"]
    if MODE == "silent-session-new":
        hang()
    if MODE == "refuses-session-new":
        error(of, {"code": -32603, "message": "no sessions today"})
        hang()
    if MODE == "login-at-session-new":
        error(of, {"code": -32000, "message": "Authentication required"})
    stage("session-new")
    if MODE == "updates-before-the-session":
        say("early ")
    if MODE == "never-reads-the-prompt":
        result(of, {"sessionId": SESSION})
        hang()
    result(of, {"sessionId": SESSION})
    of = wait_for("session/prompt")["id"]
    say("before ")
    act = PROMPTED.get(MODE)
    if act is None or not act(of):
        say("done")
        if MODE == "answer-without-a-newline":
            raw(json.dumps({"jsonrpc": "2.0", "id": of, "result": {"stopReason": "end_turn"}}).encode())
            die("0")
        answer(of)
    if MODE == "closes-stdin":
        time.sleep(0.3)
        die("0")
    while IN.readline():
        pass


def stream():
    def assistant(*blocks):
        send({"type": "assistant", "message": {"id": "m", "model": "m", "role": "assistant", "content": list(blocks)}})

    def text(words):
        assistant({"type": "text", "text": words})

    def end(**more):
        send({"type": "result", "subtype": "success", "is_error": False, "result": "done", "stop_reason": "end_turn", **more})

    stage("start")
    send({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": []})
    text("before")
    if MODE in ("noise", "blank-lines", "scalars", "arrays", "broken-json", "invalid-utf8", "nul", "deep-nesting",
                "line-of-100-mb", "closes-stdout", "noise-for-ever", "child-in-its-own-session",
                "child-holds-stdout-of-the-dead", "silent-prompt"):
        PROMPTED[MODE](None)
    if MODE == "exits-3-in-a-call":
        assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x"}})
        die("3")
    if MODE == "no-closing-line":
        die("0")
    if MODE == "killed-at-prompt":
        die("kill")
    if MODE == "dies-for-want-of-a-login":
        login_needed(None)
    if MODE == "error-429":
        end(is_error=True, result="API Error: 429 slow down", api_error_status=429)
        die("1")
    if MODE == "error-that-looks-like-success":
        end(is_error=True, result="API Error: 500 broken", api_error_status=500)
        die("0")
    if MODE == "odd-closing-line":
        send({"type": "result"})
        die("0")
    if MODE == "unknown-words":
        send({"type": "telepathy"})
        send({"no": "type"})
        assistant({"type": "smell"})
    text("done")
    end()
    if MODE == "answers-twice":
        end()
    if MODE == "exits-3-after-answer":
        die("3")
    if MODE == "no-exit-after-answer":
        hang_stubborn()


def output():
    stage("start")
    print("before", flush=True)
    if MODE in ("line-of-100-mb", "silent-prompt", "noise-for-ever", "child-in-its-own-session", "invalid-utf8", "nul",
                "child-holds-stdout", "killed-at-prompt", "exits-3-at-prompt", "dies-for-want-of-a-login"):
        if MODE == "child-holds-stdout":
            child("import time; time.sleep(600)")
        else:
            PROMPTED[MODE](None)
    if MODE == "text-of-20-mib":
        flood(b"y" * 1023 + b"\n", 20_000)
    if MODE == "closes-stdout":
        os.close(1)
        hang_stubborn()
    if MODE == "says-nothing":
        return
    print("done")


{"acp": acp, "stream": stream, "output": output}[sys.argv[1]]()
