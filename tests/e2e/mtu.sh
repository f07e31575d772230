#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes whose ports take packets of different lengths. A connection has what both ends take. With
# DC, some initiators send what the smallest of their targets takes, and the others what they did; a
# target whose READ responses are longer than the own port takes is refused, and named.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "ports with MTUs of their own are made on soft alone"; exit 77; }
agents=1
text="bytes of another node, $RANDOM"
begin_agent() { # name; a line of [fabric]
    mkdir -m 0700 "$work/state-$1"
    more_fabric=$2 agent_configure "$1"
    daemon_start "$1" kedge-agentd || fail "agent $1 did not start"
    agent_wait "$1" || fail "agent $1 did not register"
}
reads() { # agent, what
    out=$(read_text "$1" "$token") || fail "$2: $(tail -n 3 "$work/$1.log")"
    [[ $(tail -n 1 <<<"$out") == "$text" ]] || fail "$2: read back $out"
    ok "$2"
}
start
dc=$([[ $transport == rc ]] || echo yes)
begin_agent b "mtu = 1024"
begin_agent c "fault = mtu=512"
agents=3
[[ $(agent_number a mtu) == 4096 && $(agent_number b mtu) == 1024 &&
    $(agent_number c mtu) == 512 ]] ||
    fail "the agents' status does not say their MTUs"
[[ $("$bin/rdmactl" --server "$url" node get node-b -o json | jq '.endpoints[0].mtu') == 1024 ]] ||
    fail "node-b is not registered with its MTU"
export_text b "$text"
reads a "a node that takes packets of 4096 bytes reads one that takes 1024"
if [[ -n $dc ]]; then
    grep -q 'an endpoint takes shorter packets.*mtu=1024 before=4096' "$work/a.log" ||
        fail "a's initiators send what b does not take"
    ! grep -q 'brought up anew with a smaller MTU' "$work/a.log" ||
        fail "one endpoint lowers the MTU of all of a's initiators"
fi
reads a "and again"
[[ $(agent_number a failed) == 0 ]] || fail "requests of agent a have failed"
exec 9>&-
export_text a "$text"
reads b "the other way round"
if [[ -n $dc ]]; then
    ! read_text c "$token" >/dev/null 2>&1 ||
        fail "c reads what would answer in packets that its port does not take"
    grep -q 'answers READs in longer packets than this port takes.*its_mtu=4096 mtu=512' \
        "$work/c.log" ||
        fail "c does not say why: $(tail -n 3 "$work/c.log")"
    ok "a DC target whose answers the own port does not take is refused, and named"
else
    reads c "a node that takes 512 reads one that takes 4096"
fi
exec 9>&-
stop
