#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a message of 8 bytes costs, in instructions, as callgrind counts them, on `soft` over DC: the
# lane that sends it with its acknowledgement, and the one that takes it, of two agents; and the
# lane that does both, between two VQPs of one agent, by the device and near. And in how many passes
# of each it is there, and its sender knows, after one in which its receive was posted. Of 64 KiB
# likewise, without what the copies themselves take, two sessions being awake.
#
#   tests/cost/messages.sh BUILD_DIRECTORY
set -euo pipefail
build=${1:?usage: $0 BUILD_DIRECTORY}
for tool in valgrind callgrind_annotate; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
# 3 % more than they are.
declare -A MAY=([MESSAGE]=8179 [DEEP]=3482 [OWN]=5045 [DEEP_OWN]=3091
    [NEAR]=2648 [DEEP_NEAR]=982 [LARGE_OWN]=9894 [LARGE_NEAR]=5603)
# Until it is there, and until its sender knows.
declare -A ROUNDS=([MESSAGE]="1 2" [DEEP]="1 2" [OWN]="1 1" [DEEP_OWN]="1 1"
    [NEAR]="1 1" [DEEP_NEAR]="1 1" [LARGE_OWN]="2 2" [LARGE_NEAR]="4 4")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

inclusive() { # function...
    callgrind_annotate --threshold=100 --inclusive=yes "$work/out" |
        sed -nE 's/^ *([0-9,]+) \([^)]*\) +[^ ]*:([A-Za-z0-9_.]+) .*/\2 \1/p' | tr -d , |
        awk -v names=" $* " 'index(names, " " $1 " ") { n += $2 } END { print n }'
}
copying() {
    callgrind_annotate --threshold=100 "$work/out" |
        sed -nE 's/^ *([0-9,]+) \([^)]*\) +[^ ]*:__mem(cpy|move)_.*/\1/p' | tr -d , |
        awk '{ n += $1 } END { print n + 0 }'
}
count() { # row sender [receiver]
    CK_FORK=no valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
        --toggle-collect="$2" ${3:+--toggle-collect="$3"} "$build/tests/cost_message" \
        >"$work/says" 2>&1 || fail "$(cat "$work/says")"
    read -r _ messages there known at_a_time < <(grep "^$1 " "$work/says")
    local sends takes=0 device all
    sends=$(inclusive "$2")
    [[ -z ${3:-} ]] || takes=$(inclusive "$3")
    device=$(inclusive fab_post_send fab_post_recv fab_post_srq_recv fab_poll)
    [[ -n $sends && -n $takes && -n $device ]] || fail "nothing was counted: $(cat "$work/says")"
    all=$((sends + takes))
    if [[ $1 == LARGE_* ]]; then # whoever copies, the device or the lane
        all=$((all - $(copying)))
        device=0
    fi
    awk -v a="$at_a_time" -v n="$messages" -v all=$all -v s="$sends" -v t="$takes" -v d="$device" \
        'BEGIN { printf "%5s %9d %8.1f %8.1f %8.1f %10.1f %10.1f\n", (t > 0 ? "two" : "one"), a,
                 all / n, s / n, t / n, d / n, (all - d) / n }'
    awk -v all=$all -v n="$messages" -v may="${MAY[$1]}" 'BEGIN { exit !(all <= may * n) }' ||
        fail "a message costs more than ${MAY[$1]} instructions"
    local rounds="$((there * at_a_time / messages)) $((known * at_a_time / messages))"
    [[ $rounds == "${ROUNDS[$1]}" ]] || fail "it takes $rounds rounds, not ${ROUNDS[$1]}"
}

echo "instructions for a message of 8 bytes (of them the device's: hardware, on an RNIC)"
printf '%5s %9s %8s %8s %8s %10s %10s\n' lanes "at a time" all sender receiver "of device" own
count MESSAGE counted_sender counted_receiver
count DEEP counted_deep_sender counted_deep_receiver
count OWN counted_own
count DEEP_OWN counted_deep_own
count NEAR counted_near
count DEEP_NEAR counted_deep_near
echo "for one of 64 KiB, by the device and near (without copies)"
count LARGE_OWN counted_large_own
count LARGE_NEAR counted_large_near
