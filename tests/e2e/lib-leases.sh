# SPDX-License-Identifier: Apache-2.0
# What the tests of leases share. Sourced after lib.sh.
needs_built kedge-stress kedge-probe
RANDOM=${LEASES_SEED:=$RANDOM}
echo "seed $LEASES_SEED (LEASES_SEED repeats the moments)"
# The shortest period that the device can keep with time-outs that it can live with (agents on soft
# refuse 18 ms: main-job-perf.sh); pauses grow with it.
shortest='mr_lease = 19ms'
longer=1 span=7 further=100 # of pauses, in ms: longer * (30 to 20 + 10 * span, or further more)
if [[ $provider != soft ]]; then
    more_fabric='ack_timeout = 10' shortest='mr_lease = 300ms' longer=4
fi
# Of kedge-stress revoke: workers beside, who WRITE too. A WRITE behind a READ that a device refused
# may end with an error (docs/failures.md#queue-pairs-that-break), and nothing else of them.
writes=()
[[ $transport != rc && $provider == soft ]] || writes=(--writes)

ctl() { timeout 60 "$bin/rdmactl" --agent-socket "$work/a.admin" "$@"; }
is() { [[ $1 == "$2" ]] || fail "$3: $1, not $2"; ok "$3"; }
refuses() { # exit-code pattern words...
    local code=0 wanted=$1 pattern=$2; shift 2
    ctl "$@" >"$work/said" 2>&1 || code=$?
    [[ $code == "$wanted" ]] && grep -Eq -- "$pattern" "$work/said" ||
        fail "rdmactl $* exits with $code and says $(cat "$work/said")"
    ok "rdmactl $* exits with $code: $(tail -n 1 "$work/said")"
}

# Sets seen: the first lease of each of a's workers, in the order in which they were started, which
# is not that of their sessions' numbers.
find_first_leases() {
    local list pid
    list=$(timeout 60 "$bin/rdmactl" --agent-socket "$work/a.admin" worker list -o json) seen=()
    for pid in "${worker_pids[@]}"; do
        seen+=("$(jq -r --argjson pid "$pid" '.workers[] | select(.pid == $pid).id' <<<"$list")-1")
    done
}

# Starts workers of a's that export "number 2" up to "number LAST", one after the other; their
# tokens are in $work/token-2 and so on.
export_numbers() { # last
    local i
    mkfifo "$work/hold-numbers"
    exec 8<>"$work/hold-numbers" # nobody writes there: they wait until they are ended
    for i in $(seq 2 "$1"); do
        KEDGE_SOCKET=$work/a.sock "$bin/export_region" "number $i" \
            <&8 >"$work/token-$i" 2>/dev/null &
        worker_pids+=($!)
        for _ in $(seq 1200); do [[ ! -s $work/token-$i ]] || break; sleep 0.05; done
        [[ -s $work/token-$i ]] || fail "worker $i exports nothing"
    done
}

# While a process runs: stops agents at any moment, and with them their lanes, for longer than a
# lease. Sets $stops.
stop_lanes_while() { # pid agent...: the first one most often
    local pid=$1 which pause
    shift
    stops=0
    while kill -0 "$pid" 2>/dev/null; do
        sleep "0.0$((RANDOM % 9 + 1))"
        which=$1; ((RANDOM % 8)) || which=${*: -1}
        kill -STOP "${pids[$which]}"
        pause=$((longer * (10 * (RANDOM % span + 3) + further * (RANDOM % 2))))
        sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
        kill -CONT "${pids[$which]}"
        stops=$((stops + 1))
    done
}
