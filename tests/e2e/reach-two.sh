#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes, of which one does not reach the other: nobody can tell which of them it is, and neither
# is blamed; until the agent of one is heard of no more, which is that one's doing, and expires;
# nothing is left of it at the other.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "a way is cut on soft alone"; exit 77; }
agents=2 gids=(fd00::{0..4}) more_agent="prove_every = 200ms"
more_metad="node_lease = $((12 * slow))s" # of which the second half is when an agent is late
cluster_directories
cut="cut=${gids[2]}, cut_while=$work/cut"
mkdir -m 0700 "$work/metad"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver did not start"
port=$(sed -n 's/.*ready, port //p' "$work/metad.out")
url=http://127.0.0.1:$port
for name in a b; do
    mkdir -m 0700 "$work/state-$name"
    more_fabric=
    [[ $name != a ]] || more_fabric="fault = $cut"
    agent_configure "$name"
    daemon_start "$name" kedge-agentd || fail "agent $name did not start"
done
for name in a b; do agent_wait "$name" || fail "agent $name did not register"; done
ctl() { timeout 60 "$bin/rdmactl" --server "$url" "$@"; }
fabrics() {
    ctl node list -o json |
        jq -r '[.nodes[] | "\(.id[5:]) \(.state) \(.fabric.state // "-")"] | join(", ")'
}
shown() { # pattern, rdmactl's words...
    local out
    out=$(ctl "${@:2}")
    grep -q "$1" <<<"$out" || fail "${*:2}: $out"
}
until_is "a live ok, b live ok" "all is well" fabrics
: >"$work/cut"
until_is "a live undecided, b live undecided" "of two nodes neither is blamed" fabrics
shown '^node-a .*undecided: this node or node-b' node list
between='between this node and node-a, and no other node has tried'
shown '^fabric *undecided for [0-9.]*m\?s: '"$between" node get node-b
ok "and each is shown with the other's name"
rm "$work/cut"
until_is "a live ok, b live ok" "nothing is left of it" fabrics

: >"$work/cut"
until_is "a live undecided, b live undecided" "once more" fabrics
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null || true
unset 'pids[b]'
until_is "a live ok, b live unreachable" \
    "the one whose agent is heard of no more is blamed, before its lease ends" fabrics
shown '^fabric *unreachable by 1 of 1 for ' node get node-b
until_is "a live ok, b expired -" "and expires" fabrics
stop
