#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that comes, dies and goes is told by the metaservers' streams, each time once and with its
# time, under one id at all of them; a watch goes on where it was, and a metaserver that starts
# again tells what it finds under the same ids.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-metaservers.sh"
lease=$((2 * slow))
declare -A gid_number=([metad]=0 [second]=3)
ctl() { timeout 60 "$bin/rdmactl" --server "$(at "$1")" "${@:2}"; }
# A watch that stays: what it prints in $work/NAME, its end in $work/NAME.err.
watch() { # name metaserver arguments...
    : >"$work/$1"
    timeout 300 "$bin/rdmactl" --server "$(at "$2")" "${@:3}" >"$work/$1" 2>"$work/$1.err" &
    worker_pids+=($!)
    declare -g "watch_$1=$!"
}
streams() { # metaserver
    curl -sf "$(at "$1")/metrics" | sed -n 's/^kedge_metad_watches //p'
}
cluster_directories
for name in metad second; do
    metad_conf "$name" 127.0.0.1:0
    metad_start "$name"
    metad_conf "$name" "127.0.0.1:$(eval echo "\$port_$name")" # the same port from now on
done
mkdir -m 0700 "$work/state-a"
url="$(at metad), $(at second)" agent_configure a
watch words metad event watch
watch nodes second node watch -o json
watch tenants second tenant watch
until_is 1 "a watch of all" streams metad
until_is 2 "and two of some" streams second

start_agent() { daemon_start a kedge-agentd || fail "the agent does not start"; }
ids() { jq -r .id "$work/$1" | sort | uniq -c | awk '{print $2 " " $1}' | tr '\n' ';'; }
count() { grep -c "$1" "$work/words" || true; }
start_agent
until_is 1 "a node that comes is told" \
    count '  liveness node-a  node live, incarnation [0-9]*  (kedge-metad)$'
life=$(ctl metad node get node-a -o json | jq .incarnation)
until_is "node-a/$life/live 1;" "by the other metaserver too" ids nodes

# Killed: once at each, under one id, with the time when it was last heard of.
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
until_is 1 "a node that is killed is told to have expired" \
    count "  node expired, incarnation $life after live, last heard of at 2"
until_is "node-a/$life/expired 1;node-a/$life/live 1;" "by the other too, under the same id" \
    ids nodes
jq -es '(.[1].time | sub("[.].*"; "Z") | fromdate) -
    (.[1].to.last_heard | sub("[.].*"; "Z") | fromdate) | . >= '$((lease - 1)) \
    "$work/nodes" >/dev/null ||
    fail "it has expired before its lease was over: $(cat "$work/nodes")"
ctl metad event list --kind liveness -o json >"$work/listed"
[[ $(jq -c '[.events[].id]' "$work/listed") == \
    "[\"node-a/$life/live\",\"node-a/$life/expired\"]" ]] ||
    fail "listed: $(cat "$work/listed")"
ok "both are listed, once"
[[ $(ctl metad event list --kind tenant -o json | jq '.events | length') == 0 &&
    ! -s $work/tenants ]] || fail "a filter lets it through"
ok "and filtered by kind"

# It goes on after the event that was seen, and no other.
position=$(jq -r '.events[0].position' "$work/listed")
watch again metad event watch --kind liveness --position "$position" -o json
until_is "node-a/$life/expired 1;" "a watch goes on after a position" ids again
for name in metad second; do
    [[ $(ctl $name node list -o json | jq -c '[.nodes[] | [.id, .state]]') == \
        '[["node-a","expired"]]' ]] ||
        fail "$name lists other nodes than the one that has expired: $(ctl $name node list)"
done
ok "and both list it as what the events say"

# Back, and gone in order.
start_agent
until_is 1 "a node that comes back is told" \
    count '  node live, incarnation [0-9]* after expired with '"$life  "
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
until_is 1 "and one that goes in order, with who took it away" \
    count '  node removed, incarnation [0-9]* after live  (127\.0\.0\.1:'

# A metaserver that is killed and starts again: the same ids, and what a watch says that it goes on
# with is good there.
start_agent
until_is live "the agent is there" bash -c "curl -sf '$(at metad)/v1/nodes/node-a' | jq -r .state"
life=$(ctl metad node get node-a -o json | jq .incarnation)
until_is 1 "which is told" count "  node live, incarnation $life"
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
wait "$watch_words" || true
words=$(sed -n 's/.*; go on with //p' "$work/words.err")
[[ $words == --revision*--position* ]] ||
    fail "the watch does not say how to go on: $(cat "$work/words.err")"
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
metad_start metad
# shellcheck disable=SC2086 # it is options
watch later metad event watch $words -o json
until_is "node-a/$life/expired 1;" \
    "a node that died meanwhile is told to have expired, as by the other one" ids later
until_is 1 "of which that is so" \
    bash -c "jq -r .id '$work/nodes' | grep -c '^node-a/$life/expired\$'"
[[ $(jq -c .to.last_heard "$work/later") == null ]] ||
    fail "a time is made up: $(cat "$work/later")"
ok "without a time when it was heard of, which this one does not know"
kill -TERM "${pids[second]}"
wait "${pids[second]}" || fail "the second metaserver ended with $?"
unset 'pids[a]' 'pids[second]'
stop
