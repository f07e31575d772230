#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each example of schema/openapi.yaml, executed; then tenants, windows, events and configurations
# over real sockets: the conventions that real clients meet, and kill -9 between and during writes.
source "$(dirname "$0")/lib-metad.sh"
rounds=${KEDGE_KILL_ROUNDS:-8}
openapi=$(dirname "$0")/../../schema/openapi.yaml
configure "node_lease = 1h"
start

# Each example as a line: path, method, "request" or the answer's status, JSON.
examples() {
    awk '
        /^[a-z]/ {path = ""}
        /^paths:/ {inside = 1}
        /^components:/ {inside = 0}
        inside && /^  \// {path = $1; sub(/:$/, "", path)}
        inside && /^    (get|put|post|delete):/ {method = toupper($1); sub(/:$/, "", method)}
        inside && /^      requestBody:/ {which = "request"}
        inside && /^        "[0-9]+":/ {which = substr($1, 2, 3)}
        inside && /^ +example: \{"/ {json = ""; sub(/^ +example: /, ""); open = 1}
        open {
            json = json $0
            copy = json
            if (gsub(/\{/, "", copy) == gsub(/\}/, "", copy)) {
                print path "\t" method "\t" which "\t" json
                open = 0
            }
        }' "$openapi"
}
mapfile -t lines < <(examples)
count=0
# The example's JSON: path in the document, method, "request" or status.
told() {
    local line path method which json
    for line in "${lines[@]}"; do
        IFS=$'\t' read -r path method which json <<<"$line"
        [[ $path != "$1" || $method != "$2" || $which != "$3" ]] || { jq -S . <<<"$json"; return; }
    done
    fail "there is no such example of JSON: $*"
}
# Notes the last answer, to be held against its schema.
note() { # path in the document, method, status
    printf '%s\t%s\t%s\t%s\n' "$2" "$1" "$3" "$(jq -c . "$work/body")" >>"$work/answers"
    count=$((count + 1))
}
# Compares only which fields there are, and of which type: for numbers and keys that are
# others each time.
resemble() { # path in the document, method, status
    local shape='def shape:
            if type == "object" then map_values(shape)
            elif type == "array" then map(shape)
            else type end;
        shape'
    expect "$3" "the example of $2 $1 is answered with $3"
    diff <(told "$@" | jq -S "$shape") <(jq -S "$shape" "$work/body") >"$work/diff" ||
        fail "the answer to $2 $1 has not the fields of the example: $(cat "$work/diff")"
    note "$@"
}
# Compares the last answer with the example; who and when are others each time.
compare() { # path in the document, method, status
    local plain='walk(if type == "object" then del(.who, .time, .position) else . end)' example
    example=$(told "$@")
    expect "$3" "the example of $2 $1 is answered with $3"
    diff <(jq -S "$plain" <<<"$example") <(jq -S "$plain" "$work/body") >"$work/diff" ||
        fail "the answer to $2 $1 is not as the example says: $(cat "$work/diff")"
    note "$@"
}
example() { # path in the document, method, status, path
    if [[ $2 == PUT ]]; then
        send PUT "$4" "$(told "$1" PUT request)"
    else
        ask -X "$2" "$4"
    fi
    compare "$1" "$2" "$3"
}
send PUT /v1/nodes/host-17 "$(told '/v1/nodes/{id}' PUT request)"
resemble '/v1/nodes/{id}' PUT 201
send PUT /v1/nodes/host-17/applied "$(told '/v1/nodes/{id}/applied' PUT request)"
expect 204 "the example of PUT /v1/nodes/{id}/applied is kept"
send PUT /v1/nodes/host-18 "$(node 5 2)"
send PUT /v1/nodes/host-17/reach "$(told '/v1/nodes/{id}/reach' PUT request)"
expect 200 "the example of PUT /v1/nodes/{id}/reach is answered with 200"
note '/v1/nodes/{id}/reach' PUT 200
ask '/v1/nodes?limit=1'
resemble /v1/nodes GET 200
example '/v1/nodes/{id}/regions' PUT 201 /v1/nodes/host-17/regions
example '/v1/nodes/{id}/regions' GET 200 '/v1/nodes/host-17/regions?incarnation=1763704800'
example /v1/regions GET 200 /v1/regions
"$1/bin/rdmactl" --server "$url" region list --tenant web --node host-17 >"$work/list"
grep -q "^web/kv/shard-17  *host-17  *live  *4MiB  *read" "$work/list" ||
    fail "rdmactl region list does not show it: $(cat "$work/list")"
"$1/bin/rdmactl" --server "$url" region list --tenant other >"$work/list"
grep -q "^there is no such region there now" "$work/list" ||
    fail "rdmactl region list shows what is another tenant's: $(cat "$work/list")"
ask -X DELETE "/v1/nodes/host-17/regions?incarnation=1763704800&tenant=web&name=kv%2Fshard-17"
expect 204 "a name is taken back"
send POST /v1/nodes/host-17/renew "$(told '/v1/nodes/{id}/renew' POST request)"
resemble '/v1/nodes/{id}/renew' POST 200
send PUT /v1/nodes/host-17 "$(told '/v1/nodes/{id}' PUT request | jq '.incarnation = 5')"
resemble '/v1/nodes/{id}' PUT 409
for path in /healthz /livez /readyz; do example "$path" GET 200 "$path"; done
ask /v1/metaservers
resemble /v1/metaservers GET 200
ask /version
resemble /version GET 200
example '/v1/tenants/{name}' PUT 201 /v1/tenants/web
grep -qi '^etag: "1"' "$work/headers" || fail "there is no ETag"
example '/v1/windows/{name}' PUT 201 /v1/windows/to-one-host
example /v1/tenants GET 200 /v1/tenants
example '/v1/tenants/{name}' GET 200 /v1/tenants/web
example /v1/windows GET 200 /v1/windows
example '/v1/windows/{name}' GET 200 /v1/windows/to-one-host
example /v1/events GET 200 /v1/events
example /v1/events GET 410 '/v1/events?watch=1&revision=9'
# Tokens are for an admin alone, also where all else is open.
local=(--unix-socket "$work/metad.sock")
ask -X PUT -H 'Content-Type: application/json' \
    --data-binary "$(told '/v1/tokens/{name}' PUT request)" "${local[@]}" /v1/tokens/host-17
resemble '/v1/tokens/{name}' PUT 201
ask "${local[@]}" /v1/tokens
compare /v1/tokens GET 200
ask "${local[@]}" /v1/tokens/host-17
compare '/v1/tokens/{name}' GET 200
example '/v1/nodes/{id}/settings' PUT 201 /v1/nodes/host-17/settings
example '/v1/nodes/{id}/settings' GET 200 /v1/nodes/host-17/settings
example '/v1/pools/{name}' PUT 201 /v1/pools/gold
example '/v1/pools/{name}' GET 200 /v1/pools/gold
example /v1/pools GET 200 /v1/pools
example '/v1/nodes/{id}/configuration' GET 200 /v1/nodes/host-17/configuration
send PUT /v1/pools/lead '{"nodes":{},"tenants":["batch"]}'
compare '/v1/pools/{name}' PUT 409
example '/v1/tenants/{name}' PUT 409 /v1/tenants/db
send PUT /v1/windows/of-web '{"scope":"tenant","tenant":"web"}'
expect 201 "a window of a tenant is created"
example '/v1/tenants/{name}' DELETE 409 /v1/tenants/web
ask -X DELETE /v1/windows/of-web
expect 204 "it is deleted"
send PUT /v1/windows/none '{"scope":"tenant","tenant":"nobody"}'
compare '/v1/windows/{name}' PUT 409
ask -X PUT -H 'Content-Type: application/json' \
    --data-binary '{"scope":"worker","tenant":"nobody"}' "${local[@]}" /v1/tokens/none
compare '/v1/tokens/{name}' PUT 409
# What only an agent knows: one that follows, and answers what it is asked with the examples.
curl -sN --max-time 300 -o "$work/stream" "$url/v1/nodes/host-17/configuration?watch=1&answers=1" &
agent=$!
trap 'kill -KILL "$agent" 2>/dev/null || true; cleanup' EXIT
for _ in $(seq 1200); do [[ ! -s $work/stream ]] || break; sleep 0.05; done
asked=0
# The agent answers the next question with that status and body; sets $told.
agent_answers() { # status body
    local line=
    asked=$((asked + 1))
    for _ in $(seq 1200); do
        line=$(sed -n '/"ask"/p' "$work/stream" | sed -n "${asked}p")
        [[ -z $line ]] || break
        sleep 0.05
    done
    [[ -n $line ]] || fail "the agent was not asked"
    told=$(curl -s -o "$work/told" -w '%{http_code}' -X PUT -H 'Content-Type: application/json' \
        --data-binary "{\"status\":$1,\"body\":$2}" \
        "$url/v1/nodes/host-17/answers/$(jq -r .ask.id <<<"$line")")
}
own='walk(if type == "object" then with_entries(
        if .key == "id" or .key == "worker" then .value |= ltrimstr("host-17:") else . end)
    else . end)'
