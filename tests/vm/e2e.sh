#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a real kernel's SoftRoCE, in one guest with several GIDs on its device: the fabric's
# conformance suite, unmodified perftest, and the scripts of tests/e2e with a metaserver and agents
# on verbs.
#
#   e2e.sh BUILD_DIRECTORY [PART...]      77, and the reason, when no guest can be booted here
#
# Without parts: some, short enough for every run of the tests; with KEDGE_TEST_LONG set, all that
# can run in a guest. VM_LOGS names a directory that keeps what the parts print.
set -euo pipefail
build=$(readlink -f "${1:?build directory}"); shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}

# Scripts that have nothing to say in a guest.
by_hand="it registers nodes with DC by hand; the REST interface and the store"
by_hand+=" do not depend on the device"
apart="nothing of that depends on the device"
declare -A left_out=(
    [access]="$by_hand"
    [style]="it reads sources"
    [openapi]="it reads a source"
    [doctor]="its settings are those of soft, and it wants hosts without a device"
    [first-host]="it looks at defaults, sockets and tokens; nothing of that depends on the device"
    [install]="it builds and installs; nothing of that depends on the device"
    [main-job-perf]="kedge-perf --local starts its servers on soft"
    [main-job-syscalls]="it counts a worker's system calls, which do not depend on the device"
    [metad-errors]="$by_hand"
    [metad-kill]="$by_hand"
    [rest]="$by_hand"
    [rest-attack]="$by_hand"
    [rest-settings]="$by_hand"
    [rest-watch]="$by_hand"
    [systemd]="it reads units and hears what daemons tell their supervisor; $apart"
    [commit]="it reads what the build made, which does not depend on the device"
    [contexts]="it asks the REST interface alone, which does not depend on the device"
    [ctl-settings]="it asks the REST interface alone, which does not depend on the device"
)
# Of the attacks those in which the device itself refuses, and one that dies with requests out
# (attacks): of others, which lanes and the kernel refuse, soft sees as much, and of the honest
# worker, descriptors and memory beside them. hostile has all of them. Likewise `recovery`
# (e2e.recovery.rc on soft). perftest runs between two guests too (two-hosts.sh), and what
# verbs-connect prints are figures.
short=(conformance readers main-job attacks promises)
# On a busy host not all of the storm get in (docs/status.md, Known faults that are left).
if [[ -n ${KEDGE_TEST_LONG-} ]]; then
    short+=(perftest verbs-connect lookup storm)
else
    echo "skip: perftest, verbs-connect, lookup, storm (ops/test --long runs them)"
fi
parts=("$@")
if ((${#parts[@]} == 0)); then
    parts=("${short[@]}")
    for script in "$here"/../e2e/*.sh; do
        name=$(basename "$script" .sh)
        [[ $name != lib* && " ${short[*]} " != *" $name "* ]] || continue
        if [[ -n ${left_out[$name]-} ]]; then
            echo "skip: $name (${left_out[$name]})"
        elif [[ -n ${KEDGE_TEST_LONG-} ]]; then
            parts+=("$name")
        else
            echo "skip: $name (ops/test --long runs it)"
        fi
    done
fi
# Where packages are installed for the tests, run-vm and this insist on them.
if [[ " ${parts[*]} " == *" perftest "* ]] && ! command -v ib_read_lat >/dev/null; then
    [[ ${KEDGE_TEST_VM-} != required ]] || {
        echo "FAILED: ib_read_lat is not here (ops/packages-test)"
        exit 1
    }
    echo "skip: perftest (apt-get install perftest)"
    parts=("${parts[@]/perftest/}")
fi

mkdir -p "$out"
rm -f "$out"/*.log "$out/parts" # an earlier run's
cat >"$work/guest.sh" <<GUEST
export KEDGE_TEST_PROVIDER=${KEDGE_TEST_PROVIDER:-verbs}
export KEDGE_TEST_TRANSPORT=${KEDGE_TEST_TRANSPORT:-auto}
export KEDGE_TEST_LONG=${KEDGE_TEST_LONG:-}
export MIXED_S=${MIXED_S:-} MIXED_SEED=${MIXED_SEED:-}
bash "$here/guest.sh" "$build" ${parts[*]}
GUEST
status=0 limit=1800
[[ -z ${KEDGE_TEST_LONG-} ]] || limit=3600
VM_TIMEOUT_S=${VM_TIMEOUT_S:-$limit} VM_MEM_MIB=${VM_MEM_MIB:-2048} \
    "$here/run-vm" "$work/guest.sh" "$out" || status=$?
[[ -e $out/parts ]] || { compgen -G "$out/*.log" >/dev/null && touch "$out/parts"; } ||
    exit "$status"

while read -r verdict name _; do
    [[ $verdict == FAILED ]] || continue
    echo "-- $name"
    grep -vE '^(skipped, |left out on )' "$out/$name.log" | tail -n 60
done <"$out/parts"
for name in "${parts[@]}"; do
    [[ -e $out/$name.log ]] && ! grep -qE "^(ok|FAILED|skip:) $name " "$out/parts" || continue
    echo "FAILED: $name did not finish"; tail -n 60 "$out/$name.log"
done
if [[ -e $out/conformance.log ]]; then
    echo "skip: conformance: $(grep -c '^skipped, ' "$out/conformance.log")" \
        "tests of transports that rxe lacks (DC)"
    sed -n 's/^left out on /skip: conformance: on /p' "$out/conformance.log"
    [[ -n ${KEDGE_TEST_LONG-} ]] ||
        echo "skip: conformance: most of what it repeats for chance's sake (ops/test --long has it)"
fi
grep '^skip:' "$out/parts" || true
grep -v '^skip:' "$out/parts" || true
echo "ran: in a guest on ${KEDGE_TEST_PROVIDER:-verbs}:" \
    "$(sed -n 's/^ok //p' "$out/parts" | paste -sd , | sed 's/,/, /g')"
# Some part has run, so there is a guest: that the device cannot be used in it is no reason to skip.
((status != 77)) || status=1
exit "$status"
