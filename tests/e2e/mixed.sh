#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that workers can do, of two agents at once (mixer.c), while an operator kills workers and
# agents, takes leases away, changes settings and cuts the way, on devices that lose answers: each
# completion and each message comes once, each byte READ, heard and left is the right one, and
# nothing is left of anybody.
#
#   mixed.sh BUILD_DIRECTORY
#
# Environment: MIXED_PLANTS (set: instead of that, what workers do wrong on purpose is found),
# MIXED_S (seconds; 8, 60 where machines are slow, and 120 with KEDGE_TEST_LONG), MIXED_SEED (of
# what the operator does, and when), MIXED_DRIVERS (of each who serves; 3, and 2 where machines are
# slow).
source "$(dirname "$0")/lib.sh"
needs_built kedge-mixer
RANDOM=${MIXED_SEED:=$RANDOM} seed=$MIXED_SEED
echo "seed $seed (MIXED_SEED repeats what is done)"
seconds=${MIXED_S:-$([[ -n ${KEDGE_TEST_LONG-} ]] && echo 120 || echo $((slow > 1 ? 60 : 8)))}
drivers=${MIXED_DRIVERS:-$((slow > 1 ? 2 : 3))}
export MIXER_PATIENCE_MS=$((slow > 1 ? 180000 : 60000))
[[ -z ${MIXER_PLANT-} ]] || MIXER_PATIENCE_MS=10000 # of which one loses a completion
# An agent that begins anew has the address that it had.
[[ $provider != soft ]] || gids=(fd00::{0..8})
agents=0
start
agents=2
ctl() { timeout $((60 * slow)) "$bin/rdmactl" --server "$url" "$@" >"$work/said" 2>&1; }
status() { "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json; }
declare -A other=([a]=b [b]=a) did=()
begins() { # agent
    local peer=${gids[$(agent_number_of "${other[$1]}")]}
    mkdir -p -m 0700 "$work/state-$1"
    more_fabric="fault = loss=1%, answer_loss=0.02%, torn=0.02%, cut=$peer, \
cut_while=$work/cut-$1, seed=$((seed + 1))"
    [[ -z ${MIXER_PLANT-} ]] || more_fabric=
    agent_configure "$1" "messages = yes"
    daemon_start "$1" kedge-agentd || fail "agent $1 did not start"
    agent_wait "$1" || fail "agent $1 did not register"
}

# ---- workers, each of which is begun anew when it is killed, or its agent was

keeps() { # name agent mode...: DRIVER LIFE FILE where it drives
    local name=$1 agent=$2 code life=0; shift 2
    trap - EXIT
    while [[ ! -e $work/over ]]; do
        life=$((life + 1))
        KEDGE_SOCKET=$work/$agent.sock "$bin/kedge-mixer" "${@/LIFE/$life}" \
            >>"$work/$name.mix" 2>&1 &
        echo $! >"$work/$name.pid"
        code=0
        { wait $! || code=$?; } 2>/dev/null # without the shell's own line
        echo "ended with $code" >>"$work/$name.mix"
        [[ $code == 3 || $code == 137 ]] || break
        sleep 0.1
    done
}
kill_worker() { # name signal
    local pid
    pid=$(cat "$work/$1.pid" 2>/dev/null) || return 0
    kill -"$2" "$pid" 2>/dev/null || true
}
end_workers() {
    local name
    [[ ! -d $work ]] || : >"$work/over"
    for name in "${names_of[@]}"; do kill_worker "$name" KILL; done
    wait "${worker_pids[@]}" 2>/dev/null || true
}
names_of=() driving=()
begins_workers() {
    local agent i from
    for agent in a b; do
        keeps "server-$agent" $agent serve "$work/at-$agent" &
        worker_pids+=($!)
        names_of+=("server-$agent")
        for ((i = 0; i < drivers; i++)); do
            from=${other[$agent]}
            ((i != 2)) || from=$agent # a worker of the same node is one like others
            keeps "driver-$agent-$i" $from drive $i LIFE "$work/at-$agent" &
            worker_pids+=($!)
            names_of+=("driver-$agent-$i")
            driving+=("driver-$agent-$i")
        done
    done
}
fail() {
    echo "FAILED: $*"
    tail -n 5 "$work"/*.mix "$work"/*.log || true
    exit 1
}
judge() {
    local name
    for name in a b; do
        kill -0 "${pids[$name]}" 2>/dev/null || fail "agent $name has ended by itself"
    done
    ! grep -h OFFENCE "$work"/*.mix || fail "an offence"
    ! grep -hE '^ended with ([12]|1[0-24-9].|13[0-68-9])$' "$work"/*.mix ||
        fail "a worker ended otherwise: $(tail -n 3 "$work"/*.mix)"
}
rounds() { grep -c '^round' "$work/$1.mix" || true; }
go_on() { # how many rounds more each drives
    local name have
    declare -A before=()
    for name in "${driving[@]}"; do before[$name]=$(rounds "$name"); done
    for name in "${driving[@]}"; do
        for ((i = 0; i < MIXER_PATIENCE_MS / 50; i++)); do
            have=$(rounds "$name")
            ((have < before[$name] + $1)) || continue 2
            ((i % 20)) || judge
            sleep 0.05
        done
        fail "$name does not go on: $(tail -n 5 "$work/$name.mix")"
    done
}

# ---- the operator

kill_agent() { # name
    kill -KILL "${pids[$1]}" || fail "agent $1 has ended by itself"
    wait "${pids[$1]}" 2>/dev/null || true
    begins "$1"
}
revoke() { # agent [--force]
    local agent=$1 worker pid; shift
    pid=$(cat "$work/server-$agent.pid")
    worker=$(timeout $((60 * slow)) "$bin/rdmactl" --agent-socket "$work/$agent.admin" \
        worker list -o json | jq -r --argjson pid "$pid" '.workers[] | select(.pid == $pid).id')
    [[ -n $worker ]] || return 0 # it begins anew just now
    timeout $((60 * slow)) "$bin/rdmactl" --agent-socket "$work/$agent.admin" \
        lease revoke --worker "$worker" "$@" >"$work/said" 2>&1 ||
        grep -q 'no such\|there is no\|no lease' "$work/said" ||
        fail "leases of $worker are not revoked: $(cat "$work/said")"
}
# Each of the ten once, in random order, before any of them comes again: a slow machine, which has
# time for few, does different ones.
left=()
choose() { # sets $chosen
    local i
    ((${#left[@]} > 0)) || left=(0 1 2 3 4 5 6 7 8 9)
    i=$((RANDOM % ${#left[@]}))
    chosen=${left[i]}
    left=("${left[@]:0:i}" "${left[@]:i+1}")
}
operate() {
    local agent what
    agent=$( ((RANDOM % 2)) && echo a || echo b)
    choose
    case $chosen in
    0 | 1 | 2) what="worker killed" && kill_worker "${driving[RANDOM % ${#driving[@]}]}" KILL ;;
    3) what="server killed" && kill_worker "server-$agent" KILL ;;
    4) what="agent killed" && kill_agent $agent ;;
    5) what=revoked && revoke $agent ;;
    6) what="revoked by force" && revoke $agent --force ;;
    7)
        what="window set"
        ctl window set all scope=device ops=$((4 + RANDOM % 60)) || fail "$(cat "$work/said")"
        ;;
    8)
        what="tenant set"
        ctl tenant set workers uids="$(id -u)" vqps=$((200 + RANDOM % 99)) ||
            fail "$(cat "$work/said")"
        ;;
    9)
        what="way cut"
        : >"$work/cut-$agent"
        sleep 0.$((RANDOM % 9 + 1))
        rm "$work/cut-$agent"
        ;;
    esac
    did[$what]=$((${did[$what]-0} + 1))
    ((slow == 1)) || echo "operator: $what, after $((SECONDS - begin)) s of $seconds"
}

# ---- the end: each byte, and nothing is left

ends_well() {
    local name n line said
    for name in "${driving[@]}"; do kill_worker "$name" TERM; done
    for name in "${driving[@]}"; do
        until_is 1 "$name ends its round" grep -c '^driver .*failures' "$work/$name.mix"
    done
    for name in server-a server-b; do
        kill_worker $name TERM
        until_is 1 "$name judges its region" grep -c '^right' "$work/$name.mix"
    done
    : >"$work/over"
    wait "${worker_pids[@]}" || true
    judge
    for name in "${driving[@]}"; do
        line=$(grep '^driver .*failures' "$work/$name.mix")
        read -r _ n _ _ <<<"$line"
        said=${line#driver * } said=${said%%,*}
        name=${name#driver-} name=server-${name%%-*}
        grep -q "^area $n $said\$" "$work/$name.mix" ||
            fail "driver $n of $name ended with $said, and its area has $(
                grep "^area $n " "$work/$name.mix")"
        ok "$line"
    done
    grep -h '^right' "$work"/server-*.mix
    (($(cat "$work"/driver-*.mix | grep -c '^unanswered') <=
        $(cat "$work"/server-*.mix | grep -c '^an answer failed'))) ||
        fail "an answer did not come, and nobody was told that it failed"
}
settled() { # agent
    status "$1" | jq -e '.sessions.live == 0 and .sessions.ending == 0 and .lane.sessions == 0 and
        .lane.vqps == 0 and .lane.mrs == 0 and .lane.inflight == 0 and
        .lane.receives_posted == .pools[0].messages.receives' >/dev/null && echo settled
}

if [[ -n ${MIXED_PLANTS-} ]]; then
    declare -A finds=(
        [byte]="is READ with" [letter]="holds something else" [list]="is heard: block"
        [lose]="no completion" [twice]="none is out" [skip]="came in the place of"
        [add]="the word of" [raise]="the counter of")
    for plant in "${!finds[@]}"; do
        out=$(MIXED_PLANTS= MIXER_PLANT=$plant MIXED_S=3 bash "$0" "$1" 2>&1) &&
            fail "$plant is not found: $out"
        found=$(grep -m 1 "OFFENCE: .*${finds[$plant]}" <<<"$out") ||
            fail "$plant: it fails otherwise: $out"
        ok "$plant is found: $found"
    done
    stop
    exit
fi
begins a
begins b
begins_workers
go_on 3
begin=$SECONDS
while ((SECONDS - begin < seconds)); do
    [[ -n ${MIXER_PLANT-} ]] || operate
    judge
    sleep 0.$((RANDOM % 6 + 1))
    ((slow == 1)) || sleep 2
done
go_on 3
for what in "${!did[@]}"; do echo "operator: $what ${did[$what]} times"; done
ends_well
for name in a b; do
    until_is settled "nothing is left in agent $name" settled $name
done
total=0
for name in "${driving[@]}"; do total=$((total + $(rounds "$name"))); done
ok "$total rounds in $((SECONDS - begin)) s were right, of ${#driving[@]} workers"
stop
