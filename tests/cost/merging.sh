#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What looking for requests to merge costs those that are not merged, in instructions, as callgrind
# counts them: eight READs of 64 bytes in a pass of the lane, where it merges and where it does not.
#
#   tests/cost/merging.sh BUILD_DIRECTORY
set -euo pipefail
build=${1:?usage: $0 BUILD_DIRECTORY}
for tool in valgrind callgrind_annotate; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
MAY=3 # per cent
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# How many instructions, for how many READs, of which so many were merged.
count() { # merge where transport
    SEVERAL_MERGE=$1 SEVERAL_WHERE=$2 KEDGE_TEST_TRANSPORT=$3 CK_FORK=no valgrind -q \
        --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=counted_pass \
        "$build/tests/cost_several" >"$work/says" 2>&1 || fail "$(cat "$work/says")"
    instructions=$(callgrind_annotate --threshold=100 --inclusive=yes "$work/out" |
        sed -nE 's/^ *([0-9,]+) \([^)]*\) +[^ ]*:counted_pass .*/\1/p' | tr -d , | sed 1q)
    read -r _ reads _ merged < <(grep ^READS "$work/says")
    [[ -n $instructions ]] || fail "nothing was counted: $(cat "$work/says")"
}

echo "instructions for each of eight READs in a pass"
printf '%-4s %-8s %10s %10s %9s %8s\n' "" "" "merge=no" "merge=yes" "more" merged
for transport in dc rc; do
    for where in random next relaxed; do
        count no $where $transport
        off=$instructions none=$merged
        count yes $where $transport
        on=$instructions
        awk -v t=$transport -v w=$where -v off="$off" -v on="$on" -v n="$reads" -v m="$merged" \
            'BEGIN { printf "%-4s %-8s %10.1f %10.1f %+7.2f %% %8d\n", t, w, off / n, on / n,
                     100 * (on / off - 1), m }'
        ((none == 0)) || fail "$none were merged where none may be"
        if [[ $where == relaxed ]]; then
            ((merged == reads / 8 * 7)) || fail "$merged of $reads were merged"
        else
            ((merged == 0)) || fail "$merged were merged"
            awk -v off="$off" -v on="$on" -v may=$MAY \
                'BEGIN { exit !(off > 0 && on <= off * (1 + may / 100)) }' ||
                fail "what is not merged costs more than $MAY % more"
        fi
    done
done
