#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes are labelled, cordoned and drained: the agent takes no new workers and says why, those that
# it has go on or go, after a restart without any metaserver too; and what is in force on which node
# is known at the metaserver.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
agents=1
start
refused() { # pattern sentence
    worker refused vqps 1
    wait "$worker" 2>/dev/null || true
    grep -qE "$1" "$work/refused.out" || fail "$2: it is told $(cat "$work/refused.out")"
    ok "$2: $(cat "$work/refused.out")"
}
attaches() {
    worker ready vqps 1
    grep -q then "$work/ready.out" || fail "$1: $(cat "$work/ready.out")"
    ok "$1"
    kill "$worker"
    wait "$worker" 2>/dev/null || true
}

# By the GID that logs name.
gid=$(node | jq -r '.endpoints[0].gid')
ctl node get "$gid"
shows '^id +node-a$'
shows '^workers +ready$'
refuses 3 'no node has the GID fd00::42: see rdmactl node list' node get fd00::42

# Labels.
refuses 3 'no node "nobody": .*still to come: rdmactl apply, kind node' node label nobody zone=a
refuses 2 'labels\.zone: .*a letter or digit' node label node-a 'zone=-'
ctl node label node-a zone=a rack=7
ctl node label node-a rack- disk=ssd
says '{"disk":"ssd","zone":"a"}' "labels are set and taken away" .labels
ctl node list --label zone=a,disk=ssd
shows '^node-a '
ctl node list --label zone=b
shows 'no node has these labels'
ctl node list -o wide --label disk=ssd
shows 'disk=ssd,zone=a'
ctl event list
shows 'node node-a +labels: rack=7,zone=a -> disk=ssd,zone=a'

# One that is not registered, but of which something is set.
echo '[{"kind": "node", "name": "node-z", "labels": {"zone": "a"}, "cordoned": true}]' \
    >"$work/absent.json"
ctl apply -f "$work/absent.json"
ctl node list --label zone=a
shows '^node-a +live'
shows '^node-z +absent +- +- +- +cordoned'
ctl node get node-z
shows '^state +absent$'
ctl node get node-z -o json
[[ $(jq -c '[.state, .incarnation, .cordoned, .labels]' "$work/out") == \
    '["absent",null,true,{"zone":"a"}]' ]] || fail "$(cat "$work/out")"
refuses 7 'node-z is gone' node drain node-z --wait
ctl status -o json
shows ' 1 live, 0 waiting, 0 expired'
ctl node delete node-z
refuses 3 'node-z' node get node-z
ok "a node of which something is set is shown before it is registered, and forgotten"

# Cordoned.
worker stays watch
stays=$worker
ctl node cordon node-a --reason "a disk is replaced, ask ops@example.com"
is true "cordoned" .node_state.cordoned
refused 'node-a is cordoned and takes no new workers \(a disk is replaced, ask ops@example.com\)' \
    "a new worker is refused, and told why"
goes_on "$stays" cordoned
says '[true,1]' "the metaserver knows how many workers are left" '[.cordoned, .applied.sessions]'
[[ $(metric cordoned) == 1 ]] || fail "the metric says that it is not"
ctl node list
shows 'cordoned, 1 left'

# Across a restart of the agent without any metaserver, and of the metaserver.
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
wait "$stays" 2>/dev/null || true
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
refused 'node-a is cordoned' "it is so after a restart without any metaserver"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver does not start again"
agent_wait a || fail "the agent did not register again"
says '{"disk":"ssd","zone":"a"}' "the metaserver has kept what was set" .labels
says 0 "and hears of the agent again what is in force" .applied.sessions
ctl node uncordon node-a
is false "no longer cordoned" .node_state.cordoned
attaches "the node is ready for workers again"
says '{"disk":"ssd","zone":"a"}' "and the labels stay" .labels

# What get prints, edited, is applied to what it was made of; with all that it may say of a node.
says true "the agent has proven its fabric" '.fabric.state != null'
node >"$work/node.json"
jq '.labels.disk = "hdd"' "$work/node.json" >"$work/new.json"
ctl apply -f "$work/new.json"
says '{"disk":"hdd","zone":"a"}' "what get prints can be edited and applied" .labels
refuses 5 'node node-a: the file has it as of revision' apply -f "$work/node.json"
says '{"disk":"hdd","zone":"a"}' "and is not overwritten by what is older" .labels

# Draining, without an end: whoever works goes on until he ends.
worker stays watch
stays=$worker
timeout 600 "$bin/rdmactl" --server "$url" node drain node-a --wait >"$work/drain.out" 2>&1 &
drain=$!
is '[true,true,1,null]' "draining" \
    '.node_state | [.cordoned, .draining, .workers_left, .ends_in_ms]'
refused 'node-a is draining and takes no new workers \(by ' "a new worker is refused"
for _ in $(seq $((1200 * slow))); do
    ! grep -q '1 worker left' "$work/drain.out" || break
    sleep 0.05
