#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The REST interface over real sockets: wrong methods, types, sizes, encodings and fields, and
# 10,000 open connections: the right status, problem+json, no crash, bounded memory.
source "$(dirname "$0")/lib-metad.sh"
limits=("max_endpoints = 64" "max_nodes = 2" "client_connections = 10000")
configure "node_lease = 1h" "${limits[@]}"
start

# What is right.
send PUT /v1/nodes/n1 "$(node 5 1)"
expect 201 "a new node is created"
[[ $(jq -r .metaserver.table.version "$work/body") == 1 ]] || fail "the answer describes the table"
[[ $(jq -r .metaserver.endpoint.gid "$work/body") == "${gids[0]}" ]] ||
    fail "the answer has the metaserver's GID"
send PUT /v1/nodes/n1 "$(node 5 1)"
expect 200 "a node may register again"
send POST /v1/nodes/n1/renew '{"incarnation":5}'
expect 200 "a lease is renewed"
ask /v1/nodes/n1
expect 200 "a node is shown"
lacks "$work/body" 'dc_key\|dct_number\|rkey\|addr' || fail "keys or addresses are shown"
ok "no key and no address is shown"
reads() { # incarnation, number of the node, number of the agent's queue pair
    node "$1" "$2" | jq -c '. + {reader: {gid: .endpoints[0].gid, qpn: '"$3"', psn: 7, mtu: 1024}}'
}
metric() { ask "${@:2}" /metrics; awk -v name="$1" '$1 == name {print $2}' "$work/body"; }
readers() { metric kedge_metad_table_responders; }
given_up() { metric 'kedge_metad_table_responder_failures_total{why="given_up"}'; }
send PUT /v1/nodes/n1 "$(reads 5 1 101)"
expect 200 "a node may register with a reader"
mine=$(jq -r .metaserver.endpoint.rc.qpn "$work/body")
[[ $mine -gt 0 && $(jq -r .metaserver.endpoint.rc.psn "$work/body") -lt 16777216 ]] ||
    fail "no queue pair is told"
[[ $(jq -r .metaserver.endpoint.dct_number "$work/body") -gt 0 ]] ||
    fail "the DC target is not told"
send PUT /v1/nodes/n1 "$(reads 5 1 102)"
expect 200 "and with another one"
[[ $(jq -r .metaserver.endpoint.rc.qpn "$work/body") != "$mine" ]] ||
    fail "the queue pair is the former one"
send PUT /v1/nodes/n1 "$(reads 4 1 103)"
expect 409 "a reader of an older incarnation is refused"
send PUT /v1/nodes/n1 "$(reads 5 1 0)"
expect 400 "a reader with a wrong number is refused"
[[ $(jq -r .field "$work/body") == reader.qpn ]] || fail "the field is not named"
[[ $(readers) == 1 ]] || fail "$(readers) readers"
ok "one queue pair is kept for it"
ask /v1/nodes/n1
lacks "$work/body" 'qpn\|psn\|reader' || fail "queue pairs are shown"
ok "no queue pair is shown"
body=$(reads 5 1 104)
taken=$(metric kedge_metad_registrations_total) left=$(given_up)
for _ in $(seq 50); do # gone before they are answered
    exec {fd}<>"/dev/tcp/127.0.0.1/$port"
    printf 'PUT /v1/nodes/n1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'\
