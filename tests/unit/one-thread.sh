#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The unit tests that the thread sanitizer's build leaves out (CMakeLists.txt) are linked with
# nothing that begins a thread: neither what they call of ours, nor they themselves.
#
#   one-thread.sh LIST DIRECTORY       a list of programs in that directory
set -euo pipefail
list=${1:?usage: $0 LIST DIRECTORY} directory=${2:?}
begins='pthread_create|thrd_create|uv_thread_create(_ex)?|uv_queue_work|uv_getaddrinfo|uv_fs_[a-z]+'
mapfile -t programs < <(sed "s|^|$directory/|" "$list")
looked=${#programs[@]} wrong=0
((looked > 100)) || { echo "FAILED: $list names $looked programs"; exit 1; }
symbols=$(nm -D -A --undefined-only "${programs[@]}") || { echo "FAILED: nm"; exit 1; }
symbols=$(sed 's/@.*//' <<<"$symbols")
# Each of them calls something, or was not read.
named=$(cut -d : -f 1 <<<"$symbols" | sort -u | wc -l)
((named == looked)) || { echo "FAILED: nm reads $named of $looked programs"; exit 1; }
while IFS=: read -r program symbol; do
    echo "FAILED: ${program##*/} has a thread (${symbol##* }): name it in with_threads, or not in" \
        "lane_without, of tests/unit/CMakeLists.txt"
    wrong=1
done < <(grep -E " ($begins)$" <<<"$symbols")
((wrong)) || echo "ok: $looked unit tests begin no thread"
exit $wrong
