#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Batches between workers of two nodes: each byte is where it belongs, one that is cancelled ends,
# and of a worker that is killed in the middle nothing is left.
source "$(dirname "$0")/lib.sh"
needs_built kedge-batcher
export BATCHER_ROUNDS=$((slow > 1 ? 1 : 5))
agents=2
start

batch() { KEDGE_SOCKET=$work/a.sock timeout $((120 * slow)) "$bin/kedge-batcher" "$1" "$token"; }
KEDGE_SOCKET=$work/b.sock "$bin/kedge-batcher" own >"$work/own" &
worker_pids+=($!)
owned() { [[ -s $work/own ]] && echo owned; }
until_is owned "an owner has a region" owned
token=$(<"$work/own")

before=$(agent_number a batches)
out=$(batch data) || fail "data: $out"
(($(agent_number a batches) == before + 4 * BATCHER_ROUNDS)) || fail "that was not each of them"
ok "$((4 * BATCHER_ROUNDS)) batches of 16,384 descriptors have moved each byte to its place"
requests=$(agent_number a work_requests)
out=$(batch cancel) || fail "cancel: $out"
ok "$out, and the queue pair went on"
out=$(batch limits) || fail "limits: $out"
ok "a session has so many, and the agent says: $out"

for signal in KILL TERM KILL; do
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-batcher" endless "$token" >"$work/endless" &
    pid=$!
    posts() { [[ $(<"$work/endless") == posts ]] && echo posts; }
    until_is posts "a worker posts one after the other" posts
    sleep 0.05
    kill -$signal "$pid"
    wait $pid 2>/dev/null || true
    until_is 0 "killed in the middle of a batch ($signal), its session ends" \
        eval "agent_number a sessions"
    until_is 0 "and nothing of it is out" eval "agent_number a inflight"
done
out=$(batch data) || fail "afterwards: $out"
ok "others' go on afterwards"

# The owner is killed under a batch: it ends with an error, and says how far it came.
batch endless >"$work/endless" 2>&1 &
until_is posts "a worker posts one after the other" posts
kill -KILL "${worker_pids[0]}"
! wait $! || fail "a batch to a region that is gone ends well"
grep -Eq '^batch [0-9]+: .* of 100000 done$' "$work/endless" || fail "$(cat "$work/endless")"
ok "the owner was killed: $(tail -1 "$work/endless")"
stop
