#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whoever comes as soon as an agent is ready is let into the pools that it had, on a device that
# takes its time for them, and without a metaserver.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "a device is made slow on soft alone"; exit 77; }
source "$(dirname "$0")/lib-follow.sh"
agents=1
more_fabric="fault = register=150"
start
pools='[.pools[] | [.name, .state]]'
ctl tenant create workers "uids=$(id -u)"
ctl pool create batch nodes=all tenants=workers sessions_ahead=2 arenas_ahead=2
is '[["default","running"],["batch","running"]]' "it is made" "$pools"

kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
unset 'pids[metad]'
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
said=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" connect node-a 2>&1) || true
# It is let in, and asks for a peer, of which nobody can be asked: who is not let in is told of
# the pool.
[[ $said == *"not connected: no metaserver could be asked for that name"* ]] ||
    fail "an agent that is ready has not the pool that it had: $said"
ok "whoever comes when the agent is ready is of its pool: $said"
stop
