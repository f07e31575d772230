#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a message of 8 bytes costs, in instructions, as callgrind counts them: the lane that sends it
# with its acknowledgement, and the one that takes it, on `soft` over DC. And in how many passes of
# both it is there, and its sender knows.
#
#   tests/cost/messages.sh BUILD_DIRECTORY
set -euo pipefail
build=${1:?usage: $0 BUILD_DIRECTORY}
for tool in valgrind callgrind_annotate; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
# 3 % more than they are.
declare -A MAY=([MESSAGE]=8958 [DEEP]=3510)
ROUNDS="1 2" # until it is there, and until its sender knows
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

inclusive() { # function...
    callgrind_annotate --threshold=100 --inclusive=yes "$work/out" |
        sed -nE 's/^ *([0-9,]+) \([^)]*\) +[^ ]*:([A-Za-z0-9_.]+) .*/\2 \1/p' | tr -d , |
        awk -v names=" $* " 'index(names, " " $1 " ") { n += $2 } END { print n }'
}
count() { # row sender receiver
    CK_FORK=no valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
        --toggle-collect="$2" --toggle-collect="$3" "$build/tests/cost_message" \
        >"$work/says" 2>&1 || fail "$(cat "$work/says")"
    read -r _ messages there known at_a_time < <(grep "^$1 " "$work/says")
    local sends takes device all
    sends=$(inclusive "$2") takes=$(inclusive "$3")
    device=$(inclusive fab_post_send fab_post_recv fab_post_srq_recv fab_poll)
    [[ -n $sends && -n $takes && -n $device ]] || fail "nothing was counted: $(cat "$work/says")"
    all=$((sends + takes))
    awk -v a="$at_a_time" -v n="$messages" -v all=$all -v s="$sends" -v t="$takes" -v d="$device" \
        'BEGIN { printf "%9d %8.1f %8.1f %8.1f %10.1f\n", a, all / n, s / n, t / n, d / n }'
    awk -v all=$all -v n="$messages" -v may="${MAY[$1]}" 'BEGIN { exit !(all <= may * n) }' ||
        fail "a message costs more than ${MAY[$1]} instructions"
    local rounds="$((there * at_a_time / messages)) $((known * at_a_time / messages))"
    [[ $rounds == "$ROUNDS" ]] || fail "it takes $rounds rounds, not $ROUNDS"
}

echo "instructions for a message of 8 bytes (of them the device's: hardware, on an RNIC)"
printf '%9s %8s %8s %8s %10s\n' "at a time" both sender receiver "of device"
count MESSAGE counted_sender counted_receiver
count DEEP counted_deep_sender counted_deep_receiver