through() { # path in the document, method, status, path
    local client body
    body=$(told "$1" "$2" "$3" | jq "$own | del(.unreachable)")
    ask -X "$2" "$4" &
    client=$!
    agent_answers "$3" "$body"
    [[ $told == 204 ]] || fail "the agent's answer is not taken: $told: $(cat "$work/told")"
    wait "$client"
    status=$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$work/headers")
    compare "$1" "$2" "$3"
}
[[ $(told '/v1/nodes/{id}/answers/{query}' PUT request | jq -cS .body) == \
    "$(told /v1/leases GET 200 | jq -cS "$own | del(.unreachable)")" ]] ||
    fail "an agent's page is not what is shown of it"
through /v1/leases GET 200 /v1/leases
through '/v1/leases/{node}:{lease}' GET 200 /v1/leases/host-17:12-9f01ab34-1
through '/v1/leases/{node}:{lease}' DELETE 200 /v1/leases/host-17:12-9f01ab34-1
through '/v1/nodes/{id}/status' GET 200 /v1/nodes/host-17/status
through /v1/workers GET 200 '/v1/workers?node=host-17'
through '/v1/workers/{node}:{worker}' GET 200 /v1/workers/host-17:12-9f01ab34
send PUT /v1/nodes/host-17/answers/6a09e667f3bcc908 \
    "$(told '/v1/nodes/{id}/answers/{query}' PUT request)"
