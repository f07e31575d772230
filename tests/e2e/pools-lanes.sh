#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool that a metaserver says, with several lanes: its tenant's workers are spread over them and
# READ through all, and what they read is checked; changed, given up, wanted again and taken away
# while they do; made anew with another number; kept over a restart without a metaserver. One for
# whose lanes there is no room says so and harms no other, and nothing is left of one that has gone.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
[[ $(id -u) == 0 ]] || { skip "two users are needed, and only root can be both"; exit 77; }
needs_built kedge-perf
start
# The programs where any user can run them, wherever this checkout is.
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-probe" "$bin/kedge-perf" "$bin/export_region" "$bin"/../lib/libkedge.so* \
    "$work/worker/"
chmod -R a+rX "$work/worker"
guest=(setpriv --reuid 65533 --clear-groups env "LD_LIBRARY_PATH=$work/worker")
guest_worker() { # name, arguments of kedge-probe...
    worker_by "$1" "${guest[@]}" KEDGE_SOCKET="$work/a.sock" "$work/worker/kedge-probe" "${@:2}"
}
pools='[.pools[] | [.name, .state]]'
both='[["default","running"],["gold","running"]]'
threads() { ls "/proc/${pids[a]}/task" | wc -l; }
of_lanes() { # agent expression
    curl -sf --unix-socket "$work/$1.admin" http://a/v1/status | jq -c "[.pools[1].lanes[] | $2]"
}
is_made() { # how many lanes, sentence
    is "$both" "$2" "$pools"
    is "$1" "with $1 lanes" '.pools[1].lanes | length'
    says 2 "which the metaserver knows as one endpoint" '.endpoints | length'
}

ctl tenant create guests uids=65533
ctl node label node-a zone=x
ctl node label node-b zone=x
threads_before=$(threads)
export_text b "of the own pool"
worker own reader "$token" "of the own pool"
own=$worker
ctl pool create gold nodes=zone=x tenants=guests lanes=2 sessions_ahead=8 arenas_ahead=8
is_made 2 "a pool is made"
until_is '[0,1]' "which status has, each by its number" of_lanes a .number
until_is '[4,4]' "each keeps a part of the sessions ready" of_lanes a .sessions.ready
says '["",false]' "all of it is in force" '[.applied.why, .applied.behind]'
(($(threads) == threads_before + 2)) ||
    fail "each lane has a thread: $(threads), $threads_before before"
until_is '[0,1]' "and the other node has them" of_lanes b .number

# Workers of both lanes export there, and workers of both lanes here READ that.
for _ in $(seq $((1200 * slow))); do
    ! "${guest[@]}" KEDGE_SOCKET="$work/b.sock" "$work/worker/kedge-probe" connect node-a \
        >"$work/out" 2>&1 || break
    sleep 0.05
done
grep -q '^connected in' "$work/out" || fail "no worker of the pool connects: $(cat "$work/out")"
mkfifo "$work/hold"
exec 8<>"$work/hold" # nobody writes there
guest_exports() { # number; sets token[number]
    : >"$work/token.$1"
    "${guest[@]}" KEDGE_SOCKET="$work/b.sock" "$work/worker/export_region" "of worker $1" \
        <&8 >"$work/token.$1" 2>"$work/export.$1.log" &
    worker_pids+=($!)
    for _ in $(seq $((1200 * slow))); do [[ ! -s $work/token.$1 ]] || return 0; sleep 0.05; done
    fail "worker $1 printed no token: $(cat "$work/export.$1.log")"
}
reads() { # number: what that worker exports
    guest_worker "reader.$1" reader "$(cat "$work/token.$1")" "of worker $1"
    reader[$1]=$worker
    grep -q served "$work/reader.$1.out" || fail "worker $1: $(cat "$work/reader.$1.out")"
}
lost_nothing() { # numbers...
    for n in "$@"; do
        [[ $(wc -l <"$work/reader.$n.out") == 1 ]] ||
            fail "reader $n had failures: $(cat "$work/reader.$n.out")"
    done
}
for n in 1 2 3 4 5 6 7 8; do guest_exports "$n"; done
until_is '[4,4]' "workers that export have both lanes there" of_lanes b .sessions.live
for n in 1 2 3 4 5 6 7 8; do reads "$n"; done
until_is '[4,4]' "and those that read what each has exported have both here" \
    of_lanes a .sessions.live
