#!/usr/bin/env bash
# Memory of short-lived workers is used again and again while remote workers go on under the old keys, also while the
# remote workers' agent (and so its lane) is stopped at any moment for longer than a lease: nothing is executed on
# memory after its owner was told that it is free.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
ms=${LEASES_MS:-12000}
more_pool=$shortest
start
timeout 300 "$bin/kedge-stress" leases --socket "$work/a.sock" --peer "$work/b.sock" --seed "$LEASES_SEED" --ms "$ms" \
    >"$work/leases.out" 2>&1 &
stress=$!
worker_pids+=("$stress")
stop_lanes_while "$stress" a b
wait "$stress" || fail "$(cat "$work/leases.out")"
ok "$(cat "$work/leases.out"); lanes were stopped $stops times"
stop
