#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent follows what operators set at its metaserver: tenants, quotas and windows are in force
# while workers run, also after a restart without any metaserver; what it cannot apply it says, and
# all else is in force.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
agents=1
start
me=$(id -u)
workers='.tenants[] | select(.name == "workers")'

is '"file"' "before anything is said the file's tenant is in force" "$workers | .from"
worker worker vqps 1
ctl tenant set workers uids="$me" sessions=1 vqps=3
is '["metaserver",1,3]' "a tenant's quotas are in force while its worker runs" \
    "$workers | [.from, .max_sessions, .max_vqps]"
kill -0 "$worker" || fail "the worker did not go on"
KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" vqps 1 >"$work/second.out" 2>&1 &&
    fail "a second session was given"
grep -qi quota "$work/second.out" ||
    fail "the refusal does not name the quota: $(cat "$work/second.out")"
ok "and hold: $(tail -n 1 "$work/second.out")"
ctl window set all scope=device ops=9
is 9 "so is a window" '.windows.device.limit_ops'
ctl tenant set other uids=54321
is true "a tenant comes" 'any(.tenants[]; .name == "other")'
ctl tenant delete other
is false "and goes" 'any(.tenants[]; .name == "other")'
revision=$(status | jq .settings.revision)

kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
# Without any metaserver: whoever was registered goes on, and whoever never was is not ready.
ready() {
    curl -s -o "$work/ready" -w '%{http_code}' --unix-socket "$work/a.admin" http://a/readyz
}
is '["lost"]' "the metaserver is gone" '[.metaservers[].state]'
[[ $(ready) == 200 &&
    $(jq -c '[.metaservers, (.why | contains("no metaserver has this node any more"))]' \
        "$work/ready") == '[0,true]' ]] ||
    fail "not ready: $(cat "$work/ready")"
"$bin/rdmactl" --server "$url" --agent-socket "$work/a.admin" status >"$work/out" 2>&1 &&
    fail "all is up: $(cat "$work/out")"
why='no metaserver has this node any more: .*: http.*; see rdmactl agent status'
shows "^agent +[^ ]+ +ready +$why\$"
shows '^metaserver +[^ ]+ +down +'
ok "the agent is ready without it: $(cat "$work/ready")"
[[ $(metric metaservers) == 0 ]] ||
    fail "the metrics say that $(metric metaservers) metaservers have it"
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
[[ $(ready) == 503 ]] &&
    grep -q 'no metaserver has had this node since its agent began' "$work/ready" ||
    fail "ready: $(cat "$work/ready")"
ok "and not ready after a restart: $(jq -r .detail "$work/ready")"
grep -q 'workers attach, and find no nodes, not even this one: ' "$work/ready" ||
    fail "ready: $(cat "$work/ready")"
"$bin/rdmactl" --server "$url" --agent-socket "$work/a.admin" status >"$work/out" 2>&1 &&
    fail "all is up: $(cat "$work/out")"
shows '^agent +[^ ]+ +not ready +.*no metaserver has had this node since its agent began: .*: http'
"$bin/rdmactl" --server "$url" --agent-socket "$work/a.admin" status -o json \
    >"$work/out" 2>/dev/null && fail "no exit status"
[[ $(jq -c '[.agent.up, .agent.ready, .metaserver.up, .metaserver.ready]' "$work/out") == \
    '[true,false,false,false]' ]] || fail "$(cat "$work/out")"
ok "rdmactl tells one that runs and is not ready from one that does not run"
is "[\"metaserver\",1,$revision,9]" \
    "what was in force is so after a restart without any metaserver" \
    "[($workers | .from, .max_sessions), .settings.revision, .windows.device.limit_ops]"
metad_configure # at its port of before
daemon_start metad kedge-metad || fail "the metaserver does not start again"
agent_wait a || fail "the agent did not register again"

ctl tenant delete workers
is '"file"' "without it the file's is in force again" "$workers | .from"
# One without uids takes the place of the file's all the same, and its workers with it.
ctl tenant set workers sessions=2
shows '^note: tenant workers has no uids'
why="tenant workers: replaces [tenant workers] of this agent's file, whose uids have no effect"
is true "that the file's uids are void is said" ".settings.why | startswith(\"$why\")"
says true "at the metaserver too" ".applied.why | startswith(\"$why\")"
ctl node list
shows 'replaces \[tenant workers\] of this agent.s file, whose uids have no effect'
KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" vqps 1 >"$work/second.out" 2>&1 &&
    fail "a worker is let in by the file's uid"
