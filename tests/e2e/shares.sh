#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What all tenants of an agent have together, one of them cannot have alone: of regions, and of
# those with KEDGE_MR_FENCED, each other tenant gets its part, whatever the first one takes.
source "$(dirname "$0")/lib.sh"
needs_built kedge-probe
other=$(mktemp -d /tmp/kedge-shares-XXXXXX)
trap 'cleanup; rm -rf "$other"' EXIT
agents=1 more_pool=$'fenced_regions = 16\nmax_mrs = 64'
more_tenants="[tenant other]
socket = $other/other.sock"
start
takes() { # socket what how-many: a worker that keeps them until it is killed; sets $got
    rm -f "$work/took"
    KEDGE_SOCKET=$1 "$bin/kedge-probe" "$2" "$3" >"$work/took" 2>&1 &
    worker_pids+=($!)
    for _ in $(seq $((1200 * slow))); do
        got=$(sed -n 's/^\([0-9]*\), then: .*/\1/p' "$work/took" 2>/dev/null) || true
        [[ -z $got ]] || return 0
        sleep 0.05
    done
    fail "no $2: $(cat "$work/took")"
}
takes "$work/a.sock" fenced 20
[[ $got == 12 ]] ||
    fail "of 16 fenced regions one of two tenants gets $got: $(tail -n 1 "$work/took")"
grep -q 'fenced_regions in \[pool\]' "$work/took" || fail "it is told $(tail -n 1 "$work/took")"
takes "$other/other.sock" fenced 20
[[ $got == 4 ]] ||
    fail "when one tenant has taken what it gets of 16 fenced regions, another gets $got"
ok "a quarter of fenced_regions is kept for the other one of two tenants"
takes "$work/a.sock" regions 70
[[ $got == 36 ]] ||
    fail "of 64 regions one of two tenants gets $got beside 12: $(tail -n 1 "$work/took")"
grep -q 'raise max_mrs in \[pool\]' "$work/took" || fail "it is told $(tail -n 1 "$work/took")"
ok "who takes all that it gets is told: $(sed 's/^[0-9]*, then: //' "$work/took")"
takes "$other/other.sock" regions 70
[[ $got == 12 ]] ||
    fail "when one tenant has taken what it gets of 64 regions, another gets $got beside 4:" \
        "$(tail -n 1 "$work/took")"
ok "and a quarter of max_mrs"
stop
rm -rf "$other"
