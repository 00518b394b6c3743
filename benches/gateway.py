"""Measures the model gateway: what it adds to a request and to an event, many streams at once, and recordings.

    cargo build --release && python3 benches/gateway.py [--binary PATH] [--streams N]

A small service and a small client talk first to each other and then through `evals gateway record`, in the same run. Each
event holds the time at which the service sent it, so that the delay of each event is known.
"""

import argparse
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BEGIN = ('event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
         '"model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}\n\n'
         'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
         '"content_block":{"type":"text","text":""}}\n\n')
EVENT = ('event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
         '"delta":{"type":"text_delta","text":"t%020d "}}\n\n')
END = ('event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
       'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
       '"usage":{"input_tokens":10,"output_tokens":9}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n')


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text.encode())


def serve(port, ready):
    """A service: answers each request with as many events, and as far apart, as the header `x-events: N MS` says."""
    listener = socket.create_server(("127.0.0.1", port), backlog=2048)
    ready(listener.getsockname()[1])
    listener.setblocking(False)
    poll = select.epoll()
    poll.register(listener.fileno(), select.EPOLLIN)
    clients, streams, due = {}, {}, 0.0
    while True:
        wait = 0.001 if streams else 1
        for number, _ in poll.poll(wait):
            if number == listener.fileno():
                try:
                    while True:
                        client, _ = listener.accept()
                        client.setblocking(False)
                        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        clients[client.fileno()] = (client, bytearray())
                        poll.register(client.fileno(), select.EPOLLIN)
                except BlockingIOError:
                    continue
            client, held = clients[number]
            try:
                got = client.recv(1 << 20)
            except (BlockingIOError, ConnectionResetError):
                got = b""
            if not got:
                poll.unregister(number)
                clients.pop(number)
                streams.pop(number, None)
                client.close()
                continue
            held += got
            head, separator, body = bytes(held).partition(b"\r\n\r\n")
            if not separator:
                continue
            fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
            if len(body) < int(fields.get(b"content-length", 0)):
                continue
            held.clear()
            count, gap = map(int, fields.get(b"x-events", b"1 0").split())
            client.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                        + chunk(BEGIN))
            streams[number] = [client, count, gap / 1000, time.monotonic()]
        now = time.monotonic()
        for number, stream in list(streams.items()):
            client, left, gap, due = stream
            if due > now:
                continue
            try:
                if left:
                    client.send(chunk(EVENT % time.monotonic_ns()))
                    stream[1], stream[3] = left - 1, due + gap
                else:
                    client.send(chunk(END) + b"0\r\n\r\n")
                    streams.pop(number)
            except BlockingIOError:
                pass


