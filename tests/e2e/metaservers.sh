#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent with several metaservers, some of which stand still, are gone, come back elsewhere or
# know less: names are found, the log stays short, and the agent ends in time.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-metaservers.sh"
needs_built kedge-probe

# Long enough that a node that is stopped stays live for a few calls of curl, wherever this runs.
lease=$((8 * slow))

# The first is started by hand, so that its lease is short; a has both, and b too.
declare -A gid_number=([metad]=0 [second]=3 [many]=4) # 1 and 2 are the agents'
more_agent="prove_every = 0ms" # which looks up endpoints too
cluster_directories
for name in metad second; do
    metad_conf "$name" 127.0.0.1:0
    metad_start "$name"
done
metad_conf metad "127.0.0.1:$port_metad" # the same port from now on
urls="http://127.0.0.1:$port_metad, http://127.0.0.1:$port_second"
for name in a b; do
    mkdir -m 0700 "$work/state-$name"
    url=$urls agent_configure "$name"
    daemon_start "$name" kedge-agentd || fail "agent $name did not start"
done
state() { # metaserver node
    curl -sf --max-time 20 "$(at "$1")/v1/nodes/node-$2" | jq -r .state
}
probe() { KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" "$@"; }
says_again() { (($(lines ' registered' "$port_metad") <= registered)) || echo yes; }
lines() { grep -c "$1.*$2\"" "$work/a.log" || true; } # what metaserver's port
for name in a b; do
    until_is live "$name registers with the one" state metad "$name"
    until_is live "$name registers with the other" state second "$name"
done

# ---- names
kill -STOP "${pids[metad]}"
out=$(probe connect node-b) || fail "a name while the first metaserver stands still: $out"
ok "a name is found while the first metaserver stands still: $out"
kill -CONT "${pids[metad]}"
until_is live "a is registered again" state metad a
found=
for _ in $(seq 20); do # until it was asked before b's lease had ended,
    # which a slow machine may not do at once
    for name in metad second; do until_is live "b is live" state $name b; done
    kill -STOP "${pids[b]}"
    curl -sf -X DELETE "http://127.0.0.1:$port_metad/v1/nodes/node-b" || fail "DELETE"
    out=$(probe connect node-b) && found=yes || found=
    [[ $(state second b) != live || $(state metad b || true) != "" ]] || break
    kill -CONT "${pids[b]}"
    found="a stopped node is not live to the end of its lease"
done
[[ $found == yes ]] || fail "a name that the first metaserver does not know: ${found:-$out}"
ok "a name is found that the first metaserver does not know: $out"
out=$(probe connect nobody) && fail "a name that nobody has is found"
grep -q 'no node is called "nobody": it is not registered, or no longer (rdmactl node list)' \
    <<<"$out" || fail "a name that nobody has: $out"
until_is expired "b expires" state second b
out=$(probe connect node-b) && fail "an expired node is found: $out"
grep -q 'no node is called "node-b"' <<<"$out" || fail "an expired node: $out"
ok "an expired node is no answer to a name"
kill -CONT "${pids[b]}"
until_is live "b comes back" state metad b

# ---- the log
registered=$(lines ' registered' "$port_metad") lost=$(lines 'not registered' "$port_metad")
kill -KILL "${pids[metad]}"; wait "${pids[metad]}" 2>/dev/null || true
says_lost() { (($(lines 'not registered' "$port_metad") == lost)) || echo yes; }
until_is yes "a metaserver is lost, and the log says so" says_lost
follows() {
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
        jq -r .settings.metaserver
}
until_is "http://127.0.0.1:$port_second" "the agent follows the other's settings, and says so" \
    follows
sleep 3 # for some five tries
(($(lines 'not registered' "$port_metad") == lost + 1)) ||
    fail "the loss is in the log $(($(lines 'not registered' "$port_metad") - lost)) times"
ok "one line says that a metaserver is lost"

# ---- it comes back with another GID each time
for number in 5 6 7; do # of soft no two starts have the same
    gid_number[metad]=$number
    metad_conf metad "127.0.0.1:$port_metad"
    metad_start metad
    until_is live "a registers again" state metad a
    until_is live "b registers again" state metad b
    until_is yes "and the log says so" says_again
    kill -KILL "${pids[metad]}"; wait "${pids[metad]}" 2>/dev/null || true
done
metad_start metad
until_is live "a registers again" state metad a
kill -KILL "${pids[second]}"; wait "${pids[second]}" 2>/dev/null || true
unset 'pids[second]'
kill -TERM "${pids[b]}"; wait "${pids[b]}" || fail "the agent ended with $?"
[[ $provider == soft ]] || sed -i "s/^gid = .*/gid = ${gids[${gid_number[second]}]}/" "$work/b.conf"
daemon_start b kedge-agentd || fail "agent b did not start again"
until_is live "b registers with a new GID" state metad b
reads=$(agent_number a endpoint_reads)
out=$(probe connect node-b) || fail "after that: $out"
(($(agent_number a endpoint_reads) > reads)) || fail "nothing was looked up"
ok "what is unknown is looked up at its new address: $out"

# ---- ending while many stand still: one process stands for eight
kill -TERM "${pids[a]}"; wait "${pids[a]}" || fail "the agent ended with $?"
metad_conf many 0.0.0.0:0
metad_start many
url=$(for n in 1 2 3 4 5 6 7 8; do printf 'http://127.0.0.%d:%d, ' "$n" "$port_many"; done) \
    agent_configure a
sed -i 's/^\(metaservers = .*\), $/\1/' "$work/a.conf"
all_registered() {
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
        jq '[.metaservers[] | select(.state == "registered")] | length'
}
# It waits 0.5 s for all together; one after the other that would be 4 s each time, however
# fast the machine is.
for _ in $(seq 10); do
    daemon_start a kedge-agentd || fail "the agent did not start"
    until_is 8 "registered with eight" all_registered
    kill -STOP "${pids[many]}"
    begin=$(date +%s%N)
    kill -TERM "${pids[a]}"
    wait "${pids[a]}" || fail "the agent ended with $?: $(tail -n 20 "$work/a.log")"
    ms=$((($(date +%s%N) - begin) / 1000000))
    kill -CONT "${pids[many]}"
    ((ms >= 4000)) || break
done
((ms < 4000)) || fail "ending took $ms ms while eight metaservers stand still"
ok "the agent ends after $ms ms while eight metaservers stand still"
kill -TERM "${pids[many]}"; wait "${pids[many]}" || fail "the metaserver ended with $?"
unset 'pids[many]' 'pids[a]'
stop
