#!/usr/bin/env bash
# What an honest worker's READs take alone and beside workers of another tenant that ask for as much as they may: control
# operations (nodes that do not exist, tokens that nobody gave, the state of their regions) in full rings, and copies of
# megabytes. In turns; medians of the turns' 99th percentiles. As a test it holds that all of them go on and nobody
# fails. For figures give it a machine of its own: NEIGHBOURS_TURNS=5 NEIGHBOURS_COUNT=200000, and with NEIGHBOURS_MOST=2
# a bound for their ratio.
source "$(dirname "$0")/lib.sh"
needs_built kedge-hostile
[[ $(id -u) == 0 ]] || { skip "two users are needed, and only root can be both"; exit 77; }
[[ $provider == soft ]] || { skip "what is measured is the lane and soft"; exit 77; }
turns=${NEIGHBOURS_TURNS:-${KEDGE_TEST_LONG:+5}} turns=${turns:-1} count=${NEIGHBOURS_COUNT:-5000} most=${NEIGHBOURS_MOST:-}
worker_uids=65534
honest="setpriv --reuid 65534 --clear-groups" guilty="setpriv --reuid 65533 --clear-groups"
more_tenants='[tenant guilty]
uids = 65533
sessions = 64
memory = 1GiB'
# The worker and the attackers on one processor, the lanes on another, if there are two.
cpus=($(taskset -cp $$ | sed 's/.*: //; s/,/ /g' | xargs -n 1 sh -c 'case $0 in *-*) seq $(echo $0 | tr "-" " ");; *) echo $0;; esac'))
beside=() more_pool='sq_slots = 1024'
if ((${#cpus[@]} > 1)); then
    beside=(taskset -c "${cpus[0]}")
    more_pool+=$'\n'"lane_cpu = ${cpus[1]}"
fi
start
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-hostile" "$bin/kedge-perf" "$bin"/../lib/libkedge.so* "$work/worker/"
chmod -R a+rX "$work/worker"
export LD_LIBRARY_PATH=$work/worker

p99() { # of so many READs of 8 bytes, one at a time
    "${beside[@]}" $honest "$work/worker/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" --count "$count" \
        --json 2>"$work/read.log" | jq -e 'if .verified then .p99_ns else error("not the right bytes") end' ||
        fail "the honest worker: $(cat "$work/read.log")"
}
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

bad=0
for attack in ${NEIGHBOURS_ATTACKS:-connects imports statuses greedy}; do
    : >"$work/alone"
    : >"$work/beside"
    for _ in $(seq "$turns"); do
        p99 >>"$work/alone"
        "${beside[@]}" $guilty "$work/worker/kedge-hostile" "$attack" --socket "$work/a.sock" --ms 600000 >"$work/attack.log" 2>&1 &
        attacker=$!
        worker_pids=("$attacker")
        for _ in $(seq 600); do # until it has its sessions
            [[ $(agent_number a sessions) -lt 8 ]] || break
            kill -0 "$attacker" 2>/dev/null || fail "$attack: $(cat "$work/attack.log")"
            sleep 0.1
        done
        sleep 0.5
        p99 >>"$work/beside"
        kill -0 "$attacker" 2>/dev/null || fail "$attack ended: $(cat "$work/attack.log")"
        end_workers
        worker_pids=()
        for _ in $(seq 600); do [[ $(agent_number a sessions) == 0 ]] && break; sleep 0.1; done
    done
    alone=$(median <"$work/alone") with=$(median <"$work/beside")
    ok "$attack: READs have a p99 of $alone ns alone and $with ns beside, $(awk "BEGIN {printf \"%.2f\", $with / $alone}") times that"
    [[ -z $most ]] || awk "BEGIN {exit !($with > $most * $alone)}" && bad=1
done
[[ -z $most || $bad == 0 ]] || fail "more than $most times what they take alone"
stop
