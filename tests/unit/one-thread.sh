#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The unit tests that the thread sanitizer's build leaves out (CMakeLists.txt) are linked with
# nothing that begins a thread: neither what they call of ours, nor they themselves.
#
#   one-thread.sh LIST DIRECTORY       a list of programs in that directory
set -euo pipefail
list=${1:?usage: $0 LIST DIRECTORY} directory=${2:?}
begins='pthread_create|thrd_create|uv_thread_create(_ex)?|uv_queue_work|uv_getaddrinfo|uv_fs_[a-z]+'
wrong=0 looked=0
while read -r program; do
    symbols=$(nm -D --undefined-only "$directory/$program" | sed 's/@.*//')
    looked=$((looked + 1))
    ! grep -oE " ($begins)$" <<<"$symbols" || {
        echo "FAILED: $program has a thread: name it in with_threads of tests/unit/CMakeLists.txt"
        wrong=$((wrong + 1))
    }
done <"$list"
((looked > 100)) || { echo "FAILED: $list names $looked programs"; exit 1; }
echo "ok: $looked unit tests begin no thread"
exit $((wrong > 0))