compare '/v1/nodes/{id}/answers/{query}' PUT 404
kill -KILL "$agent"
wait "$agent" 2>/dev/null || true
trap cleanup EXIT
# soft has DC and RC
documented=$(printf '%s\n' "${lines[@]}" | grep -v $'\trequest\t' | grep -cv $'PUT\t422\t')
((count == documented)) || fail "$count of the $documented examples were tried"
ok "$count examples are true"
# What any request may be answered, before anybody looks at its path.
refuse_any() { # status, version, more of the head
    local answer
    exec {raw}<>"/dev/tcp/127.0.0.1/${url##*:}"
    printf 'GET /v1/nodes %s\r\nHost: localhost\r\n%b\r\n' "$2" "${3-}" >&"$raw"
    answer=$(tr -d '\r' <&"$raw")
    exec {raw}>&-
    [[ $answer == "HTTP/1.1 $1 "* ]] || fail "of $2 $3 the answer is not $1: $answer"
    printf 'GET\t/v1/nodes\t%s\t%s\n' "$1" "$(tail -n 1 <<<"$answer")" >>"$work/answers"
}
refuse_any 505 HTTP/1.2
refuse_any 501 HTTP/1.1 'Transfer-Encoding: gzip\r\n'
refuse_any 411 HTTP/1.1 'Transfer-Encoding: chunked\r\n'
refuse_any 417 HTTP/1.1 'Expect: 200-ok\r\n'
fits=0
"$root/tests/e2e/openapi.py" answers "$openapi" "$work/answers" >"$work/fit" || fits=$?
case $fits in
0) ok "what was answered fits its schemas: $(tail -n 1 "$work/fit")" ;;
77) cat "$work/fit" ;;
*) fail "answers do not fit their schemas: $(cat "$work/fit")" ;;
esac

