#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The operator looks at workers and leases, and revokes leases: by the rule and by force, while
# remote workers go on, owners come and go, and the remote agent's lane stands still; and whatever
# he asks for that makes no sense.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
ms=${LEASES_MS:-6000} long='mr_lease = 5s'
more_pool=$shortest
start

leases() { ctl lease list -o json | jq -c "$1"; }
http() { # method path: prints the status; the body goes to $work/body
    curl -s -o "$work/body" -w '%{http_code}' -X "$1" --unix-socket "$work/a.admin" "http://a$2"
}

# ---- looking
is "$(leases '.leases')" '[]' "nobody is there, and no lease"
ctl worker list | grep >/dev/null '^there is no worker on this host' ||
    fail "an empty list says nothing"
export_text a "what was exported"
id=$(leases '.leases[0].id' | tr -d '"') worker=$(ctl worker list -o json | jq -r '.workers[0].id')
is "$id" "$worker-1" "a worker's first lease is its number 1"
is "$(leases '.leases[0] | [.node, .tenant, .uid, .arena, .offset, .length, .access, .state,
    .by_operator, .over_in_ms]')" \
    "[\"node-a\",\"workers\",$(id -u),0,0,4096,[\"read\"],\"live\",false,null]" \
    "a lease is shown as it is"
