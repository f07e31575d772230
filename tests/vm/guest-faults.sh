#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What faults.sh runs in its guest: metaserver, agents and workers on SoftRoCE, and what
# befalls them there.
#
#   guest-faults.sh BUILD_DIRECTORY PART...
#
# Environment: REPAIRS (rounds of break and repair), KILLS (of an agent), as well as
# tests/e2e/lib.sh's.
build=$1; shift
parts=("$@")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
set -- "$build"
export KEDGE_TEST_PROVIDER=verbs KEDGE_TEST_DEVICE=rxe0 KEDGE_TEST_SLOW=10
KEDGE_TEST_GIDS=$(for i in 1 2 3 4 5 6 7 8; do echo "::ffff:10.0.1.$i"; done | paste -sd ' ')
export KEDGE_TEST_GIDS
cd /tmp # on the guest's own tmpfs
# The slots of the table of regions and of the lane's rings are used in turn: few, so that all
# are in the warm-up.
more_pool=$'max_mrs = 512\nmax_sessions = 48'
agents=3 port=7480 # a metaserver that is started again is found where it was
source "$here/../e2e/lib.sh"
needs_built kedge-stress
cleanup() { # instead of lib.sh's: whoever is left goes with the guest
    local status=$?
    ((status == 0)) || { echo "-- dmesg"; dmesg | grep -v 'speed is unknown' | tail -n 20; }
}

