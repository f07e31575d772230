#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The fabric's conformance suite on the verbs provider, on a real kernel's SoftRoCE, in one guest: two nodes on one
# device, which reach each other and themselves by its GID.
#
#   conformance.sh BUILD_DIRECTORY       77, and the reason, when no guest can be booted here
set -euo pipefail
build=$(readlink -f "${1:?build directory}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT

# On the guest's own tmpfs: the suite's children write there.
cat >"$work/guest.sh" <<GUEST
cd /tmp
timeout 400 "$build/tests/conformance-suite" verbs rxe0 >/out/suite.log 2>&1
GUEST
status=0
VM_TIMEOUT_S=${VM_TIMEOUT_S:-480} "$here/run-vm" "$work/guest.sh" "$work/out" || status=$?
[[ ! -e $work/out/suite.log ]] || cat "$work/out/suite.log"
# In the guest the device is there: that it cannot be used is no reason to skip.
if [[ $status == 77 && -e $work/out/status.1 ]]; then status=1; fi
exit "$status"
