#!/usr/bin/env bash
# Connecting to a known endpoint makes no system call: a hundred thousand connects make as many of
# them as none. Nor a message to the agent: they work while it is stopped. Attaching, which must ask
# it, shows that the count would see them.
source "$(dirname "$0")/lib.sh"
# it cannot look for leaks in a process that is traced
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
command -v strace >/dev/null || { echo "skip: strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "skip: processes may not be traced here"; exit 77; }
start

# System calls of a run with so many connects, from the first to the last line of strace.
calls() { # count
    strace -f -qq -o "$work/trace" "$bin/kedge-perf" connect --cached --count "$1" --json \
        --socket "$work/a.sock" --peer-socket "$work/b.sock" --server "$url" >"$work/perf" ||
        fail "kedge-perf under strace"
    [[ $(jq .count "$work/perf") == "$1" ]] || fail "kedge-perf counted otherwise"
    wc -l <"$work/trace"
}
calls 1 >/dev/null # the peer becomes a known one
few=$(calls 1)
many=$(calls 100000)
((many - few < 100)) || fail "100000 connects made $((many - few)) system calls"
ok "100000 connects to a known endpoint made $((many - few)) system calls more than one" \
    "($many in all)"

attaching() { # count
    strace -f -qq -o "$work/trace" "$bin/kedge-perf" attach --count "$1" --json \
        --socket "$work/a.sock" >"$work/perf" ||
        fail "kedge-perf under strace"
    wc -l <"$work/trace"
}
few=$(attaching 1) many=$(attaching 21)
((many - few > 200)) ||
    fail "20 attachments made only $((many - few)) system calls: the count sees nothing"
ok "20 attachments made $((many - few)) more, so they would be seen"

# The connects begin when the worker has attached and says so; the agent is stopped before that.

KEDGE_SOCKET=$work/a.sock "$bin/kedge-perf" connect --cached --count 300000000 --json \
    --peer-socket "$work/b.sock" --server "$url" >"$work/perf" 2>&1 &
perf=$!
worker_pids+=("$perf")
cpu() { awk '{print $14 + $15}' "/proc/$perf/stat"; }
computes() { # so many more ticks; what is said when it does not
    local begun; begun=$(cpu)
    for _ in $(seq 1200); do
        (($(cpu) - begun <= $1)) || return 0
        sleep 0.05
    done
    fail "$2 ($(($(cpu) - begun)) ticks in a minute)"
}
computes 50 "the worker does not begin" # it attaches in less
kill -STOP "${pids[a]}" "${pids[b]}" "${pids[metad]}"
computes 20 "the worker did not go on while the agents were stopped"
kill -CONT "${pids[a]}" "${pids[b]}" "${pids[metad]}"
kill -KILL "$perf"; wait "$perf" 2>/dev/null || true
ok "connects to a known endpoint go on while agents and metaserver are stopped"
stop
