#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is a history of metaservers of one store what one metaserver alone could have answered?

    check.py FILE     prints each offence and exits 1, or prints what was looked at

FILE has a JSON object a line (record.py writes it). Times are seconds of one clock:

    {"op": "put", "key", "value", "if", "at", "call", "return", "outcome", "revision"}
    {"op": "delete", "key", "if", "at", "call", "return", "outcome"}
    {"op": "get", "key", "at", "call", "return", "value", "revision"}      null: there is none
    {"op": "watch", "watcher", "from", "at"}            it begins behind that revision
    {"op": "event", "watcher", "revision", "kind", "key", "value"}         null: deleted

No value is put by two requests, but where one puts what is there, under the condition that it is
("if" is its revision): so the store confirms what was read. "outcome" is ok, changed (the condition
did not hold), missing, refused (it says that nothing was changed), or unknown: then it has been
done, or will be at any time, or never.

Puts and deletes are linearizable: search_order() looks for an order of them, for each key, that
agrees with what each was answered and with who had ended before another began (Wing and Gong, with
Lowe's memory of what was tried). A get is answered from the memory of one metaserver, which may be
behind the others, but never behind itself, and has seen what has been alone.
"""
import bisect
import collections
import json
import math
import sys

SEARCH_MAX = 2_000_000  # steps for a key
Kept = collections.namedtuple("Kept", "value revision")  # what a key has; None: nothing


class Operation:
    """One of search_order()'s: when it may have been done, and what it makes of a state."""

    def __init__(self, line):
        self.line = line
        self.known = line["outcome"] != "unknown"
        self.call = line["call"]
        self.end = line["return"] if self.known else math.inf

    def holds(self, state):
        wanted = self.line.get("if")
        if wanted is None:
            return True
        if wanted == "*":
            return state is not None
        if wanted == "absent":
            return state is None
        return state is not None and state.revision in (wanted, None)

    def put(self, state):
        """The state behind it, or False: it cannot have been done there."""
        line = self.line
        if not self.holds(state):
            return state if line["outcome"] in ("changed", "unknown") else False
        if line["outcome"] == "changed":
            # of a state whose revision nobody was told it may be another one
            return state if state is not None and state.revision is None else False
        if state is not None and state.value == line["value"]:
            same = state.revision in (line.get("revision"), None) or not self.known
            return Kept(state.value, line.get("revision") or state.revision) if same else False
        later = state is None or None in (state.revision, line.get("revision")) or \
            state.revision < line["revision"]
        return Kept(line["value"], line.get("revision")) if later else False

    def delete(self, state):
        outcome = self.line["outcome"]
        if outcome == "missing":
            return None if state is None else False
        if not self.holds(state):
            return state if outcome in ("changed", "unknown") else False
        if outcome == "changed":
            return state if state is not None and state.revision is None else False
        if state is None:
            return None if outcome == "unknown" else False
        return None

    def step(self, state):
        return self.put(state) if self.line["op"] == "put" else self.delete(state)


def search_order(operations):
    """Whether there is an order; None: that was not found out. `operations` by their begin."""
    left = list(range(len(operations)))  # in the order of their calls
    done, state, path, tried = 0, None, [], set()
    steps, start = 0, 0
    known_left = sum(o.known for o in operations)
    while known_left:
        # Who may be next: all that began before the first end of what is not done.
        first_end = math.inf
        choice = None
        for at, number in enumerate(left):
            operation = operations[number]
            if operation.call > first_end:
                break
            first_end = min(first_end, operation.end)
            if at < start:
                continue
            steps += 1
            after = operation.step(state)
            if after is False or (done | 1 << number, after) in tried:
                continue
            choice = at, number, after
            break
        if steps > SEARCH_MAX:
            return None
        if choice is not None:
            at, number, after = choice
            tried.add((done | 1 << number, after))
            path.append((at, number, state))
            left.pop(at)
            done, state, start = done | 1 << number, after, 0
            known_left -= operations[number].known
        elif path:
            at, number, state = path.pop()
            left.insert(at, number)
            done, start = done & ~(1 << number), at + 1
            known_left += operations[number].known
        else:
            return False
    return True


class History:
    def __init__(self, lines):
        self.offences = []
        self.writes = [l for l in lines if l["op"] in ("put", "delete")]
        self.gets = [l for l in lines if l["op"] == "get"]
        self.watches = collections.defaultdict(list)
        for line in lines:
            if line["op"] in ("watch", "event"):
                self.watches[line["watcher"]].append(line)
        self.asked = {}  # (key, value): when it was put first
        for w in self.writes:
            if w["op"] == "put":
                first = self.asked.get((w["key"], w["value"]), math.inf)
                self.asked[w["key"], w["value"]] = min(w["call"], first)
        self.told = {}  # revision: its event
        self.changes = collections.defaultdict(dict)  # key: {revision: value}

    def say(self, sentence):
        self.offences.append(sentence)

    # ---- watches

    def check_watches(self):
        for name, lines in self.watches.items():
            last = None
            for line in lines:
                if line["op"] == "watch":
                    last = line["from"]
                    continue
                self.check_next(name, last, line)
                last = line["revision"]
                self.note_event(line)

    def check_next(self, name, last, line):
        now = line["revision"]
        if now == last:
            self.say(f"watch {name}: {now} is repeated")
        elif now < last:
            self.say(f"watch {name}: {now} comes behind {last}")
        elif now > last + 1 and line["kind"] != "restore":
            self.say(f"watch {name}: a gap between {last} and {now}")

    def note_event(self, line):
        other = self.told.setdefault(line["revision"], line)
        if any(other[f] != line[f] for f in ("kind", "key", "value")):
            self.say(f"revision {line['revision']} is {other['key']}={other['value']} to "
                     f"{other['watcher']} and {line['key']}={line['value']} to {line['watcher']}")
        self.changes[line["key"]][line["revision"]] = line["value"]

    # ---- revisions

    def check_revisions(self):
        """What was acknowledged has a revision of its own, which grows; and watches tell it."""
        acknowledged = [w for w in self.writes if w["op"] == "put" and w["outcome"] == "ok" and
                        w["revision"] != w.get("if")]
        of = {}
        for w in acknowledged:
            other = of.setdefault(w["revision"], w)
            if other is not w:
                self.say(f"two changes have the revision {w['revision']}: {other['key']}="
                         f"{other['value']} and {w['key']}={w['value']}")
            self.changes[w["key"]].setdefault(w["revision"], w["value"])
            self.check_told(w)
        ended = sorted(acknowledged, key=lambda w: w["return"])
        highest, at = 0, 0
        for w in sorted(acknowledged, key=lambda w: w["call"]):
            while at < len(ended) and ended[at]["return"] < w["call"]:
                highest = max(highest, ended[at]["revision"])
                at += 1
            if w["revision"] <= highest:
                self.say(f"{w['key']}={w['value']} has the revision {w['revision']}, though "
                         f"{highest} had been acknowledged before it was asked for")

    def check_told(self, w):
        event = self.told.get(w["revision"])
        if event is not None and (event["key"], event["value"]) != (w["key"], w["value"]):
            self.say(f"{w['key']}={w['value']} was acknowledged with the revision "
                     f"{w['revision']}, which watches say is {event['key']}={event['value']}")
        elif event is None and self.told and \
                min(self.told) <= w["revision"] <= max(self.told):
            self.say(f"{w['key']}={w['value']} was acknowledged with the revision "
                     f"{w['revision']}, which no watch has told")

    # ---- what a metaserver shows

    def check_gets(self):
        """Each metaserver's view only goes on, and shows each revision as it was written."""
        shown = collections.defaultdict(list)
        for line in self.gets + [w for w in self.writes if w["outcome"] == "ok"]:
            if line.get("revision"):
                shown[line["at"]].append((line["return"], line["revision"]))
        for times in shown.values():
            times.sort()
            highest = 0
            for i, (at, revision) in enumerate(times):
                highest = max(highest, revision)
                times[i] = (at, highest)
        for get in self.gets:
            times = shown[get["at"]]
            i = bisect.bisect_left(times, (get["call"], 0))
            self.check_view(get, times[i - 1][1] if i else 0)

    def check_view(self, get, known):
        changes = self.changes[get["key"]]
        revision, value = get["revision"], get["value"]
        what = f"{get['at']} shows {get['key']}"
        # the last change of the key that it must know
        least = max((r for r in changes if r <= known), default=0)
        if value is None:
            gone = any(r >= least and v is None for r, v in changes.items())
            if least and not gone and self.told:
                self.say(f"{what} no more, though it has shown {known} before, and {least} made it")
            return
        if changes.get(revision, value) != value:
            self.say(f"{what}={value} with the revision {revision}, which is {changes[revision]}")
        if self.asked.get((get["key"], value), math.inf) > get["return"]:
            self.say(f"{what}={value}, which nobody had asked for")
        if revision < least:
            self.say(f"{what} as of {revision}, though it has shown {known} before, and {least} "
                     f"changed it")

    # ---- an order

    def resolve(self, w):
        """Of a put that nobody knows the end of: what others saw of it. None: it was not done."""
        if w["outcome"] != "unknown" or w["op"] != "put":
            return w
        for revision, value in self.changes[w["key"]].items():
            if value == w["value"]:
                return dict(w, revision=revision)
        return None if self.told else w

    def check_order(self):
        keys = collections.defaultdict(list)
        for w in self.writes:
            w = self.resolve(w)
            if w is not None and w["outcome"] != "refused":
                keys[w["key"]].append(Operation(w))
        for key, operations in sorted(keys.items()):
            operations.sort(key=lambda o: (o.call, o.end))
            found = search_order(operations)
            if not found:
                self.say(f"{key}: " + ("nothing was found out" if found is None else
                                       "there is no order of what was done to it"))

    # ---- what was refused

    def check_refused(self):
        for w in self.writes:
            if w["outcome"] == "refused" and w["op"] == "put" and \
                    self.asked[w["key"], w["value"]] == w["call"]:
                done = [r for r, v in self.changes[w["key"]].items() if v == w["value"]]
                if done:
                    self.say(f"{w['key']}={w['value']} was said to have changed nothing, and has "
                             f"the revision {done[0]}")

    def check(self):
        self.check_watches()
        self.check_revisions()
        self.check_gets()
        self.check_refused()
        self.check_order()
        return self.offences


def read_history(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    lines = read_history(sys.argv[1])
    history = History(lines)
    offences = history.check()
    for offence in offences:
        print(f"found: {offence}")
    keys = {l["key"] for l in lines if "key" in l}
    unknown = sum(l.get("outcome") == "unknown" for l in lines)
    print(f"{len(history.writes)} changes ({unknown} of unknown end), {len(history.gets)} reads "
          f"of {len(keys)} keys, {len(history.watches)} watches to revision "
          f"{max(history.told, default=0)}: {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
