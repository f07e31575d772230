#!/usr/bin/env bash
# A node whose state was put back to an earlier one: its agent begins anew above what the metaserver knows. Two agents
# with one id do not outrun each other for ever.
source "$(dirname "$0")/lib.sh"
agents=1
start
known=$(curl -sf "$url/v1/nodes/node-a" | jq .incarnation)
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
later=$((known + 1000))
# What another disk image of this host had registered meanwhile.
jq -n '{incarnation: '$later', endpoints: [{gid: "fd00::1", pool: 1, transports: ["dc"], dct_number: 1,
    dc_key: "0000000000000001", mtu: 4096, mr_table: {addr: "0000000000001000", rkey: 1, log2_slots: 8}}]}' >"$work/body"
curl -sf -X PUT -H 'Content-Type: application/json' --data "@$work/body" "$url/v1/nodes/node-a" >"$work/put" ||
    fail "registering a later incarnation by hand: $(cat "$work/put")"
daemon_start a kedge-agentd || fail "the agent did not start again"
for _ in $(seq 200); do
    now=$(curl -sf "$url/v1/nodes/node-a" | jq .incarnation)
    ((now > later)) && break
    sleep 0.05
done
((now > later)) || fail "the agent registered incarnation $now, not one above $later: $(tail -n 5 "$work/a.log")"
[[ $(agent_number a incarnation) == "$now" ]] || fail "the agent says $(agent_number a incarnation), the metaserver $now"
ok "an agent that was outrun ($later known) begins anew with $now"
grep -q 'beginning anew' "$work/a.log" || fail "the log does not say why"
export_text a "after that"
out=$(read_text a "$token") || fail "reading after that: $out"
[[ $(tail -n 1 <<<"$out") == "after that" ]] || fail "read back: $out"
ok "and its workers work"
exec 9>&-

# A second agent under the same id takes it over once; then both stay as they are, and the loser says why.
mkdir -m 0700 "$work/state-b"
agent_configure b
sed -i 's/^node = node-b/node = node-a/' "$work/b.conf"
daemon_start b kedge-agentd || fail "the second agent did not start"
for _ in $(seq 200); do
    grep -q '409' "$work/a.log" && break
    sleep 0.05
done
grep -q '409' "$work/a.log" || fail "the first agent does not say that it was outrun: $(tail -n 5 "$work/a.log")"
settled=$(curl -sf "$url/v1/nodes/node-a" | jq .incarnation)
sleep 2
[[ $(curl -sf "$url/v1/nodes/node-a" | jq .incarnation) == "$settled" ]] || fail "two agents outrun each other for ever"
ok "of two agents with one id the later one stays"
agents=2
stop
