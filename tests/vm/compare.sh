#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a worker pays with Kedge, and a program without it, until its first READ: on a real kernel's
# SoftRoCE, in one guest, in turns, so that what else this machine does meanwhile falls on both.
# Fails when something does not work; how fast it is, it prints.
#
#   compare.sh BUILD_DIRECTORY [ROUNDS]      77, and the reason, when no guest can be booted here
#
# The medians are of each round's; the last column has the least of those, and of the whole the
# least of all repetitions: what disturbs only adds. Kedge's steps are processes that wake each
# other, on emulated processors that this machine may just not be running: the ratios are of that
# too. "Known": the agent has a connection to the peer's node. "Never met": neither agent knows of
# the other; it takes a READ of the metaserver's table and a handshake. Either has met a third, as
# agents that run have. The storms: 240 workers of one agent that has never met the other; then with
# handshakes' messages lost. VM_LOGS names a directory that keeps what was measured.
set -euo pipefail
build=$(readlink -f "${1:?build directory}") rounds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}
command -v jq >/dev/null || { echo "skip: jq is not here (apt-get install jq)"; exit 77; }
mkdir -p "$out"
rm -f "$out"/*.json "$out"/*.log
echo "bash $here/guest-compare.sh $build $rounds >/out/guest.log 2>&1" >"$work/guest.sh"
before=$(cut -d ' ' -f 1 /proc/loadavg)
status=0
VM_TIMEOUT_S=${VM_TIMEOUT_S:-1800} VM_MEM_MIB=${VM_MEM_MIB:-2048} \
    "$here/run-vm" "$work/guest.sh" "$out" || status=$?
if ((status != 0)); then
    [[ ! -e $out/guest.log ]] || { cat "$out/guest.log"; tail -n 5 "$out"/*.log; status=1; }
    exit "$status"
fi

# The median and the least of several objects'.
us() { # name, jq path
    jq -rs "[.[] | $2] | sort | [(.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2, min] |
        map(. / 1000) | @tsv" "$out/$1.json"
}
row() { # title, name, jq path
    us "$2" "$3" | awk -v title="$1" '{printf "%-44s %12.1f %12.1f\n", title, $1, $2}'
}
ratio() { # title, name and object of either
    local path
    for path in "$2 .$3.total_ns" "$4 .$5.total_ns" \
        "$2 .$3.least_total_ns" "$4 .$5.least_total_ns"; do
        us $path
    done |
        awk -v title="$1" '{median[NR] = $1; least[NR] = $2}
            END {printf "%-44s %12.1f %12.1f\n", title, median[1] / median[2], least[3] / least[4]}'
}
steps() { # title, name, object
    local key
    for key in $(
        jq -rs ".[0].$3 | keys_unsorted[] | select(test(\"total\") | not)" "$out/$2.json"
    ); do
        row "$1: ${key%_ns}" "$2" ".$3.$key"
    done
    { us "$2" ".$3.total_ns"; us "$2" ".$3.least_total_ns"; } |
        awk -v title="$1: all of it" \
            '{v[NR] = $NR} END {printf "%-44s %12.1f %12.1f\n", title, v[1], v[2]}'
}
echo "load average of this machine: $before, then $(cut -d ' ' -f 1 /proc/loadavg)"
printf '%-44s %12s %12s\n' "in us, $rounds rounds" median least
steps "verbs, fresh process" verbs cold
steps "verbs, device kept open" verbs warm
steps "Kedge, known peer" known cold
steps "Kedge, never met" never-met cold
for name in attach connect read; do row "kedge-perf $name: p50" $name .p50_ns; done
ratio "verbs fresh / Kedge known (goal 20)" verbs cold known cold
ratio "verbs fresh / Kedge never met (goal 3)" verbs cold never-met cold
ratio "verbs kept open / Kedge known" verbs warm known cold
ratio "verbs kept open / Kedge never met" verbs warm never-met cold
for name in storm storm-loss=5% storm-loss=20%; do
    jq -r --arg name "$name" '"\($name): \(.worked) of \(.workers) workers READ, " +
        "the last after \(.elapsed_ns / 1e6 | round) ms; " +
        "each: p50 \(.p50_ns / 1e6 | round) ms, p99 \(.p99_ns / 1e6 | round) ms; " +
        "\(.connections) connections made, with \(.handshake_requests) messages"' "$out/$name.json"
done
