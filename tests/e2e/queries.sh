#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers and leases of other hosts, through the metaserver: what the agents themselves say, of one
# node and of all; revoking, also by force, while remote workers read; agents that stand still, are
# killed, or follow another metaserver than the one that is asked.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
ms=${ASKED_MS:-5000} long='mr_lease = 5s'
more_pool=$shortest
start

# A second metaserver, which the third agent follows; that agent is registered with the
# first one too.
mkdir -m 0700 "$work/other" "$work/state-c"
{
    printf '%s\n' "[metaserver]" "listen = 127.0.0.1:0" "data_dir = $work/other" \
        "admin_socket = $work/other.sock" "access = open"
    fabric_settings 4
} >"$work/other.conf"
daemon_start other kedge-metad || fail "the second metaserver did not start"
other=http://127.0.0.1:$(sed -n 's/.*ready, port //p' "$work/other.out")
url="$other, $url" agent_configure c
daemon_start c kedge-agentd || fail "agent c did not start"
agent_wait c || fail "agent c did not register"

ctl() { timeout 60 "$bin/rdmactl" --server "$url" "$@"; }
own() { timeout 60 "$bin/rdmactl" --agent-socket "$work/$1.admin" "${@:2}"; }
http() { # method path [url]: prints the status; the body goes to $work/body
    curl -s --max-time 60 -o "$work/body" -w '%{http_code}' -X "$1" "${3:-$url}$2"
}
until_asked() { # node: until its agent follows the first metaserver
    for _ in $(seq $((1200 * slow))); do
        [[ $(http GET "/v1/workers?node=$1") != 200 ]] || return 0
        sleep 0.05
    done
    fail "$1 cannot be asked: $(cat "$work/body")"
}
metric() { curl -sf "$url/metrics" | awk -v name="$1" '$1 == name {print $2}'; }
until_asked node-a
until_asked node-b
until_asked node-c

# ---- looking
is "$(ctl --node node-a lease list -o json | jq -c '.leases')" '[]' "nobody is there, and no lease"
export_text a "what was exported"
id=$(own a lease list -o json | jq -r '.leases[0].id') \
    worker=$(own a worker list -o json | jq -r '.workers[0].id')
plain='walk(if type == "object" then del(.age_ms) else . end)'
prefixed='walk(if type == "object" then
    with_entries(if .key == "id" or .key == "worker" then .value |= "node-a:" + . else . end)
    else . end)'
for what in lease worker; do
    is "$(ctl --node node-a "$what" list -o json | jq -cS "$plain")" \
        "$(own a "$what" list -o json | jq -cS "$plain | $prefixed")" \
        "the $what is shown as its agent shows it, with the node before its ids"
done
is "$(ctl --node node-a lease get "$id" -o json | jq -cS "$plain")" \
    "$(own a lease get "$id" -o json | jq -cS "$plain | $prefixed")" \
    "so is one lease"
is "$(ctl lease get "node-a:$id" -o json | jq -r .id)" "node-a:$id" \
    "an id with its node needs no --node"
is "$(ctl worker get "node-a:$worker" -o json | jq -r .node)" node-a "likewise a worker's"
ctl --node node-a lease list -o wide |
    grep -E >/dev/null "^node-a:$id .* node-a:$worker +node-a *$" ||
    fail "the wide table lacks the worker"
is "$(ctl --node node-a lease list --tenant others -o json | jq -c .leases)" '[]' \
    "the tenant's filter"
is "$(ctl lease list --worker "node-a:$worker" -o json | jq -c '.leases | length')" 1 \
    "a worker's leases"
own b lease list | grep >/dev/null '^there is no lease on this host' ||
    fail "without --node another host is asked"
export_numbers 4
[[ $(curl -sI --max-time 60 -o "$work/head" -w '%{http_code}' \
    "$url/v1/leases?node=node-a") == 200 ]] || fail "HEAD: $(cat "$work/head")"
