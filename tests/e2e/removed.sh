#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that is removed while its agent serves workers: the agent says so in its log, tells its
# workers, and ends with a failure and nothing left over, so that its supervisor begins it again;
# another node goes on.
source "$(dirname "$0")/lib.sh"
needs_built kedge-probe
[[ $provider == soft ]] || { skip "a device is removed on soft alone"; exit 77; }
start
export_text b "still here"
begin_on() { # seed: how the device of a is removed when $work/gone is there, and when it says so
    if [[ -n ${pids[a]-} ]]; then
        kill -TERM "${pids[a]}"
        wait "${pids[a]}" || fail "a did not end well before"
    fi
    rm -f "$work/gone"
    more_fabric="fault = removed_when=$work/gone, seed=$1" agent_configure a
    : >"$work/a.log"
    daemon_start a kedge-agentd || fail "a does not start on a device that is not removed yet"
}
ended_by_itself() { # sentence: within 20 s; sets $code
    for _ in $(seq $((400 * slow))); do
        kill -0 "${pids[a]}" 2>/dev/null || break
        sleep 0.05
    done
    ! kill -0 "${pids[a]}" 2>/dev/null || fail "$1: a hangs: $(tail -n 5 "$work/a.log")"
    code=0
    wait "${pids[a]}" || code=$?
    unset "pids[a]"
}

# what is posted is refused, or never heard of; the event comes at once, or late
for seed in 1 2 3; do
    begin_on $seed
    agent_wait a || fail "a did not register"
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" reader "$token" "still here" \
        >"$work/reader.out" 2>&1 &
    reader=$!
    worker_pids+=($reader)
    for _ in $(seq $((600 * slow))); do
        ! grep -q 'served' "$work/reader.out" || break
        sleep 0.05
    done
    grep -q 'served' "$work/reader.out" ||
        fail "the worker was not served before: $(cat "$work/reader.out")"
    : >"$work/gone"
    ended_by_itself "after the removal"
    [[ $code == 1 ]] || fail "a ended with $code"
    grep -q 'the device cannot be used any more.*it was removed, or its driver gave up' \
        "$work/a.log" || fail "the log does not say it"
    grep -q '^kedge-agentd: the device is gone or broken: see the log' "$work/a.log" ||
        fail "its last words are others"
    ! grep -qE 'Sanitizer|cannot be closed|assert' "$work/a.log" || fail "it does not end cleanly"
    [[ $(grep -c 'cannot be repaired' "$work/a.log") -lt 20 ]] || fail "it tries again and again"
    for _ in $(seq $((100 * slow))); do kill -0 $reader 2>/dev/null || break; sleep 0.05; done
    grep -q "this node's device was removed or broke" "$work/reader.out" ||
        fail "the worker hears: $(cat "$work/reader.out")"
done
ok "an agent whose device is removed says so, tells its workers, and ends with a failure:" \
    "$(tail -n 1 "$work/reader.out")"

# At once, before it is ready, it must not hang either.
more_fabric="fault = removed=1" agent_configure a
: >"$work/a.log"
! daemon_start a kedge-agentd 2>/dev/null || ended_by_itself "a device that is removed at the start"
! kill -0 "${pids[a]-x}" 2>/dev/null ||
    fail "an agent whose device is removed at its start goes on: $(tail -n 5 "$work/a.log")"
grep -qE '^kedge-agentd: ' "$work/a.log" || fail "it does not say why: $(cat "$work/a.log")"
if [[ -n ${pids[a]-} ]]; then # it has not become ready
    code=0
    wait "${pids[a]}" || code=$?
    unset "pids[a]"
fi
[[ $code == 1 ]] || fail "an agent whose device is removed at its start ended with $code"
ok "one that is removed while the agent starts: $(tail -n 1 "$work/a.log")"

# In the midst of it, when part of what is kept ready has been made: each registration takes long.
more_fabric="fault = removed=$((3000 * slow)), register=$((100 * slow)), seed=1" \
    agent_configure a "arenas_ahead = 64"
: >"$work/a.log"
! daemon_start a kedge-agentd 2>/dev/null ||
    ended_by_itself "a device that is removed in the midst of the start"
! kill -0 "${pids[a]-x}" 2>/dev/null ||
    fail "an agent whose device is removed in the midst of its start goes on:" \
        "$(tail -n 5 "$work/a.log")"
grep -q 'the device cannot be used any more' "$work/a.log" ||
    fail "the device was not removed in the midst: $(cat "$work/a.log")"
! grep -q ' ready node=' "$work/a.log" || fail "it was ready before: $(cat "$work/a.log")"
ok "one that is removed in the midst of the start: $(tail -n 1 "$work/a.log")"
wait "${pids[a]-}" 2>/dev/null || true
unset "pids[a]"

# What its supervisor does.
more_fabric= agent_configure a
daemon_start a kedge-agentd || fail "a does not start again"
agent_wait a || fail "a did not register again"
out=$(read_text a "$token") ||
    fail "a reads nothing when it has begun again: $(tail -n 3 "$work/a.log")"
[[ $(tail -n 1 <<<"$out") == "still here" ]] || fail "a reads $out"
ok "begun again on a device, it serves as before"
exec 9>&-
stop
