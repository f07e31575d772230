#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Agents with both transports: under a worker's continuous READs an endpoint gets a connection
# beside DC, and more than one where it may have several; and nodes with DC alone, with RC alone and
# with both are in one cluster.
export KEDGE_TEST_TRANSPORT=hybrid
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "a device with both is made on soft alone"; exit 77; }
begin_agent() { # name transport
    mkdir -m 0700 "$work/state-$1"
    transport=$2 agent_configure "$1"
    daemon_start "$1" kedge-agentd || fail "agent $1 did not start"
    agent_wait "$1" || fail "agent $1 did not register"
}
read_much() { # count
    timeout 120 "$bin/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" \
        --depth 16 --count "$1" --json
}
more_pool=$'connections_per_peer = 4\nconnections = 16'
start
[[ $("$bin/rdmactl" --server "$url" node get node-a -o json | jq -c '.endpoints[0].transports') == \
    '["dc","rc"]' ]] || fail "node-a is not registered with both transports"
ok "a node with both is registered with both"
# Which of its connections a worker's READs take goes by the place of its session: of four that are
# there at the same time not all have the same. They go on until there is a second one, which
# another thread makes meanwhile.
for ((round = 0; round < 50; round++)); do
    readers=()
    for reader in 1 2 3 4; do
        read_much 200000 >"$work/reads-$reader" 2>&1 &
        readers+=($!)
    done
    for reader in 1 2 3 4; do
        wait "${readers[reader - 1]}" || fail "READs from a to b: $(cat "$work/reads-$reader")"
    done
    (($(agent_number a links) < 2)) || break
done
[[ $(agent_number a links_taken) -ge 1 && $(agent_number a transfers) -ge 1 ]] ||
    fail "no connection beside DC under traffic: $("$bin/rdmactl" --agent-socket "$work/a.admin" \
        agent status -o json)"
[[ $(agent_number a links) -ge 2 ]] ||
    fail "an endpoint that may have four connections has $(agent_number a links)"
[[ $(agent_number a failed) == 0 ]] || fail "requests of agent a have failed"
ok "$(agent_number a transfers) transfers to a connection under traffic, and no request failed"
[[ $("$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json | jq -r .transport) == \
    hybrid ]] || fail "the status does not say hybrid"
[[ $(agent_metric a lane_links_taken_total | head -n 1) -ge 1 ]] || fail "the metrics do not say it"

text="bytes of another node, $RANDOM"
reads() { # agent, what
    out=$(read_text "$1" "$token") || fail "$2: $(tail -n 3 "$work/$1.log")"
    [[ $(tail -n 1 <<<"$out") == "$text" ]] || fail "$2: read back $out"
    ok "$2"
}
begin_agent c rc
begin_agent d dc
agents=4
for far in c d; do
    export_text $far "$text"
    reads a "a node with both reads one with $([[ $far == c ]] && echo RC || echo DC) alone"
    exec 9>&-
done
export_text a "$text"
reads c "a node with RC alone reads one with both"
reads d "a node with DC alone reads one with both"
exec 9>&-
stop