status() { "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json; }
metric() {
    curl -sf --max-time 20 --unix-socket "$work/$1.admin" http://agent/metrics |
        sed -n "s/^$2\({pool=[^}]*}\)\? //p"
}
has() { status "$1" | jq -e "$2" >/dev/null; }     # agent, what is to hold
says() { grep -q "$2" "$work/$1.log"; }            # daemon, what its log is to have
waits_for() { # seconds, what is awaited, command...
    local end=$((SECONDS + $1)) what=$2; shift 2
    until "$@"; do
        ((SECONDS < end)) || fail "$what: not within its time"
        sleep 0.1
    done
}
up() { [[ -n ${pids[metad]-} ]] || start; }

# ---- workers that go on whatever ends

declare -A worker=()
worker_start() { # its name, the agent that it works on, the agent whose memory it uses
    rm -f "$work/$1.progress"
    "$bin/kedge-stress" recover --socket "$work/$2.sock" --peer "$work/$3.sock" --ms 3600000 \
        --progress "$work/$1.progress" >"$work/$1.out" 2>&1 & worker[$1]=$!
}
worker_done() {
    local n=0
    { read -r n _ <"$work/$1.progress"; } 2>/dev/null || n=0
    echo $((10#$n))
}
worker_is_past() { (($(worker_done "$1") > $2)); }
worker_goes_on() { # name, after what
    kill -0 "${worker[$1]}" 2>/dev/null || fail "the worker ended ($2): $(cat "$work/$1.out")"
    waits_for 90 "a worker's rounds ($2)" worker_is_past "$1" "$(worker_done "$1")"
}
worker_stop() { # name; sets $said
    kill -TERM "${worker[$1]}"
    wait "${worker[$1]}" || fail "the worker failed: $(cat "$work/$1.out")"
    unset "worker[$1]"
    said=$(cat "$work/$1.out")
}
never_failed() { [[ $said == *"began 1 times, 0 failures"* ]] || fail "$1: $said"; }
reads() {
    timeout 120 "$bin/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" \
        --count "${1:-50}"
}

# ---- the parts

# Users other than root may lock as much as their limit says, which is little where nobody raised
# it. The programs are copied to where any user can run them, wherever this checkout is.
poor() { # KiB, program
    (
        ulimit -l "$1"
        exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
            --bounding-set=-all timeout 60 "$work/bin/$2" --config "$work/poor.conf"
    ) >"$work/poor.out" 2>&1
}
part_memlock() {
    local kib limit sentence
    cluster_directories
    port=7480 url=http://127.0.0.1:7480
    agent_configure a
    sed "s/^uids = .*/uids = 65534/" "$work/a.conf" >"$work/poor.conf"
    mkdir "$work/state-a"; chown 65534 "$work" "$work/state-a"
    mkdir -m 0755 "$work/bin"
    cp "$bin/kedge-agentd" "$bin/kedge-metad" "$work/bin/"
    chmod a+rx "$work/bin"/*
    chmod 0666 /dev/infiniband/*
    for kib in 64 1024; do
        limit="64 KiB"; ((kib == 64)) || limit="1 MiB"
        ! poor $kib kedge-agentd ||
            fail "an agent begins with $kib KiB of locked memory: $(cat "$work/poor.out")"
        sentence="limited to $limit.*raise LimitMEMLOCK.* in the unit"
        grep -q "^kedge-agentd: .*locked memory is $sentence" "$work/poor.out" ||
            fail "it does not name the limit: $(cat "$work/poor.out")"
        ok "with ulimit -l $kib the agent says: $(tail -n 1 "$work/poor.out")"
    done
    # Enough for what it makes first, not for what it lends: who asks why workers are refused
    # finds it in the log.
    (
        ulimit -l 4096
        exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
            --bounding-set=-all "$work/bin/kedge-agentd" --config "$work/poor.conf"
    ) >"$work/a.out" 2>"$work/a.log" &
    kib=$!
    waits_for 60 "the agent's word that no more arenas can be made" says a \
        'no more arenas .*locked memory is limited to 4096 KiB.*raise LimitMEMLOCK'
    kill $kib; wait $kib || true
    ok "with ulimit -l 4096 it logs: $(grep 'no more arenas' "$work/a.log")"
    metad_configure
    mkdir "$work/metad"; chown 65534 "$work/metad"
    cp "$work/metad.conf" "$work/poor.conf"
    ! poor 64 kedge-metad || fail "a metaserver begins with 64 KiB of locked memory"
    grep -q "^kedge-metad: .*locked memory is limited to 64 KiB.*raise LimitMEMLOCK" \
        "$work/poor.out" ||
        fail "it does not name the limit: $(cat "$work/poor.out")"
    ok "with ulimit -l 64 the metaserver says: $(tail -n 1 "$work/poor.out")"
    rm -rf "$work"
}

objects() { rdma resource show rxe0 | sed 's/^[0-9]*: //'; }
is_paused() { [[ $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) == T ]]; }
paused_or_over() { is_paused "$1" || ! kill -0 "$1" 2>/dev/null; }
part_repair() {
    local rounds=${REPAIRS:-1000} before after pid status=0
    "$bin/kedge-stress" repair --provider verbs --device rxe0 --gid 10.0.1.7 --peer-gid 10.0.1.8 \
        --rounds "$rounds" --pause >"/tmp/repair.out" 2>&1 &
    pid=$!
    waits_for 120 "warming up" paused_or_over $pid
    before=$(objects)
    kill -CONT $pid || true
    waits_for 1800 "$rounds rounds of break and repair" paused_or_over $pid
    after=$(objects)
    kill -CONT $pid || true
    wait $pid || status=$?
    ((status == 0)) || { cat /tmp/repair.out; echo "FAILED: repair ended with $status"; exit 1; }
    [[ $before == "$after" ]] || { echo "FAILED: the device had $before, and has $after"; exit 1; }
    ok "$(tail -n 1 /tmp/repair.out)"
    ok "the device's objects before and after: $after"
}

part_port() {
    local before code=0
    up
    worker_start w a b
    waits_for 60 "a worker's first rounds" worker_is_past w 0
    ip link set "$NIC" down
    waits_for 30 "the agent's word that its port is down" has a '.port == "down"'
    says a "the device's port is down" && says b "the device's port is down" &&
        says metad "agents cannot read the table.*port 1 of the device is down" ||
        fail "a log does not say that the port is down"
    [[ $(metric a kedge_agent_port_up) == 0 ]] || fail "kedge_agent_port_up is not 0"
    ok "with the port down logs, status and metrics of agents say so"
    reads 5 >"$work/down.out" 2>&1 || code=$?
    ((code != 0 && code != 124)) ||
        fail "a READ with the port down ended with $code: $(cat "$work/down.out")"
    ok "a READ meanwhile: $(tail -n 1 "$work/down.out")"
    before=$(worker_done w)
    ip link set "$NIC" up
    waits_for 30 "the agent's word that its port is up" has a '.port == "up"'
    [[ $(metric a kedge_agent_port_up) == 1 ]] || fail "kedge_agent_port_up is not 1"
    worker_goes_on w "the port is up again"
    reads 50 >"$work/up.out" 2>&1 || fail "READs after the port is up: $(cat "$work/up.out")"
    ok "with the port up READs work again, without a hand"
    worker_stop w
    ok "$said"
}

# An address of the device goes and comes back, under another index since others came meanwhile:
# who had it does not begin anew, nor do its workers. KEDGE_TEST_LONG: another one takes its place
# where none is set.
holds() { # name, agent: a worker that exports until file descriptor $3 is closed; sets $token
    mkfifo "$work/hold.$1"
    KEDGE_SOCKET=$work/$2.sock "$bin/export_region" "bytes of $1" <"$work/hold.$1" \
        >"$work/token.$1" 2>"$work/export.$1" &
    eval "exec $3>\"$work/hold.$1\""
    waits_for 30 "the token of $1" test -s "$work/token.$1"
    token=$(cat "$work/token.$1")
}
region() {
    [[ $(KEDGE_SOCKET=$work/$1.sock timeout 60 "$bin/read_region" "$2" 2>"$work/region.out" |
        tail -n 1) == "bytes of $3" ]]
}
number() { status "$1" | jq "$2"; }
part_address() {
    local before after begin i
    up
    sysctl -q net.ipv4.conf.all.promote_secondaries=1 "net.ipv4.conf.$NIC.promote_secondaries=1"
    holds first a 7
    worker_start w a b
    worker_goes_on w "before its address goes"
    region b "$token" first || fail "a region of a is not read: $(cat "$work/region.out")"
    before=$(number a .incarnation)
    ip addr del 10.0.1.2/16 dev "$NIC"
    waits_for 30 "a's word that its address is gone" has a '.address == "gone"'
    curl -s --unix-socket "$work/a.admin" http://agent/readyz |
        grep >/dev/null "GID is not on the device's port" ||
        fail "/readyz does not say that the address is gone"
    [[ $(metric a kedge_agent_address_up) == 0 ]] || fail "kedge_agent_address_up is not 0"
    for i in 41 42 43; do ip addr add "10.0.1.$i/16" dev "$NIC"; done
    ip addr add 10.0.1.2/16 dev "$NIC"
    waits_for 30 "a's word that its address is back" has a '.address == "up"'
    says a "this node's address has moved" ||
        fail "the address came back under its index, and nothing was tried"
    begin=$(date +%s%N)
    worker_goes_on w "its address has moved"
    waits_for 60 "reading a's region again" region b "$token" first
    ok "a's address moved: workers go on $((($(date +%s%N) - begin) / 1000000)) ms later ($(
        grep -o 'gid=.*' <<<"$(grep 'has moved' "$work/a.log" | tail -n 1)"))"
    after=$(number a .incarnation)
    [[ $before == "$after" ]] || fail "a was incarnation $before, and is $after"
    reads 50 >"$work/moved.out" 2>&1 ||
        fail "READs after the address has moved: $(cat "$work/moved.out")"
    worker_stop w
    ok "$said"
    exec 7>&-
    [[ -z ${KEDGE_TEST_LONG-} ]] || another_address
}
another_address() {
    local before held i
    kill -TERM "${pids[c]}"; wait "${pids[c]}" || fail "c did not end"
    sed -i '/^gid = /d' "$work/c.conf" # it takes the first, which is the metaserver's too
    sed -i 's/^gid = .*/gid = ::ffff:10.0.1.8/' "$work/metad.conf"
    kill -TERM "${pids[metad]}"; wait "${pids[metad]}" || fail "the metaserver did not end"
    daemon_start metad kedge-metad || fail "the metaserver did not start"
    daemon_start c kedge-agentd || fail "c did not start without a gid"
    waits_for 60 "c's registration" agent_wait c
    before=$(number c .incarnation)
    [[ $(number c .gid) == '"::ffff:10.0.1.1"' ]] || fail "c chose $(number c .gid)"
    holds second c 7
    held=$token
    waits_for 60 "reading c's region" region b "$held" second
    # The first that is left is to be nobody else's: b's own comes later than two that are new.
    ip addr del 10.0.1.3/16 dev "$NIC"
    for i in 44 45; do ip addr add "10.0.1.$i/16" dev "$NIC"; done
    ip addr add 10.0.1.3/16 dev "$NIC"
    waits_for 60 "reading c's region after b's address has moved" region b "$held" second
    ip addr del 10.0.1.1/16 dev "$NIC"
    waits_for 60 "another address of c" has c '.gid != "::ffff:10.0.1.1" and .address == "up"'
    ((before < $(number c .incarnation))) ||
        fail "c has another address, and is the same incarnation"
    has c '.sessions.live == 1' || fail "c's worker did not live on"
    ! region b "$held" second || fail "the token of the former address is still good"
    grep -q . "$work/region.out" || fail "the token of the former address fails without a word"
    ok "c's address is $(number c .gid); the token of the former one: $(
        tr '\n' ' ' <"$work/region.out")"
    # What the worker exports now has the node's present name.
    echo >&7
    waits_for 30 "another token" eval '[[ $(wc -l <"$work/token.second") == 2 ]]'
    waits_for 60 "reading c's region under its new name" \
        region b "$(tail -n 1 "$work/token.second")" second
    ok "its worker lives on, and what it exports anew is read"
    exec 7>&-
    ip addr add 10.0.1.1/16 dev "$NIC"
}

part_perftest() {
    local run server client=0
    up
    waits_for 60 "a reaches b, whose address may have moved before" reads 10
    worker_start w a b
    worker_goes_on w "before perftest"
    for run in "ib_read_lat -s 8 -n 500" "ib_write_bw -s 4096 -n 500"; do
        $run -d rxe0 -x 5 -F >"$work/server.out" 2>&1 & server=$!
        for _ in $(seq 200); do
            ! grep -qi ':4853 .* 0A ' /proc/net/tcp || break # 18515, listening
            sleep 0.1
        done
        timeout 120 $run -d rxe0 -x 6 -F 10.0.1.5 >"$work/client.out" 2>&1 || client=$?
        wait $server && ((client == 0)) || fail "$run: $(cat "$work/server.out" "$work/client.out")"
        ok "$run beside a metaserver, $agents agents and a worker: $(
            grep -A 1 '^ #bytes' "$work/client.out" | tail -n 1 | tr -s ' ')"
    done
    worker_goes_on w "after perftest"
    worker_stop w
    never_failed "the worker beside perftest"
    ok "$said"
}

descriptors() {
    readlink "/proc/${pids[a]}"/fd/* | grep -vc kedge-arena # of which tenants keep a few
}
anonymous_kib() { sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${pids[a]}/status"; }
gauges() {
    status a | jq -r \
        '.connections | "\(.initiators) \(.responders) \(.addresses) \(.incoming) \(.outgoing)"'
}
at_rest() {
    has a '.sessions.live == 0 and .sessions.ending == 0 and
        .lane.vqps == 0 and .lane.mrs == 0 and .lane.inflight == 0'
}
# of b, so many times, with workers: from a to b, from b to a, and one that b does not concern
kills() {
    worker_start w a b; worker_start back b a; worker_start other c a
    for _ in $(seq "$1"); do
        worker_goes_on w "before b is killed"; worker_goes_on back "before b is killed"
        kill -KILL "${pids[b]}"; wait "${pids[b]}" 2>/dev/null || true
        daemon_start b kedge-agentd || fail "b does not come back"
    done
    for w in w back other; do worker_goes_on $w "after b came back"; done
    for w in w back; do worker_stop $w; done
    worker_stop other
    never_failed "a worker that b does not concern"
    waits_for 60 "a's rest" at_rest
}
part_killed() {
    local before after fds kib count=${KILLS:-3} i
    up
    waits_for 60 "c reaches a, whose address may have moved before" eval \
        'timeout 60 "$bin/kedge-perf" read --socket "$work/c.sock" --peer-socket "$work/a.sock" \
            --count 10 >/dev/null 2>&1'
    kills 2
    before=$(gauges) fds=$(descriptors) kib=$(anonymous_kib)
    kills "$count"
    after=$(gauges)
    ok "a worker between two others went on: $said"
    ok "b killed and started again $count times: a had initiators, responders, addresses," \
        "incoming, outgoing $before, has $after"
    read -ra before <<<"$before"; read -ra after <<<"$after"
    for i in 0 1 2 3 4; do ((after[i] <= before[i] + 2)) || fail "something of a has grown"; done
    (($(descriptors) <= fds + 2)) || fail "descriptors of a: $fds, then $(descriptors):
$(readlink "/proc/${pids[a]}"/fd/* | sort | uniq -c | sort -rn | head)"
    (($(agent_number a arenas) <= 2 * $(agent_number a arenas_ahead))) ||
        fail "arenas are left: $(agent_number a arenas)"
    # While b is away `back` attaches to a all the time: allocators keep what they had at the
    # worst moment, which is seen after two or three times (14 times: 8.2, 10.9, 10.9, 10.9, 11.5,
    # 11.2 ... 11.3 MiB).
    (($(anonymous_kib) <= kib + 4096)) || fail "a's own memory: $kib KiB, then $(anonymous_kib)"
    ok "a's descriptors $fds, then $(descriptors); its own memory $kib KiB, then $(anonymous_kib)"
}

is_over() { ! kill -0 "$1" 2>/dev/null; }
part_removed() {
    local name program code remover
    up
    worker_start w a b
    worker_goes_on w "before the device goes"
    "$bin/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" \
        --count 100000000 >"$work/long.out" 2>&1 &
    local long=$!
    sleep 1
    rdma link delete rxe0 & remover=$!
    for name in a b c metad; do
        program=kedge-agentd; [[ $name != metad ]] || program=kedge-metad
        waits_for 60 "$name ends when its device is removed" is_over "${pids[$name]}"
        code=0; wait "${pids[$name]}" || code=$?
        ((code == 1)) || fail "$name ended with $code when its device was removed"
        says $name "the device cannot be used any more" || fail "$name does not log it"
        says $name "^$program: .*device" ||
            fail "$name does not say why it ends: $(tail -n 1 "$work/$name.log")"
        unset "pids[$name]"
    done
    ok "agents and metaserver end when their device is removed: $(tail -n 1 "$work/a.log")"
    waits_for 30 "the device's removal" is_over $remover
    ok "nobody holds the device any more: its removal is over"
    waits_for 30 "a worker's end" is_over $long
    ! wait $long || fail "a worker does not hear that its agent is gone"
    ok "a worker meanwhile: $(tail -n 1 "$work/long.out")"
    rdma link add rxe0 type rxe netdev "$NIC"
    daemon_start metad kedge-metad && daemon_start a kedge-agentd && daemon_start b kedge-agentd &&
        daemon_start c kedge-agentd || fail "with the device back they do not begin"
    worker_goes_on w "the device is back"
    worker_stop w
    ok "with the device back and all started again: $said"
}

trap cleanup EXIT
for part in "${parts[@]}"; do
    begin=$SECONDS
    "part_$part"
    ok "$part took $((SECONDS - begin)) s"
done
[[ -z ${pids[metad]-} ]] || cluster_stop || fail "the cluster did not stop"
