#!/usr/bin/env bash
# Connecting to a known endpoint makes no system call: a hundred thousand connects make as many of them as none.
source "$(dirname "$0")/lib.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # it cannot look for leaks in a process that is traced
command -v strace >/dev/null || { echo "skip: strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "skip: processes may not be traced here"; exit 77; }
start

# System calls of a run with so many connects, from the first to the last line of strace.
calls() { # count
    strace -f -qq -o "$work/trace" "$bin/kedge-perf" connect --cached --count "$1" --json \
        --socket "$work/a.sock" --peer-socket "$work/b.sock" --server "$url" >"$work/perf" || fail "kedge-perf under strace"
    [[ $(jq .count "$work/perf") == "$1" ]] || fail "kedge-perf counted otherwise"
    wc -l <"$work/trace"
}
calls 1 >/dev/null # the peer becomes a known one
few=$(calls 1)
many=$(calls 100000)
((many - few < 100)) || fail "100000 connects made $((many - few)) system calls"
ok "100000 connects to a known endpoint made $((many - few)) system calls more than one ($many in all)"
stop