# A parameter that is not taken is named, and those that are taken are those of the document.
queries=0
while read -r method path names; do
    ask -X "$method" "${local[@]}" "$(target_of "$path")?colour=1"
    [[ $status == 400 && $(jq -r .field "$work/body") == colour ]] ||
        fail "$method $path?colour=1: $status"
    taken=$(jq -r '.detail | split(": ")[1] // ""' "$work/body" | tr -d ' ' | tr , '\n' |
        sort | xargs)
    [[ $taken == "$names" ]] ||
        fail "$method $path takes \"$taken\", and the document says \"$names\""
    queries=$((queries + 1))
done < <("$root/tests/e2e/openapi.py" queries "$openapi" | grep -v '^skip:')
if ((queries == 0)); then
    skip "no route's query parameters were compared" \
        "(python3-jsonschema, python3-yaml, openapi-specification)"
else
    ok "$queries operations name the parameter that they do not take"
fi
refused() { # field path
    ask "$2"
    [[ $status == 400 && $(jq -r .field "$work/body") == "$1" ]] || fail "$2: $status"
}
refused limit '/v1/tenants?limit=5&limit=6'
refused uid '/v1/windows?uid=7'
refused LIMIT '/v1/tenants?LIMIT=5'
refused "$(printf 'a"b')" '/v1/tenants?a%22b'
refused limit '/v1/events?watch=1&limit=5'
refused watch '/v1/tenants?watch=1'
[[ $(jq -r .detail "$work/body") == *"/v1/events?watch=1"* ]] ||
    fail "it is not said where changes are watched"
ask '/v1/tenants?limit=5&&uid=1000&'
expect 200 "parameters that are taken are taken; others, and the same twice, are 400"

# Conventions.
ask /v1/tenants/web
revision=$(sed -n 's/^etag: "\([0-9]*\)".*/\1/ip' "$work/headers")
[[ $revision == "$(jq .revision "$work/body")" ]] || fail "the ETag is not the revision"
put() {
    ask -X PUT -H 'Content-Type: application/json' --data-binary "$1" "${@:2}" /v1/tenants/web
}
put '{"uids":[1000],"sessions":1}' -H "If-Match: \"$revision\""
expect 200 "a change with the present ETag is made"
put '{"uids":[1000],"sessions":2}' -H "If-Match: \"$revision\""
expect 412 "one with an older ETag is 412"
put '{"uids":[1000],"sessions":2}' -H 'If-None-Match: *'
expect 412 "creating what is there is 412"
put '{"uids":[1000],"sessions":2,"colour":1}'
expect 400 "an unknown field is 400"
[[ $(jq -r .field "$work/body") == colour ]] || fail "the field is not named"
put '{"uids":[1000,{}]}'
[[ $status == 400 && $(jq -r .field "$work/body") == 'uids[1]' ]] ||
    fail "the path of the field is not named"
