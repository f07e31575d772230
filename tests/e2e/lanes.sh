#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool with two lanes: it is one endpoint to others, whichever lane a worker has; workers of one
# tenant share a lane before they are spread; status and metrics have each lane; a region that its
# worker withdraws, or an operator revokes, no lane reaches any more; and what several lanes cannot
# be right with yet is refused when the configuration is read.
source "$(dirname "$0")/lib.sh"
needs_built publish_region kedge-perf
more_pool=$'lanes = 2\nmax_vqps = 64\nwindow_ops = 96'
start
ctl() { "$bin/rdmactl" --agent-socket "$work/a.admin" "$@"; }
of_lanes() { # agent expression
    curl -sf --unix-socket "$work/$1.admin" http://a/v1/status | jq -c "[.pools[0].lanes[] | $2]"
}

until_is '[0,1]' "the pool has two lanes" of_lanes a .number
until_is '[8,8]' "each keeps a part of the sessions ready" of_lanes a .sessions.ready
until_is '1' "and it is one pool" eval \
    "curl -sf --unix-socket $work/a.admin http://a/v1/status | jq '.pools | length'"
until_is 96 "whose part of the device's window is that of all its lanes" eval \
    "curl -sf --unix-socket $work/a.admin http://a/v1/status |
        jq '.pools[0].device_window.limit_ops'"
until_is 96 "of which each has a part" eval "of_lanes a .device_window.limit_ops | jq add"
until_is 1 "and one endpoint to its metaserver" eval \
    "$bin/rdmactl --server $admin node get node-a -o json | jq '.endpoints | length'"

# Four workers of the tenant share a lane, and the next ones have the other. Each reads what a
# worker of the other agent has exported, and each exports.
hold_worker() { # number
    mkfifo "$work/hold.$1"
    env KEDGE_SOCKET="$work/a.sock" "$bin/export_region" "of worker $1" \
        <"$work/hold.$1" >"$work/token.$1" 2>"$work/export.$1.log" &
    held[$1]=$!
    worker_pids+=($!)
    eval "exec $((10 + $1))>$work/hold.$1"
    for _ in $(seq $((1200 * slow))); do
        [[ ! -s $work/token.$1 ]] || return 0
        sleep 0.05
    done
    fail "worker $1 printed no token: $(cat "$work/export.$1.log")"
}
held=()
for n in 1 2 3 4; do hold_worker "$n"; done
until_is '[0,4]' "workers of a tenant share a lane" eval "of_lanes a .sessions.live | jq -c sort"
# The next one's region has a name, whichever lane has it.
mkfifo "$work/hold.name"
env KEDGE_SOCKET="$work/a.sock" "$bin/publish_region" lanes/further "of the further lane" \
    <"$work/hold.name" >"$work/published" 2>"$work/publish.log" &
worker_pids+=($!)
exec 9>"$work/hold.name"
until_is published "a region of the further lane gets its name" cat "$work/published"
until_is '[1,4]' "and is of the further lane" eval "of_lanes a .sessions.live | jq -c sort"
exec 9>&-
until_is '[0,4]' "and goes with its worker" eval "of_lanes a .sessions.live | jq -c sort"
for n in 5 6 7 8; do hold_worker "$n"; done
until_is '[4,4]' "and are spread when it has some more than another" of_lanes a .sessions.live
for n in 1 2 3 4 5 6 7 8; do
    read_text b "$(cat "$work/token.$n")" >"$work/read.$n" ||
        fail "what worker $n exports is not read"
    grep -q "of worker $n" "$work/read.$n" || fail "worker $n exported something else"
done
ok "the other node reads what workers of both lanes export"
for n in 1 2 3 4 5 6 7 8; do
    read_text a "$(cat "$work/token.$n")" >"$work/read.$n" ||
        fail "what worker $n exports is not read from its own node"
    grep -q "of worker $n" "$work/read.$n" || fail "worker $n exported something else"
done
ok "and so do workers of this one, of either lane"
until_is true "both lanes have regions in the one table" eval \
    "of_lanes a .lane.mrs | jq 'all(. >= 4)'"
curl -sf --unix-socket "$work/a.admin" http://a/metrics >"$work/metrics"
until_is 2 "metrics have each lane" grep -c \
    '^kedge_agent_sessions_live{pool="default",lane="[01]"}' "$work/metrics"
until_is 0 "and no series twice" eval \
    "grep -v '^#' $work/metrics | sed 's/ [^ ]*$//' | sort | uniq -d | wc -l"
