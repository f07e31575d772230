#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the leases' rule costs an operation of the lane, in instructions, as callgrind counts them:
# the same in each run, whatever else the machine does. Prints a table, and fails when the rule
# costs more than it may.
#
#   tests/cost/instructions.sh BUILD_DIRECTORY
#
# One READ or WRITE of 8 bytes at a time, from the worker's ring to its completion, a pass of the
# lane each, on `soft`:
#   without    the lane is built without the rule (no_lease.h): a record that was READ once is good
#              for ever
#   with       the rule, on a device that keeps no deadlines, as RNICs are: the lane looks for what
#              is out too long
#   deadlines  the rule on a device that keeps them, as `soft` is: it looks at its clock before it
#              executes
# 60 s is the longest lease that an agent takes; how long it is changes nothing while it is valid.
# And 64 of each in the ring at a time, of which a pass takes what it may: what one more costs
# where a pass has several; the same with a window of the device that never holds.
#
# What is out too long is looked for by the time, 32 times in what a request may take, however many
# there are: not while these are counted, and counted by itself. That the rule costs nothing holds
# for the code that Debian 12's gcc (12.2) makes of this for x86-64.
set -euo pipefail
build=${1:?usage: $0 BUILD_DIRECTORY}
for tool in valgrind callgrind_annotate; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
LANE_MAY=1      # instructions of the rule, for an operation
# An operation with the rule: 1 % more than it is.
declare -A OPERATION_MAY=([READ dc]=1647.1 [WRITE dc]=1636.0 [READ rc]=1632.0 [WRITE rc]=1615.8)
# And the same, 64 of them in the ring: 1 % more than they are.
declare -A DEEP_MAY=([READ dc]=948.7 [WRITE dc]=935.6 [READ rc]=958.0 [WRITE rc]=939.9)
# Likewise while windows count, and have room.
declare -A WINDOW_MAY=([READ dc]=1001.7 [WRITE dc]=988.7 [READ rc]=1011.0 [WRITE rc]=992.8)
# A lookup of a name: 1 % more than it is.
declare -A LOOKUP_MAY=([dc]=4591.2 [rc]=4601.3)
DEADLINE_MAY=48 # and of the device's deadlines: 24, and a clock, which valgrind
                # leaves to the kernel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# Runs it once, and counts each part of it: $work/NAME has what it prints, NAME.PART.inclusive
# the instructions of each function with all that it calls.
declare -A part_of=([read]=1 [write]=2 [deep_read]=3 [deep_write]=4 [lookup]=5)
count() { # name with|without kind lease_ms bound_us transport parts
    local name=$1 part operation
    local -a counted=()
    for operation in "${!part_of[@]}"; do counted+=(--toggle-collect="counted_$operation"); done
    OPERATIONS_KIND=$3 OPERATIONS_LEASE_MS=$4 OPERATIONS_BOUND_US=$5 OPERATIONS_PARTS=$7 \
        KEDGE_TEST_TRANSPORT=$6 CK_FORK=no valgrind -q --tool=callgrind \
        --callgrind-out-file="$work/$name.out" --dump-after=part_ends "${counted[@]}" \
        "$build/tests/cost_operations_$2_leases" >"$work/$name" 2>&1 || fail "$(cat "$work/$name")"
    for ((part = 1; part <= $7; part++)); do
        functions "$name" $part yes >"$work/$name.$part.inclusive"
    done
}
functions() { # name part inclusive; not those with such a share
    callgrind_annotate --threshold=100 --inclusive="$3" "$work/$1.out.$2" |
        grep -vF "(${4:-none})" |
        sed -nE 's/^ *([0-9,]+) \([^)]*\) +[^ ]*:([A-Za-z0-9_.]+) .*/\2 \1/p' | tr -d , | sort
}
inclusive() { # name operation
    awk -v f="counted_$2" '$1 == f { print $2 }' "$work/$1.${part_of[$2]}.inclusive"
}
field() { awk -v o="$2" -v n="$3" '$1 == o { print $n }' "$work/$1"; }    # name operation number
device() { # name operation...: what is the device's, of all that was counted of those
    local name=$1 operation; shift
    for operation; do cat "$work/$name.${part_of[$operation]}.inclusive"; done |
        awk '$1 == "fab_post_send" || $1 == "fab_poll" { n += $2 } END { print n }'
}
per() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }
check() { # sentence, instructions, operations, most
    awk -v a="$2" -v b="$3" -v most="$4" 'BEGIN { exit !(a <= most * b) }' ||
        fail "$1 costs $(per "$2" "$3") instructions an operation, more than $4"
}

