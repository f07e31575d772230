#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers of one tenant register a region, leave and come again, so that sessions that have ended,
# and wait for what peers believe of the region, have all places that the tenant may have. Another
# tenant's workers attach.
source "$(dirname "$0")/lib.sh"
needs_built kedge-hostile kedge-probe
[[ $(id -u) == 0 ]] || { skip "two users are needed, and only root can be both"; exit 77; }
agents=1 worker_uids=65534
honest="setpriv --reuid 65534 --clear-groups" guilty="setpriv --reuid 65533 --clear-groups"
more_pool=$'max_sessions = 64\nmr_lease = 6s' # on an RNIC it is 3s unless it is set
more_tenants=$'[tenant guilty]\nuids = 65533'
start
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-hostile" "$bin/kedge-probe" "$bin"/../lib/libkedge.so* "$work/worker/"
chmod -R a+rX "$work/worker"
export LD_LIBRARY_PATH=$work/worker
for i in 1 2 3 4; do
    $guilty "$work/worker/kedge-hostile" quitter --socket "$work/a.sock" --ms 600000 \
        >"$work/quitter-$i.out" 2>&1 &
    worker_pids+=($!)
done
for _ in $(seq $((600 * slow))); do (($(agent_number a ending) < 48)) || break; sleep 0.02; done
(($(agent_number a ending) >= 48)) ||
    fail "only $(agent_number a ending) sessions are ending: $(cat "$work"/quitter-*.out)"
for _ in $(seq 30); do (($(agent_number a ending) < 60)) || break; sleep 0.1; done
for i in $(seq 16); do # its part
    $honest env "KEDGE_SOCKET=$work/a.sock" "$work/worker/kedge-probe" watch \
        >"$work/honest-$i.out" 2>&1 &
    honest_pids+=($!)
done
for i in $(seq 16); do
    for _ in $(seq $((1200 * slow))); do [[ ! -s $work/honest-$i.out ]] || break; sleep 0.05; done
    [[ $(cat "$work/honest-$i.out") == attached ]] ||
        fail "beside $(agent_number a ending) sessions that are ending," \
            "worker $i: $(cat "$work/honest-$i.out")"
done
ok "16 workers of another tenant attach beside $(agent_number a ending) sessions that have ended"
kill "${honest_pids[@]}"
wait "${honest_pids[@]}" || true
for pid in "${worker_pids[@]}"; do
    kill -0 "$pid" 2>/dev/null ||
        fail "one who comes and goes ended: $(cat "$work"/quitter-*.out)"
done
end_workers
worker_pids=()
until_is 0 "and those end" agent_number a ending
! grep -h "counted wrong" "$work"/*.log || fail "the agent has counted wrong"
stop
