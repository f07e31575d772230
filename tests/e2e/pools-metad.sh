#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A metaserver is restarted again and again under agents with several pools: each pool registers
# with it again, and workers of each connect to a node that was not there before.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
[[ $(id -u) == 0 ]] || { skip "two users are needed, and only root can be both"; exit 77; }
more_metad="node_lease = $((3 * slow))s" # which says how often agents ask whether they are known
more_agent="prove_every = 0ms"           # which looks up endpoints too
start
port=${url##*:} more_metad=$more_metad metad_configure
# The programs where any user can run them, wherever this checkout is.
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-probe" "$bin"/../lib/libkedge.so* "$work/worker/"
chmod -R a+rX "$work/worker"
connect() { KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" connect node-b; }
connect_as_guest() {
    timeout 60 setpriv --reuid 65533 --clear-groups \
        env "LD_LIBRARY_PATH=$work/worker" KEDGE_SOCKET="$work/a.sock" \
        "$work/worker/kedge-probe" connect node-b
}
connects() { # pool command
    local begin
    begin=$(date +%s%N)
    for _ in $(seq $((600 * slow))); do
        if "$2" >"$work/out" 2>&1; then
            ok "a worker of pool $1 connects after $((($(date +%s%N) - begin) / 1000000)) ms"
            return
        fi
        sleep 0.1
    done
    fail "no worker of pool $1 connects: $(cat "$work/out")"
}
endpoints_of_b() {
    "$bin/rdmactl" --server "$url" node get node-b -o json |
        jq -c '[.state, (.endpoints | length)]'
}
both_connect() {
    connects default connect
    connects guests connect_as_guest
}

ctl tenant create guests uids=65533
ctl pool create guests nodes=all tenants=guests sessions_ahead=2 arenas_ahead=2
becomes '["live",2]' "the other node is there in both pools" endpoints_of_b .
both_connect
for round in 1 2 3 4; do
    kill -TERM "${pids[metad]}"
    wait "${pids[metad]}" || fail "the metaserver ended with $?"
    is '[["lost",0,0]]' "restart $round: without it no pool is registered" \
        '[[.metaservers[0].state, .pools[].metaservers]]'
    daemon_start metad kedge-metad || fail "the metaserver did not start again"
    becomes '["live",2]' "restart $round: the other node is registered again" endpoints_of_b .
    # Another life of the other node, and on soft another GID, so that nobody has met it.
    kill -TERM "${pids[b]}"
    wait "${pids[b]}" || fail "the other agent ended with $?"
    daemon_start b kedge-agentd || fail "the other agent did not start again"
    becomes '["live",2]' "restart $round: the other node is there anew" endpoints_of_b .
    both_connect
    is '[["registered",1,1]]' "restart $round: the agent says so" \
        '[[.metaservers[0].state, .pools[].metaservers]]'
done

# Where renewals come seldom: a pool whose lookups find nobody asks, and the others when it has
# learned of the restart.
port=${url##*:} more_metad="node_lease = 86400s" metad_configure
registered() { grep -c ': registered pool=guests ' "$work/a.log"; }
before=$(registered)
for round in first second; do
    kill -TERM "${pids[metad]}"
    wait "${pids[metad]}" || fail "the metaserver ended with $?"
    daemon_start metad kedge-metad || fail "the metaserver did not start again"
    [[ $round == second ]] ||
        becomes true "renewals come a few times a day now" registered ". > $before"
done
kill -TERM "${pids[b]}"
wait "${pids[b]}" || fail "the other agent ended with $?"
daemon_start b kedge-agentd || fail "the other agent did not start again"
becomes '["live",2]' "the other node is there anew" endpoints_of_b .
both_connect
stop
