#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several pools of one agent: made as operators say, each with queue pairs, sessions and memory of
# its own, and with tenants that get it and no other; changed, given up and made again while
# workers of all of them read; kept over a restart without a metaserver; and nothing is left of
# one that has gone.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
[[ $(id -u) == 0 ]] || { skip "two users are needed, and only root can be both"; exit 77; }
start
# The programs where any user can run them, wherever this checkout is.
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-probe" "$bin/export_region" "$bin/read_region" "$bin"/../lib/libkedge.so* \
    "$work/worker/"
chmod -R a+rX "$work/worker"
guest=(setpriv --reuid 65533 --clear-groups env "LD_LIBRARY_PATH=$work/worker")
as_guest() { # agent program arguments...
    "${guest[@]}" KEDGE_SOCKET="$work/$1.sock" "$work/worker/$2" "${@:3}"
}
pools='[.pools[] | [.name, .state]]'
threads() { ls "/proc/${pids[a]}/task" | wc -l; }
# With room for the connections to metaservers and operators that are kept for a while.
descriptors() {
    { readlink "/proc/${pids[a]}"/fd/* || true; } |
        awk '/^socket:/ {sockets++; next} {others++}
            END {print others + (sockets > 16 ? sockets - 16 : 0)}'
}
answers() { # pattern command...
    local pattern=$1; shift
    ! "$@" >"$work/out" 2>&1 || fail "$*: it succeeded: $(cat "$work/out")"
    grep -qE -- "$pattern" "$work/out" || fail "\"$(cat "$work/out")\" lacks \"$pattern\""
    ok "$(cat "$work/out")"
}
guest_worker() { # name, arguments of kedge-probe...
    worker_by "$1" "${guest[@]}" KEDGE_SOCKET="$work/a.sock" "$work/worker/kedge-probe" "${@:2}"
}

is '[["default","running"]]' "there is the agent's own pool" "$pools"
ctl tenant create guests uids=65533
ctl node label node-a zone=x
ctl node label node-b zone=x
threads_before=$(threads)

# Made while a worker of the own one reads.
export_text b "of the own pool"
own_token=$token
worker own reader "$own_token" "of the own pool"
own=$worker
ctl pool create batch nodes=zone=x tenants=guests sessions_ahead=3 arenas_ahead=3 mr_lease_ms=4000 \
    service_level=5 traffic_class=32 flow_label=99 pkey_index=1 mtu=1024
is '[["default","running"],["batch","running"]]' "a pool is made" "$pools"
is '[3,3,4000,"metaserver",""]' "as it is said" \
    '.pools[1] | [.sessions_ahead, .arenas_ahead, .mr_lease_ms, .from, .why]'
is '"service level 5, traffic class 32, flow label 99, P_Key index 1, MTU 1024"' \
    "with a service of its own, which soft wants of all that is made in it" \
    '.pools[1].service'
is true "and the agent's own pool has the device's" \
    '.pools[0].service | startswith("service level 3, traffic class 104, ")'
says '[1024]' "its endpoint takes the pool's MTU" "[.endpoints[] | select(.pool != 1) | .mtu]"
is '[3,3]' "and so much is ready" '.pools[1] | [.sessions.ready, .memory.arenas_ahead]'
says 2 "the metaserver knows this node in both" '[.endpoints[].pool] | unique | length'
says '["",false]' "all of it is in force" '[.applied.why, .applied.behind]'
number=$(node | jq '[.endpoints[].pool] | max')
"$bin/rdmactl" --agent-socket "$work/a.admin" agent status >"$work/out"
shows '^pools +default +batch *$'
shows "^number +1 +$number *\$"
shows '^state +running +running *$'
shows '^tenants +workers +guests *$'
! grep -q 'qp_broken' "$work/out" || fail "rdmactl agent status shows a counter that is 0"
(($(threads) == threads_before + 1)) ||
    fail "a pool has a thread: $(threads), $threads_before before"

# A worker gets its tenant's pool, and no other.
for _ in $(seq $((1200 * slow))); do
    ! as_guest b kedge-probe connect node-a >"$work/out" 2>&1 || break
    sleep 0.05
done
grep -q '^connected in' "$work/out" ||
    fail "no worker of that pool connects to the other node: $(cat "$work/out")"
mkfifo "$work/hold-guest"
exec 8<>"$work/hold-guest" # nobody writes there
guest_exports() { # on node-b; sets $exporter and $batch_token
    : >"$work/token-guest"
    "${guest[@]}" KEDGE_SOCKET="$work/b.sock" "$work/worker/export_region" "of the other pool" \
        <&8 >"$work/token-guest" 2>"$work/export-guest.log" &
    exporter=$!
    worker_pids+=("$exporter")
    for _ in $(seq $((1200 * slow))); do [[ ! -s $work/token-guest ]] || break; sleep 0.05; done
    batch_token=$(cat "$work/token-guest")
    [[ -n $batch_token ]] || fail "the worker that exports: $(cat "$work/export-guest.log")"
}
guest_exports
guest_worker batch reader "$batch_token" "of the other pool"
in_batch=$worker
grep -q served "$work/batch.out" || fail "the worker of the pool: $(cat "$work/batch.out")"
ok "a worker of the pool reads over it: $(cat "$work/batch.out")"
is '[["batch","guests"],["default","workers"]]' "each is where it belongs" \
    '[.sessions_list[] | [.pool, .tenant]] | sort'
answers "is in pool number 1 and this session in $number" as_guest a read_region "$own_token"
answers "is in pool number $number and this session in 1" \
    env KEDGE_SOCKET="$work/a.sock" "$bin/read_region" "$batch_token"
"$bin/rdmactl" --agent-socket "$work/b.admin" lease list -o json >"$work/out"
[[ $(jq -c '[.leases[] | [.pool, .period_ms]] | sort | .[0]' "$work/out") == '["batch",4000]' ]] ||
    fail "the leases: $(cat "$work/out")"
ok "each pool's regions have its lease period"

# One window of the device for both: who has nothing to do lends most of its part.
parts='[.pools[].device_window.limit_ops]'
ctl window create link scope=device ops=16
is '[8,8]' "a window of the device is shared equally" "$parts"
while
    "$bin/kedge-perf" read --depth 64 --count 20000 --socket "$work/a.sock" \
        --peer-socket "$work/b.sock"
do
    :
done >"$work/load.out" 2>&1 &
load=$!
worker_pids+=("$load")
is '[15,1]' "while one pool alone has much to do, it has most of it" "$parts"
kill "$load"
is '[8,8]' "and each has its half again afterwards" "$parts"
ctl window delete link
is '[null,null]' "without a window there are no parts" "$parts"

# Grown and shrunk; one that cannot be made is said.
ctl pool set batch sessions_ahead=9 arenas_ahead=9
is '[9,9]' "it grows" '.pools[1] | [.sessions.ready, .memory.arenas_ahead]'
ctl pool set batch sessions_ahead=1 arenas_ahead=1
is '[1,1]' "and shrinks" '.pools[1] | [.sessions.ready, .memory.arenas_ahead]'
ctl pool set batch mr_lease_ms=3000
says true "what needs the pool to be made anew is said" '.applied.why |
    contains("pool batch: mr_lease_ms 3000 needs the pool to be made anew (4000 in force)")'
ctl pool set batch mr_lease_ms=4000
ctl pool set batch traffic_class=40
says true "another service too" '.applied.why |
    contains("pool batch: another service needs the pool to be made anew " +
        "(service level 5, traffic class 32")'
ctl pool set batch traffic_class=32
ctl pool create rough nodes=all service_level=9
says true "a service that the device lacks is said" \
    '.applied.why | contains("pool rough: service_level 9: on Ethernet it is a priority, 0 to 7")'
ctl pool delete rough
ctl pool create hasty nodes=all mr_lease_ms=10
in_part='it is not in force, or in part: mr_lease_ms is too short for this device'
shows "^note: pool hasty: on node node-a $in_part"
shows "^note: pool hasty: on node node-b $in_part"
ok "who sets it hears so at once"
ctl pool get hasty
shows '^in force on 0 of 2 nodes:$'
shows '^node-a +no, or in part +mr_lease_ms is too short for this device'
ctl pool get batch
shows '^in force on 2 of 2 nodes$'
ctl pool get batch -o wide
shows '^node-a +yes +-$'
ok "and who looks at it sees on which nodes it is in force, and why not on others"
says true "one that cannot be made is said" \
    '.applied.why | contains("pool hasty: mr_lease_ms is too short for this device")'
# Each change has it tried again, at once.
tries() { grep -c 'a pool cannot be made.* pool=hasty' "$work/a.log"; }
try_again() {
    local n had
    for n in 11 12 13; do
        had=$(tries)
        ctl pool set hasty mr_lease_ms=$n
        becomes true "tried again" tries ". > $had"
    done
}
taken=$(<"$work/state-a/incarnation")
try_again
[[ $(<"$work/state-a/incarnation") == "$taken" ]] ||
    fail "tries take incarnations: $taken, then $(<"$work/state-a/incarnation")"
ok "tried $(tries) times, it takes no incarnation"
ctl pool set hasty mr_lease_ms=4000
says true "it is made when it can be" '[.endpoints[].pool] | unique | length == 3'
ctl pool set hasty nodes=zone=none
is '[["default","running"],["batch","running"]]' "and given up" "$pools"
had=$(tries)
ctl pool set hasty nodes=zone=x mr_lease_ms=10
becomes true "its next life cannot be made" tries ". > $had"
for _ in $(seq $((1200 * slow))); do # as many as before are kept ahead of it: beside the loop
    anew=$(<"$work/state-a/incarnation")
    ((anew == taken)) || break
    sleep 0.05
done
((anew > taken)) || fail "a next life takes no incarnation: $taken, then $anew"
try_again
[[ $(<"$work/state-a/incarnation") == "$anew" ]] ||
    fail "tries of a next life take incarnations: $anew, then $(<"$work/state-a/incarnation")"
ok "of its next life all tries together take one"
ctl pool set hasty mr_lease_ms=4000
says true "and it is made when it can be" '[.endpoints[].pool] | unique | length == 3'
[[ $(<"$work/state-a/incarnation") == "$anew" ]] ||
    fail "made, it took another one: $anew, then $(<"$work/state-a/incarnation")"
ctl pool delete hasty
says '""' "and no more when it is not wanted" .applied.why
ctl pool create double nodes=all number=1
says true "one with the own pool's number is none" \
    '.applied.why | contains("pool double: it has the number of the agent")'
ctl pool delete double
for n in 1 2 3 4 5 6 7; do ctl pool create "many$n" nodes=all sessions_ahead=1 arenas_ahead=1; done
says true "more than 8 are not made" \
    '.applied.why | contains("this agent has as many pools as it can have (8)")'
is 8 "8 are" '.pools | length'
for n in 1 2 3 4 5 6 7; do ctl pool delete "many$n"; done
is '[["default","running"],["batch","running"]]' "those that are given up go" "$pools"
says '""' "and nothing is wanted in vain" .applied.why

# Made anew on the other node, it is reached there by who knew its former life.
endpoints_of_b() {
    "$bin/rdmactl" --server "$url" node get node-b -o json | jq -c '.endpoints | length'
}
kill "$exporter" "$in_batch"
ctl node label node-b zone=y
becomes 1 "the other node gives it up" endpoints_of_b .
ctl node label node-b zone=x
becomes 2 "and makes it anew" endpoints_of_b .
guest_exports
as_guest a read_region "$batch_token" >"$work/out" 2>&1 &&
    grep -q "^of the other pool" "$work/out" ||
    fail "its new life is not reached: $(cat "$work/out")"
guest_worker batch reader "$batch_token" "of the other pool"
in_batch=$worker
ok "its new life is reached: $(cat "$work/batch.out")"

# Given up while a worker of it reads: that one goes on, and no more come.
ctl node label node-a zone=y
is '[["default","running"],["batch","leaving"]]' "given up, it waits for its worker" "$pools"
answers 'tenant guests belongs to pool batch, which node node-a is giving up' \
    as_guest a kedge-probe vqps 1
sleep 0.3
goes_on "$in_batch" "$(cat "$work/batch.out")"
ctl node label node-a zone=x
is '[["default","running"],["batch","running"]]' "wanted again, it stays" "$pools"
ctl node label node-a zone=y
is '[["default","running"],["batch","leaving"]]' "given up once more" "$pools"
kill "$in_batch"
is '[["default","running"]]' "it is gone when its worker is" "$pools"
[[ $(wc -l <"$work/batch.out") == 1 ]] || fail "its worker had failures: $(cat "$work/batch.out")"
says 1 "the metaserver knows it no more" '[.endpoints[].pool] | unique | length'
answers 'tenant guests belongs to pool batch, which node node-a does not have' \
    as_guest a kedge-probe vqps 1
(($(threads) == threads_before)) || fail "it has left a thread: $(threads), $threads_before before"

# The metaserver knows it, and the agent knows that: until then workers are told to try again.
is_made() { # sentence
    says 2 "$1" '[.endpoints[].pool] | unique | length'
    is '[["default","running"],["batch","running"]]' "and takes workers" "$pools"
}

# With a time for its workers.
ctl pool set batch grace_ms=300
ctl node label node-a zone=x
is_made "it is there again"
guest_worker late watch
grep -q '^attached' "$work/late.out" || fail "the worker: $(cat "$work/late.out")"
late=$worker
ctl pool delete batch
is '[["default","running"]]' "deleted, its workers have their time" "$pools"
wait "$late" || true
grep -q 'takes the pool away' "$work/late.out" || fail "the worker: $(cat "$work/late.out")"
ok "$(tail -n 1 "$work/late.out")"

# Without a time for its workers it can be hurried while it waits for them; deleted, it
# stays as it was.
waits_for() { # what the worker's output is named
    ctl node label node-a zone=x
    is_made "it is there"
    guest_worker "$1" watch
    grep -q '^attached' "$work/$1.out" || fail "the worker $1: $(cat "$work/$1.out")"
    ctl node label node-a zone=y
    is '[["default","running"],["batch","leaving"]]' "given up, it waits for its worker" "$pools"
}
is_ended() { # likewise
    is '[["default","running"]]' "with less time than it has had it goes at once" "$pools"
    wait "$worker" || true
    grep -q 'takes the pool away' "$work/$1.out" || fail "the worker: $(cat "$work/$1.out")"
    ok "$(tail -n 1 "$work/$1.out")"
}
ctl pool create batch nodes=zone=x tenants=guests
waits_for hurried
ctl pool set batch grace_ms=3600000
says false "told that its worker has an hour" .applied.behind
goes_on "$worker" "$(cat "$work/hurried.out")"
is '[["default","running"],["batch","leaving"]]' "with an hour it waits still" "$pools"
ctl pool set batch grace_ms=0
is_ended hurried
ctl pool delete batch
ctl pool create batch nodes=zone=x tenants=guests
waits_for deleted
ctl pool delete batch
says false "deleted" .applied.behind
is '[["default","running"],["batch","leaving"]]' "it waits still" "$pools"
goes_on "$worker" "$(cat "$work/deleted.out")"
ctl pool create batch nodes=zone=none tenants=guests grace_ms=0
is_ended deleted
ctl pool delete batch

# Again and again, with a worker each time: nothing is left.
again() {
    ctl pool create batch nodes=all tenants=guests sessions_ahead=2 arenas_ahead=2 grace_ms=1
    is_made "made"
    guest_worker again watch
    grep -q '^attached' "$work/again.out" || fail "the worker: $(cat "$work/again.out")"
    ctl pool delete batch
    is '[["default","running"]]' "gone" "$pools" >/dev/null
    wait "$worker" || true
}
again
is '[16,16]' "what the own pool keeps ready is there" \
    '.pools[0] | [.sessions.ready, .memory.arenas_ahead]'
left_before=$(descriptors)
for _ in 1 2 3 4 5 6 7 8; do again; done
is '[16,16]' "and still is" '.pools[0] | [.sessions.ready, .memory.arenas_ahead]'
for _ in $(seq $((600 * slow))); do (($(descriptors) > left_before)) || break; sleep 0.1; done
(($(descriptors) <= left_before)) ||
    fail "descriptors: $(descriptors), $left_before before: $(ls -l "/proc/${pids[a]}/fd")"
(($(threads) == threads_before)) || fail "threads: $(threads), $threads_before before"
ok "made and given up 9 times, it left nothing: $left_before descriptors, $threads_before threads"
goes_on "$own" "$(cat "$work/own.out")"
[[ $(wc -l <"$work/own.out") == 1 ]] ||
    fail "the own pool's worker had failures: $(cat "$work/own.out")"
ok "the own pool's worker read all the while: $(cat "$work/own.out")"

# After a restart without a metaserver.
ctl pool create batch nodes=all tenants=guests sessions_ahead=2 arenas_ahead=2
says '[2,false]' "there are two" '[([.endpoints[].pool] | unique | length), .applied.behind]'
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
is '[["default","running"],["batch","running"]]' "both are there without any metaserver" "$pools"
guest_worker left watch
is '[["batch","guests"]]' "and workers get them" '[.sessions_list[] | [.pool, .tenant]]'
metad_configure
daemon_start metad kedge-metad || fail "the metaserver does not start again"
says '[2,false]' "and are registered when it is back" \
    '[([.endpoints[].pool] | unique | length), .applied.behind]'
stop
