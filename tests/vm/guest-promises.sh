#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest, on a kernel as of before 6.0, where workers can punch holes, and which is told to
# promise no more memory than there is: a worker has all that it still promises, and then takes the
# pages of its ring and of its arena away. The agent ends that session, lives, and serves the next
# worker.
#
#   guest-promises.sh BUILD_DIRECTORY
source "$(dirname "$0")/../e2e/lib.sh"
needs_built kedge-hostile kedge-old-kernel
run_under="$bin/kedge-old-kernel --6.0" # or holes are refused
start
export_text b "still here"
# Nothing is kept back for whoever asks last.
for setting in overcommit_ratio=100 user_reserve_kbytes=0 admin_reserve_kbytes=0 \
    overcommit_memory=2; do
    echo "${setting#*=}" >"/proc/sys/vm/${setting%=*}"
done
for round in 1 2 3; do
    timeout 120 "$bin/kedge-hostile" promises --socket "$work/a.sock" >"$work/attack.out" 2>&1 ||
        fail "round $round: $(cat "$work/attack.out"); $(grep Commit /proc/meminfo)"
    kill -0 "${pids[a]}" 2>/dev/null || fail "round $round: the agent died"
done
ok "each lost its session, and the agent nothing"
grep -q 'workers took pages of their rings away' "$work/a.log" ||
    fail "the agent's log does not say what happened"
ok "the log says: $(grep -m1 'workers took pages' "$work/a.log")"
[[ $(read_text a "$token") == *"still here"* ]] ||
    fail "a worker that comes after that is not served"
ok "a worker that comes after that is served"
echo 0 >/proc/sys/vm/overcommit_memory
stop