path='/v1/leases?node=node-a&limit=3' seen=()
for _ in 1 2; do
    [[ $(http GET "$path") == 200 ]] || fail "$path: $(cat "$work/body")"
    mapfile -t -O ${#seen[@]} seen < <(jq -r '.leases[].id' "$work/body")
    path="/v1/leases?node=node-a&limit=3&cursor=$(jq -r '.next_cursor // "none"' "$work/body")"
done
is "$path ${#seen[@]} $(printf '%s\n' "${seen[@]}" | sort -u | wc -l)" \
    '/v1/leases?node=node-a&limit=3&cursor=none 4 4' "two pages of four leases"
mkfifo "$work/hold-of-b"
exec 7<>"$work/hold-of-b" # nobody writes there: it waits, and does not spin
KEDGE_SOCKET=$work/b.sock "$bin/export_region" "of b" <&7 >"$work/token-b" 2>/dev/null &
worker_pids+=($!)
for _ in $(seq 1200); do [[ ! -s $work/token-b ]] || break; sleep 0.05; done
path='/v1/workers?limit=2' seen=() nodes=
for _ in 1 2 3 4 5 6; do
    [[ $(http GET "$path") == 200 ]] || fail "$path: $(cat "$work/body")"
    mapfile -t -O ${#seen[@]} seen < <(jq -r '.workers[].node' "$work/body")
    nodes+=$(jq -r '.unreachable[].node' "$work/body")
    [[ $(jq -r .next_cursor "$work/body") != null ]] || break
    path="/v1/workers?limit=2&cursor=$(jq -r .next_cursor "$work/body")"
done
is "${seen[*]} $nodes" 'node-a node-a node-a node-a node-b ' \
    "the workers of all nodes, in pages, and that each could be asked"
is "$(own c agent status -o json | jq -r .settings.metaserver)" "$other" \
    "the third agent follows the other metaserver"
for server in "$url" "$other"; do
    [[ $(http GET '/v1/workers?node=node-c' "$server") == 200 ]] ||
        fail "it cannot be asked through $server: $(cat "$work/body")"
done
ok "either metaserver can ask it"
counters='paths(scalars) | map(select(type == "string")) | join(".")'
for node in a c; do
    is "$(ctl --node "node-$node" agent status -o json | jq -c "[$counters] | unique")" \
        "$(own "$node" agent status -o json | jq -c "[$counters] | unique")" \
        "an agent's status has all that it says on its host"
    ctl --node "node-$node" agent status | grep -E >/dev/null "^ *node +node-$node *$" ||
        fail "it is not shown in sections: $(ctl --node "node-$node" agent status | head -5)"
done
refuses 3 'there is no node node-x' --node node-x agent status

# ---- what makes no sense
refuses 3 'there is no node node-x' --node node-x lease list
refuses 3 'no such lease here' --node node-a lease get "$worker-77"
refuses 3 'no such worker here' --node node-a worker get 4294967295-00000000
refuses 2 "no lease's id" --node node-a lease get "$worker"
refuses 2 'not of node node-b' --node node-b lease get "node-a:$id"
refuses 2 'agent.s own ids' --node node-a lease get frob
refuses 3 'no such lease here' --node node-a lease revoke "0-00000000-1" --force
refuses 3 'no such worker here' lease revoke --worker node-a:1-ffffffff

# ---- revoking
read_text b "$token" | grep >/dev/null 'what was exported' || fail "it cannot be read"
ctl --node node-a lease revoke "$id" >"$work/said" || fail "it is not revoked: $(cat "$work/said")"
grep -q "^node-a:$id .* revoked " "$work/said" && grep -q '^what breaks: nothing' "$work/said" ||
    fail "it says $(cat "$work/said")"
if read_text b "$token" >"$work/read" 2>&1; then fail "it can still be read"; fi
ok "a lease is revoked, and can be read no more"
is "$(own a lease get "$id" -o json | jq -c '[.state, .by_operator]')" '["revoked",true]' \
    "its agent says so too"
find_first_leases
last=${seen[3]}
ctl lease revoke "node-a:$last" --force -o json >"$work/said" ||
    fail "it is not forced: $(cat "$work/said")"
is "$(
    jq -c '[.forced, .over, .leases[0].id, .leases[0].state, .leases[0].asked_for,
        .leases[0].node]' "$work/said"
)" "[true,true,\"node-a:$last\",\"revoked\",true,\"node-a\"]" "a lease is taken by force"
jq -r .breaks "$work/said" | grep >/dev/null IBV_WC_REM_ACCESS_ERR ||
    fail "it does not say what breaks"
read_text b "$(cat "$work/token-2")" | grep >/dev/null 'number 2' ||
    fail "another worker's region is gone too"
[[ $(http GET '/v1/events?kind=lease&limit=1000') == 200 ]] || fail "the trail: $(cat "$work/body")"
is "$(
    jq -c '[.events[] | [.name, .from.lease // .from.worker, .from.force, .to]][-2:]' "$work/body"
)" "[[\"node-a\",\"$id\",false,null],[\"node-a\",\"$last\",true,null]]" \
    "the trail says what was revoked"
jq -r '.events[-1].who' "$work/body" | grep >/dev/null '^127.0.0.1:' || fail "and not by whom"
ctl event list >"$work/out"
grep -q "lease node-a .*revocation of $last, by force" "$work/out" ||
    fail "rdmactl event list does not show it"
ok "rdmactl event list shows it"
grep -q "lease node-a .*revocation of 0-00000000-1, by force, failed: unknown-lease" "$work/out" ||
    fail "it does not show what was refused: $(cat "$work/out")"
ok "and what the agent refused"
ctl --node node-a lease revoke --all --force -o json >"$work/said" ||
    fail "not all are revoked: $(cat "$work/said")"
is "$(
    jq -c '[(.revoked | length), ([.revoked[].leases[].state] | unique), .failed]' "$work/said"
)" '[4,["revoked"],[]]' "all of a node are revoked"
is "$(own a lease list -o json | jq -c '[.leases[].state] | unique')" '["revoked"]' \
    "its agent says so too"
if read_text b "$(cat "$work/token-2")" >"$work/read" 2>&1; then
    fail "another worker's can still be read"
fi

# ---- of an agent that follows another metaserver; and what both ask for at once
mkfifo "$work/hold-of-c"
exec 6<>"$work/hold-of-c"
KEDGE_SOCKET=$work/c.sock "$bin/export_region" "of c" <&6 >"$work/token-c" 2>/dev/null &
worker_pids+=($!)
for _ in $(seq 1200); do [[ ! -s $work/token-c ]] || break; sleep 0.05; done
id=$(ctl --node node-c lease list -o json | jq -r '.leases[0].id')
is "$id" "node-c:$(own c lease list -o json | jq -r '.leases[0].id')" "its lease is shown"
timeout 60 "$bin/rdmactl" --server "$other" lease revoke "$id" --force >"$work/said-other" 2>&1 &
asking=$!
ctl lease revoke "$id" --force >"$work/said" 2>&1 || fail "it is not revoked: $(cat "$work/said")"
wait "$asking" || fail "nor through the other one: $(cat "$work/said-other")"
is "$(own c lease list -o json | jq -c '[.leases[].state]')" '["revoked"]' \
    "it is revoked, as either metaserver was asked to, and both say so"

# ---- an agent that stands still, and one that is killed
kill -STOP "${pids[a]}" # and before its lease ends:
[[ $(http GET /v1/workers) == 200 ]] || fail "all nodes: $(cat "$work/body")"
is "$(jq -c '[.workers, [.unreachable[].node], (.next_cursor != null)]' "$work/body")" \
    '[[],["node-a"],true]' "a page ends with an agent that is silent"
[[ $(http GET "/v1/workers?cursor=$(jq -r .next_cursor "$work/body")") == 200 ]] ||
    fail "the next page: $(cat "$work/body")"
is "$(jq -c '[(.workers | length), [.unreachable[].node]]' "$work/body")" '[2,[]]' \
    "and the next one goes on behind it"
[[ $(http GET '/v1/workers?node=node-a') == 504 ]] ||
    fail "an agent that stands still: $(cat "$work/body")"
jq -r .detail "$work/body" | grep >/dev/null 'node-a has not answered within 5 s' ||
    fail "it says $(cat "$work/body")"
asking=()
for _ in 1 2 3 4 5 6; do http GET '/v1/workers?node=node-a' >>"$work/codes" & asking+=($!); done
wait "${asking[@]}"
is "$(grep -oE '[0-9]{3}' "$work/codes" | sort | uniq -c | tr -s ' \n' ' ')" ' 2 503 4 504 ' \
    "four queries at a time wait for one agent"
kill -CONT "${pids[a]}"
until_asked node-a
ok "it goes on, and can be asked"
for _ in $(seq 1200); do
    (($(metric 'kedge_metad_answers_total{what="unwanted"}') == 6)) && break
    sleep 0.05
done
is "$(metric 'kedge_metad_answers_total{what="unwanted"}')" 6 \
    "what it answers too late nobody wants"
is "$(metric kedge_metad_queries_open)" 0 "no question is open"
is "$(metric 'kedge_metad_queries_failed_total{why="late"}')" 6 "those that were late are counted"
is "$(agent_metric a queries_unanswered_total)" 6 "by the agent too"
kill -KILL "${pids[b]}"; wait "${pids[b]}" 2>/dev/null || true
for _ in $(seq $((200 * slow))); do
    code=$(http GET '/v1/workers?node=node-b')
    [[ $code == 503 ]] && break
    [[ $code == 504 ]] || fail "an agent that was killed: $code: $(cat "$work/body")"
done
is "$code" 503 "an agent that was killed is soon known to be gone: $(jq -r .detail "$work/body")"
refuses 7 '1 of the nodes could not be asked' worker list --all-nodes
grep -q '^rdmactl: node-b was not asked: ' "$work/said" || fail "it says $(cat "$work/said")"
is "$(ctl worker list --all-nodes -o json 2>/dev/null |
    jq -c '[([.workers[].node] | unique), [.unreachable[].node]]')" \
    '[["node-a","node-c"],["node-b"]]' "in JSON too"
