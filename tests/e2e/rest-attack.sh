#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The REST interface under attack: bodies without end, slow and half-closed clients, too many
# requests and connections of one address: the right status, others are served meanwhile, no crash,
# bounded memory.
source "$(dirname "$0")/lib-metad.sh"
halfclose=$1/bin/kedge-halfclose
[[ -x $halfclose ]] || { echo "FAILED: $halfclose is not built"; exit 1; }
configure "access = tokens" "client_connections = 100" "client_rate = 200" "connections = 600"
start
admin=(--unix-socket "$work/metad.sock")
ask -X PUT -H 'Content-Type: application/json' --data-binary '{"scope":"admin"}' \
    "${admin[@]}" /v1/tokens/root
expect 201 "a token is made"
printf 'Authorization: Bearer %s\n' "$(jq -r .secret "$work/body")" >"$work/header"
rss() { awk '/^VmRSS/ {print $2}' "/proc/$metad_pid/status"; }
bounded() { # what
    local now
    kill -0 "$metad_pid" 2>/dev/null || fail "kedge-metad died of $1"
    now=$(rss)
    if grep -q -a __asan_init "$metad"; then
        skip "the bound of the metaserver's memory (a sanitizer keeps what was freed)"
    else
        ((now - before < 20000)) || fail "$1: memory grew by $((now - before)) KiB"
        ok "$1 took $((now - before)) KiB"
    fi
}
before=$(rss)

# A browser on this host sends what any page says, by a name of that page's: DNS rebinding.
wrong_host() { # sentence, header
    ask -H "@$work/header" -H "$2" /v1/nodes
    expect 403 "$1"
    [[ $(jq -r .detail "$work/body") == "on loopback the ${2%%:*} must be "* ]] ||
        fail "$1: $(jq -r .detail "$work/body")"
}
wrong_host "a Host that is not ours is 403" "Host: rebinds.example.com"
wrong_host "with our port too" "Host: rebinds.example.com:$port"
wrong_host "an Origin that is not ours is 403" "Origin: http://pages.example.com"
wrong_host "and so is none that can be named" "Origin: null"
for ours in "Host: localhost:$port" "Host: $(uname -n)" "Origin: $url"; do
    ask -H "@$work/header" -H "$ours" /v1/nodes
    expect 200 "\"${ours/$port/PORT}\" is ours"
done
ask -H 'Host: rebinds.example.com' "${admin[@]}" /v1/nodes
expect 200 "on the Unix socket any Host is"

