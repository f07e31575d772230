#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent whose device hangs when it gives back what it has: it was told to end, and ends within
# its bound, says what it leaves behind, and can be begun again at once. One whose device is only
# slow is waited for.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft && $transport != rc ]] || {
    skip "soft's DC targets alone can be made to hang"
    exit 77
}
agents=1
ends() { # ms: sends SIGTERM; sets $took and $code
    local begin
    begin=$(date +%s%3N)
    kill -TERM "${pids[a]}"
    for _ in $(seq $((20 * $1 / 1000))); do
        kill -0 "${pids[a]}" 2>/dev/null || break
        sleep 0.05
    done
    ! kill -0 "${pids[a]}" 2>/dev/null ||
        fail "the agent has not ended within $1 ms: $(tail -n 3 "$work/a.log")"
    took=$(($(date +%s%3N) - begin)) code=0
    wait "${pids[a]}" || code=$?
    unset "pids[a]"
}
node_is_live() {
    "$bin/rdmactl" --server "$url" node get node-a 2>/dev/null | grep >/dev/null '^state *live'
}
more_fabric='fault = drain=500'
start
ends 10000
[[ $code == 0 ]] || fail "an agent whose device is slow ends with $code"
! grep -q 'the device does not answer' "$work/a.log" ||
    fail "a device that is slow is not waited for"
ok "a device that takes its time is waited for ($took ms)"

# Anything up to 120 s, as it is drawn: one of eight is over before the agent gives up, and no test.
took=0
for _ in $(seq 6); do
    more_fabric='fault = drain=60000' agent_configure a
    daemon_start a kedge-agentd || fail "the agent does not start"
    agent_wait a || fail "it does not register"
    export_text a "bytes"
    node_is_live || fail "the metaserver does not show it as live"
    ends 30000
    exec 9>&-
    rm "$work/hold-a"
    ((took < 15000)) || break
done
[[ $code == 0 ]] || fail "the agent ended with $code: $(tail -n 5 "$work/a.log")"
((took >= 15000)) || fail "it gave up after $took ms, or did not hang: $(tail -n 5 "$work/a.log")"
left='the device does not answer: what the agent has of it is left to the kernel'
grep -q "$left"'.*for="destroying a DC target"' "$work/a.log" ||
    fail "it does not say what it leaves: $(tail -n 5 "$work/a.log")"
! node_is_live || fail "the metaserver was not told"
ok "a device that hangs is given up after $took ms, and said"
more_fabric= agent_configure a
daemon_start a kedge-agentd || fail "the agent does not start again"
agent_wait a || fail "it does not register again"
ok "and begun again, it serves"
stop
