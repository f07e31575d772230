#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 10,000 workers attach and die, a third of them killed wherever they are: the agent's memory,
# descriptors, threads and sessions, and what is in /dev/shm, are where they were.
source "$(dirname "$0")/lib.sh"
needs_built kedge-stress
sanitized=$(grep -q -a __asan_init "$bin/kedge-agentd" && echo 1 || echo 0)
rounds=${CHURN_ROUNDS:-$((sanitized ? 1000 : 10000))} seed=${CHURN_SEED:-$RANDOM}
# Allocators keep a little of what they had in use at the worst moment, and that moment may be a
# worse one than in the warm-up: what has grown is not to grow again. 10,000 rounds that lose 200
# bytes each are caught.
slack_kib=2048
# The slots of the table of regions and of the lane's rings are used in turn: few, so that all
# are in the warm-up.
more_pool=$'max_mrs = 512\nmax_sessions = 64'
echo "seed $seed (CHURN_SEED repeats it)"
start

status() { "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json; }
number() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/${pids[a]}/status"; }
fds() { # beside arenas, each of which has a pipe too
    readlink "/proc/${pids[a]}"/fd/* | awk "/kedge-arena/ {n--; next} {n++} END {print n}"
}
shm_kib() { if [[ $provider == soft ]]; then du -sk "$device" | cut -f 1; else echo 0; fi; }
# Nobody is left, and what is kept ahead is there again.
settled() {
    status | jq -e '.sessions.live == 0 and .sessions.ending == 0 and .sessions.ready == 16 and
        .memory.arenas_ahead == 16 and .lane.sessions == 0 and .lane.vqps == 0 and
        .lane.mrs == 0 and .lane.inflight == 0' >/dev/null
}
settle() {
    for _ in $(seq 1200); do
        if settled; then sleep 1.5; return 0; fi # memory is trimmed once a second
        sleep 0.05
    done
    fail "something is left: $(status)"
}
churn() { # rounds
    timeout 500 "$bin/kedge-stress" churn --socket "$work/a.sock" --rounds "$1" --seed "$seed" \
        >"$work/churn.out" 2>&1 || fail "$(cat "$work/churn.out")"
}

churn $((rounds / 5))
settle
rss=$(number VmRSS) threads=$(number Threads) fds=$(fds) shm=$(shm_kib)
arenas=$(agent_number a arenas) most_arenas=32 # arenas_ahead of nobody, and as many of the tenant
for _ in 1 2 3; do
    anon=$(number RssAnon)
    echo "before: $(number VmRSS) KiB resident, $anon anonymous," \
        "$(fds) descriptors beside those of arenas, $(number Threads) threads," \
        "$(shm_kib) KiB in /dev/shm, $(agent_number a arenas) arenas"
    churn "$rounds"
    settle
    ok "$(cat "$work/churn.out")"
    grown=$((sanitized ? 0 : $(number RssAnon) > anon + slack_kib))
    ((grown)) || break
done
echo "after:  $(number VmRSS), $(number RssAnon), $(fds), $(number Threads), $(shm_kib)," \
    "$(agent_number a arenas)"
((!sanitized)) || skip "the bounds of the agent's memory (a sanitizer keeps what was freed)"
((!grown)) || fail "the agent's own memory grows each time"
# An arena's pages count as resident once they are touched: those of arenas that are lent again.
((sanitized || $(number VmRSS) <= rss + slack_kib + 2048 * 16)) || fail "what is resident has grown"
(($(fds) <= fds + 2)) || fail "descriptors are left: $(
    readlink "/proc/${pids[a]}"/fd/* | sort | uniq -c | sort -rn | head)"
(($(number Threads) == threads)) || fail "threads are left"
# The device's slots for regions are used in turn: 65536 of 64 bytes at most.
(($(shm_kib) <= shm + 4096 + 64)) || fail "the device's files in /dev/shm have grown"
(($(agent_number a arenas) <= most_arenas)) || fail "arenas are left"
ok "the agent's memory, descriptors and threads are where they were"
stop
