#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent whose disk takes a minute: a pool that is made anew gets its incarnation, and workers
# attach, before the disk has kept anything. strace(1) makes the disk slow.
source "$(dirname "$0")/lib.sh"
command -v strace >/dev/null || { skip "strace is not installed"; exit 77; }
source "$(dirname "$0")/lib-follow.sh"
# its search for leaks does not work under strace
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
delay_s=60
agents=1
start
pools='[.pools[] | [.name, .state]]'
kept() { cat "$work/state-a/incarnation"; }
ctl tenant create workers "uids=$(id -u)"
ctl pool create batch nodes=all tenants=workers sessions_ahead=2 arenas_ahead=2
is '[["default","running"],["batch","running"]]' "a pool is made" "$pools"
ctl pool set batch nodes=zone=none
is '[["default","running"]]' "and goes" "$pools"

before=$(kept)
strace -f -p "${pids[a]}" -e trace=fsync -e inject=fsync:delay_enter=${delay_s}000000 \
    -o "$work/trace" 2>"$work/strace" &
strace_pid=$!
for _ in $(seq 300); do
    ! grep -q attached "$work/strace" || break
    kill -0 "$strace_pid" 2>/dev/null || {
        skip "strace may not attach: $(cat "$work/strace")"
        exit 77
    }
    sleep 0.1
done
ctl pool set batch nodes=all
is '[["default","running"],["batch","running"]]' "it is made anew" "$pools"
said=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" connect node-a 2>&1) ||
    fail "no worker of it attaches: $said"
ok "a worker of it attaches: $said"
is '["batch"]' "and its next ones are ready" '[.pools[] | select(.sessions.ready == 2) | .name]'
[[ $(kept) == "$before" ]] || fail "all of that waited for the disk: $before, now $(kept)"
ok "nothing of that waits for the disk, which still has $before"
kill "$strace_pid"
wait "$strace_pid" || true
until_is $((before + 1)) "and then has one more for this life" kept
stop
