#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In each of two guests: node 1 has the metaserver, agent a and a worker that exports; node 2 has agent b, and its
# workers read. Node 1 leads with the wire, node 2 with the workers; they wait for each other's files in /out/at.
#
#   guest-two-hosts.sh BUILD_DIRECTORY
#
# Environment: CUTS (seconds that the wire is cut for, each in turn), READS (over a bad wire).
set -euo pipefail
build=$1 bin=$1/bin
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p /out/at
cd /tmp
begin=$(date +%s%N)
say() { echo "[$((($(date +%s%N) - begin) / 1000000)) ms] $*"; }
ok() { say "ok: $*" | tee -a "/out/parts.$NODE"; }
fail() {
    say "FAILED: $*" | tee -a "/out/parts.$NODE"
    tail -n 20 "${work:-/nowhere}"/*.log || true
    exit 1
}
reached() { : >"/out/at/$1"; }
# Gives up when the other node has failed, so that its failure is the one that is seen.
wait_for() { # what, seconds
    for _ in $(seq $(($2 * 10))); do
        [[ ! -e /out/at/$1 ]] || return 0
        if grep -q FAILED "/out/parts.$((3 - NODE))" 2>/dev/null; then fail "the other node gave up before \"$1\""; fi
        sleep 0.1
    done
    fail "the other node did not come to \"$1\" within $2 s"
}
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
url=http://10.0.1.1:7480

node_state() { "$bin/rdmactl" --server "$url" node get "node-$1" 2>/dev/null | sed -n 's/^state *//p'; }
live() { # agent, seconds
    for _ in $(seq $(($2 * 5))); do
        [[ $(node_state "$1") != live* ]] || return 0
        sleep 0.2
    done
    fail "the agent of node-$1 is not registered ($(node_state "$1"))"
}

# What node 2's workers do: connect to a region of node 1 and read it.
read_back() { # seconds
    timeout "$1" env KEDGE_SOCKET="$work/b.sock" "$bin/read_region" "$(cat /out/token)"
}
# A READ that fails is allowed, other bytes never.
tries() { # seconds that one may take; sets $good, $bad
    local out
    if out=$(read_back "$1" 2>>"$work/reads.log"); then
        [[ $(tail -n 1 <<<"$out") == "$(cat /out/text)" ]] || fail "read other bytes: $out"
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
        ((bad < 400 && $(date +%s%N) - from < 90000000000)) || fail "$1: READs do not come back: $(tail -n 2 "$work/reads.log")"
        ((good)) || sleep 0.1
    done
    ok "$1: reads again $((($(date +%s%N) - from) / 1000000)) ms later, after $bad failures"
}

lead() {
    metad_configure
    sed -i 's/^listen = .*/listen = 10.0.1.1:7480/' "$work/metad.conf"
    mkdir -m 0700 "$work/metad" "$work/state-a"
    daemon_start metad kedge-metad || fail "the metaserver did not start"
    agent_configure a
    daemon_start a kedge-agentd || fail "agent a did not start"
    live a 60
    echo "bytes of node 1, $RANDOM" >/out/text
    mkfifo "$work/hold"
    KEDGE_SOCKET=$work/a.sock "$bin/export_region" "$(cat /out/text)" <"$work/hold" >"$work/token" 2>"$work/export.log" &
    exec 9>"$work/hold"
    for _ in $(seq 200); do [[ ! -s $work/token ]] || break; sleep 0.1; done
    [[ -s $work/token ]] || fail "the exporting worker printed no token: $(cat "$work/export.log")"
    cp "$work/token" /out/token
    both exported
    ib_read_lat -d rxe0 -x 1 -s 8 -n 200 -F >"$work/perftest.log" 2>&1 &
    reached perftest
    wait $! || fail "ib_read_lat: $(cat "$work/perftest.log")"
    both read
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
    wire add netem loss 1%
    reached lossy
    wait_for lossy-read 300
    wire change netem delay 5ms
    reached slow
    wait_for slow-read 300
    wire del
    both over
    exec 9>&-
}

follow() {
    local good bad
    mkdir -m 0700 "$work/state-b"
    wait_for exported.1 120
    names=(b) # agent b is number 1 of this node's GIDs
    agent_configure b
    daemon_start b kedge-agentd || fail "agent b did not start"
    live b 60
    both exported
    wait_for perftest 60
    sleep 1
    ib_read_lat -d rxe0 -x 1 -s 8 -n 200 -F 10.0.1.1 >"$work/perftest.log" 2>&1 || fail "ib_read_lat: $(cat "$work/perftest.log")"
    ok "perftest between the nodes: $(awk '$1 == 8 {print "8-byte READ " $5 " us"}' "$work/perftest.log")"
    out=$(read_back 60) || fail "the main job: $out"
    [[ $(tail -n 1 <<<"$out") == "$(cat /out/text)" ]] || fail "the main job read back: $out"
    ok "a worker reads another host's memory: $(head -n 2 <<<"$out" | paste -sd ,)"
    out=$(read_back 60) || fail "the main job again: $out"
    ok "and again: $(head -n 2 <<<"$out" | paste -sd ,)"
    both read
    for seconds in $CUTS; do
        wait_for "cut-$seconds" 60
        good=0 bad=0
        while [[ ! -e /out/at/healed-$seconds ]]; do tries 10; done
        ok "while the wire was cut for $seconds s: $bad READs failed, $good succeeded (before or after)"
        recovers "a cut of $seconds s"
        reached "recovered-$seconds"
    done
    # Emulated hosts stand still for longer than a device tries, now and then: a few workers have to try again.
    for kind in lossy slow; do
        wait_for $kind 200
        good=0 bad=0
        while ((good < READS)); do
            tries 30
            ((bad <= 1 + READS / 10)) || fail "over a $kind wire $bad READs failed and $good did not: $(tail -n 2 "$work/reads.log")"
        done
        ok "$good workers read over a $kind wire, $bad had to try again"
        reached $kind-read
    done
    both over
}

# In this shell, not in a condition: there `set -e` would not hold.
if ((NODE == 1)); then lead; else follow; fi
cluster_stop || fail "the daemons did not end cleanly"
ok "node $NODE: everything ends on SIGTERM"
