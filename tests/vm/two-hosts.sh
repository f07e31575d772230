#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts on SoftRoCE, with RoCE v2 packets between them: the main job from one to the other, then
# over a wire that is cut for a while, loses packets, or is slow; and one of them loses its power
# and boots again.
#
#   two-hosts.sh BUILD_DIRECTORY       77, and the reason, when no guest can be booted here
#
# KEDGE_TEST_LONG: longer cuts, and the power. VM_LOGS names a directory that keeps what
# the guests print.
set -euo pipefail
build=$(readlink -f "${1:?build directory}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}
cuts="1" losses="5" reads=5 limit=1200 power=
[[ -z ${KEDGE_TEST_LONG-} ]] || cuts="1 5 30" losses="1 2 5" reads=50 limit=2400 power=1
# to look at one thing alone
cuts=${CUTS-$cuts} losses=${LOSSES-$losses} reads=${READS:-$reads} power=${POWER-$power}
mkdir -p "$out"
cat >"$work/guest.sh" <<GUEST
export CUTS="$cuts" LOSSES="$losses" READS=$reads POWER=$power
bash "$here/guest-two-hosts.sh" "$build" >>/out/log.\$NODE 2>&1
GUEST
rm -rf "$out"/{parts,log,token,text}.* "$out/at"
status=0
VM_TIMEOUT_S=${VM_TIMEOUT_S:-$limit} "$here/run-vm" --nodes 2 "$work/guest.sh" "$out" || status=$?
compgen -G "$out/log.*" >/dev/null || exit "$status"
for node in 1 2; do
    echo "-- node $node"
    if ((status)); then
        grep -A 5 'FAILED: ' "$out/log.$node" || true # what follows it is longer than what is shown
        tail -n 60 "$out/log.$node"
    else
        cat "$out/log.$node"
    fi
done
sed -n 's/^\[[0-9]* ms\] \(skip: .*\)/\1/p' "$out"/parts.* 2>/dev/null || true
echo "ran: between two guests: the main job, a wire cut for $cuts s, one that loses $losses %," \
    "one that takes 5 ms${power:+, a power cut}"
# There are guests: nothing in them is a reason to skip.
((status != 77)) || status=1
exit "$status"
