#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The metaserver and the agents are killed in the midst of work, in several orders, and started
# again as systemd would: everyone who is left goes on or recovers without a hand, and what was
# exported before is never served.
source "$(dirname "$0")/lib.sh"
needs_built kedge-stress
RANDOM=${RECOVERY_SEED:=$RANDOM} more=${RECOVERY_ROUNDS:-200}
# Who is killed, in which order, and started again in the same one.
IFS=, read -ra orders <<<"${RECOVERY_ORDERS:-metad,b,a,b metad,metad a,a b,a metad b}"
echo "seed $RECOVERY_SEED (RECOVERY_SEED repeats the moments)"
start
# As with any unit: the same port, and, of one of the two agents, the same GID (on verbs of both).
port=${url##*:} metad_configure
if [[ $provider == soft ]]; then
    gid=$("$bin/rdmactl" --agent-socket "$work/b.admin" agent status -o json | jq -r .gid)
    sed -i "s/^device = .*/&\ngid = $gid/" "$work/b.conf"
fi

mkdir "$work/progress"
declare -A stress
work_on() { # name, agent of the one that works, agent of the one that exports
    "$bin/kedge-stress" recover --socket "$work/$2.sock" --peer "$work/$3.sock" --ms 600000 \
        --progress "$work/progress/$1" >"$work/$1.out" 2>&1 &
    stress[$1]=$!
    worker_pids+=($!)
}
work_on ab a b
work_on ba b a
work_on aa a a
work_on bb b b
rounds() { # name
    local n=
    [[ ! -s $work/progress/$1 ]] || read -r n _ <"$work/progress/$1" || true
    echo "$((10#${n:-0}))"
}
# Every pair does so many more rounds; how long the slowest took. What is there without anybody's
# restart takes no time at all, and nothing takes longer than the registrations' renewal (a third of
# node_lease = 10 s) and a few retries; the limit is generous, since machines are slow now and then.
goes_on() { # after what
    local name begin
    declare -A before
    for name in "${!stress[@]}"; do before[$name]=$(rounds "$name"); done
    begin=$(date +%s%N)
    for name in "${!stress[@]}"; do
        for _ in $(seq $((1200 * slow))); do
            kill -0 "${stress[$name]}" 2>/dev/null || fail "$1: $(cat "$work/$name.out")"
            (($(rounds "$name") < before[$name] + more)) || continue 2
            sleep 0.05
        done
        fail "$1: $name stands still at $(rounds "$name") rounds"
    done
    ok "$1: all go on after $((($(date +%s%N) - begin) / 1000000)) ms"
}
incarnation() {
    "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json | jq .incarnation
}
bring_down() {
    kill -KILL "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null || true
}
bring_up() {
    local program=kedge-agentd
    [[ $1 != metad ]] || program=kedge-metad
    daemon_start "$1" "$program" || fail "$1 did not come back"
}

goes_on "in the beginning"
for order in "${orders[@]}"; do
    old_b=$(incarnation b)
    for name in $order; do
        bring_down "$name"
        sleep "0.$((RANDOM % 10))"
    done
    if [[ $order == metad ]]; then
        goes_on "while metad is dead"
    fi
    for name in $order; do
        bring_up "$name"
        sleep "0.0$((RANDOM % 10))"
    done
    if [[ $order == *b* ]]; then
        (($(incarnation b) > old_b)) ||
            fail "b came back with the incarnation $(incarnation b), after $old_b"
    fi
    goes_on "after kill -9 of $order"
done

for name in "${!stress[@]}"; do kill -TERM "${stress[$name]}"; done
refused=0
for name in "${!stress[@]}"; do
    wait "${stress[$name]}" || fail "$name: $(cat "$work/$name.out")"
    ok "$name: $(cat "$work/$name.out")"
    refused=$((refused +
        $(sed -n 's/.* \([0-9]*\) keys of before refused$/\1/p' "$work/$name.out")))
done
worker_pids=()
((refused > 0)) || fail "no key of before was ever tried"
for _ in $(seq 1200); do
    [[ $("$bin/rdmactl" --server "$url" node list -o json |
        jq '[.nodes[] | select(.state == "live")] | length') != 2 ]] || break
    sleep 0.05
done
[[ $("$bin/rdmactl" --server "$url" node list -o json |
    jq '[.nodes[] | select(.state == "live")] | length') == 2 ]] ||
    fail "not both nodes are registered again"
ok "both nodes are registered again"
stop