def request(address, events, gap, messages):
    body = json.dumps({"model": "m", "max_tokens": 100, "stream": True, "messages": messages}).encode()
    return (b"POST /v1/messages HTTP/1.1\r\nhost: %s\r\nx-events: %d %d\r\nx-api-key: k\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (address.encode(), events, gap, len(body), body))


def connected(address):
    host, port = address.split(":")
    client = socket.create_connection((host, int(port)))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def first_bytes(address, rounds):
    """Milliseconds from a request to the first byte of its answer, on one connection."""
    client, took = connected(address), []
    for number in range(rounds):
        asked = request(address, 1, 0, [{"role": "user", "content": "round %d" % number}])
        begun = time.monotonic_ns()
        client.sendall(asked)
        held = client.recv(1 << 16)
        took.append((time.monotonic_ns() - begun) / 1e6)
        while b"0\r\n\r\n" not in held[-64:]:
            held += client.recv(1 << 16)
    client.close()
    return took


def delays(address, streams, events, gap):
    """Milliseconds from the sending of each event to its arrival, over many streams at once."""
    clients = {}
    poll = select.epoll()
    for number in range(streams):
        client = connected(address)
        clients[client.fileno()] = client
        poll.register(client.fileno(), select.EPOLLIN)
        client.sendall(request(address, events, gap, [{"role": "user", "content": "stream %d" % number}]))
    found, done = [], 0
    while done < streams:
        for number, _ in poll.poll():
            got = clients[number].recv(1 << 16)
            now = time.monotonic_ns()
            for part in got.split(b'"text":"t')[1:]:
                if len(part) >= 20:
                    found.append((now - int(part[:20])) / 1e6)
            if not got or b"0\r\n\r\n" in got[-64:]:
                poll.unregister(number)
                done += 1
    for client in clients.values():
        client.close()
    return found


def figures(values):
    values = sorted(values)
    return statistics.median(values), values[min(len(values) - 1, int(len(values) * 0.99))]


class Gateway:
    """`evals gateway record` (or `replay`) around a command that waits until it is told to end."""

    def __init__(self, binary, service, folder, mode="record", timing=()):
        fifo = os.path.join(folder, "end")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        place = os.path.join(folder, "address")
        command = ["sh", "-c", 'echo "$ANTHROPIC_BASE_URL" > %s.new; mv %s.new %s; cat %s' % (place, place, place, fifo)]
        cassette = os.path.join(folder, "tape.jsonl")
        words = {"record": ["record", "-o", cassette], "replay": ["replay", cassette, *timing]}[mode]
        env = dict(os.environ, EVALS_UPSTREAM_ANTHROPIC="http://" + service)
        if os.path.exists(place):
            os.remove(place)
        self.process = subprocess.Popen([binary, "gateway", *words, "--", *command], env=env, stderr=subprocess.DEVNULL)
        while not os.path.exists(place):
            time.sleep(0.01)
        self.address = open(place).read().strip().removeprefix("http://")
        self.fifo = fifo

    def cpu(self):
        fields = open("/proc/%d/stat" % self.process.pid).read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        for line in open("/proc/%d/status" % self.process.pid):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024

    def end(self):
        with open(self.fifo, "w"):
            pass
        self.process.wait()


def conversation(address, turns):
    """A conversation of many turns, each with all that was said before. Returns its seconds and the bytes sent."""
    client, messages, sent = connected(address), [], 0
    begun = time.monotonic()
    for turn in range(turns):
        messages.append({"role": "user", "content": "turn %d: " % turn + "the output of a tool. " * 100})
        asked = request(address, 20, 0, messages)
        client.sendall(asked)
        held = b""
        while b"0\r\n\r\n" not in held[-64:]:
            held += client.recv(1 << 16)
        sent += len(asked) + len(held)
        messages.append({"role": "assistant", "content": "answer %d" % turn})
    client.close()
    return time.monotonic() - begun, sent


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", default="target/release/evals")
    options.add_argument("--streams", type=int, default=1000)
    options.add_argument("--serve", action="store_true")
    args = options.parse_args()
    if args.serve:
        serve(0, lambda port: print(port, flush=True))
    service = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        direct = "127.0.0.1:%s" % service.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(args.binary, direct, folder)
            # Both ways in turns, so that a slow moment of the machine meets both.
            rounds = [(first_bytes(direct, 100), first_bytes(gateway.address, 100)) for _ in range(5)]
            report("first byte", [figures(sum(side, [])) for side in zip(*rounds)])
            rounds = [(delays(direct, 1, 200, 5), delays(gateway.address, 1, 200, 5)) for _ in range(3)]
            report("an event", [figures(sum(side, [])) for side in zip(*rounds)])
            before, begun = gateway.cpu(), time.monotonic()
            many = delays(gateway.address, args.streams, 500, 20)
            took = time.monotonic() - begun
            print("%d streams of 50 events a second: %d events in %.1f s, delay median %.2f ms, p99 %.2f ms, gateway %.2f "
                  "cores, %d MiB" % (args.streams, len(many), took, *figures(many), (gateway.cpu() - before) / took,
                                     gateway.memory()))
            gateway.end()
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(args.binary, direct, folder)
            recorded, sent = conversation(gateway.address, 50)
            gateway.end()
            size = sum(os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(folder)
                       for name in names if "tape" in os.path.join(top, name) and not name == "llm.jsonl")
            gateway = Gateway(args.binary, direct, folder, "replay")
            replayed, _ = conversation(gateway.address, 50)
            gateway.end()
            print("a session of 50 turns: recorded in %.3f s, replayed in %.3f s; %d KiB of traffic, cassette %d KiB (%.1f %%)"
                  % (recorded, replayed, sent / 1024, size / 1024, 100 * size / sent))
    finally:
        service.kill()


def report(what, sides):
    (direct, direct99), (through, through99) = sides
    print("%s: direct median %.3f ms, p99 %.3f ms; through the gateway %.3f ms, p99 %.3f ms; added %.3f ms, p99 %.3f ms"
          % (what, direct, direct99, through, through99, through - direct, through99 - direct99))


main()
