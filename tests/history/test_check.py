#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do check.py, and porcupine with its model, find what is planted in histories, and nothing else?

    test_check.py [BUILD_DIRECTORY]    where porcupine.sh builds porcupine; without: not that one

A right history is made of a store that is played, by a seed; then each plant changes it in a way
that must be found."""
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import check  # noqa: E402

SEEDS = 20
KEYS = ("a", "b", "c")
PLACES = ("one", "two", "three")


class Store:
    """One store, three metaservers that hear of it late, and what a history tells of all that."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now, self.revision, self.next_value = 0.0, 0, 1
        self.log = []  # (revision, key, value)
        self.kept = {}
        self.heard = dict.fromkeys(PLACES, 0)
        self.lines = []

    def pass_time(self):
        self.now += self.random.random()
        return self.now

    def change(self, key, value):
        self.revision += 1
        self.log.append((self.revision, key, value))
        if value is None:
            del self.kept[key]
        else:
            self.kept[key] = (value, self.revision)

    def times(self):
        """Others may begin before it ends, and end after it began."""
        return {"call": self.pass_time() - self.random.random() * 3,
                "return": self.now + self.random.random() * 3}

    def write(self):
        key, at = self.random.choice(KEYS), self.random.choice(PLACES)
        there, what = self.kept.get(key), self.random.randrange(10)
        line = {"key": key, "at": at} | self.times()
        if what == 0:
            line |= {"op": "delete", "outcome": "missing" if there is None else "ok"}
            if there is not None:
                self.change(key, None)
        elif what <= 3 and there is not None:  # what was read is confirmed
            line |= {"op": "put", "value": there[0], "if": there[1], "outcome": "ok",
                     "revision": there[1]}
        elif what == 4 and there is not None and there[1] > 1:
            line |= {"op": "put", "value": self.fresh(), "if": there[1] - 1, "outcome": "changed"}
        else:
            value = self.fresh()
            line |= {"op": "put", "value": value, "outcome": "ok"}
            if what <= 7 and there is not None:
                line["if"] = there[1]
            if self.random.randrange(12) == 0:
                line["outcome"] = "unknown"
                if self.random.randrange(2) == 0:
                    self.lines.append(line)
                    return
            self.change(key, value)
            if line["outcome"] == "ok":
                line["revision"] = self.revision
        self.lines.append(line)
        if line["outcome"] == "ok":  # told when it has heard of it
            self.heard[at] = self.revision

    def fresh(self):
        self.next_value += 1
        return self.next_value

    def get(self):
        at, key = self.random.choice(PLACES), self.random.choice(KEYS)
        self.heard[at] = self.random.randint(self.heard[at], self.revision)
        value = revision = None
        for r, k, v in self.log[:self.heard[at]]:
            if k == key:
                value, revision = v, r if v is not None else None
        now = self.pass_time()
        self.lines.append({"op": "get", "key": key, "at": at, "call": now, "return": now + 0.001,
                           "value": value, "revision": revision})

    def watch(self, name):
        begin = self.random.randrange(len(self.log) // 4)
        self.lines.append({"op": "watch", "watcher": name, "from": begin, "at": "one"})
        for i, (revision, key, value) in enumerate(self.log[begin:]):
            if i == len(self.log) // 3:  # it goes on at another one
                self.lines.append({"op": "watch", "watcher": name, "from": revision - 1,
                                   "at": "two"})
            self.lines.append({"op": "event", "watcher": name, "revision": revision,
                               "kind": "tenant", "key": key, "value": value})


def right_history(seed):
    store = Store(seed)
    for _ in range(150):
        store.write() if store.random.randrange(3) else store.get()
    for name in ("w1", "w2"):
        store.watch(name)
    return store.lines


def pick(lines, wanted):
    """The middle one of those, and its place."""
    places = [i for i, line in enumerate(lines) if wanted(line)]
    at = places[len(places) // 2]
    return at, lines[at]


def is_change(line):
    return line["op"] == "put" and line["outcome"] == "ok" and line["revision"] != line.get("if")


def later_change(lines, line):
    """A change of the same key that began after that one had ended, or None."""
    return next((l for l in lines if l.get("key") == line["key"] and
                 l["op"] in ("put", "delete") and l["outcome"] == "ok" and
                 l["call"] > line["return"] and (l["op"] == "delete" or is_change(l))), None)


# ---- plants: each changes the lines, and returns what is said of it

def plant_stale_read(lines):
    """The store confirms what another change had replaced before that was asked."""
    was = [l for l in lines if is_change(l) and later_change(lines, l) is not None][2]
    after = later_change(lines, was)
    lines.append(dict(was, at="two", **{"if": was["revision"], "call": after["return"] + 0.001,
                                        "return": after["return"] + 0.002}))
    return "no order"


def plant_lost_write(lines):
    """It was acknowledged, and then what had been before is there still."""
    _, was = pick(lines, is_change)
    end = max(l.get("return", 0) for l in lines)
    lines.append({"op": "put", "key": "new", "value": 1 << 20, "at": "one", "call": end + 1,
                  "return": end + 2, "outcome": "ok", "revision": 1 << 20})
    lines.append({"op": "put", "key": "new", "value": (1 << 20) + 1, "if": "absent", "at": "two",
                  "call": end + 3, "return": end + 4, "outcome": "ok",
                  "revision": (1 << 20) + 1})
    return "new: there is no order"


def plant_double_cas(lines):
    """Two changes of one state, each under the condition that it is that state, both done."""
    _, first = pick(lines, lambda l: is_change(l) and isinstance(l.get("if"), int))
    lines.append(dict(first, value=first["value"] + (1 << 20), at="three",
                      revision=max(l.get("revision") or 0 for l in lines) + 1))
    return "no order"


def plant_refused_cas(lines):
    """The condition held all the time, and the change was refused."""
    end = max(l.get("return", 0) for l in lines)
    new = {"op": "put", "key": "new", "value": 1 << 20, "at": "one", "call": end + 1,
           "return": end + 2, "outcome": "ok", "revision": 1 << 20}
    lines += [new, dict(new, value=5 << 20, outcome="changed", call=end + 3, **{
        "return": end + 4, "if": 1 << 20})]
    return "new: there is no order"


def plant_watch_gap(lines):
    at, _ = pick(lines, lambda l: l["op"] == "event" and l["watcher"] == "w1")
    del lines[at]
    return "watch w1: a gap"


def plant_watch_repeat(lines):
    at, line = pick(lines, lambda l: l["op"] == "event" and l["watcher"] == "w2")
    lines.insert(at, dict(line))
    return "watch w2: .* is repeated"


def plant_watch_order(lines):
    at, _ = pick(lines, lambda l: l["op"] == "event" and l["watcher"] == "w1")
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "watch w1: .* comes behind"


def plant_watch_content(lines):
    at, line = pick(lines, lambda l: l["op"] == "event" and l["watcher"] == "w2" and l["value"])
    lines[at] = dict(line, value=line["value"] + (1 << 20))
    return "revision .* to w1 and .* to w2"


# These are of what a metaserver shows and of revisions, which porcupine is not asked for.

def plant_metaserver_went_back(lines):
    at, first = pick(lines, lambda l: is_change(l) and later_change(lines, l) is not None)
    after = later_change(lines, first)
    end = after["return"]
    lines.append({"op": "get", "key": first["key"], "at": after["at"], "call": end + 0.001,
                  "return": end + 0.002, "value": first["value"], "revision": first["revision"]})
    return "though it has shown" if after["op"] == "put" else None


def plant_shown_before_asked(lines):
    _, line = pick(lines, is_change)
    lines.append({"op": "get", "key": line["key"], "at": "three", "call": -3.0, "return": -2.9,
                  "value": line["value"], "revision": line["revision"]})
    return "nobody had asked for"


def plant_untold_write(lines):
    _, line = pick(lines, is_change)
    lines[:] = [l for l in lines if l["op"] != "event" or l["revision"] != line["revision"]]
    return "no watch has told"


def plant_revision_twice(lines):
    _, line = pick(lines, is_change)
    lines.append(dict(line, key="other", value=1 << 20))
    return "two changes have the revision"


def plant_refused_but_done(lines):
    at, line = pick(lines, is_change)
    lines[at] = dict(line, outcome="refused")
    return "was said to have changed nothing"


BOTH = (plant_stale_read, plant_lost_write, plant_double_cas, plant_refused_cas, plant_watch_gap,
        plant_watch_repeat, plant_watch_order, plant_watch_content)
OURS = (plant_metaserver_went_back, plant_shown_before_asked, plant_untold_write,
        plant_revision_twice, plant_refused_but_done)


def build_porcupine(directory):
    """None: it cannot be had here, which is said."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "porcupine.sh")
    run = subprocess.run(["bash", script, directory], stdout=subprocess.PIPE, text=True,
                         check=False)
    if run.returncode == 0:
        return run.stdout.strip()
    print(run.stdout.strip())
    if run.returncode != 77:
        sys.exit(1)
    return None


def porcupine_agrees(program, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    try:
        run = subprocess.run([program, f.name], stdout=subprocess.PIPE, text=True, check=False)
    finally:
        os.unlink(f.name)
    if run.returncode not in (0, 1):
        sys.exit(f"FAILED: porcupine ended with {run.returncode}: {run.stdout}")
    return run.returncode == 0


def main():
    program = build_porcupine(sys.argv[1]) if len(sys.argv) > 1 else None
    for seed in range(1, SEEDS + 1):
        lines = right_history(seed)
        said = check.History(lines).check()
        if said:
            sys.exit(f"FAILED: seed {seed}: a right history: {said}")
        if program and not porcupine_agrees(program, lines):
            sys.exit(f"FAILED: seed {seed}: porcupine does not take a right history")
        for plant in BOTH + OURS:
            lines = right_history(seed)
            sentence = plant(lines)
            if sentence is None:
                continue
            said = check.History(lines).check()
            if not any(re.search(sentence, s) for s in said):
                sys.exit(f"FAILED: seed {seed}: {plant.__name__}: not \"{sentence}\" in {said}")
            if program and plant in BOTH and porcupine_agrees(program, lines):
                sys.exit(f"FAILED: seed {seed}: porcupine does not see {plant.__name__}")
    print(f"ok: {SEEDS} histories are right, and what is planted in each is found")
    for plant in BOTH + OURS:
        by = "both" if program and plant in BOTH else "check.py"
        print(f"ok: {by}: {plant.__name__.removeprefix('plant_').replace('_', ' ')}")


if __name__ == "__main__":
    main()