is "$(ctl worker get "$worker" -o json |
    jq -c '[.id, .pid, .state, .leases, .arenas, .arena_bytes]')" \
    "[\"$worker\",${worker_pids[0]},\"live\",1,1,2097152]" "so is its worker"
ctl lease get "$id" | grep -E >/dev/null '^state +live$' || fail "rdmactl lease get shows no state"
ctl describe worker "$worker" >"$work/page"
grep -qx "worker $worker" "$work/page" && grep -Eq '^state +live$' "$work/page" &&
    grep -qx leases "$work/page" && grep -q "^$id " "$work/page" ||
    fail "a worker's page: $(cat "$work/page")"
ctl describe lease "$id" >"$work/page"
grep -qx "lease $id" "$work/page" && grep -qx worker "$work/page" &&
    grep -Eq "^id +$worker\$" "$work/page" || fail "a lease's page: $(cat "$work/page")"
is "$(ctl describe worker "$worker" -o json | jq -c '[.kind, .status.id, .leases[0].id]')" \
    "[\"worker\",\"$worker\",\"$id\"]" "workers and leases are described on pages"
ctl lease list --tenant workers | grep >/dev/null "^$id " ||
    fail "the tenant's filter hides its own"
ctl lease list --tenant others | grep >/dev/null '^there is no such lease' ||
    fail "the tenant's filter lets others through"
is "$(ctl lease list --worker "$worker" -o json | jq -c '.leases | length')" 1 "a worker's leases"
ctl lease list -o wide | grep -E >/dev/null " $worker +node-a *$" ||
    fail "the wide table lacks the worker"

export_numbers 5
for _ in $(seq 1200); do [[ $(leases '.leases | length') == 5 ]] && break; sleep 0.05; done
path='/v1/leases?limit=2' seen=()
for _ in 1 2 3; do
    [[ $(http GET "$path") == 200 ]] || fail "$path: $(cat "$work/body")"
    mapfile -t -O ${#seen[@]} seen < <(jq -r '.leases[].id' "$work/body")
    path="/v1/leases?limit=2&cursor=$(jq -r '.next_cursor // "none"' "$work/body")"
done
is "$path ${#seen[@]} $(printf '%s\n' "${seen[@]}" | sort -u | wc -l)" \
    '/v1/leases?limit=2&cursor=none 5 5' "three pages of five leases"
find_first_leases

# ---- revoking by the rule
read_text b "$token" >"$work/read" 2>&1 && grep -q 'what was exported' "$work/read" ||
    fail "it cannot be read: $(cat "$work/read")"
ctl lease revoke "$id" >"$work/said"
grep -q "^$id .* revoked " "$work/said" && grep -q '^what breaks: nothing' "$work/said" ||
    fail "it says $(cat "$work/said")"
ok "a lease is revoked"
if read_text b "$token" >"$work/read" 2>&1; then fail "it can still be read"; fi
grep -q 'unknown or withdrawn remote key' "$work/read" ||
    fail "the reader hears $(cat "$work/read")"
ok "and can be read no more"
is "$(ctl lease get "$id" -o json | jq -c '[.state, .by_operator]')" '["revoked",true]' \
    "it is shown until its worker gives it back"
kill -0 "${worker_pids[0]}" || fail "its worker has ended"
grep -q "leases were revoked by the operator.*pid=${worker_pids[0]} leases=1 lease=1 forced=false" \
    "$work/a.log" || fail "the log says nothing"
is "$(agent_metric a leases_revoked_total)" 1 "it is counted"
ctl lease revoke "$id" >/dev/null && ctl lease revoke --force "$id" >/dev/null ||
    fail "revoking again is refused"
is "$(agent_metric a leases_revoked_total)" 1 "again, that is nothing new"
read_text b "$(cat "$work/token-2")" | grep >/dev/null 'number 2' ||
    fail "another worker's region is gone too"

# ---- by force
other=${seen[1]}
ctl lease revoke --force -o json "$other" >"$work/said" ||
    fail "it is not forced: $(cat "$work/said")"
is "$(jq -c '[.forced, .over, .leases[0].id, .leases[0].state, .leases[0].asked_for]' \
    "$work/said")" "[true,true,\"$other\",\"revoked\",true]" "a lease is taken by force"
jq -r .breaks "$work/said" | grep >/dev/null IBV_WC_REM_ACCESS_ERR ||
    fail "it does not say what breaks"
grep -q "an arena's registration was taken away by the operator.*arena=0" "$work/a.log" ||
    fail "the log does not say so"
ctl lease revoke --worker "${seen[2]%-*}" -o json >"$work/said" ||
    fail "a worker's leases are not revoked"
is "$(jq -c '[.forced, .over, (.leases | length)]' "$work/said")" '[false,true,1]' \
    "all of a worker are revoked"

# ---- what makes no sense
refuses 2 "no lease's id" lease get frob
refuses 2 "no lease's id" lease revoke "$worker"
refuses 2 "no lease's id" lease revoke "$id-1"
refuses 2 "no worker's id" worker get "$id"
refuses 2 "no worker's id|worker must be" lease revoke --worker "$id"
refuses 3 'no such lease' lease get "$worker-77"
refuses 3 'no such lease' lease revoke --force "0-00000000-1"
refuses 3 'no such worker' worker get "4294967295-00000000"
refuses 3 'no such worker' lease revoke --worker "1-ffffffff"
refuses 2 'is too long' lease list --tenant "$(printf 'x%.0s' {1..400})"
refuses 7 'no agent at' --agent-socket "$work/nobody" lease list
for path in '/v1/leases?limit=0' '/v1/leases?limit=1001' '/v1/leases?cursor=!' \
    '/v1/leases?cursor=MQ' '/v1/leases?worker=x' '/v1/leases?cursor=NDI5NDk2NzI5Ni4w' \
    /v1/leases/ /v1/workers/-; do
    [[ $(http GET "$path") == 400 ]] || fail "GET $path: $(cat "$work/body")"
done
[[ $(http GET '/v1/leases?cursor=NDI5NDk2NzI5NS40Mjk0OTY3Mjk1') == 200 ]] ||
    fail "a cursor behind all: $(cat "$work/body")"
[[ $(http DELETE "/v1/leases/$id?force=2") == 400 && $(http DELETE /v1/leases) == 400 ]] ||
    fail "nonsense is revoked"
[[ $(http POST "/v1/leases/$id") == 405 && $(http DELETE "/v1/workers/$worker") == 405 &&
    $(http PUT /v1/leases) == 405 ]] ||
    fail "other methods are not refused"
for _ in $(seq 100); do
    path=$(printf '%d-%08x-%d' $((RANDOM % 8)) $((RANDOM * 65536 + RANDOM)) $((RANDOM % 4)))
    code=$(http DELETE "/v1/leases/$path?force=$((RANDOM % 2))")
    [[ $code == 404 || $code == 400 ]] || fail "DELETE $path: $code"
done
ok "random ids are nobody's"
read_text b "$(cat "$work/token-5")" | grep >/dev/null 'number 5' || fail "somebody was harmed"
for _ in $(seq 20); do # at once, and by force among them
    http DELETE "/v1/leases/${seen[3]}?force=$((RANDOM % 2))" >>"$work/codes" &
    parallel+=($!)
    echo >>"$work/codes"
done
wait "${parallel[@]}"
[[ -z $(grep -oE '[0-9]{3}' "$work/codes" | grep -vE '200|409') ]] ||
    fail "twenty at once: $(cat "$work/codes")"
is "$(ctl lease get "${seen[3]}" -o json | jq -r .state)" revoked \
    "twenty who revoke the same at once"
kill -KILL "${worker_pids[1]}"
for _ in $(seq 1200); do ctl lease get "$other" >/dev/null 2>&1 || break; sleep 0.05; done
refuses 3 'no such lease' lease revoke "$other"

# ---- all of the node
before=$(leases '[.leases[] | select(.state == "live")] | length')
((before > 0)) || fail "no lease is left to be revoked: $(ctl lease list)"
ctl lease revoke --all >"$work/said" || fail "not all are revoked: $(cat "$work/said")"
is "$(leases '[.leases[].state] | unique')" '["revoked"]' "all of the node are revoked"
is "$(grep -c '^worker ' "$work/said") $(grep -c '^what breaks: ' "$work/said")" \
    "$(ctl worker list -o json | jq -r '.workers | "\(length) \(length)"')" \
    "and what breaks is said of each worker"
ctl lease revoke --all --force -o json >"$work/said" || fail "again, by force: $(cat "$work/said")"
is "$(jq -c '[.format_version, ([.revoked[].worker] | length), .failed]' "$work/said")" \
    "[1,$(ctl worker list -o json | jq '.workers | length'),[]]" "again, by force, in JSON"
refuses 2 'or --worker ID, or --all' lease revoke
refuses 2 'lease revoke alone, without --worker' lease revoke --all --worker "$worker"
refuses 2 'one word too many' lease revoke --all "$id"
end_workers
exec 8>&- 9>&-
for _ in $(seq 1200); do
    [[ $(ctl worker list -o json | jq '.workers | length') != 0 ]] || break
    sleep 0.05
done
ctl lease revoke --all | grep >/dev/null '^no worker there has a lease' ||
    fail "nobody is there, and nothing is said of it"
cluster_stop || fail "the cluster did not stop"

# ---- under remote readers and writers
under_load() { # seconds of stops; more options
    local stops=0 stress which=$1; shift
    timeout 300 "$bin/kedge-stress" revoke --socket "$work/a.sock" --peer "$work/b.sock" \
        --seed "$LEASES_SEED" --ms "$ms" --rdmactl "$bin/rdmactl" --admin "$work/b.admin" "$@" \
        >"$work/revoke.out" 2>&1 &
    stress=$!
    worker_pids+=("$stress")
    while kill -0 "$stress" 2>/dev/null; do
        sleep "0.$((RANDOM % 9 + 1))"
        [[ $which == stops ]] || continue
        kill -STOP "${pids[a]}"
        sleep "0.$((RANDOM % 2))$((RANDOM % 10))"
        kill -CONT "${pids[a]}"
        stops=$((stops + 1))
    done
    wait "$stress" || fail "$(cat "$work/revoke.out")"
    ok "$(cat "$work/revoke.out"); the remote lane was stopped $stops times"
}
start
under_load goes-on "${writes[@]}"
under_load stops "${writes[@]}"
cluster_stop || fail "the cluster did not stop"
more_pool=$long # what is over before that is so by force
start
under_load goes-on --forced
stop
