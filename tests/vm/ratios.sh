#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What operations take through agents, beside the same on a program's own RC queue pairs: READs,
# WRITEs, SENDs, WRITEs with immediate and batches on a real kernel's SoftRoCE, in one guest, in
# turns. Fails when something does not work or data is not what was sent; how fast it is, it prints.
#
#   ratios.sh BUILD_DIRECTORY [COUNT [POLLING]]     77, and the reason, where no guest can be booted
#
# Of each COUNT (300) in each of five turns, with lanes that poll so (adaptive, which is the default
# of agents, event or busy). It is an emulation: agents' lanes, workers and the kernel's own work
# share two processors that are ten times and more slower than a host's, and SoftRoCE is itself a
# host's work; what ratios say of an RNIC is little. VM_LOGS names a directory that keeps what was
# measured (ratios.json).
set -euo pipefail
build=$(readlink -f "${1:?build directory}") count=${2:-300} polling=${3:-adaptive}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
out=${VM_LOGS:-$work/out}
command -v jq >/dev/null || { echo "skip: jq is not here (apt-get install jq)"; exit 77; }
mkdir -p "$out"
rm -f "$out"/*.json "$out"/*.log
echo "bash $here/guest-ratios.sh $build $count $polling >/out/guest.log 2>&1" >"$work/guest.sh"
before=$(cut -d ' ' -f 1 /proc/loadavg)
status=0
VM_TIMEOUT_S=${VM_TIMEOUT_S:-900} VM_MEM_MIB=${VM_MEM_MIB:-2048} \
    "$here/run-vm" "$work/guest.sh" "$out" || status=$?
if ((status != 0)); then
    [[ ! -e $out/guest.log ]] || { cat "$out/guest.log"; tail -n 5 "$out"/*.log; status=1; }
    exit "$status"
fi
echo "load average of this machine: $before, then $(cut -d ' ' -f 1 /proc/loadavg)"
echo "lanes with polling = $polling"
printf '%-10s %6s %6s %12s %12s %8s %18s %10s\n' what size depth "agent us" "verbs us" times \
    "(least to most)" "rates"
jq -r '. as $run | ("read", "write", "send", "write_imm", "batch") as $what | .[$what] |
    [$what, if $what == "batch" then 4096 else $run.size end,
    if $what == "batch" then $run.count else $run.depth end, .p50_ns / 1e3, .direct_p50_ns / 1e3,
    .ratio, .least_ratio, .most_ratio, .rate_ratio] | @tsv' "$out/ratios.json" |
    awk -F '\t' '{printf "%-10s %6d %6d %12.1f %12.1f %8.2f %7.2f to %7.2f %10.2f\n",
        $1, $2, $3, $4, $5, $6, $7, $8, $9}'
