#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: a metaserver on SoftRoCE, which has no DC: its unit test with queue pairs of a
# real kernel, then kedge-metad itself, which is to stop in the middle of registrations and leave
# no queue pair.
#
#   guest-readers.sh BUILD_DIRECTORY
set -e
build=$1
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
for test in table_responders responder_breaks; do
    KEDGE_TEST_RXE=rxe0 CK_FORK=no timeout 200 "$build/tests/unit_metaserver_api_$test"
done
fail() { echo "FAILED: $*"; cat "$work/metad.err"; exit 1; }
mkdir "$work/data"
printf '%s\n' '[metaserver]' "data_dir = $work/data" "admin_socket = $work/metad.sock" \
    'access = open' 'connections = 256' '[fabric]' 'provider = verbs' 'device = rxe0' \
    >"$work/metad.conf"
"$build/bin/kedge-metad" --config "$work/metad.conf" >"$work/metad.out" 2>"$work/metad.err" &
metad=$!
for _ in $(seq 300); do grep -q ready "$work/metad.out" && break; sleep 0.1; done
put() { # number of the node, curl's other arguments
    curl -s -X PUT -H 'Content-Type: application/json' --max-time 20 "${@:2}" \
        "http://127.0.0.1:7480/v1/nodes/n$1" --data-binary \
        '{"incarnation":1,"endpoints":[{"gid":"10.0.1.2","pool":'$1',"transports":["rc"],"ud_qpn":1,
            "ud_qkey":1,"mtu":1024}]'"${reader-}"'}'
}
put 1 | grep >/dev/null '"field":"reader"' || fail "a registration without a reader is not refused"
echo "ok: without DC a registration has to have a reader"
reader=',"reader":{"gid":"10.0.1.2","qpn":77,"psn":1,"mtu":1024}'
put 1 | grep >/dev/null '"rc":{"qpn":' || fail "no queue pair is told"
echo "ok: with one it is answered with a queue pair"
for n in $(seq 2 20); do
    put $n -o /dev/null -w '%{http_code}\n' >>"$work/codes" &
    puts="$puts $!"
done
until [ -s "$work/codes" ]; do sleep 0.01; done
kill -TERM $metad
wait $metad || fail "it ended with $?"
wait $puts || true
echo "ok: it stops in the middle of registrations, answered $(
    sort "$work/codes" | uniq -c | tr -s ' \n' ' '
)"
! grep -q 'closing the fabric\|cannot be destroyed' "$work/metad.err" ||
    fail "the device's objects were not freed in order"
echo "ok: no queue pair is left, or its protection domain could not have been freed"