until_is 8 "the list of workers has those of both" eval \
    "curl -sf --unix-socket $work/a.admin http://a/v1/workers | jq '.workers | length'"

# Revoked by the operator, in each lane; the others' go on.
for n in 2 7; do
    worker=$(ctl worker list -o json | jq -r ".workers[] | select(.pid == ${held[$n]}) | .id")
    ctl lease revoke --worker "$worker" >"$work/revoked" 2>&1 ||
        fail "the leases of worker $n ($worker) are not revoked: $(cat "$work/revoked")"
    if read_text b "$(cat "$work/token.$n")" >"$work/read.$n" 2>&1; then
        fail "what was revoked of worker $n is read still"
    fi
done
ok "what is revoked in either lane nobody reads any more"
for n in 1 3 5 8; do
    read_text b "$(cat "$work/token.$n")" | grep -q "of worker $n" || fail "worker $n is not read"
done
ok "and everybody else's is read"

# Its worker is killed: its lane withdraws what it had, and the places are the next ones'.
for n in 1 8; do kill -KILL "${held[$n]}"; wait "${held[$n]}" 2>/dev/null || true; done
is_read() { read_text b "$(cat "$work/token.$1")" >"$work/read.$1" 2>&1 && echo yes || echo no; }
# Its agent hears of its death, and others' leases end, a moment later.
for n in 1 8; do
    until_is no "what killed worker $n had exported is gone, in its lane" is_read "$n"
done
until_is '[3,3]' "and its session is taken back" of_lanes a .sessions.live

# Many requests through both lanes at a time, of which the data is checked.
for n in 1 2 3; do
    timeout $((120 * slow)) "$bin/kedge-perf" read --socket "$work/a.sock" \
        --peer-socket "$work/b.sock" --depth 32 --count "$((100000 / slow / slow))" --json \
        >"$work/perf.$n" 2>&1 &
    perf[n]=$!
done
for n in 1 2 3; do wait "${perf[$n]}" || fail "a worker's READs: $(cat "$work/perf.$n")"; done
until_is true "both lanes have posted" eval \
    "of_lanes a .lane.posted | jq 'all(. > $((1000 / slow)))'"
until_is '[0,0]' "and lost nothing" of_lanes a .lane.failed

for n in 2 3 4 5 6 7; do
    kill -KILL "${held[$n]}"
    wait "${held[$n]}" 2>/dev/null || true
done
until_is '[0,0]' "nobody is there" of_lanes a .sessions.live

# Four workers of a tenant, which share a lane, with much to do: what some of them post goes by the
# other lane's queue pairs, and each READ brings what it must.
if [[ $provider == soft ]]; then
    for n in 1 2 3 4; do
        timeout $((240 * slow)) "$bin/kedge-perf" read --socket "$work/a.sock" \
            --peer-socket "$work/b.sock" --depth 32 --count "$((1000000 / slow))" --json \
            >"$work/perf.$n" 2>&1 &
        perf[n]=$!
    done
    until_is true "sessions go to the lane that has less to do" eval \
        "of_lanes a '.moves + .lodgers' | jq 'add > 0'"
    for n in 1 2 3 4; do
        wait "${perf[$n]}" || fail "a worker's READs, of which some moved: $(cat "$work/perf.$n")"
    done
    until_is '[0,0]' "and is back when its worker is gone" of_lanes a .lodgers
    until_is '[0,0]' "no request of theirs failed" of_lanes a .lane.failed
    until_is '[0,0]' "and no virtual queue pair is left" of_lanes a .lane.vqps
else
    skip "sessions that go to another lane: nobody has so much to do in a guest"
fi

# ---- what is refused
refuses() { # sentence lines...
    local sentence=$1; shift
    printf '[agent]\nnode = n\nstate_dir = %s\n[pool]\nlanes = 2\n%s\n' "$work" "$*" \
        >"$work/wrong.conf"
    if timeout 20 "$bin/kedge-agentd" --config "$work/wrong.conf" >"$work/wrong.out" 2>&1; then
        fail "$* was taken with two lanes"
    fi
    grep -q "$sentence" "$work/wrong.out" || fail "$*: $(cat "$work/wrong.out")"
    ok "refused: $sentence"
}
refuses 'lane_cpu names 1 CPUs, and there are 2 lanes' 'lane_cpu = 0'
refuses 'must name a CPU for each lane alone' 'lane_cpu = 1, 1'
stop
