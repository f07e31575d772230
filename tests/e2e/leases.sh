#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Memory of short-lived workers is used again and again while remote workers READ and WRITE on under
# the old keys, also while the remote workers' agent (and so its lane) is stopped at any moment for
# longer than a lease, and while an operator revokes regions, half of the times by force: nothing is
# executed on memory after its owner, or the operator, was told that nobody reaches it, and nobody
# fails but by what the operator's reports name.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
ms=${LEASES_MS:-5000} long_ms=${LEASES_LONG_MS:-4000}

lend() { # what ms [options]
    timeout 300 "$bin/kedge-stress" leases --socket "$work/a.sock" --peer "$work/b.sock" \
        --seed "$LEASES_SEED" --ms "$2" --rdmactl "$bin/rdmactl" --admin "$work/b.admin" "${@:3}" \
        >"$work/leases.out" 2>&1 &
    local stress=$!
    worker_pids+=("$stress")
    stop_lanes_while "$stress" a b
    wait "$stress" || fail "$1: $(cat "$work/leases.out")"
    ok "$1: $(cat "$work/leases.out"); lanes were stopped $stops times"
}
more_pool=$shortest
start
if [[ $provider != soft ]]; then # what is late may end in any way there
    # A lane that stands still inside the driver's own call, where nobody can look at the
    # clock any more, is left with the rule: for less than bound and slack, which are 144 ms
    # of the lease here.
    longer=1 span=4 further=0
    lend "the shortest lease" "$ms"
    stop
    exit
fi
lend "the shortest lease" "$ms" --deadlines
cluster_stop || fail "the cluster did not stop"
# who takes away too early meets requests that are under way, which is rare under the shortest
more_pool='mr_lease = 100ms'
start
lend "a longer lease" "$long_ms" --deadlines --breaks
cluster_stop || fail "the cluster did not stop"
more_fabric='fault = answer_loss=0.05%' # of requests that were carried out
start
lend "a device that loses answers" "$long_ms"
stop
