#!/usr/bin/env bash
# Memory of short-lived workers is used again and again while remote workers go on under the old keys, also while the
# remote workers' agent (and so its lane) is stopped at any moment for longer than a lease: nothing is executed on
# memory after its owner was told that it is free.
source "$(dirname "$0")/lib.sh"
needs_built kedge-stress
ms=${LEASES_MS:-12000} RANDOM=${LEASES_SEED:=$RANDOM}
echo "seed $LEASES_SEED (LEASES_SEED repeats the moments)"
more_pool='mr_lease = 25ms'
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
    sleep "0.$((RANDOM % 2))$((RANDOM % 7 + 3))"
    kill -CONT "${pids[$which]}"
    stops=$((stops + 1))
done
wait "$stress" || fail "$(cat "$work/leases.out")"
ok "$(cat "$work/leases.out"); lanes were stopped $stops times"
stop
