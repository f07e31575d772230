#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sessions that one pool keeps ready are not in the way of another pool's workers, when both
# together are as many as the agent may have.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
agents=1 worker_uids=65533
more_pool=$'max_sessions = 4\nsessions_ahead = 4'
start
is '[4,4]' "the agent's own pool keeps as many sessions ready as there may be" \
    '[.sessions.ready, .pools[0].sessions.ready]'
ctl tenant create guests uids=$(id -u)
ctl pool create batch nodes=all tenants=guests
is '[["default","running"],["batch","running"]]' "another pool is made" \
    '[.pools[] | [.name, .state]]'
is '0' "for which there is no room" '.pools[1].sessions.ready'
for i in 1 2 3; do # each has a session when it says something, and stays
    worker "w$i" sleep
    grep -q '^attached' "$work/w$i.out" || fail "worker $i: $(cat "$work/w$i.out")"
done
ok "three workers of that one get in, and one place is left to the other tenant"
code=0
KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" sleep >"$work/out" 2>&1 || code=$?
((code != 0)) && grep -qE 'no session left|too many connections' "$work/out" ||
    fail "the fourth: $(cat "$work/out")"
ok "a fourth hears at once that there is no room: $(cat "$work/out")"
stop
