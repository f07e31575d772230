#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What e2e.sh runs in its guest, one after the other: the conformance suite, other people's
# programs, and the e2e scripts on verbs. Each runs once; its output goes to /out/PART.log, and
# /out/parts gets a line for it: ok or FAILED, its name and its seconds; or "skip:" and why.
#
#   guest.sh BUILD_DIRECTORY PART...
#
# Environment: KEDGE_TEST_PROVIDER (verbs), KEDGE_TEST_LONG; GUEST_OUT (instead of /out).
set -uo pipefail
build=$1; shift
out=${GUEST_OUT:-/out}
here=$(cd "$(dirname "$0")" && pwd)
failures=0
cd /tmp # on the guest's own tmpfs: what tests leave behind stays there

# What is slow under emulation is shortened; KEDGE_TEST_LONG gives it nearly what it has on a host.
export KEDGE_TEST_PROVIDER=${KEDGE_TEST_PROVIDER:-verbs} KEDGE_TEST_DEVICE=rxe0 KEDGE_TEST_SLOW=10
if [[ $KEDGE_TEST_PROVIDER == verbs ]]; then
    KEDGE_TEST_GIDS=$(for i in 1 2 3 4 5 6 7 8; do echo "::ffff:10.0.1.$i"; done | paste -sd ' ')
    export KEDGE_TEST_GIDS
fi
if [[ -n ${KEDGE_TEST_LONG-} ]]; then
    export HOSTILE_MS=300 LEASES_MS=40000 CHURN_ROUNDS=500 RECOVERY_ROUNDS=50
else
    export HOSTILE_MS=100 RECOVERY_ROUNDS=20 RECOVERY_ORDERS="a metad"
fi

# Two GIDs of one device reach each other: unmodified programs of others show that the
# guest's device does.
perftest() {
    local server client status=0
    for run in "ib_read_lat -s 8 -n 500" "ib_write_bw -s 4096 -n 500"; do
        $run -d rxe0 -x 1 -F >server.log 2>&1 &
        server=$!
        for _ in $(seq 100); do
            ! grep -qi ':4853 .* 0A ' /proc/net/tcp || break # 18515, listening
            sleep 0.1
        done
        client=0
        timeout 60 $run -d rxe0 -x 2 -F 10.0.1.1 || client=$?
        wait "$server" && ((client == 0)) || { cat server.log; status=1; }
    done
    return $status
}

verbs_connect() {
    "$build/bin/kedge-perf" verbs-connect &&
        "$build/bin/kedge-perf" verbs-connect --count 3 --json |
        jq -e '.count == 3 and .verified and .gid != .peer_gid and
            .cold.device_ns > 0 and .warm.read_ns > 0 and .cold.total_ns > .warm.total_ns'
}

part() { # its name
    case $1 in
    conformance) timeout 800 "$build/tests/conformance-suite" verbs rxe0 ;;
    perftest) perftest ;;
    verbs-connect) verbs_connect ;;
    attacks) bash "$here/guest-attacks.sh" "$build" ;;
    promises) bash "$here/guest-promises.sh" "$build" ;;
    readers) bash "$here/guest-readers.sh" "$build" ;;
    lookup) bash "$here/guest-lookup.sh" "$build" ;;
    storm) bash "$here/guest-storm.sh" "$build" ;;
    *) timeout 900 bash "$here/../e2e/$1.sh" "$build" ;;
    esac
}
# One run: a guest is slow, and what cannot be told from a fault there has to be told in its test.
run() { # part
    local part=$1 begin=$SECONDS status=0 took
    part "$part" >"$out/$part.log" 2>&1 || status=$?
    # rxe tells the kernel's log alone why it answers with LOC_PROT_ERR, for one.
    ((status == 0 || status == 77)) || {
        echo "-- dmesg"
        dmesg | grep -v 'speed is unknown' | tail -n 20
    } >>"$out/$part.log"
    took="$part $((SECONDS - begin)) s"
    case $status in
    0) echo "ok $took" ;;
    77) echo "skip: $part ($(tail -n 1 "$out/$part.log"))" ;;
    *) echo "FAILED $took (status $status)" ;;
    esac >>"$out/parts"
    sed -n "s/^skip: /skip: $part: /p" "$out/$part.log" >>"$out/parts"
    return $((status != 0 && status != 77))
}

# The conformance suite runs beside the others: it is one process that waits for time-outs now
# and then. Not beside the part in which the kernel has no memory left to promise, to nobody
# in the guest.
beside=
end_beside() {
    [[ -z $beside ]] || wait "$beside" || failures=$((failures + 1))
    beside=
}
for part in "$@"; do
    [[ $part != promises ]] || end_beside
    if [[ $part == conformance ]]; then
        run "$part" & beside=$!
        continue
    fi
    run "$part" || failures=$((failures + 1))
done
end_beside
exit $((failures > 0))
