#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: what a device itself has to refuse, and what it has out when a worker dies. Keys of
# regions that are gone are refused, killed workers leave nothing behind, and the agent ends where
# it began, with its other worker served. Of e2e/hostile.sh what depends on the device; the rest of
# it (an honest worker that goes on beside, descriptors, memory) soft shows as well.
#
#   guest-attacks.sh BUILD_DIRECTORY [ATTACK...]
source "$(dirname "$0")/../e2e/lib.sh"
shift
needs_built kedge-hostile
attacks=("$@")
((${#attacks[@]})) || attacks=(stale-keys dies)
start
export_text b "still here"
shape() {
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
        jq -c '[.sessions.live, .sessions.ending, .lane.vqps, .lane.mrs, .lane.sessions]'
}
for attack in "${attacks[@]}"; do
    timeout 120 "$bin/kedge-hostile" "$attack" --socket "$work/a.sock" --seed "$RANDOM" \
        --ms "${HOSTILE_MS:-300}" >"$work/attack.out" 2>&1 ||
        fail "$attack: $(cat "$work/attack.out")"
    kill -0 "${pids[a]}" 2>/dev/null || fail "$attack: the agent died"
    until_is "[0,0,0,0,0]" "$(tail -n 1 "$work/attack.out"), and left nothing" shape
done
[[ $(agent_number a inflight) == 0 ]] || fail "requests are out that nobody has"
[[ $(read_text a "$token") == *"still here"* ]] ||
    fail "a worker that comes after that is not served"
ok "a worker that comes after that is served"
! grep -h "counted wrong" "$work"/*.log || fail "an agent has counted wrong"
stop
