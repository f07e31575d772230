#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whom nodes reach over the fabric. Where one of four does not hear the others, that one is what is
# reported, by the metaserver, and nobody else changes; what only one does not reach is that one's
# own trouble; nobody expires, and when it is over nothing is left of it.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "a way is cut on soft alone"; exit 77; }
agents=4 gids=(fd00::{0..8}) more_agent="prove_every = 200ms"
cluster_directories
cut="cut=${gids[3]}, cut_while=$work/cut"
mkdir -m 0700 "$work/metad"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver did not start"
port=$(sed -n 's/.*ready, port //p' "$work/metad.out")
url=http://127.0.0.1:$port
for name in a b c d; do
    mkdir -m 0700 "$work/state-$name"
    more_fabric=
    [[ $name != [ab] ]] || more_fabric="fault = $cut"
    [[ $name != d ]] || more_fabric="fault = cut=${gids[3]}, cut_while=$work/cut-of-all"
    agent_configure "$name"
    daemon_start "$name" kedge-agentd || fail "agent $name did not start"
done
for name in a b c d; do agent_wait "$name" || fail "agent $name did not register"; done
ctl() { timeout 60 "$bin/rdmactl" --server "$url" "$@"; }
# One line of all nodes: "a ok", ...
fabrics() {
    ctl node list -o json | jq -r '[.nodes[] | "\(.id[5:]) \(.fabric.state)" + (
        if .fabric.state == "unreachable" then
            " \(.fabric.failed_by)/\(.fabric.tried_by)"
        else
            [.fabric.failing[].node | " " + (. // "table")[5:]] | add // ""
        end)] | join(", ")'
}
logged() { grep -c "$2" "$work/$1.log" || true; }
all_ok="a ok, b ok, c ok, d ok"
tried() { for name in a b c d; do agent_number "$name" tried; done | paste -sd' '; }
until_is "4 4 4 4" "each proves its way to the three others and the metaserver" tried
until_is "$all_ok" "and all is well" fabrics
export_text c "bytes of c, $RANDOM"

# Two of three do not get through to c, the third does: the majority has it.
: >"$work/cut"
until_is "a ok, b ok, c unreachable 2/3, d ok" \
    "a target that most do not reach is what is reported" fabrics
[[ $(ctl node list -o json | jq -c '[.nodes[].state] | unique') == '["live"]' ]] ||
    fail "somebody expired: $(ctl node list)"
ok "and nobody expires"
shown() { # pattern, rdmactl's words...
    local out
    out=$("$bin/rdmactl" "${@:2}")
    grep -q "$1" <<<"$out" || fail "${*:2}: $out"
}
shown '^fabric *unreachable by 2 of 3 for [0-9.]*m\?s' --server "$url" node get node-c
shown '^node-c .*unreachable by 2 of 3' --server "$url" node list
shown '1 unreachable, 0 failing' --server "$url" --agent-socket "$work/a.admin" status
shown '^  state *failing' --agent-socket "$work/a.admin" agent status
shown '^fabric.towards *node-c' --agent-socket "$work/a.admin" agent status
[[ $(curl -sf "$url/metrics" | sed -n 's/^kedge_metad_nodes_unreachable //p') == 1 ]] ||
    fail "the metaserver's metric"
[[ $("$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
    jq -r .fabric.state) == failing ]] || fail "agent status -o json"
[[ $(agent_metric a fabric_failing) == 1 && $(agent_metric d fabric_failing) == 0 ]] ||
    fail "the agents' metrics"
ok "rdmactl, the metrics and the agent that does not get through say so"
read_text d "$token" >/dev/null || fail "d reads nothing of c"
ok "who reaches it goes on"
: >"$work/cut-of-all"
until_is "a ok, b ok, c unreachable 3/3, d ok" "nor when all of them do not" fabrics
rm "$work/cut-of-all"
until_is "a ok, b ok, c unreachable 2/3, d ok" "and again when one does" fabrics

rm "$work/cut"
until_is "$all_ok" "when it is over nothing is left of it" fabrics
read_text a "$token" >/dev/null || fail "a reads nothing of c"
[[ $(logged a 'the fabric does not lead there.*node="node-c"') == 1 &&
    $(logged a 'the fabric leads there again.*node="node-c"') == 1 ]] ||
    fail "it is not logged once at each change: $(grep fabric "$work/a.log")"
ok "and it was logged once at each change"

# Only d does not get through: its own trouble, until it is over.
: >"$work/cut-of-all"
alone="c ok, d failing c"
[[ $transport != rc ]] ||
    alone="c failing d, d failing c" # whose answers to handshakes do not arrive either
until_is "a ok, b ok, $alone" "what one alone does not reach is that one's" fabrics
rm "$work/cut-of-all"
until_is "$all_ok" "until it does" fabrics

# It is ended in order: those who tried it go on without it.
exec 9>&-
kill -TERM "${pids[c]}"
wait "${pids[c]}" || fail "agent c ended with $?"
until_is "a ok, b ok, d ok" "a node that leaves is no failure" fabrics
sleep 1
[[ $(fabrics) == "a ok, b ok, d ok" ]] || fail "a node that left: $(fabrics)"
unset 'pids[c]'
stop