daemon_start b kedge-agentd || fail "agent b did not start again"
until_asked node-b
ok "its next life can be asked"

# ---- the metaservers' ends
kill -TERM "${pids[other]}"; wait "${pids[other]}" || fail "the second metaserver ended with $?"
unset 'pids[other]'
follows() { own c agent status -o json | jq -r .settings.metaserver; }
until_is "$url" "who followed the other metaserver goes over to this one" follows
until_asked node-c
kill -STOP "${pids[a]}"
http GET '/v1/workers?node=node-a' >"$work/code" &
asking=$!
for _ in $(seq 3000); do [[ $(metric kedge_metad_queries_open) == 0 ]] || break; sleep 0.02; done
kill -TERM "${pids[metad]}"; wait "${pids[metad]}" || fail "the metaserver ended with $?"
wait "$asking" || true
kill -CONT "${pids[a]}"
is "$(cat "$work/code") $(jq -r .detail "$work/body")" '503 this metaserver stops: ask again' \
    "who waits is told when the metaserver stops"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver did not start again"
until_asked node-a
is "$(curl -sf "$url/v1/events?kind=lease" | jq '.events | length')" 11 \
    "what was revoked, or refused, is in the trail after a restart"
end_workers
exec 6>&- 8>&- 9>&-
pids_c=${pids[c]}
kill -TERM "$pids_c"; wait "$pids_c" || fail "agent c ended with $?"
unset 'pids[c]'
cluster_stop || fail "the cluster did not stop"

# ---- under remote readers and writers
under_load() { # more options
    {
        echo '#!/bin/sh'
        echo 'shift 2 # --agent-socket and its path'
        echo "exec '$bin/rdmactl' --server '$url' --node node-b \"\$@\""
    } >"$work/through"
    chmod +x "$work/through"
    timeout 300 "$bin/kedge-stress" revoke --socket "$work/a.sock" --peer "$work/b.sock" \
        --seed "$LEASES_SEED" --ms "$ms" --rdmactl "$work/through" --admin "$work/b.admin" "$@" \
        >"$work/revoke.out" 2>&1 || fail "$(cat "$work/revoke.out")"
    ok "through the metaserver: $(cat "$work/revoke.out")"
    (($(curl -sf "$url/v1/events?kind=lease&limit=1000" | jq '.events | length') > 0)) ||
        fail "nothing is in the trail"
}
start
until_asked node-b
under_load "${writes[@]}"
cluster_stop || fail "the cluster did not stop"
more_pool=$long # what is over before that is so by force
start
until_asked node-b
under_load --forced
stop
