#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In each of two guests: node 1 has the metaserver, agent a and a worker that exports; node 2 has
# agent b, and its workers read. Node 1 leads with the wire, node 2 with the workers; they wait
# for each other's files in /out/at. In the end node 2 exports and node 1 reads, while node 2's
# power is cut.
#
#   guest-two-hosts.sh BUILD_DIRECTORY
#
# Environment: CUTS (seconds that the wire is cut for, each in turn), LOSSES (of packets, in
# percent each way, each in turn), READS (over a bad wire), POWER (not empty: cut it); LIFE, as
# run-vm says it.
set -euo pipefail
build=$1 bin=$1/bin
here=$(cd "$(dirname "$0")" && pwd)
cd /tmp
source "$here/lib-guest.sh"
both() { # what: neither goes on before both are there
    reached "$1.$NODE"
    wait_for "$1.$((3 - NODE))" 120
}
wire() { tc qdisc "$1" dev "$NIC" root "${@:2}"; }

modprobe -d "$MODULES" sch_netem
export KEDGE_TEST_PROVIDER=verbs KEDGE_TEST_DEVICE=rxe0
KEDGE_TEST_GIDS="::ffff:10.0.$NODE.1 ::ffff:10.0.$NODE.2 ::ffff:10.0.$NODE.3"
agents=1
source "$here/../../ops/cluster.sh"
cluster_directories
source "$here/lib-pauses.sh"
url=http://10.0.1.1:7480
if ((NODE == 1)); then names=(a c) agents=2; else names=(b); fi # numbers of this node's GIDs

node_state() {
    "$bin/rdmactl" --server "$url" node get "node-$1" 2>/dev/null | sed -n 's/^state *//p'
}
live() { # agent, seconds
    for _ in $(seq $(($2 * 5))); do
        [[ $(node_state "$1") != live* ]] || return 0
        sleep 0.2
    done
    fail "the agent of node-$1 is not registered ($(node_state "$1"))"
}

# A worker of the agent exports the text, until file descriptor 9 is closed, as
# /out/token.NAME and text.NAME.
exports() { # agent, name, text
    echo "$3" >"/out/text.$2"
    mkfifo "$work/hold.$2"
    KEDGE_SOCKET=$work/$1.sock "$bin/export_region" "$3" \
        <"$work/hold.$2" >"$work/token.$2" 2>"$work/export.log" &
    exec 9>"$work/hold.$2"
    for _ in $(seq 200); do [[ ! -s $work/token.$2 ]] || break; sleep 0.1; done
    [[ -s $work/token.$2 ]] ||
        fail "the exporting worker printed no token: $(cat "$work/export.log")"
    cp "$work/token.$2" "/out/token.$2"
    reached "exported-$2"
}
known() { "$bin/rdmactl" --server "$url" node get "node-$1" -o json 2>/dev/null | jq .incarnation; }
starts() { # agent
    local own
    mkdir -m 0700 "$work/state-$1"
    agent_configure "$1"
    daemon_start "$1" kedge-agentd || fail "agent $1 did not start"
    live "$1" 60
    own=$(agent_number "$1" incarnation)
    for _ in $(seq 300); do [[ $(known "$1") != "$own" ]] || return 0; sleep 0.2; done
    fail "agent $1 is incarnation $own, and the metaserver knows $(known "$1")"
}

# What node 2's workers do: connect to a region of node 1 and read it.
read_back() { # seconds
    timeout "$1" env KEDGE_SOCKET="$work/b.sock" "$bin/read_region" "$(cat /out/token.a)"
}
reads() { # tries, what, seconds; sets $said to what the worker printed
    shows "$1" "$2" read_back "$3"
    [[ $(tail -n 1 <<<"$said") == "$(cat /out/text.a)" ]] || fail "$2 has other bytes: $said"
}
main_job() { reads 5 "the main job" 60; }
# A READ that fails is allowed, other bytes never.
tries() { # seconds that one may take; sets $good, $bad
    local out
    if out=$(read_back "$1" 2>>"$work/reads.log"); then
        [[ $(tail -n 1 <<<"$out") == "$(cat /out/text.a)" ]] || fail "read other bytes: $out"
        good=$((good + 1))
    else
        bad=$((bad + 1))
    fi
}
recovers() { # after what
    local from good=0 bad=0
    from=$(date +%s%N)
    while ((good == 0)); do
        tries 30
        ((bad < 400 && $(date +%s%N) - from < 90000000000)) ||
            fail "$1: READs do not come back: $(tail -n 2 "$work/reads.log")"
        ((good)) || sleep 0.1
    done
    ok "$1: reads again $((($(date +%s%N) - from) / 1000000)) ms later, after $bad failures"
}

