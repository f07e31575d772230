#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A worker whose own agent is stopped hears so in the time that it has set, and goes on with it; one
# whose agent has nothing to do, and sleeps, hears nothing.
source "$(dirname "$0")/lib.sh"
start
export_text b "still here"
exporter=$token
until_out() { # pattern sentence
    local i
    for i in $(seq $((600 * slow))); do
        ! grep -qE "$1" "$work/reader.out" || {
            ok "$2: $(grep -E "$1" "$work/reader.out" | tail -n 1)"
            return 0
        }
        sleep 0.05
    done
    fail "$2: the worker says $(cat "$work/reader.out")"
}

out=$(KEDGE_AGENT_TIMEOUT_MS=300 KEDGE_SOCKET=$work/a.sock \
    timeout 60 "$bin/kedge-probe" quiet 2500 2>&1) ||
    fail "an agent that sleeps is taken for a dead one: $out"
ok "an agent that has nothing to do, and sleeps, is not taken for a stopped one"

KEDGE_AGENT_TIMEOUT_MS=500 KEDGE_SOCKET=$work/a.sock \
    "$bin/kedge-probe" reader "$exporter" "still here" >"$work/reader.out" 2>&1 &
worker_pids+=($!)
until_out '^[0-9]+ ms: served' "a worker READs"
kill -STOP "${pids[a]}"
until_out '^[0-9]+ ms: the agent has not moved for 500 ms' "its agent is stopped, and it is told"
kill -CONT "${pids[a]}"
until_out '^[0-9]+ ms: the agent goes on' "the agent goes on, and so does the session"
[[ $(grep -c 'the agent goes on' "$work/reader.out") == 1 ]] ||
    fail "more than once: $(cat "$work/reader.out")"
! grep -q 'ended\|OTHER' "$work/reader.out" || fail "the session is over: $(cat "$work/reader.out")"
ok "and what was in flight came"

# What is asked of an agent that is stopped.
kill -STOP "${pids[a]}"
out=$(KEDGE_AGENT_TIMEOUT_MS=500 KEDGE_SOCKET=$work/a.sock \
    timeout 60 "$bin/kedge-probe" quiet 1 2>&1) && fail "it attaches to a stopped agent"
grep -q 'not attached: the agent did not answer within 5 s' <<<"$out" ||
    fail "a newcomer is told: $out"
ok "a newcomer is told too: $out"
out=$("$bin/rdmactl" --agent-socket "$work/a.admin" worker list 2>&1) && fail "rdmactl says $out"
grep -q 'does not answer within 5 s (is kedge-agentd under SIGSTOP, a debugger' <<<"$out" ||
    fail "rdmactl says $out"
ok "and so is who asks for its workers: $out"
kill -CONT "${pids[a]}"
if [[ $provider == soft ]]; then # whose clock agreed until then
    clock() {
        grep -o 'clock=unknown reason="[^"]*stood still; nothing is refused for that' \
            "$work/a.log" | wc -l
    }
    until_is 1 "the log says why the clock is unknown, and that nothing follows from it" clock
fi
# What an operator hears of a metaserver that is stopped.
kill -STOP "${pids[metad]}"
out=$("$bin/rdmactl" --server "unix:$work/metad.sock" node list 2>&1) && fail "rdmactl says $out"
grep -q 'metad.sock does not answer within 5 s (is kedge-metad under SIGSTOP' <<<"$out" ||
    fail "rdmactl says $out"
ok "an operator is told of a metaserver that is stopped: $out"
kill -CONT "${pids[metad]}"
stop
