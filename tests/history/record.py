#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Asks metaservers of one store by their REST interface, and records what they answer, as check.py
wants it.

    record.py FILE SEED NAME=URL...

Clients read, change and delete tenants at whichever metaserver comes next; each watch follows the
trail at one of them, and where that ends or is silent goes on at the next one behind what it had
been told last. SIGTERM ends that; then each metaserver confirms each tenant, and watches are told
the last revision, within so many seconds as SETTLE says; and a sentence is printed."""
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

KEYS = [f"h{i}" for i in range(6)]
CLIENTS, WATCHES = 4, 2
PAUSE = 0.12    # seconds between two requests of a client, on average
SLOW = int(os.environ.get("KEDGE_TEST_SLOW", 1))
PATIENCE = 15 * SLOW   # for an answer
SILENCE = 8 * SLOW     # of a watch, which has an empty line every three seconds
SETTLE = 90 * SLOW


class Recorder:
    def __init__(self, path, seed, places):
        self.file = open(path, "w", encoding="utf-8")
        self.lock = threading.Lock()
        self.seed, self.places = seed, places
        self.ending = threading.Event()
        self.last = 0       # revision that was acknowledged
        self.told = {}      # watch: the last revision that it was told
        self.settled = threading.Event()
        self.wrong = []     # what no answer may be

    def note(self, **line):
        with self.lock:
            self.file.write(json.dumps(line) + "\n")
            self.last = max(self.last, line.get("revision") or 0)

    def fail(self, sentence):
        with self.lock:
            self.wrong.append(sentence)


class Client:
    """One that asks one thing after the other, of whichever metaserver."""

    def __init__(self, recorder, number):
        self.recorder = recorder
        self.random = random.Random(recorder.seed * 100 + number)
        self.next_value = 1_000_000 * (number + 1)
        self.connections = {}
        self.known = {}  # key: (value, revision), as it was read last

    def ask(self, at, method, path, body=None, headers=None):
        """(status, document); status 0: it was not sent; None: nobody knows what became of it."""
        connection = self.connections.get(at)
        sent = False
        try:
            if connection is None:
                address = self.recorder.places[at].removeprefix("http://")
                connection = http.client.HTTPConnection(address, timeout=PATIENCE)
                connection.connect()
                self.connections[at] = connection
            sent = True
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError):
            self.connections.pop(at, None)
            if connection is not None:
                connection.close()
            return (None if sent else 0), {}

    def change(self, method, at, key, value=None, condition=None):
        headers = {"Content-Type": "application/json"}
        if condition == "absent":
            headers["If-None-Match"] = "*"
        elif condition is not None:
            headers["If-Match"] = f'"{condition}"'
        body = json.dumps({"uids": [value]}) if method == "PUT" else None
        call = time.monotonic()
        status, document = self.ask(at, method, f"/v1/tenants/{key}", body, headers)
        outcome = self.outcome_of(method, at, status, document)
        if outcome is None:
            return None
        line = {"op": method.lower(), "key": key, "at": at, "call": call,
                "return": time.monotonic(), "if": condition, "outcome": outcome}
        if method == "PUT":
            line["value"] = value
            if outcome == "ok":
                line["revision"] = document["revision"]
        self.recorder.note(**line)
        return outcome

    def outcome_of(self, method, at, status, document):
        """None: it was not sent."""
        if status == 0:
            return None
        if status in (200, 201, 204):
            return "ok"
        if status == 412:
            return "changed"
        if status == 404 and method == "DELETE":
            return "missing"
        if status == 503 and "not known" not in document.get("detail", ""):
            return "refused"
        if status not in (None, 500, 503, 504):
            self.recorder.fail(f"{at} answers {method} with {status}: {document}")
        return "unknown"

    def get(self, at, key):
        call = time.monotonic()
        status, document = self.ask(at, "GET", f"/v1/tenants/{key}")
        if status not in (200, 404):
            return False
        there = status == 200
        value = document["uids"][0] if there else None
        self.known[key] = (value, document["revision"]) if there else None
        self.recorder.note(op="get", key=key, at=at, call=call, value=value,
                           revision=document["revision"] if there else None,
                           **{"return": time.monotonic()})
        return True

    def confirm(self, at, key):
        """True: the store says that the key has what was read."""
        if not self.get(at, key):
            return False
        if self.known[key] is None:
            return self.change("DELETE", at, key) in ("missing", "ok")
        value, revision = self.known[key]
        return self.change("PUT", at, key, value, revision) == "ok"

    def fresh(self):
        self.next_value += 1
        return self.next_value

    def turn(self):
        at, key = self.random.choice(list(self.recorder.places)), self.random.choice(KEYS)
        what = self.random.randrange(20)
        if what < 5:
            self.get(at, key)
        elif what < 9:
            self.confirm(at, key)
        elif what < 14 and self.known.get(key) is not None:
            self.change("PUT", at, key, self.fresh(), self.known[key][1])
        elif what < 15:
            self.change("DELETE", at, key)
        elif what < 17:
            self.change("PUT", at, key, self.fresh(), "absent")
        else:
            self.change("PUT", at, key, self.fresh())

    def run(self):
        while not self.recorder.ending.is_set():
            self.turn()
            self.recorder.ending.wait(self.random.random() * 2 * PAUSE)

    def settle(self):
        """All of the keys at all metaservers, of which no answer may be missing."""
        until = time.monotonic() + SETTLE
        for at in self.recorder.places:
            for key in KEYS:
                while not self.confirm(at, key):
                    if time.monotonic() > until:
                        self.recorder.fail(f"{at} does not confirm {key}")
                        return
                    time.sleep(0.2)


class Watch:
    def __init__(self, recorder, number):
        self.recorder, self.name = recorder, f"w{number}"
        self.random = random.Random(recorder.seed * 100 + 50 + number)
        self.last, self.moves = 0, 0

    def read_events(self, answer):
        for raw in answer:
            if self.recorder.settled.is_set():
                return
            if not raw.endswith(b"\n") or not raw.strip():
                continue  # an empty one, or the half of one at its end
            event = json.loads(raw)
            if event["kind"] == "liveness":
                continue
            to = event["to"]
            self.recorder.note(op="event", watcher=self.name, revision=event["revision"],
                               kind=event["kind"], key=event["name"],
                               value=to["uids"][0] if to and "uids" in to else None)
            self.last = self.recorder.told[self.name] = event["revision"]

    def follow(self, at):
        connection = http.client.HTTPConnection(self.recorder.places[at].removeprefix("http://"),
                                                timeout=SILENCE)
        try:
            connection.request("GET", f"/v1/events?watch=1&revision={self.last}")
            answer = connection.getresponse()
            if answer.status == 410:
                self.recorder.fail(f"{at} does not know {self.last}, which {self.name} was told: "
                                   f"{answer.read().decode()}")
            if answer.status != 200:
                return
            self.recorder.note(op="watch", watcher=self.name, at=at, **{"from": self.last})
            self.moves += 1
            self.read_events(answer)
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            connection.close()

    def run(self):
        places = list(self.recorder.places)
        while not self.recorder.settled.is_set():
            self.follow(self.random.choice(places))
            time.sleep(0.1)


def wait_for_watches(recorder, watches):
    until = time.monotonic() + SETTLE
    while min(watch.last for watch in watches) < recorder.last:
        if time.monotonic() > until:
            recorder.fail(f"watches are told {[w.last for w in watches]}, not {recorder.last}")
            return
        time.sleep(0.1)


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    places = dict(pair.split("=", 1) for pair in sys.argv[3:])
    recorder = Recorder(sys.argv[1], int(sys.argv[2]), places)
    signal.signal(signal.SIGTERM, lambda *_: recorder.ending.set())
    clients = [Client(recorder, i) for i in range(CLIENTS)]
    watches = [Watch(recorder, i) for i in range(WATCHES)]
    threads = [threading.Thread(target=c.run) for c in clients]
    follow = [threading.Thread(target=w.run, daemon=True) for w in watches]
    for thread in threads + follow:
        thread.start()
    while not recorder.ending.wait(0.5):
        pass
    for thread in threads:
        thread.join()
    Client(recorder, CLIENTS).settle()
    wait_for_watches(recorder, watches)
    recorder.settled.set()
    for thread in follow:
        thread.join(SILENCE + 1)
    recorder.file.close()
    for sentence in recorder.wrong:
        print(f"FAILED: {sentence}")
    print(f"watches went to another metaserver {sum(w.moves - 1 for w in watches)} times; the last "
          f"revision is {recorder.last}")
    return 1 if recorder.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