lead() {
    local watch perftest
    watch_pauses & watch=$!
    metad_configure
    sed -i 's/^listen = .*/listen = 10.0.1.1:7480/' "$work/metad.conf"
    mkdir -m 0700 "$work/metad"
    daemon_start metad kedge-metad || fail "the metaserver did not start"
    starts a
    exports a a "bytes of node 1, $RANDOM"
    both exported
    # Of a client that cannot reach it it hears nothing.
    timeout 120 ib_read_lat -d rxe0 -x 1 -s 8 -n 200 -F >"$work/perftest.log" 2>&1 & perftest=$!
    for _ in $(seq 600); do
        ! grep -qi ':4853 .* 0A ' /proc/net/tcp || break # 18515, listening
        sleep 0.1
    done
    reached perftest
    wait $perftest || fail "ib_read_lat: $(cat "$work/perftest.log")"
    both read
    # The port takes less than it did: 512 bytes in a packet, where it was 1024.
    ip link set "$NIC" mtu 600
    reached narrow
    wait_for narrow-read 300
    [[ $(agent_number a mtu) == 512 ]] ||
        fail "the agent says that its MTU is $(agent_number a mtu)"
    grep -q 'the port has another MTU.*mtu=512 before=1024' "$work/a.log" ||
        fail "the agent does not tell of the port's MTU"
    ok "the agent has seen that its port takes packets of 512 bytes alone"
    ip link set "$NIC" mtu 1500
    reached wide
    wait_for wide-read 300
    for seconds in $CUTS; do
        wire add netem loss 100%
        reached "cut-$seconds"
        sleep "$seconds"
        wire del
        reached "healed-$seconds"
        wait_for "recovered-$seconds" 200
        live b 60
        ok "after $seconds s without a wire both nodes are registered"
    done
    for loss in $LOSSES; do
        wire add netem loss "$loss%"
        reached "lossy-$loss"
        wait_for "lossy-$loss-read" 500
        wire del
    done
    wire add netem delay 5ms
    reached slow
    wait_for slow-read 500
    wire del
    kill $watch
    [[ -z $POWER ]] || power_cut
    both over
    exec 9>&-
}