until_is true "both lanes post" eval "of_lanes a .lane.posted | jq 'all(. > 100)'"
curl -sf --unix-socket "$work/a.admin" http://a/metrics >"$work/metrics"
until_is 2 "metrics have each lane" grep -c \
    '^kedge_agent_sessions_live{pool="gold",lane="[01]"} 4' "$work/metrics"
until_is 0 "and no series twice" eval \
    "grep -v '^#' $work/metrics | sed 's/ [^ ]*$//' | sort | uniq -d | wc -l"

# Changed while they read: another number of lanes holds from when it is made anew.
ctl pool set gold lanes=3 sessions_ahead=12
says true "other lanes than it has are said" '.applied.why |
    contains("pool gold: lanes 3 needs the pool to be made anew (2 in force)")'
until_is '[6,6]' "what else is said is in force in each of those that there are" \
    of_lanes a .sessions.ready
ctl pool set gold lanes=
says true "also where none is said any more" '.applied.why |
    contains("pool gold: lanes 1 needs the pool to be made anew (2 in force)")'
ctl pool set gold lanes=2 sessions_ahead=8
says '""' "with its own number again all is in force" .applied.why

# One that has no room, and one that has: the agent has eight, of which these are three.
ctl pool create broad nodes=all lanes=8 sessions_ahead=1 arenas_ahead=1
says true "a pool for whose lanes there is no room says so" '.applied.why |
    contains("pool broad: lanes 8: there is room for 5, of 8 pools and further lanes: ")'
ctl pool create slim nodes=all lanes=5 sessions_ahead=1 arenas_ahead=1
is '[["default",null],["gold",2],["slim",5]]' "one that has room is made beside it" \
    '[.pools[] | [.name, (.lanes | if . then length else . end)]]'
ctl pool delete slim
ctl pool set broad lanes=4
is '[["default",null],["gold",2],["broad",4]]' "and that one, when its lanes have room" \
    '[.pools[] | [.name, (.lanes | if . then length else . end)]]'
ctl pool delete broad
is "$both" "both go" "$pools"
says '""' "and nothing is wanted in vain" .applied.why
lost_nothing 1 2 3 4 5 6 7 8
ok "the pool's own workers have read all the while, in both lanes"

# Given up under them, with workers in both lanes; wanted again; and given up for good.
ctl node label node-a zone=y
is '[["default","running"],["gold","leaving"]]' "given up, it waits for its workers" "$pools"
! "${guest[@]}" KEDGE_SOCKET="$work/a.sock" "$work/worker/kedge-probe" vqps 1 \
    >"$work/out" 2>&1 || fail "it takes a worker: $(cat "$work/out")"
shows 'tenant guests belongs to pool gold, which node node-a is giving up'
ctl node label node-a zone=x
is "$both" "wanted again, it stays" "$pools"
lost_nothing 1 2 3 4 5 6 7 8
until_is '[4,4]' "with all of its workers" of_lanes a .sessions.live
ctl node label node-a zone=y
is '[["default","running"],["gold","leaving"]]' "given up once more" "$pools"
# The first lane's leave, then the others': it is there as long as either has one.
lane_of() { # pid
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
        jq ".sessions_list[] | select(.pid == $1) | .lane"
}
for n in 1 2 3 4 5 6 7 8; do lane[n]=$(lane_of "${reader[$n]}"); done
for n in 1 2 3 4 5 6 7 8; do [[ ${lane[n]} == 1 ]] || kill "${reader[$n]}"; done
until_is '[0,4]' "the first lane's workers leave" of_lanes a .sessions.live
is '[["default","running"],["gold","leaving"]]' "and it is there for those of the other" "$pools"
sleep 0.3
for n in 1 2 3 4 5 6 7 8; do
    [[ ${lane[n]} == 0 ]] || goes_on "${reader[$n]}" "$(cat "$work/reader.$n.out")"
