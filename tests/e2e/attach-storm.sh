#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 240 workers attach at once to an agent with what it keeps ready by default, on a device that
# takes 35 ms for each registration: all of them get a session in time or are told when to come
# again, the agent answers its operator meanwhile, and kedge-perf storm counts who fails instead of
# ending with the first.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
[[ $provider == soft ]] || { echo "skip: the device's own time is what it is"; exit 77; }
more_fabric='fault = register=35'
more_tenants='sessions = 241'
start

storm() { # workers
    timeout 300 "$bin/kedge-perf" storm --workers "$1" --socket "$work/a.sock" \
        --peer-socket "$work/b.sock" --json >"$work/storm" 2>"$work/storm.err"
}
asked=0 slowest=0
storm 240 &
storm=$!
worker_pids+=("$storm")
while kill -0 "$storm" 2>/dev/null; do
    began=$(date +%s%3N)
    timeout 20 "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json >"$work/status" ||
        fail "the agent does not answer its operator while workers come: $(cat "$work/status")"
    took=$(($(date +%s%3N) - began))
    ((took <= slowest)) || slowest=$took
    asked=$((asked + 1))
done
wait "$storm" || fail "the storm: $(cat "$work/storm" "$work/storm.err")"
is "$(jq -c '[.worked, .failed, .first_failure]' "$work/storm")" '[240,0,null]' \
    "240 workers that attach at once get in"
((asked > 1)) || fail "the operator asked once only"
ok "the agent answered its operator $asked times meanwhile (the slowest took $slowest ms;" \
    "$(jq '.retries' "$work/storm") times a worker was told to come again)"
(($(agent_metric a attach_deferred_total) == $(jq '.retries' "$work/storm"))) ||
    fail "not every worker that was sent away was told when to come again"

# An agent that gets no processor while they come reads late what they ask for, and what of their
# time is over by then they do not wait again.
kill -STOP "${pids[a]}"
storm 240 &
storm=$!
worker_pids+=("$storm")
sleep 2.5
kill -CONT "${pids[a]}"
wait "$storm" || fail "a storm that is read late: $(cat "$work/storm" "$work/storm.err")"
is "$(jq -c '[.worked, .failed, .first_failure]' "$work/storm")" '[240,0,null]' \
    "240 workers get in that attach to an agent which stands still for 2.5 s"
(($(jq .retries "$work/storm") > 0)) || fail "none of them had to come again"
code=0
storm 250 || code=$?
is "$code $(jq -c '[.worked, .failed]' "$work/storm")" '1 [241,9]' \
    "who fails is counted, and the others go on"
grep -q 'quota of workers at a time' "$work/storm" ||
    fail "and why is not told: $(cat "$work/storm")"

# Who waits when the node is cordoned comes too late.
storm 240 &
storm=$!
worker_pids+=("$storm")
attached=$(agent_metric a attached_total)
until (($(agent_metric a attached_total) > attached + 8)); do
    sleep 0.05
    kill -0 "$storm" || fail "the storm was over at once"
done
"$bin/rdmactl" --server "$url" node cordon node-a --reason "new cable" >"$work/out" ||
    fail "the node cannot be cordoned: $(cat "$work/out")"
for _ in $(seq $((600 * slow))); do
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
        jq -e .node_state.cordoned >/dev/null && break
    sleep 0.02
done
attached=$(agent_metric a attached_total)
code=0
wait "$storm" || code=$?
[[ $code == 1 && $(agent_metric a attached_total) == "$attached" ]] ||
    fail "$(agent_metric a attached_total) workers have attached, $attached of them before" \
        "the node was cordoned: $(cat "$work/storm")"
grep -q 'is cordoned and takes no new workers' "$work/storm" ||
    fail "and who waited was not told why: $(cat "$work/storm")"
ok "no worker that waited gets in once the node is cordoned"
stop
