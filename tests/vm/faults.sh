#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What befalls agents on a real kernel's SoftRoCE, in one boot of a guest: the port goes down, its
# addresses change, the device is removed, little memory may be locked, other programs use the
# device, connections break again and again, agents are killed.
#
#   faults.sh BUILD_DIRECTORY [PART...]      77, and the reason, when no guest can be booted here
#
# Parts: memlock repair port address perftest killed removed. Of a build with the address sanitizer:
# `repair` alone, with fewer rounds, where the sanitizer looks at the provider. KEDGE_TEST_LONG:
# more rounds. VM_LOGS names a directory that keeps the guest's console and log.
set -euo pipefail
build=$(readlink -f "${1:?build directory}"); shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}
parts=("$@") repairs=1000 kills=3
[[ -z ${KEDGE_TEST_LONG-} ]] || kills=50
if grep -q -a __asan_init "$build/bin/kedge-stress"; then
    ((${#parts[@]})) || parts=(repair)
    repairs=300
fi
((${#parts[@]})) || parts=(memlock repair port address perftest killed removed)
if [[ " ${parts[*]} " == *" perftest "* ]] && ! command -v ib_read_lat >/dev/null; then
    [[ ${KEDGE_TEST_VM-} != required ]] || {
        echo "FAILED: ib_read_lat is not here (ops/packages-test)"
        exit 1
    }
    echo "skip: perftest (apt-get install perftest)"
    parts=("${parts[@]/perftest/}")
fi
mkdir -p "$out"
rm -f "$out/faults.log"
cat >"$work/guest.sh" <<GUEST
ulimit -l unlimited
export REPAIRS=${REPAIRS:-$repairs} KILLS=${KILLS:-$kills} KEDGE_TEST_LONG=${KEDGE_TEST_LONG-}
bash "$here/guest-faults.sh" "$build" ${parts[*]} >/out/faults.log 2>&1
GUEST
status=0 limit=1800
[[ -z ${KEDGE_TEST_LONG-} ]] || limit=3600
VM_TIMEOUT_S=${VM_TIMEOUT_S:-$limit} VM_MEM_MIB=${VM_MEM_MIB:-2048} \
    "$here/run-vm" "$work/guest.sh" "$out" || status=$?
[[ ! -e $out/faults.log ]] || cat "$out/faults.log"
# Some part has run, so there is a guest: that something is missing in it is no reason to skip.
((status != 77)) || [[ ! -e $out/faults.log ]] || status=1
exit "$status"
