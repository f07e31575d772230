#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers that wait in epoll (kedge_fd(), kedge_arm()): nothing is lost while the lane sleeps and
# wakes, one that sleeps learns that its agent is gone, and descriptors are given back.
source "$(dirname "$0")/lib.sh"
needs_built epoll_loop
agents=2
start

loop() { KEDGE_SOCKET=$work/a.sock timeout 120 "$bin/epoll_loop" "$token" "$1"; }
count_fds() { ls "/proc/${pids[a]}/fd" | wc -l; }

export_text b "what is waited for"
out=$(loop 2000 2>&1) || fail "a worker that waits in epoll: $out"
grep -Eq '^2000 READs, in [1-9][0-9]* sleeps' <<<"$out" || fail "it says $out"
ok "2000 READs, one after the other: $out"

until_is 0 "its session is over" eval "agent_number a sessions"
# Those of sessions that are over are closed one after the other.
settled() { local was; was=$(count_fds); sleep 0.5; (($(count_fds) == was)) && echo settled; }
until_is settled "its descriptors are closed" settled
before=$(count_fds)
for _ in $(seq 10); do loop 10 >/dev/null || fail "a further one"; done
few() { (($(count_fds) <= before + 2)) && echo few; }
until_is few "ten more leave no descriptor behind" few

completed=$(agent_number a completed)
loop 1000000000 >"$work/loop.out" 2>&1 &
loop=$!
worker_pids+=($loop)
further() { (($(agent_number a completed) > completed + 10)) && echo further; }
until_is further "one goes on" further
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
status=0
wait "$loop" || status=$?
((status == 1)) || fail "it ended with $status: $(cat "$work/loop.out")"
grep -Eq "(is gone|has closed the completion channel): open another" "$work/loop.out" ||
    fail "it says $(cat "$work/loop.out")"
ok "who waits there hears that the agent is gone"
daemon_start a kedge-agentd || fail "the agent does not start again"
agent_wait a
loop 100 >/dev/null || fail "after that"
stop
