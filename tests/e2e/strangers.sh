#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Any process of a host, without a token or with a reader's, against the metaserver: it holds
# connections, floods requests and has many addresses. No node expires, rdmactl works, an agent that
# starts meanwhile registers, and who has a token is answered.
agents=2 access=tokens more_metad='node_lease = 3s'
source "$(dirname "$0")/lib.sh"
needs_built kedge-strangers
seconds=$((5 * slow))
umask 077
start
for scope in reader operator; do
    "$bin/rdmactl" --server "$admin" token create "$scope" "scope=$scope" -o json |
        jq -er .secret >"$work/$scope.token"
done
metric() { # name
    curl -sf --unix-socket "$work/metad.sock" http://m/metrics | sed -n "s/^$1 //p"
}
# What an honest client's requests take, which have to be good whatever happens.
ask() { # sentence
    local said
    said=$("$bin/kedge-strangers" ask "$port" "$((100 * seconds))" "$work/operator.token") ||
        fail "$1: the client failed"
    [[ $said == *' failed 0 '* ]] || fail "$1: $said"
    ok "$1: $said"
}
ask "alone"
attack() { # sentence, then the arguments of one attacker each
    local sentence=$1 attacker expired
    shift
    attackers=()
    expired=$(metric kedge_metad_expiries_total)
    for attacker in "$@"; do
        # shellcheck disable=SC2086 # they are words
        "$bin/kedge-strangers" $attacker >>"$work/attackers.out" &
        attackers+=($!)
    done
    stop_agent
    start_agent
    ask "beside $sentence"
    "$bin/rdmactl" --server "$url" --token-file "$work/operator.token" node list >"$work/nodes" ||
        fail "rdmactl beside $sentence"
    (($(grep -c ' live' "$work/nodes") == 2)) || fail "beside $sentence: $(cat "$work/nodes")"
    wait "${attackers[@]}" || fail "an attacker ended with $?"
    (($(metric kedge_metad_expiries_total) == expired)) || fail "a node expired beside $sentence"
    ok "beside $sentence no node expires, rdmactl works, and an agent that starts registers"
}
stop_agent() {
    kill -TERM "${pids[b]}"
    wait "${pids[b]}" || fail "agent b ended with $?"
}
start_agent() {
    daemon_start b kedge-agentd || fail "agent b does not start"
    agent_wait b || fail "agent b does not register"
}
attack "1,024 held connections and 80,000 pipelined requests/s of its own address" \
    "hold $port 1024 $seconds" "flood $port 8 80000 $seconds"
(($(metric kedge_metad_http_dropped_connections_total) > 0)) || fail "no connection made room"
ok "connections that have shown no token make room for others"
attack "a reader that asks for what takes long, 8,000 times a second" \
    "flood $port 32 8000 $seconds $work/reader.token"
if [[ -n ${KEDGE_TEST_LONG:-} ]]; then
    # What the same attackers cost by their use of the processors alone, when it is another
    # metaserver that they attack.
    mkdir "$work/sink"
    sed -e "s|^listen = .*|listen = 127.0.0.1:0|" \
        -e "s|^admin_socket = .*|admin_socket = $work/sink.sock|" \
        -e "s|^data_dir = .*|data_dir = $work/sink|" -e "s|^gid = .*|gid = fd00::8|" \
        "$work/metad.conf" >"$work/sink.conf"
    daemon_start sink kedge-metad || fail "the other metaserver does not start"
    sink=$(sed -n 's/.*ready, port //p' "$work/sink.out")
    attack "1,024 held connections of its own address" "hold $port 1024 $seconds"
    attack "80,000 pipelined requests/s on 8 connections, of another metaserver" \
        "flood $sink 8 80000 $seconds"
    attack "80,000 pipelined requests/s on 8 connections" "flood $port 8 80000 $seconds"
    many="4,096 connections and 80,000 pipelined requests/s of 250 addresses"
    attack "$many, of another metaserver" \
        "hold $sink 4096 $seconds" "flood $sink 1032 80000 $seconds"
    attack "$many" "hold $port 4096 $seconds" "flood $port 1032 80000 $seconds"
