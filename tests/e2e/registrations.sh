#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that registers one region after the other, for some ms each, and a tenant whose 120
# sessions all register regions at all times: another tenant's registration stands behind few of
# them. What is counted is what the device did meanwhile, since times are the machine's.
source "$(dirname "$0")/lib.sh"
needs_built kedge-hostile
[[ $(id -u) == 0 ]] || { skip "two users are needed, and only root can be both"; exit 77; }
[[ $provider == soft ]] || { skip "the device's own time is what it is"; exit 77; }
agents=1 worker_uids=65534
honest="setpriv --reuid 65534 --clear-groups" guilty="setpriv --reuid 65533 --clear-groups"
more_fabric='fault = deadlines=off, register=2'
more_pool='regions_ahead = 0'
more_tenants='[tenant guilty]
uids = 65533
sessions = 120
memory = 1GiB'
start
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-hostile" "$bin"/../lib/libkedge.so* "$work/worker/"
chmod -R a+rX "$work/worker"
export LD_LIBRARY_PATH=$work/worker
hostile="$work/worker/kedge-hostile"

registered() { agent_metric a fenced_registered_total; }
# Registers some and gives them back; sets $said, and $each: how many regions the device registered
# for one of them.
register_some() {
    local before
    before=$(registered)
    said=$(timeout 600 $honest "$hostile" registrar --socket "$work/a.sock" --ms 1000 2>&1) ||
        fail "the honest worker: $said"
    each=$((($(registered) - before) / $(sed -n 's/^registrar: did \([0-9]*\),.*/\1/p' <<<"$said")))
}
register_some
ok "alone: $(grep ^p50 <<<"$said"), and the device registers $each for each of them"
setsid $guilty "$hostile" regions --socket "$work/a.sock" --ms 600000 >"$work/attack.log" 2>&1 &
worker_pids+=($!)
for _ in $(seq 1200); do
    (($(agent_metric a own_registrations) < 1000)) || break
    kill -0 "${worker_pids[0]}" 2>/dev/null || fail "it ended: $(cat "$work/attack.log")"
    sleep 0.1
done
(($(agent_metric a own_registrations) >= 1000)) ||
    fail "the other tenant has $(agent_metric a own_registrations) registrations alone"
register_some
# Four of the other's stand before it at the device, and some more are done while the worker or the
# agent does not run.
((each < 60)) || fail "the device registered $each regions for each of the honest worker's: $said"
ok "beside 120 of another tenant: $(grep ^p50 <<<"$said")," \
    "and the device registers $each for each of them"
kill -0 "${worker_pids[0]}" 2>/dev/null || fail "it ended: $(cat "$work/attack.log")"
$honest "$hostile" attacher --socket "$work/a.sock" --ms 1000 >"$work/attacher" 2>&1 ||
    fail "attaching beside it: $(cat "$work/attacher")"
ok "attaching beside it: $(head -n 1 "$work/attacher")"

# Its sessions end in the middle of it, and nothing of them is left.
kill -KILL -- "-${worker_pids[0]}"
until_is 0 "sessions that end leave the queue" agent_metric a own_registrations
stop