'Content-Length: %u\r\n\r\n%s' ${#body} "$body" >&"$fd"
    exec {fd}>&-
done
send PUT /v1/nodes/n1 "$(reads 5 1 105)"
expect 200 "a reader is served after clients that vanished"
# The one that is answered is not the last that comes to its end.
settled() {
    now_taken=$(($(metric kedge_metad_registrations_total) - taken - 1))
    now_left=$(($(given_up) - left)) unread=$(metric kedge_metad_registrations_left_total)
    ((now_taken + now_left + unread == 50))
}
for _ in $(seq 1200); do
    ! settled || break
    sleep 0.05
done
settled || fail "of 50 registrations $now_taken were taken, $unread were not looked at, and" \
    "$now_left had a queue pair that was given up"
ok "of 50 of those $now_taken were registered, $unread not looked at, and $now_left had a queue" \
    "pair that was given up"
[[ $(readers) == 1 ]] || fail "$(readers) readers"
send PUT /v1/nodes/n1 "$(node 5 1)"
expect 200 "its endpoints may be said without one"
[[ $(readers) == 1 ]] || fail "$(readers) readers"
ok "its queue pair stays"
send PUT /v1/nodes/n1 "$(node 6 1)"
expect 200 "its next life may have none"
[[ $(readers) == 0 ]] || fail "the queue pair is kept"
ok "its queue pair goes"
body=
ask --unix-socket "$work/metad.sock" /v1/nodes
expect 200 "the Unix socket serves the same interface"
[[ $(jq -r '.nodes[0].state' "$work/body") == live ]] || fail "the node is not listed as live"
ask -I /v1/nodes
expect 200 "HEAD is answered like GET"
for path in /healthz /livez /readyz /version /metrics; do
    ask "$path"
    expect 200 "$path answers"
done

ask '/readyz?verbose'
expect 200 "/readyz?verbose answers"
[[ $(sort "$work/body") == $'device ok\nstore ok\ntable ok' ]] || fail "it lists other checks"

# What is wrong.
ask /v1/nothing
expect 404 "an unknown path is 404"
ask /v1/nodes/n9
expect 404 "an unknown node is 404"
ask /v1/nodes/UPPER
expect 400 "a malformed id is 400"
ask --path-as-is /v1/nodes/%2e%2e%2f%00
expect 400 "an id with an encoded NUL is 400"
ask -X PATCH /v1/nodes/n1
expect 405 "a wrong method is 405"
grep -qi '^allow: GET, HEAD, PUT, DELETE' "$work/headers" || fail "405 has no Allow"
ok "405 says what is allowed"
ask -X BREW /v1/nodes
expect 405 "an unheard-of method is 405"
send PUT /v1/nodes/n2 "$(node 5 2)" text/plain
expect 415 "a wrong content type is 415"
ask -X PUT -H 'Content-Type:' --data-binary '{}' /v1/nodes/n2
expect 415 "no content type is 415"
send PUT /v1/nodes/n2 "${body:-}{"
expect 400 "broken JSON is 400"
send PUT /v1/nodes/n2 ''
expect 400 "an empty body is 400"
send PUT /v1/nodes/n2 "$(node 5 2 | sed 's/"pool"/"surprise":1,"pool"/')"
expect 400 "an unknown field is 400"
[[ $(jq -r .field "$work/body") == 'endpoints[0].surprise' ]] || fail "the field is not named"
ok "the unknown field is named"
send PUT /v1/nodes/n2 '{"incarnation":1,"incarnation":2,"endpoints":[]}'
expect 400 "a key that is there twice is 400"
printf '{"incarnation":1,\0"endpoints":[]}' >"$work/nul"
send PUT /v1/nodes/n2 "@$work/nul"
expect 400 "a NUL in the body is 400"
printf '{"incarnation":1,"\xc3\x28":[]}' >"$work/utf8"
send PUT /v1/nodes/n2 "@$work/utf8"
expect 400 "bad UTF-8 is 400"
head -c 60000 /dev/zero | tr '\0' '[' >"$work/deep"
send PUT /v1/nodes/n2 "@$work/deep"
expect 400 "deep nesting is 400"
head -c 70000 /dev/zero | tr '\0' ' ' >"$work/large"
send PUT /v1/nodes/n2 "@$work/large"
expect 413 "a body that is too large is 413"
ask -X PUT -H 'Content-Type: application/json' -H 'Transfer-Encoding: chunked' \
    --data-binary "@$work/large" /v1/nodes/n2
expect 411 "a body in chunks is 411"
send PUT /v1/nodes/n1 "$(node 4 1)"
expect 409 "an older incarnation is 409"
[[ $(jq -r .known_incarnation "$work/body") == 6 ]] || fail "the known incarnation is not said"
ok "the known incarnation is said"
send PUT /v1/nodes/n2 "$(node 9 1)"
expect 409 "another node's endpoint is 409"
send POST /v1/nodes/n1/renew '{"incarnation":7}'
expect 404 "renewing what is not registered is 404"
for query in limit=0 limit=1001 limit=x 'cursor=!!'; do
    ask "/v1/nodes?$query"
    expect 400 "?$query is 400"
done

# Room, pages, expiry.
send PUT /v1/nodes/n2 "$(node 1 2)"
expect 201 "a second node is created"
send PUT /v1/nodes/n3 "$(node 1 3)"
expect 507 "a node above max_nodes is 507"
ask '/v1/nodes?limit=1'
cursor=$(jq -r .next_cursor "$work/body")
ask "/v1/nodes?limit=1&cursor=$cursor"
[[ $(jq -r '.nodes[0].id' "$work/body") == n2 ]] || fail "the second page is not n2"
[[ $(jq -r .next_cursor "$work/body") == null ]] || fail "the last page has a cursor"
ok "the list is paged"
send PUT /v1/nodes/n2 "$(node 5 2)"
known=$(jq .incarnation "$work/body")
ask -X DELETE "/v1/nodes/n2?incarnation=$((known - 1))"
expect 409 "an earlier incarnation does not delete a later one"
[[ $(jq .known_incarnation "$work/body") == "$known" ]] || fail "the known incarnation is not said"
ask -X DELETE "/v1/nodes/n2?incarnation=none"
expect 400 "an incarnation is a number"
ask -X DELETE "/v1/nodes/n2?incarnation=$known"
expect 204 "a node is deleted"
ask /v1/nodes/n2
expect 404 "a deleted node is gone"
stop
configure "node_lease = 3s" "${limits[@]}"
start
send PUT /v1/nodes/n1 "$(node 6 1)"
expect 200 "a node is silent from now on"
# It may have expired once before, where this machine was slow.
for _ in $(seq 600); do
    ask /metrics
    ! grep -q '^kedge_metad_expiries_total [1-9]' "$work/body" ||
        ! grep -q '^kedge_metad_table_live 0$' "$work/body" || break
    sleep 0.1
done
grep -q '^kedge_metad_table_live 0$' "$work/body" || fail "an expired node is still in the table"
ask /v1/nodes/n1
[[ $(jq -r .state "$work/body") == expired ]] || fail "the silent node is not expired"
ok "a silent node expires and leaves the table"

# 10,000 connections that send nothing, then again with half a request each.
rss() { awk '/^VmRSS/ {print $2}' "/proc/$metad_pid/status"; }
connections() { metric 'kedge_metad_http_connections{shown="nothing"}' "${admin[@]}"; }
rejected() { metric kedge_metad_http_rejected_requests_total "${admin[@]}"; }
# Those of which both ends are open and have read all that the other end has sent: the server waits
# for more, and has neither answered nor refused.
held() {
    awk -v port=":$(printf %04X "$port")\$" '
        $4 != "01" || $5 != "00000000:00000000" {next}
        $2 ~ port {server++}
        $3 ~ port {clients++}
        END {print server + 0 < clients + 0 ? server + 0 : clients + 0}' /proc/net/tcp
}
until_few() {
    for _ in $(seq 1200); do
        (($(connections) >= 16)) || return 0
        sleep 0.05
    done
    fail "$(connections) connections are open that their clients have closed"
}
open_many() { # text: sets $fds
    local fd
    fds=()
    for _ in $(seq 10000); do
        { exec {fd}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || continue
        [[ -z $1 ]] || { printf '%b' "$1" >&"$fd"; } 2>/dev/null || true
        fds+=("$fd")
    done
}
is_told() { # connection, status: when its half request is whole
    local line
    printf '%3999s' '' >&"$1"
    line=$(timeout 60 head -n 1 <&"$1") || line=nothing
    [[ $line == "HTTP/1.1 $2"* ]] || {
        # Its time may have ended since they were counted.
        [[ $line != "HTTP/1.1 408 "* ]] || return 1
        fail "a half request that becomes whole is told $line, not $2"
    }
}
too_slow="that 10,000 half requests are held at once: to open them took longer than the 10 s that a"
too_slow+=" request has to come whole"
admin=(--unix-socket "$work/metad.sock")
if ulimit -n 10500 2>/dev/null; then
    stop
    # Without a rate, or most of the heads are refused at once.
    configure "max_endpoints = 64" "max_nodes = 2" "client_connections = 10100" \
        "connections = 10100" "client_rate = 0"
    start
    trap '' PIPE
    before=$(rss)
    half_put='PUT /v1/nodes/n1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    half_put+='Content-Length: 4000\r\n\r\n{'
    for half in '' "$half_put"; do
        rejected=$(rejected)
        open_many "$half"
        opened=${#fds[@]} what="connections${half:+ with half a request each}"
        ((opened >= 9000)) || fail "only $opened connections could be opened"
        for _ in $(seq 600); do
            (($(connections) < opened || $(held) < opened)) || break
            kill -0 "$metad_pid" 2>/dev/null || fail "kedge-metad died of $opened $what"
            (($(rejected) == rejected)) || break
            sleep 0.05
        done
        waiting=$(held) during=$(rss) line=
        ((waiting >= opened)) || line=$(timeout 60 head -n 1 <&"${fds[0]}") || true
        if [[ -n $half && $line == "HTTP/1.1 408 "* ]]; then
            skip "$too_slow"
        elif ((waiting < opened)); then
            fail "of $opened $what $waiting are held; the first one is told \"$line\""
        elif [[ -n $half ]]; then
            # It is no JSON.
            if is_told "${fds[0]}" "400 Bad Request" &&
                is_told "${fds[-1]}" "503 Service Unavailable"; then
                ok "the first of them was taken, and the last had no room for its body"
            else
                skip "$too_slow"
            fi
        fi
        ((during - before < 300000)) || fail "memory grew by $((during - before)) KiB"
        ask /healthz
        [[ $status =~ ^(200|503|000)$ ]] || fail "status $status"
        ok "$opened $what took $((during - before)) KiB, and $waiting are held;" \
            "a request got $status"
        for fd in "${fds[@]}"; do exec {fd}>&-; done
        until_few
        ask /healthz
        expect 200 "when they are gone it answers again"
    done
else
    skip "10,000 connections need 10,500 open files, and fewer are allowed"
fi
# Stopping while registrations with readers come in: each is answered or cut off, and it ends.
body=$(reads 9 1 106)
for _ in $(seq 4); do
    (for _ in $(seq 500); do
        curl -s -o /dev/null --max-time 5 -X PUT -H 'Content-Type: application/json' \
            --data-binary "$body" "$url/v1/nodes/n1" || exit 0
    done) &
done
for _ in $(seq 1200); do
    [[ $(readers) != 1 ]] || break
    sleep 0.05
done
[[ $(readers) == 1 ]] || fail "no registration comes in: $(readers) readers"
stop
wait
ok "it stops cleanly"
