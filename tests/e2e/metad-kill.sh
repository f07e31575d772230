#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kedge-metad is killed again and again while nodes register: whatever was acknowledged is there
# afterwards, and nothing is there that nobody asked for.
source "$(dirname "$0")/lib-metad.sh"
rounds=${KEDGE_KILL_ROUNDS:-15}
configure "node_lease = 1h"
acknowledged=$work/acknowledged
: >"$acknowledged"

# Registers nodes one after the other and notes each that was answered with 201;
# ends with the server.
register() { # first number
    local n=$1 got
    while :; do
        got=$(curl -s --max-time 5 -o /dev/null -w '%{http_code}' -X PUT \
            -H 'Content-Type: application/json' \
            --data-binary "$(node "$((n + 1))" "$((n % 65000 + 1))")" \
            "$url/v1/nodes/node-$n") || return 0
        [[ $got == 201 ]] && echo "node-$n $((n + 1))" >>"$acknowledged"
        n=$((n + 1))
    done
}

for round in $(seq "$rounds"); do
    start
    register $((round * 1000)) &
    client=$!
    for _ in $(seq 1200); do
        ! grep -q "^node-$((round * 1000)) " "$acknowledged" || break # the first
        sleep 0.05
    done
    grep -q "^node-$((round * 1000)) " "$acknowledged" || fail "round $round has no registration"
    sleep "0.$((RANDOM % 400 + 100))"
    kill -KILL "$metad_pid"
    wait "$metad_pid" 2>/dev/null || true
    wait "$client" || true
done
count=$(wc -l <"$acknowledged")
((count >= rounds)) || fail "only $count registrations were acknowledged in $rounds rounds"

start
cursor= listed=$work/listed
: >"$listed"
while :; do
    ask "/v1/nodes?limit=1000${cursor:+&cursor=$cursor}"
    [[ $status == 200 ]] || fail "listing: status $status"
    jq -r '.nodes[] | "\(.id) \(.incarnation)"' "$work/body" >>"$listed"
    cursor=$(jq -r '.next_cursor // empty' "$work/body")
    [[ -n $cursor ]] || break
done
lost=$(comm -23 <(sort "$acknowledged") <(sort "$listed"))
[[ -z $lost ]] || fail "acknowledged, then lost: $lost"
ok "$count registrations were acknowledged between $rounds kills, and none is lost"
# At most the one that was under way at each kill may be there without having been acknowledged.
extra=$(comm -13 <(sort "$acknowledged") <(sort "$listed") | wc -l)
((extra <= rounds)) || fail "$extra nodes are listed that were not acknowledged"
ok "$extra of the $rounds that were under way at a kill are there too"

read -r name incarnation <"$acknowledged"
send POST "/v1/nodes/$name/renew" "{\"incarnation\":$incarnation}"
expect 404 "a node from before the restart has to register again"
[[ $(jq -r .type "$work/body") == urn:kedge:problem:register-again ]] ||
    fail "it is not told to register again"
send PUT "/v1/nodes/$name" "$(node "$incarnation" "$(((incarnation - 1) % 65000 + 1))")"
expect 200 "and may do so with its incarnation"
send POST "/v1/nodes/$name/renew" "{\"incarnation\":$incarnation}"
expect 200 "and then renew"
send PUT "/v1/nodes/$name" "$(node "$((incarnation - 1))" 1)"
expect 409 "its older incarnation is still refused"
stop