done
lost_nothing 1 2 3 4 5 6 7 8
for n in 1 2 3 4 5 6 7 8; do [[ ${lane[n]} == 0 ]] || kill "${reader[$n]}"; done
is '[["default","running"]]' "it is gone when they are" "$pools"
says 1 "and the metaserver knows it no more" '.endpoints | length'
(($(threads) == threads_before)) || fail "it has left a thread: $(threads), $threads_before before"

# Made anew, with another number.
ctl pool set gold lanes=3
ctl node label node-a zone=x
is_made 3 "it is made anew"
says '""' "so all of it is in force" .applied.why
for n in 1 2 3 4 5 6 7 8; do reads "$n"; done
until_is true "its workers have all lanes" eval \
    "of_lanes a .sessions.live | jq -c 'add == 8 and length == 3'"

# With a time for its workers, of which much is out through all lanes.
if [[ $provider == soft ]]; then
    for n in 1 2 3 4; do
        timeout $((240 * slow)) "${guest[@]}" "$work/worker/kedge-perf" read \
            --socket "$work/a.sock" --peer-socket "$work/b.sock" --depth 32 \
            --count "$((4000000 / slow))" --json >"$work/perf.$n" 2>&1 &
        perf[n]=$!
    done
    until_is true "sessions go to the lane that has less to do" eval \
        "of_lanes a '.moves + .lodgers' | jq 'add > 0'"
    for n in 1 2 3 4; do
        wait "${perf[$n]}" || fail "a worker's READs, of which some moved: $(cat "$work/perf.$n")"
    done
    until_is '[0,0,0]' "and is back when its worker is gone" of_lanes a .lodgers
    until_is '[0,0,0]' "no request of theirs failed" of_lanes a .lane.failed
fi
lost_nothing 1 2 3 4 5 6 7 8
ctl pool set gold grace_ms=300
ctl node label node-a zone=y
is '[["default","running"]]' "given up with workers in all lanes, these have their time" "$pools"
for n in 1 2 3 4 5 6 7 8; do wait "${reader[$n]}" || true; done
(($(threads) == threads_before)) || fail "it has left a thread: $(threads), $threads_before before"
ctl pool set gold grace_ms=

# Again and again, with workers in both lanes each time: nothing is left.
ctl pool set gold lanes=2 sessions_ahead=2 arenas_ahead=2
for round in 1 2 3 4; do
    ctl pool set gold grace_ms=1
    ctl node label node-a zone=x
    is_made 2 "made" >/dev/null
    for n in 1 2 3 4 5 6 7 8; do reads "$n"; done
    until_is '[4,4]' "round $round: workers in both lanes" of_lanes a .sessions.live
    ctl node label node-a zone=y
    is '[["default","running"]]' "gone" "$pools" >/dev/null
    for n in 1 2 3 4 5 6 7 8; do wait "${reader[$n]}" || true; done
done
(($(threads) == threads_before)) || fail "threads: $(threads), $threads_before before"
ok "made and given up again and again, it left no thread"
goes_on "$own" "$(cat "$work/own.out")"
[[ $(wc -l <"$work/own.out") == 1 ]] ||
    fail "the own pool's worker had failures: $(cat "$work/own.out")"
ok "the own pool's worker read all the while: $(cat "$work/own.out")"

# After a restart without a metaserver.
ctl pool set gold lanes=3
ctl node label node-a zone=x
is_made 3 "it is there again"
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent did not start again"
is '[["default","running"],["gold","running"]]' "after a restart without a metaserver it is there" \
    "$pools"
is 3 "with its lanes" '.pools[1].lanes | length'
port=${url##*:} metad_configure
daemon_start metad kedge-metad || fail "the metaserver does not start again"
says '[2,false]' "and is registered when it is back" '[(.endpoints | length), .applied.behind]'
guest_worker late connect node-b
until_is 1 "and its workers reach the other node" grep -c '^connected in' "$work/late.out"
stop