grep -q 'stands in its place without it' "$work/second.out" ||
    fail "the refusal does not say why: $(cat "$work/second.out")"
ctl tenant delete workers
is '["file",""]' "and is over with it" "[($workers | .from), .settings.why]"
revision=$((revision + 2))
# A tenant that clashes with one of the file: that one keeps the uid, and all else that
# is said is in force.
ctl tenant set intruder uids="$me,54320" sessions=7
why="tenant intruder: uid $me belongs to tenant workers of this agent's own settings"
is true "that a uid is another tenant's is said" ".settings.why | startswith(\"$why\")"
is "[\"file\",$((revision + 2))]" "the file's tenant keeps it, and the document is in force" \
    "[($workers | .from), .settings.revision]"
is '["metaserver",7]' "so is the tenant, for whom it still has" \
    '.tenants[] | select(.name == "intruder") | [.from, .max_sessions]'
worker worker vqps 1
is '["workers"]' "a worker with the uid is the file's tenant's" '[.sessions_list[].tenant]'
kill "$worker"
ctl tenant create guests uids=54322
is '[true]' "another tenant comes" '[.tenants[] | select(.name == "guests") | true]'
ctl node cordon node-a
is true "the node is cordoned" .node_state.cordoned
ctl node uncordon node-a
is false "and no more" .node_state.cordoned
ctl window set all scope=device ops=8
is 8 "a window changes" '.windows.device.limit_ops'
ctl tenant delete guests
is '[]' "the other tenant goes" '[.tenants[] | select(.name == "guests")]'
says '[false,true]' "the metaserver knows what is not in force" \
    '[.applied.behind, (.applied.why | startswith("tenant intruder: "))]'
followed() {
    for name in settings_revision settings_behind settings_incomplete metaservers; do
        metric "$name"
    done | jq -sc .
}
becomes "[$(status | jq .settings.revision),0,1,1]" "so do the metrics" followed .
ctl tenant delete intruder
is '""' "until all is" '.settings.why'
becomes "[$(status | jq .settings.revision),0,0,1]" "which the metrics say too" followed .

# As many tenants as a metaserver has, beside the file's own.
for n in $(seq 64); do ctl tenant create "many$n" uids=$((60000 + n)); done
is '[65,""]' "as many tenants as there can be have room beside the file's" \
    '[(.tenants | length), .settings.why]'
for n in $(seq 64); do ctl tenant delete "many$n"; done
is '[1,""]' "and go" '[(.tenants | length), .settings.why]'
revision=$(status | jq .settings.revision)
ctl window set each scope=destination bytes=65536
limit() {
    curl -sf --unix-socket "$work/a.admin" http://a/metrics |
        sed -n 's/^kedge_agent_window_limit_bytes{scope="destination"} //p'
}
is 1 "a window to each destination comes" ".settings.revision - $revision"
[[ $(limit) == 65536 ]] || fail "the metrics show a limit of $(limit)"

# A worker may look at what it was lent until it closes: whoever is told to go keeps its
# memory until then.
sed -i 's/^uids = .*/uids = 54321/' "$work/a.conf"
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent does not start"
guests='.tenants[] | select(.name == "guests")'
ctl tenant set guests uids="$me"
is '[0,null]' "a tenant without bounds has none" "$guests | [.sessions, .max_sessions]"
worker worker vqps 1
is 1 "its worker is there" "$guests | .sessions"
ctl tenant delete guests
is '[1,[true]]' "the worker of a tenant that goes keeps what it has" \
    "[.sessions.ending, [$guests | .leaving]]"
kill -0 "$worker" || fail "the worker ended: $(cat "$work/worker.out")"
for _ in $(seq 20); do
    now=$(status | jq -c "[.sessions.ending, [$guests | .leaving]]")
    [[ $now == '[1,[true]]' ]] || fail "it lost it while it was there: $now"
done
kill -KILL "$worker"
is '[0,[]]' "until it ends" "[.sessions.ending, [$guests | .leaving]]"

# A metaserver at which nothing was ever set has revision 0, which is one too.
kill -TERM "${pids[metad]}"
wait "${pids[metad]}" || fail "the metaserver ended with $?"
rm "$work"/metad/metad.db*
metad_configure # at its port of before
daemon_start metad kedge-metad || fail "the metaserver does not start with an empty store"
is '[0,0]' "with a metaserver at which nothing is set the agent has seen what is in force" \
    '[.settings.revision, .settings.seen]'
becomes '[0,0,0,1]' "and is not behind" followed .
stop