ok "the path of the offending field is named"
ask -X DELETE -H 'If-Match: "1"' /v1/tenants/web
expect 412 "deleting keeps to If-Match"
ask -X PATCH /v1/tenants/web
expect 405 "a wrong method is 405"
send PUT /v1/tenants/x '{"uids":[]}' text/plain
expect 415 "a wrong content type is 415"
head -c 70000 /dev/zero | tr '\0' ' ' >"$work/large"
send PUT /v1/tenants/x "@$work/large"
expect 413 "a body that is too large is 413"
head -c 60000 /dev/zero | tr '\0' '[' >"$work/deep"
send PUT /v1/windows/x "@$work/deep"
expect 400 "deep nesting is 400"
ask '/v1/events?kind=tenant&limit=1'
cursor=$(jq -r .next_cursor "$work/body")
ask "/v1/events?kind=tenant&limit=1&cursor=$cursor"
[[ $(jq -r '.events[0].kind' "$work/body") == tenant &&
    $(jq '.events | length' "$work/body") == 1 ]] || fail "the next page"
ok "events are filtered and paged"
ask -X DELETE --unix-socket "$work/metad.sock" /v1/windows/to-one-host
expect 204 "a change over the Unix socket"
ask /v1/events
[[ $(jq -r '.events[-1].who' "$work/body") == "uid $EUID" ]] || fail "the trail does not say whose"
ok "the trail says whose"
ask /metrics
grep -q '^kedge_metad_settings{kind="tenant"} 1$' "$work/body" || fail "tenants are not counted"
ok "metrics count what is set"
stop

# Killed between and during writes: what was acknowledged is there, with its entry; nothing else
# than that, and what was under way at a kill.
change() { # counts up the sessions of one tenant, and notes each revision that was acknowledged
    local n=$1 got
    while :; do
        got=$(curl -s --max-time 5 -w ' %{http_code}' -X PUT -H 'Content-Type: application/json' \
            --data-binary "{\"uids\":[7],\"sessions\":$n}" "$url/v1/tenants/counted") || return 0
        [[ $got != *' '20? ]] || echo "$(jq .revision <<<"${got% *}") $n" >>"$work/acknowledged"
        n=$((n + 1))
    done
}
: >"$work/acknowledged"
for round in $(seq "$rounds"); do
    start
    change $((round * 10000)) &
    client=$!
    for _ in $(seq 1200); do
        ! grep -q " $((round * 10000))\$" "$work/acknowledged" || break # the first
        sleep 0.05
    done
    grep -q " $((round * 10000))\$" "$work/acknowledged" || fail "round $round has no change"
    sleep "0.$((RANDOM % 400 + 100))"
    kill -KILL "$metad_pid"
    wait "$metad_pid" 2>/dev/null || true
    wait "$client" || true
done
start
ask '/v1/tenants/counted'
now=$(jq .revision "$work/body") sessions=$(jq .sessions "$work/body")
read -r last value < <(tail -n 1 "$work/acknowledged")
((now == last && sessions == value || now == last + 1)) ||
    fail "revision $now with $sessions is there, but $last with $value was acknowledged"
ask '/v1/events?limit=1000'
jq -r '.events[] | select(.name == "counted") | "\(.revision) \(.to.sessions)"' "$work/body" |
    sort >"$work/trail"
oldest=$(jq '.events[0].revision' "$work/body")
lost=$(comm -23 <(awk -v o="$oldest" '$1 >= o' "$work/acknowledged" | sort) "$work/trail")
[[ -z $lost ]] || fail "acknowledged, but not in the trail: $lost"
extra=$(comm -13 <(sort "$work/acknowledged") "$work/trail" | wc -l)
((extra <= rounds)) || fail "$extra entries are in the trail that were not acknowledged"
[[ $(jq '[.events[].revision] as $r | [range($r[0]; $r[-1] + 1)] == $r' "$work/body") == true ]] ||
    fail "the trail has a gap"
ok "$(wc -l <"$work/acknowledged") changes between $rounds kills: none is lost," \
    "$extra of those under way are there"
stop