done
grep -q '1 worker left' "$work/drain.out" ||
    fail "it does not say who is left: $(cat "$work/drain.out")"
goes_on "$stays" draining
kill -0 "$drain" 2>/dev/null || fail "it does not wait: $(cat "$work/drain.out")"
kill "$stays"
wait "$drain" || fail "rdmactl node drain --wait ended with $?: $(cat "$work/drain.out")"
grep -q '0 workers left' "$work/drain.out" || fail "$(cat "$work/drain.out")"
ok "who waits is told when nobody is left: $(tr '\n' ';' <"$work/drain.out")"
ctl node uncordon node-a
is false "no longer" .node_state.draining

# What a second word does not say of a drain stays: its deadline is not lost, and a cordon does
# not end it.
ctl node drain node-a --grace 1h --reason "a disk"
ctl node drain node-a --wait
says '[true,3600000,"a disk"]' "a second drain keeps the grace and the reason" \
    '[.draining, .grace_ms, .reason]'
ctl node cordon node-a
shows 'node-a is draining, and goes on with it: rdmactl node uncordon node-a ends that'
says '[true,3600000,"a disk"]' "and so does a cordon, which says that it drains" \
    '[.draining, .grace_ms, .reason]'
ctl node uncordon node-a
is false "an uncordon ends it" .node_state.draining

# A worker that sleeps without a limit hears of it, and goes by itself, without any time set for it.
worker sleeper sleep
ctl node drain node-a --wait
wait "$worker" || fail "the sleeper ended with $?: $(cat "$work/sleeper.out")"
grep -q '^drains$' "$work/sleeper.out" || fail "the sleeper heard $(cat "$work/sleeper.out")"
ok "a worker that sleeps hears that its node drains, and goes"
ctl node uncordon node-a

# Draining with an end.
worker stays watch
ctl node drain node-a --grace 300ms --wait
shows '0 workers left'
wait "$worker" 2>/dev/null || true
grep -q 'the operator drains this node' "$work/stays.out" ||
    fail "the worker is told $(cat "$work/stays.out")"
ok "a worker that stays is ended when its time is over: $(tail -n 1 "$work/stays.out")"
ctl node uncordon node-a
is false "no longer" .node_state.cordoned
worker stays watch
ctl node drain node-a --grace 0s --wait
says 0 "a grace of 0 is kept as 0" .grace_ms
ctl node get node-a
shows '^grace +0'
wait "$worker" 2>/dev/null || true
grep -q 'the operator drains this node' "$work/stays.out" ||
    fail "the worker is told $(cat "$work/stays.out")"
ok "with a grace of 0 it is ended at once"
ctl node uncordon node-a
is false "no longer" .node_state.cordoned
attaches "the node is ready for workers again"

# What is in force where.
ctl tenant set intruder uids="$(id -u)"
revision=$(curl -sf "$url/v1/tenants/intruder" | jq .revision)
says "[$revision,false]" "the metaserver knows what a node has" \
    '[.applied.revision, .applied.behind]'
says true "and what it cannot do, and why" \
    '.applied.why | contains("tenant intruder: uid ") and contains("belongs to tenant workers")'
[[ $(metad_metric nodes_behind) == 0 ]] ||
    fail "kedge_metad_nodes_behind is $(metad_metric nodes_behind)"
ctl node list
shows "$revision: tenant intruder: .*belongs to tenant workers"
worker stays watch
ctl node drain node-a --grace 1ms --wait
shows '0 workers left'
wait "$worker" 2>/dev/null || true
ok "it is drained all the same"
ctl node uncordon node-a
is false "and takes workers again" .node_state.cordoned
revision=$((revision + 2))
ctl tenant delete intruder
says "[$((revision + 1)),false,\"\"]" "and when it can" \
    '[.applied.revision, .applied.behind, .applied.why]'
[[ $(metad_metric nodes_behind) == 0 ]] ||
    fail "kedge_metad_nodes_behind is $(metad_metric nodes_behind)"
refuses 2 'node drain alone' node cordon node-a --wait

# Said of a node whose agent does not answer, or has never come.
kill -STOP "${pids[a]}"
refuses 0 'node-a is (behind, and this is not in force yet|expired, and)' node cordon node-a
! grep -q 'takes no new workers' "$work/out" || fail "it says what is not so: $(cat "$work/out")"
timeout 600 "$bin/rdmactl" --server "$url" node drain node-a --wait >"$work/drain.out" 2>&1 &
drain=$!
kill -CONT "${pids[a]}"
wait "$drain" || grep -q 'nothing is heard' "$work/drain.out" ||
    fail "drain --wait ended with $?: $(cat "$work/drain.out")"
ok "who waits for an agent that has stood still: $(tr '\n' ';' <"$work/drain.out")"
ctl node uncordon node-a
echo '[{"kind": "node", "name": "ghost", "cordoned": true}]' >"$work/ghost.json"
ctl apply -f "$work/ghost.json"
refuses 0 'node ghost is not registered' node uncordon ghost
stop
