#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A DC target of an agent breaks, and its device says nothing: others find out, the metaserver tells
# the agent, and that makes another one, while its workers and what they lend live on. Where that is
# no help it is not done again and again.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "a DC target is broken on soft alone"; exit 77; }
[[ $transport != rc ]] || { skip "over RC there is no DC target"; exit 77; }
agents=4 gids=(fd00::{0..8}) more_agent="prove_every = 200ms"
cluster_directories
mkdir -m 0700 "$work/metad"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver did not start"
port=$(sed -n 's/.*ready, port //p' "$work/metad.out")
url=http://127.0.0.1:$port
for name in a b c d; do
    mkdir -m 0700 "$work/state-$name"
    more_fabric=
    [[ $name != c ]] || more_fabric="fault = dct_silent_when=$work/silent"
    agent_configure "$name"
    daemon_start "$name" kedge-agentd || fail "agent $name did not start"
done
for name in a b c d; do agent_wait "$name" || fail "agent $name did not register"; done
fabrics() {
    timeout 60 "$bin/rdmactl" --server "$url" node list -o json |
        jq -r '[.nodes[] | "\(.id[5:]) \(.fabric.state)"] | join(", ")'
}
logged() { grep -c "$1" "$work/c.log" || true; }
status() { "$bin/rdmactl" --agent-socket "$work/c.admin" agent status -o json | jq -r "$1"; }
unreached='.fabric | "\(.unreached.by // 0) of \(.unreached.tried_by // 0), \(.targets_anew)"'
all_ok="a ok, b ok, c ok, d ok"
tried() { for name in a b c d; do agent_number "$name" tried; done | paste -sd' '; }
until_is "4 4 4 4" "each proves its way to the three others and the metaserver" tried
until_is "$all_ok" "and all is well" fabrics
export_text c "bytes of c, $RANDOM"
read_text a "$token" >/dev/null || fail "a reads nothing of c"

: >"$work/silent"
until_is 1 "the agent hears that its target broke, and makes another one" \
    logged 'its DC targets are made anew'
until_is "$all_ok" "others reach it again" fabrics
until_is "0 of 0, 1" "which it hears too" status "$unreached"
for name in a b d; do
    read_text "$name" "$token" >/dev/null || fail "$name reads nothing of c any more"
done
ok "and what its worker lends is where it was"
[[ $(agent_metric c targets_anew_total) == 1 && $(agent_metric a targets_anew_total) == 0 ]] ||
    fail "the agents' metrics"
[[ $(logged 'most nodes that tried do not reach this one') == 1 &&
    $(logged 'other nodes reach this one again') == 1 ]] ||
    fail "it is not logged once at each change: $(grep reach "$work/c.log")"
ok "it is logged once at each change, and counted"

rm "$work/silent"
: >"$work/silent"
until_is "a ok, b ok, c unreachable, d ok" "it breaks again, too soon to be no cut wire" fabrics
until_is "3 of 3, 1" "so that no other is made, and the agent says that it is not reached" \
    status "$unreached"
sleep 3
[[ $(status "$unreached") == "3 of 3, 1" && $(agent_metric c fabric_unreached_by) == 3 ]] ||
    fail "it did not wait: $(status .fabric)"
ok "for as long as others need to find out whether it helped"
stop
