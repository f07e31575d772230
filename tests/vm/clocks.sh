#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three metaservers that share a store in etcd, three agents and what they are asked, in a guest
# whose clock is set by seconds and by days, forward and back, between other faults
# (tests/e2e/faults.sh): nothing depends on what the time of day is. The history is checked in the
# guest, and by porcupine here.
#
#   clocks.sh BUILD_DIRECTORY       77, and the reason, when no guest can be booted here
#
# CLOCKS_FAULTS: how many faults (8), each second one of the clock; CLOCKS_SEED: which ones (3).
# VM_LOGS names a directory that keeps what the guest prints, and the logs of what ran there.
set -euo pipefail
build=$(readlink -f "${1:?build directory}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}
mkdir -p "$out"
rm -rf "$out/log" "$out/kept"
cat >"$work/guest.sh" <<GUEST
for module in bridge veth; do modprobe -d "\$MODULES" \$module; done
mkdir /out/kept
export KEDGE_TEST_SLOW=10 FAULTS_CLOCKS=yes FAULTS_KEEP=/out/kept
export FAULTS=${CLOCKS_FAULTS:-8} FAULTS_SEED=${CLOCKS_SEED:-3}
cd /tmp # on the guest's own tmpfs
bash "$here/../e2e/faults.sh" "$build" >/out/log 2>&1
GUEST
status=0
VM_TIMEOUT_S=${VM_TIMEOUT_S:-3000} VM_MEM_MIB=${VM_MEM_MIB:-2048} \
    "$here/run-vm" "$work/guest.sh" "$out" || status=$?
[[ -e $out/log ]] || exit "$status"
cat "$out/log"
# There is a guest: nothing in it is a reason to skip.
((status == 0)) || exit 1
porcupine=$("$here/../history/porcupine.sh" "$build") || {
    echo "$porcupine"
    [[ $porcupine == skip:* ]] || exit 1
    exit 0
}
"$porcupine" "$out/kept/history.jsonl" || {
    echo "FAILED: porcupine does not take the history"
    exit 1
}
