#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A metaserver on SoftRoCE, which has no DC, in one guest: its unit test with queue pairs of a real kernel, then
# kedge-metad itself, which is to stop in the middle of registrations and leave no queue pair.
#
#   readers.sh BUILD_DIRECTORY       77, and the reason, when no guest can be booted here
set -euo pipefail
build=$(readlink -f "${1:?build directory}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT

cat >"$work/guest.sh" <<GUEST
set -e
cd /tmp
KEDGE_TEST_RXE=rxe0 CK_FORK=no timeout 200 "$build/tests/unit_metaserver_readers" >/out/readers.log 2>/out/readers.err
exec >>/out/readers.log 2>&1
fail() { echo "FAILED: \$*"; cat /tmp/metad.err; exit 1; }
mkdir /tmp/data
printf '%s\n' '[metaserver]' 'data_dir = /tmp/data' 'connections = 256' '[fabric]' 'provider = verbs' \
    'device = rxe0' >/tmp/metad.conf
"$build/bin/kedge-metad" --config /tmp/metad.conf >/tmp/metad.out 2>/tmp/metad.err & metad=\$!
for _ in \$(seq 300); do grep -q ready /tmp/metad.out && break; sleep 0.1; done
put() { # number of the node, curl's other arguments
    curl -s -X PUT -H 'Content-Type: application/json' --max-time 20 "\${@:2}" "http://127.0.0.1:7480/v1/nodes/n\$1" \
        --data-binary '{"incarnation":1,"endpoints":[{"gid":"10.0.1.2","pool":'\$1',"transports":["rc"],"ud_qpn":1,
            "ud_qkey":1,"mtu":1024}]'"\${reader-}"'}'
}
put 1 | grep -q '"field":"reader"' || fail "a registration without a reader is not refused"
echo "ok: without DC a registration has to have a reader"
reader=',"reader":{"gid":"10.0.1.2","qpn":77,"psn":1,"mtu":1024}'
put 1 | grep -q '"rc":{"qpn":' || fail "no queue pair is told"
echo "ok: with one it is answered with a queue pair"
for n in \$(seq 2 20); do put \$n -o /dev/null -w '%{http_code}\n' >>/tmp/codes & puts="\$puts \$!"; done
until [ -s /tmp/codes ]; do sleep 0.01; done
kill -TERM \$metad
wait \$metad || fail "it ended with \$?"
wait \$puts || true
echo "ok: it stops in the middle of registrations, answered \$(sort /tmp/codes | uniq -c | tr -s ' \n' ' ')"
! grep -q 'closing the fabric\|cannot be destroyed' /tmp/metad.err || fail "the device's objects were not freed in order"
echo "ok: no queue pair is left, or its protection domain could not have been freed"
GUEST
status=0
VM_TIMEOUT_S=${VM_TIMEOUT_S:-400} "$here/run-vm" "$work/guest.sh" "$work/out" || status=$?
[[ ! -e $work/out/readers.log ]] || cat "$work/out/readers.log"
# In the guest the device is there: that it cannot be used is no reason to skip.
if [[ $status == 77 && -e $work/out/status.1 ]]; then status=1; fi
exit "$status"