# Rounds of the worker between agents a and c, which node 2 does not concern.
rounds() { local n=0; { read -r n _ <"$work/progress"; } 2>/dev/null || n=0; echo $((10#$n)); }
goes_on() { # when
    local before
    before=$(rounds)
    for _ in $(seq 600); do (($(rounds) <= before)) || return 0; sleep 0.1; done
    fail "the worker between agents a and c stands still $1: $(cat "$work/between.out")"
}
says() { # the reader, what; seconds
    for _ in $(seq $(($2 * 10))); do ! grep -qs "$1" "$work/reader.out" || return 0; sleep 0.1; done
    fail "the reader does not say \"$1\": $(cat "$work/reader.out")"
}
power_cut() {
    local between reader from
    starts c
    "$bin/kedge-stress" recover --socket "$work/a.sock" --peer "$work/c.sock" --ms 3600000 \
        --progress "$work/progress" >"$work/between.out" 2>&1 & between=$!
    wait_for exported-b 120
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" reader \
        "$(cat /out/token.b)" "$(cat /out/text.b)" >"$work/reader.out" & reader=$!
    says served 30
    goes_on "before the cut"
    : >/out/cut.2
    for _ in $(seq 300); do [[ -e /out/cut.2 ]] || break; sleep 0.1; done
    [[ ! -e /out/cut.2 ]] || fail "node 2 is not switched off"
    from=$(date +%s%N)
    says RETRY_EXC_ERR 30
    goes_on "while node 2 is off"
    wait_for exported-again 300
    ok "node 2 is back, with another incarnation, after $((($(date +%s%N) - from) / 1000000)) ms"
    # At the first try: nobody has to find out by failing.
    out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/read_region" "$(cat /out/token.again)" 2>&1) ||
        fail "its new memory: $out"
    [[ $(tail -n 1 <<<"$out") == "$(cat /out/text.again)" ]] || fail "its new memory: $out"
    ok "a worker reads what node 2 exports now, at its first try"
    wait $reader || fail "the reader ended: $(cat "$work/reader.out")"
    ok "a worker that was reading node 2 when its power was cut, and went on with the key of" \
        "before: $(paste -sd ';' "$work/reader.out")"
    ! out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/read_region" "$(cat /out/token.b)" 2>&1) ||
        fail "a key of before was served: $out"
    [[ $out == *REM_ACCESS_ERR* ]] || fail "a key of before: $out"
    ok "another with the key of before: $(grep failed <<<"$out")"
    goes_on "after node 2 is back"
    kill -TERM $between
    wait $between || fail "the worker between agents a and c: $(cat "$work/between.out")"
    [[ $(cat "$work/between.out") == *"began 1 times, 0 failures"* ]] ||
        fail "the worker between a and c: $(cat "$work/between.out")"
    ok "a worker between two agents of node 1 went on: $(cat "$work/between.out")"
}

follow() {
    local good bad
    wait_for exported-a 120
    starts b
    both exported
    wait_for perftest 120
    timeout 60 ib_read_lat -d rxe0 -x 1 -s 8 -n 200 -F 10.0.1.1 >"$work/perftest.log" 2>&1 ||
        fail "ib_read_lat: $(cat "$work/perftest.log")"
    ok "perftest between the nodes:" \
        "$(awk '$1 == 8 {print "8-byte READ " $5 " us"}' "$work/perftest.log")"
    main_job
    ok "a worker reads another host's memory: $(head -n 2 <<<"$said" | paste -sd ,)"
    main_job
    ok "and again: $(head -n 2 <<<"$said" | paste -sd ,)"
    both read
    for kind in narrow wide; do
        wait_for $kind 120
        recovers "a $kind port of node 1"
        main_job
        reached $kind-read
    done
    for seconds in $CUTS; do
        wait_for "cut-$seconds" 60
        good=0 bad=0
        while [[ ! -e /out/at/healed-$seconds ]]; do tries 10; done
        ok "while the wire was cut for $seconds s: $bad READs failed," \
            "$good succeeded (before or after)"
        recovers "a cut of $seconds s"
        reached "recovered-$seconds"
    done
    # None may fail, unless node 1 stood still in its time.
    for kind in $(printf 'lossy-%s ' $LOSSES) slow; do
        wait_for $kind 200
        [[ $kind == slow ]] || wire add netem loss "${kind#lossy-}%"
        for ((good = 0; good < READS; good++)); do
            reads 3 "over a $kind wire a READ" 30
        done
        ok "$good workers read over a $kind wire"
        [[ $kind == slow ]] || over_loss $kind
        reached $kind-read
    done
    [[ -z $POWER ]] || await_the_cut
    both over
}

# Endpoints that agent b does not know are looked up, and a connection is made anew, for several
# workers at once: a lost packet is repeated, and is nobody's failure.
over_loss() { # what
    local i reached=0 parts=$((READS > 5 ? 4 : 1))
    # In parts: its nodes are not renewed, and all of a part are registered before the first is
    # looked up.
    for ((i = 0; i < parts; i++)); do
        shows 3 "over a $1 wire lookups" timeout 100 "$bin/kedge-perf" connect --uncached \
            --count $((8 * READS / parts)) --socket "$work/b.sock" --server "$url"
        ok "over a $1 wire $((8 * READS / parts)) endpoints were looked up:" \
            "$(tail -n 1 <<<"$said")"
    done
    for ((i = 0; i < 3 && reached == 0; i++)); do four_at_once $1; done
    ((reached > 0)) ||
        fail "over a $1 wire nobody reached node 1, which stood still each of three times"
    ok "over a $1 wire $reached of four workers that needed the same connection at once have it"
    wire del
}
# Their agent has just begun. Adds to $reached.
four_at_once() { # over what wire
    local i reader=() lost=()
    kill -TERM "${pids[b]}"
    wait "${pids[b]}" || fail "agent b did not end over a $1 wire"
    daemon_start b kedge-agentd || fail "agent b did not start over a $1 wire"
    live b 60
    ask_pauses
    for i in 1 2 3 4; do
        read_back 60 >"$work/first.$i" 2>&1 & reader[i]=$!
    done
    for i in 1 2 3 4; do
        if wait "${reader[i]}"; then reached=$((reached + 1)); else lost+=($i); fi
    done
    ((${#lost[@]} == 0)) || ask_pauses
    for i in "${lost[@]}"; do
        forgive "over a $1 wire that a worker reaches node 1" "$(cat "$work/first.$i")"
    done
}
await_the_cut() {
    exports b b "bytes of node 2, $RANDOM"
    sleep 300
    fail "the power was not cut"
}
come_back() {
    starts b
    exports b again "other bytes of node 2, $RANDOM"
    both over
    exec 9>&-
}

# In this shell, not in a condition: there `set -e` would not hold.
if ((NODE == 1)); then lead; elif ((LIFE == 1)); then follow; else come_back; fi
cluster_stop || fail "the daemons did not end cleanly"
ok "node $NODE: everything ends on SIGTERM"