echo "instructions for an operation" \
    "(of them the device's, which on an RNIC is hardware and its driver)"
printf '%-9s %8s %8s %8s %10s | %10s\n' "" without with rule deadlines "of device"
for transport in dc rc; do
    count without-$transport without none 60000 1000000 $transport 2
    count with-$transport with overdue 60000 1000000 $transport 5
    count deadlines-$transport with deadlines 60000 1000000 $transport 2
    for op in READ WRITE; do
        n=$(field with-$transport $op 2)
        for name in without with deadlines; do
            [[ $(field $name-$transport $op 3) == 0 ]] ||
                fail "a record was READ meanwhile: $(cat "$work/$name-$transport")"
            declare "$name=$(inclusive $name-$transport "${op,,}")"
        done
        printf '%-9s %8s %8s %8s %10s | %10s\n' "$op $transport" \
            "$(per "$without" "$n")" "$(per "$with" "$n")" \
            "$(per $((with - without)) "$n")" "$(per $((deadlines - with)) "$n")" \
            "$(per "$(device with-$transport read write)" $((2 * n)))"
        check "the rule" $((with - without)) "$n" $LANE_MAY
        check "$op on $transport" "$with" "$n" "${OPERATION_MAY[$op $transport]}"
        check "keeping deadlines" $((deadlines - with)) "$n" $DEADLINE_MAY
    done
done
echo "with 64 in the ring, a pass of the lane for as many as it takes"
printf '%-9s %10s %10s %10s %10s %14s\n' "" instructions lane "of device" "in a pass" \
    "with a window"
for transport in dc rc; do
    name=with-$transport
    OPERATIONS_WINDOW_OPS=1000 count window-$transport with overdue 60000 1000000 $transport 4
    for op in READ WRITE; do
        deep=deep_${op,,}
        n=$(field $name "DEEP_$op" 2)
        cost=$(inclusive $name "$deep") of_device=$(device $name "$deep")
        counted=$(inclusive window-$transport "$deep")
        printf '%-9s %12s %10s %10s %10s %14s\n' "$op $transport" "$(per "$cost" "$n")" \
            "$(per $((cost - of_device)) "$n")" "$(per "$of_device" "$n")" \
            "$(per "$n" "$(field $name "DEEP_$op" 3)")" "$(per "$counted" "$n")"
        check "$op on $transport, 64 in the ring," "$cost" "$n" "${DEEP_MAY[$op $transport]}"
        check "$op on $transport, 64 in the ring, while windows count," "$counted" "$n" \
            "${WINDOW_MAY[$op $transport]}"
    done
done
for transport in dc rc; do
    name=with-$transport
    n=$(field $name LOOKUP 2)
    [[ $(field $name LOOKUP 3) == "$n" ]] ||
        fail "lookups are not a READ each: $(cat "$work/$name")"
    cost=$(inclusive $name lookup)
    echo "a lookup of a name on $transport costs $(per "$cost" "$n") instructions"
    check "a lookup on $transport" "$cost" "$n" "${LOOKUP_MAY[$transport]}"
done

echo "where the rule is, in instructions for an operation of either kind, if it is anywhere:"
n=$(field with-dc READ 2)
for name in with-dc without-dc; do # READs and WRITEs
    # who called them has all of it in the second
    { functions $name 1 no; functions $name 2 no 100.0%; } |
        awk '{ sum[$1] += $2 } END { for (f in sum) print f, sum[f] }' |
        sort >"$work/$name.functions"
done
join -a1 -a2 -e0 -o 0,1.2,2.2 "$work/with-dc.functions" "$work/without-dc.functions" |
    awk -v n=$((2 * n)) '$2 != $3 { printf "  %-20s %+.1f\n", $1, ($2 - $3) / n }'

count looks with overdue 60000 320 dc 1 # a look in ten operations
looks=$((n / 10))
cost=$(($(inclusive looks read) - $(inclusive with-dc read)))
echo "a look costs $(per $cost "$looks") instructions with the 6 queue pairs of this lane," \
    "32 times in what a request may take"

count renewed with none 1 200 dc 1
n=$(field renewed READ 2) renewals=$(field renewed READ 3)
((renewals > 0)) || fail "nothing was renewed: $(cat "$work/renewed")"
cost=$(($(inclusive renewed read) - $(inclusive with-dc read)))
echo "a renewal costs the lane and its device $(per $cost "$renewals") instructions," \
    "once in two thirds of the time that may be posted under a lease" \
    "($renewals in $n READs of a region with a lease of 1 ms)"
