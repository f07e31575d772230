#!/usr/bin/env bash
# Memory of short-lived workers is used again and again while remote workers go on under the old keys, also while the
# remote workers' agent (and so its lane) is stopped at any moment for longer than a lease: nothing is executed on
# memory after its owner was told that it is free.
source "$(dirname "$0")/lib.sh"
needs_built kedge-stress
ms=${LEASES_MS:-12000} RANDOM=${LEASES_SEED:=$RANDOM}
echo "seed $LEASES_SEED (LEASES_SEED repeats the moments)"
# The shortest lease that the device can keep with time-outs that it can live with (agents on soft refuse 18 ms:
# main-job-perf.sh); pauses grow with it.
more_pool='mr_lease = 19ms' longer=1
if [[ $provider != soft ]]; then more_fabric='ack_timeout = 10' more_pool='mr_lease = 300ms' longer=4; fi
start
timeout 300 "$bin/kedge-stress" leases --socket "$work/a.sock" --peer "$work/b.sock" --seed "$LEASES_SEED" --ms "$ms" \
    >"$work/leases.out" 2>&1 &
stress=$!
worker_pids+=("$stress")
stops=0
while kill -0 "$stress" 2>/dev/null; do
    sleep "0.0$((RANDOM % 9 + 1))"
    which=a; ((RANDOM % 8)) || which=b
    kill -STOP "${pids[$which]}"
    pause=$((longer * (10 * (RANDOM % 7 + 3) + 100 * (RANDOM % 2))))
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    kill -CONT "${pids[$which]}"
    stops=$((stops + 1))
done
wait "$stress" || fail "$(cat "$work/leases.out")"
ok "$(cat "$work/leases.out"); lanes were stopped $stops times"
stop