# Bodies of 1 GB, from who may and who may not: told before they come, or cut off on the way.
gigabyte() { # sentence, status, options...
    local sentence=$1 wanted=$2
    shift 2
    status=$(head -c 1000000000 /dev/zero |
        curl -s --max-time 120 -o "$work/body" -D "$work/headers" \
            -w '%{http_code} %{size_upload}' -X PUT -H 'Content-Type: application/json' "$@" \
            "$url/v1/tenants/big") || true
    sent=${status#* } status=${status% *}
    expect "$wanted" "$sentence"
    ((sent < 100000000)) || fail "$sentence: $sent bytes were taken"
    ok "after $sent bytes"
}
for who in "$work/header" /dev/null; do
    gigabyte "1 GB that is announced is 413" 413 -H "@$who" \
        -H 'Content-Length: 1000000000' -H 'Transfer-Encoding:' -T -
    gigabyte "without waiting for 100 Continue too" 413 -H "@$who" \
        -H 'Content-Length: 1000000000' -H 'Transfer-Encoding:' -H 'Expect:' -T -
    gigabyte "1 GB in chunks is 411" 411 -H "@$who" \
        -H 'Transfer-Encoding: chunked' -H 'Expect:' -T -
done
bounded "bodies of 1 GB"
for _ in $(seq 20); do # at once
    (head -c 100000000 /dev/zero |
        curl -s --max-time 120 -o /dev/null -X PUT -H 'Content-Type: application/json' \
            -H "@$work/header" -H 'Content-Length: 100000000' -H 'Transfer-Encoding:' \
            -H 'Expect:' -T - "$url/v1/tenants/big" || true) &
    attackers+=($!)
done
ask "${admin[@]}" /v1/nodes
expect 200 "others are served meanwhile"
wait "${attackers[@]}" || true
bounded "twenty such bodies at once"
head -c 65000 /dev/zero | tr '\0' '[' >"$work/deep"
printf '{"scope":%s1%s}' "$(head -c 9000 /dev/zero | sed 's/\x0/{"a":/g')" \
    "$(head -c 9000 /dev/zero | tr '\0' '}')" >"$work/deeper"
head -c 60000 /dev/urandom >"$work/noise"
printf '{"scope":"reader","scope":"admin"}' >"$work/twice"
printf '{"scope":"reader"}{"scope":"admin"}' >"$work/two"
printf '\xef\xbb\xbf{"scope":"reader"}' >"$work/bom"
# Of each operation that takes a body, whoever it is for; nothing of it must stay.
: >"$work/nothing"
printf '[]' >"$work/array"
head -c 70000 /dev/zero | tr '\0' ' ' >"$work/large"
documented | grep -E ' (PUT|POST|PATCH) ' >"$work/operations"
(($(wc -l <"$work/operations") >= 8)) ||
    fail "only $(wc -l <"$work/operations") operations with a body were found"
while read -r -u 8 path method _; do
    target=$(target_of "$path")
    for file in deep deeper noise twice two bom nothing array large; do
        wanted=400
        [[ $file != large ]] || wanted=413
        ask -X "$method" -H 'Content-Type: application/json' "${admin[@]}" \
            --data-binary "@$work/$file" "$target"
        [[ $path != */answers/* || $status != 404 ]] ||
            wanted=404 # nobody has asked, so nobody reads it
        [[ $status == "$wanted" ]] ||
            fail "$method $path with a body that is $file: $status, not $wanted"
        [[ $(jq -r .status "$work/body") == "$wanted" ]] ||
            fail "$method $path with a body that is $file: no problem+json"
    done
    ask -X "$method" -H 'Content-Type: text/plain' "${admin[@]}" --data-binary '{}' "$target"
    [[ $status == 415 || ($path == */answers/* && $status == 404) ]] ||
        fail "$method $path with a body of text/plain: $status"
done 8<"$work/operations"
ok "bodies that are deep, noise, double, no object, empty or too large, of each of" \
    "$(wc -l <"$work/operations") operations, are 400 or 413"
ask "${admin[@]}" /v1/events
[[ $(jq '.events | length' "$work/body") == 1 ]] || fail "something of them stayed"
ok "and none of them changes anything"
ask -H "Authorization: Bearer $(head -c 12000 /dev/zero | tr '\0' k)" /v1/nodes
[[ $status == 401 || $status == 431 || $status == 413 ]] ||
    fail "a token of 12,000 characters: $status"
ok "a token of 12,000 characters is $status"
bounded "malformed bodies"

# Clients that are slow, or have closed their end.
connect() { { exec {fd}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; }
read_status() { # of $fd, within seconds; 000: closed without an answer
    local line=
    read -r -t "$1" -u "$fd" line || true
    status=${line#* } status=${status%% *}
    [[ -n $status ]] || status=000
}
slow_fds=()
put='PUT /v1/tenants/x HTTP/1.1\r\nHost: localhost\r\n'
put_json=$put'Content-Type: application/json\r\n'
for text in 'G' 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n' \
    "$put_json"'Content-Length: 1000\r\n\r\n{"uids"'; do
    for _ in $(seq 20); do
        connect || fail "a slow client is not let in"
        printf '%b' "$text" >&"$fd"
        slow_fds+=("$fd")
    done
done
ask "${admin[@]}" /v1/nodes
expect 200 "others are served while sixty clients stand still"
fd=${slow_fds[25]}
read_status 60
[[ $status == 408 || $status == 000 ]] || fail "half a head: $status"
ok "who sends half a head gets $status"
fd=${slow_fds[45]}
read_status 60
[[ $status == 408 ]] || fail "half a body: $status"
ok "who sends half a body gets 408"
for fd in "${slow_fds[@]}"; do exec {fd}>&-; done
half() { # number, text, wanted status: "-" is none, or 408 after a while
    local got
    printf '%b' "$2" | timeout 100 "$halfclose" "$port" >"$work/half-$1" || {
        echo "$2: ended with $?" >>"$work/wrong"
        return
    }
    got=$(sed -n '1s/HTTP[^ ]* \([0-9]*\).*/\1/p' "$work/half-$1")
    [[ $got == "$3" || ($3 == - && ($got == '' || $got == 408)) ]] ||
        echo "$2: $got" >>"$work/wrong"
}
: >"$work/wrong"
halves=()
for n in $(seq 10); do
    half "$n-1" 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' 200 & halves+=($!)
    half "$n-2" "$put_json"'Content-Length: 2\r\n\r\n{}' 401 & halves+=($!)
    half "$n-3" 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n' - & halves+=($!)
    half "$n-4" "$put"'Content-Length: 9\r\n\r\n{}' - & halves+=($!)
    half "$n-5" '' - & halves+=($!)
done
wait "${halves[@]}"
[[ ! -s $work/wrong ]] || fail "half-closed: $(cat "$work/wrong")"
ok "who has closed its direction is answered if its request was whole, and is closed if not"
ask "${admin[@]}" /metrics
expect 200 "and others are served"
timeout 100 curl -s -N --limit-rate 1 --max-time 100 -H "@$work/header" -o /dev/null \
    "$url/v1/events?watch=1" &
reader=$!
for _ in $(seq 1200); do
    ask "${admin[@]}" /metrics
    ! grep -q '^kedge_metad_watches 1' "$work/body" || break
    sleep 0.05
done
grep -q '^kedge_metad_watches 1' "$work/body" || fail "the slow reader does not read"
for n in $(seq 60); do
    ask "${admin[@]}" -X PUT -H 'Content-Type: application/json' \
        --data-binary "{\"uids\":[$n]}" "/v1/tenants/t$n"
done
[[ $status == 201 ]] || fail "changes while a reader is slow: $status"
ok "a reader that takes a byte a second stands in nobody's way"
kill "$reader" 2>/dev/null || true
wait "$reader" 2>/dev/null || true
bounded "slow clients"

# Clients without a token make room for each other; one with a token is limited by its connections
# and its rate.
fds=()
for _ in $(seq 200); do
    connect || fail "a client is not let in"
    fds+=("$fd")
done
ask -H "@$work/header" /v1/nodes
expect 200 "with ${#fds[@]} connections of one address, who has a token there is served"
ask "${admin[@]}" /metrics
(($(sed -n 's/^kedge_metad_http_dropped_connections_total //p' "$work/body") >= 100)) ||
    fail "none of them made room"
(($(sed -n 's/^kedge_metad_http_connections{shown="nothing"} //p' "$work/body") <= 100)) ||
    fail "there are more than allowed"
for fd in "${fds[@]}"; do exec {fd}>&-; done
ok "the oldest of them made room"
ask -X PUT -H 'Content-Type: application/json' --data-binary '{"scope":"admin"}' \
    "${admin[@]}" /v1/tokens/second
expect 201 "a second token is made"
printf 'Authorization: Bearer %s\n' "$(jq -r .secret "$work/body")" >"$work/second"
for _ in $(seq 3000); do
    printf 'url = "%s/v1/nodes"\noutput = "/dev/null"\n' "$url"
done >"$work/flood"
curl -s --max-time 100 -K "$work/flood" -w '%{http_code}\n' >"$work/codes" -H "@$work/header" &
flood=$!
limited=0 served=0
for _ in $(seq 50); do
    ask -H "@$work/second" /v1/nodes
    [[ $status != 200 ]] || served=$((served + 1))
done
wait "$flood" || true
limited=$(grep -c '^429$' "$work/codes") || true
((served == 50)) || fail "of another token's requests $served of 50 were served"
ok "while one token floods, all requests of another one at that address are served"
if ((limited > 0)); then
    ok "of 3,000 requests at once $limited were told 429"
else
    skip "the bound of the rate (this machine does not reach 200 requests a second)"
fi
bounded "a flood"
stop
