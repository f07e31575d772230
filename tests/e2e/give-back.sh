#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A worker gives all the regions that a session can have back in the time of one lease, on a device
# that keeps deadlines and on one that does not (where each has a registration of its own), and
# others of its requests go on meanwhile.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
more_pool='mr_lease = 2s'
most=$((10000 * slow)) # five leases; 22 requests one after the other were 44 s, 40 regions 80 s

gives_back() { # mode how many what
    KEDGE_SOCKET=$work/a.sock timeout 300 "$bin/kedge-give-back" "$1" "$2" >"$work/gone" ||
        fail "$3: $(cat "$work/gone")"
    local ms
    ms=$(sed -n 's/.*gone in \([0-9]*\) ms$/\1/p' "$work/gone")
    ((ms >= 2000)) || fail "$3: they were said to be gone after $ms ms, before the lease was over"
    ((ms < most)) ||
        fail "$3: it took $ms ms, as if requests had waited for leases one after the other"
    ok "$3 ($(cat "$work/gone"))"
}
all() {
    start
    gives_back together 256 "256 regions $1 are given back in the time of one lease"
    gives_back later 200 "200 $1 go while other things are asked for"
    grep -q '^[1-9]' "$work/gone" || fail "nothing was answered meanwhile: $(cat "$work/gone")"
    is "$(ctl lease list -o json | jq '.leases | length')" 0 "and none is left"
}
all "of a device that keeps deadlines"
[[ $provider == soft ]] || {
    skip "regions with registrations of their own, and fences that fail: by injection on soft alone"
    stop
    exit
}
cluster_stop || fail "the cluster did not stop"
more_fabric='fault = fence_error=80%, seed=5'
start
# Of one batch one fence is asked for, which the device is able to say in one of five.
for _ in $(seq 9); do
    gives_back together 40 \
        "a device that mostly cannot say whether remote operations are over is asked until it can"
    ! grep -q 'the device cannot say whether remote operations are over' "$work/a.log" || break
done
grep -q 'the device cannot say whether remote operations are over' "$work/a.log" ||
    fail "and the log does not say so"
ok "and the log says so"
cluster_stop || fail "the cluster did not stop"
more_fabric='fault = deadlines=off'
all "with registrations of their own"
stop