fi

# A worker's token is good for nothing here, and who has one is as who has none: with all
# the connections that such may have he leaves those their part who may read. Another
# metaserver, which has few.
mkdir "$work/small"
sed -e "s|^listen = .*|listen = 127.0.0.1:0|" \
    -e "s|^admin_socket = .*|admin_socket = $work/small.sock|" \
    -e "s|^data_dir = .*|data_dir = $work/small|" -e "s|^gid = .*|gid = fd00::9|" \
    -e '/^\[metaserver\]/a connections = 16\ntoken_connections = 16\nmax_watches = 2' \
    -e '/^\[metaserver\]/a client_rate = 1000000' \
    "$work/metad.conf" >"$work/small.conf"
daemon_start small kedge-metad || fail "a metaserver with few connections does not start"
small=$(sed -n 's/.*ready, port //p' "$work/small.out")
ctl() { "$bin/rdmactl" --server "unix:$work/small.sock" "$@"; }
ctl tenant create web uids=70000 >"$work/out" || fail "no tenant: $(cat "$work/out")"
ctl token create reads scope=reader -o json | jq -er .secret >"$work/reads.token"
secret=$(ctl token create works scope=worker tenant=web -o json | jq -er .secret)
held=()
for _ in $(seq 12); do
    exec {fd}<>"/dev/tcp/127.0.0.1/$small"
    printf 'GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n' \
        "$secret" >&"$fd"
    read -r -t $((20 * slow)) line <&"$fd" || line= # or it made room for another one
    [[ -z $line || $line =~ ^HTTP/1.1\ (403|503)\  ]] || fail "with a worker's token: $line"
    held+=("$fd")
done
"$bin/rdmactl" --server "http://127.0.0.1:$small" --token-file "$work/reads.token" node list \
    >"$work/out" 2>&1 ||
    fail "who may read is refused beside workers' tokens: $(cat "$work/out")"
ok "connections with workers' tokens leave those their part who may read"
for fd in "${held[@]}"; do exec {fd}>&-; done

# A reader that is bounded by the time alone that its requests take, where nothing else bounds them:
# it asks for a label that none of many nodes has.
for i in $(seq 500); do
    [[ $i == 1 ]] || echo next
    printf 'unix-socket = "%s"\n' "$work/small.sock"
    printf 'request = PUT\nsilent\noutput = /dev/null\nfail\n'
    printf 'header = "Content-Type: application/json"\ndata = "{}"\n'
    printf 'url = "http://m/v1/nodes/x%s/settings"\n' "$i"
done >"$work/settings.curl"
curl -K "$work/settings.curl" || fail "nothing can be set of 500 nodes"
small_metric() { # name
    curl -sf --unix-socket "$work/small.sock" http://m/metrics | sed -n "s/^$1 //p"
}
"$bin/kedge-strangers" flood "$small" 4 100000 $((300 * slow)) "$work/reads.token" \
    >>"$work/attackers.out" &
reader=$!
for _ in $(seq $((100 * slow))); do
    (($(small_metric kedge_metad_http_over_time_total) == 0)) || break
    sleep 0.2
done
"$bin/rdmactl" --server "unix:$work/small.sock" node list >"$work/out" 2>&1 ||
    fail "who is trusted is refused beside a reader: $(cat "$work/out")"
kill "$reader"
wait "$reader" || true
if (($(small_metric kedge_metad_http_over_time_total) > 0)); then
    ok "a reader that has taken its part of the metaserver's time is told to wait"
else
    skip "a reader that takes a quarter of the time (this machine does not reach it)"
fi
kill -TERM "${pids[small]}"
wait "${pids[small]}" || fail "the metaserver with few connections ended with $?"

(($(metric kedge_metad_http_limited_total) > 0)) ||
    skip "the rate of strangers (this machine does not reach it)"
! grep -q 'expired' "$work/metad.log" || fail "the log tells of a node that expired"
stop
