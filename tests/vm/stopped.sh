#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts on SoftRoCE, one of which is stopped with WRITEs under way, as a hypervisor stops a
# machine, while their target is given back: guest-stopped.sh.
#
#   stopped.sh BUILD_DIRECTORY       77, and the reason, when no guest can be booted here
#
# That the check can fail is shown on the double (unit.agent.lane.own, with the lease alone): in
# guests a WRITE was not seen to come late into a region with the lease alone either, which needs
# one that is under way in that very moment.
#
# KEDGE_TEST_LONG: three times, and for KEDGE_MR_LEASE_ONLY too, of which it is told what became.
# VM_LOGS names a directory that keeps what the guests print.
set -euo pipefail
build=$(readlink -f "${1:?build directory}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}
kinds="ordinary fenced" rounds=1
[[ -z ${KEDGE_TEST_LONG-} ]] || kinds="ordinary fenced lease-only" rounds=3
kinds=${KINDS:-$kinds}
mkdir -p "$out"
cat >"$work/guest.sh" <<GUEST
export KINDS="$kinds" SECONDS_STOPPED=${SECONDS_STOPPED:-10}
bash "$here/guest-stopped.sh" "$build" >>/out/log.\$NODE 2>&1
GUEST
for ((round = 0; round < rounds; round++)); do
    rm -rf "$out"/{parts,log,token,stop,stopped}.* "$out/at"
    status=0
    VM_TIMEOUT_S=${VM_TIMEOUT_S:-900} "$here/run-vm" --nodes 2 "$work/guest.sh" "$out" || status=$?
    compgen -G "$out/log.*" >/dev/null || exit "$status"
    for node in 1 2; do
        echo "-- node $node"
        if ((status)); then tail -n 60 "$out/log.$node"; else cat "$out/log.$node"; fi
    done
    # There are guests: nothing in them is a reason to skip.
    ((status == 0)) || exit 1
done
