#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: workers that all come at once to an agent with what it keeps ready by default, 16
# sessions and arenas, on a device and a host that take their time for each of the others. All get
# in, at once or when they were told to come again, and no kedge_open() waits in vain.
#
#   guest-storm.sh BUILD_DIRECTORY [WORKERS]
#
# With little else on its host 64, 120 and 240 workers all got in, the 240 after they were told
# 1,374 times to come again. Beside the whole suite 62 of 64 did, and two had no answer within the
# 5 s of their call.
workers=${2:-64}
more_tenants="sessions = $workers"
source "$(dirname "$0")/../e2e/lib.sh"
start
ready=$("$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json | jq .sessions.ready)
timeout 300 "$bin/kedge-perf" storm --workers $workers --socket "$work/a.sock" \
    --peer-socket "$work/b.sock" --json >"$work/storm" 2>"$work/storm.err" ||
    fail "the storm: $(cat "$work/storm" "$work/storm.err")"
[[ $(jq -c '[.worked, .failed, .first_failure]' "$work/storm") == "[$workers,0,null]" ]] ||
    fail "not all workers got in: $(cat "$work/storm")"
((ready <= 16 && $(agent_metric a not_ahead_total) > 0)) ||
    fail "$ready sessions were ready, and $(agent_metric a not_ahead_total) workers found none"
retries=$(jq .retries "$work/storm")
(($(agent_metric a attach_deferred_total) == retries)) ||
    fail "of those who came $retries times again not all were told to:" \
        "$(agent_metric a attach_deferred_total)"
ok "$workers workers that come at once to $ready sessions have all READ," \
    "and were told $retries times to come again"
stop
