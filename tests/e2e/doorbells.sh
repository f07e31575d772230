#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doorbells that are rung without an end, with nothing in the rings, do not keep a lane awake; and
# who asks for something after that is answered.
source "$(dirname "$0")/lib.sh"
needs_built kedge-hostile kedge-probe
agents=1
start
passes() { agent_number a passes; }
before=$(passes)
"$bin/kedge-hostile" doorbells --socket "$work/a.sock" --ms 3000 >"$work/out" 2>&1 ||
    fail "$(cat "$work/out")"
took=$(($(passes) - before)) rung=$(sed -n 's/^doorbells: did \([0-9]*\),.*/\1/p' "$work/out")
((rung > 10000)) || fail "too few to tell: $(cat "$work/out")"
((4 * took < rung)) || fail "$rung rings without a request had the lane make $took passes"
ok "$rung rings without a request had the lane make $took passes"

# Whatever a worker hangs into its doorbell's queue: whoever ends to watch it waits for the lock of
# that, and of the epoll by which he does. That is an epoll of its own.
KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" watch >"$work/watch.out" 2>&1 &
worker=$!
worker_pids+=("$worker")
for _ in $(seq $((1200 * slow))); do [[ ! -s $work/watch.out ]] || break; sleep 0.05; done
[[ $(cat "$work/watch.out") == attached ]] || fail "the worker: $(cat "$work/watch.out")"
id=$(sed -n 's/^eventfd-id: *//p' /proc/$worker/fdinfo/* 2>/dev/null | head -n 1)
[[ -n $id ]] || { skip "which epolls watch a doorbell: this kernel does not say"; stop; exit 0; }
at=$(basename "$(grep -lE "^eventfd-id: *$id\$" /proc/"${pids[a]}"/fdinfo/* 2>/dev/null)")
mapfile -t watching < <(grep -lE "^tfd: +$at " /proc/"${pids[a]}"/fdinfo/* 2>/dev/null)
((${#watching[@]} == 1)) || fail "${#watching[@]} epolls watch the doorbell"
(($(grep -c '^tfd:' "${watching[0]}") == 1)) ||
    fail "who watches the doorbell watches others too: $(cat "${watching[0]}")"
ok "an epoll of its own watches a doorbell"
out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" back 2>&1) || fail "after that: $out"
ok "others have what they ask for"
stop
