#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node whose state was put back to an earlier one: its agent begins anew above what the metaserver
# knows. Two agents with one id do not supersede each other for ever.
source "$(dirname "$0")/lib.sh"
needs_built kedge-probe
agents=1
start
known_to() { curl -sf "$1/v1/nodes/node-a" | jq .incarnation; } # metaserver
# What another disk image of this host, or another host of its name, registers.
endpoint='{gid: "fd00::1", pool: 1, transports: ["dc"], dct_number: 1,
    dc_key: "0000000000000001", mtu: 4096'
reader=
if [[ $provider != soft ]]; then # a device without DC
    endpoint="{gid: \"${gids[1]}\", pool: 1, transports: [\"rc\"], ud_qpn: 1, ud_qkey: 1, mtu: 1024"
    reader=", reader: {gid: \"${gids[1]}\", qpn: 77, psn: 1, mtu: 1024}"
fi
register() { # metaserver incarnation
    jq -n "{incarnation: $2, endpoints: [$endpoint,
        mr_table: {addr: \"0000000000001000\", rkey: 1, log2_slots: 8}}]$reader}" >"$work/body"
    curl -sf -X PUT -H 'Content-Type: application/json' --data "@$work/body" \
        "$1/v1/nodes/node-a" >"$work/put" ||
        fail "registering a later incarnation by hand: $(cat "$work/put")"
}
rises_above() { # metaserver incarnation
    for _ in $(seq 1200); do
        seen=$(known_to "$1" || echo 0)
        ((${seen:-0} <= $2)) || return 0
        sleep 0.05
    done
    fail "the agent registered incarnation $seen, not one above $2: $(tail -n 5 "$work/a.log")"
}
known=$(known_to "$url")
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
later=$((known + 1000))
register "$url" "$later"
daemon_start a kedge-agentd || fail "the agent did not start again"
rises_above "$url" "$later"
[[ $(agent_number a incarnation) == "$seen" ]] ||
    fail "the agent says $(agent_number a incarnation), the metaserver $seen"
ok "an agent that was superseded ($later known) begins anew with $seen"
grep -q 'beginning anew' "$work/a.log" || fail "the log does not say why"
export_text a "after that"
out=$(read_text a "$token") || fail "reading after that: $out"
[[ $(tail -n 1 <<<"$out") == "after that" ]] || fail "read back: $out"
ok "and its workers work"
exec 9>&-

# It happens while a worker is attached, and two metaservers know different ones, the second of
# which is heard later.
mkdir -m 0700 "$work/metad2"
port=0 metad_configure
sed "s#^data_dir = .*#data_dir = $work/metad2#
    s#^admin_socket = .*#admin_socket = $work/metad2.sock#
    s#^gid = .*#gid = ${gids[3]-}#" "$work/metad.conf" >"$work/metad2.conf"
daemon_start metad2 kedge-metad || fail "the second metaserver did not start"
url2=http://127.0.0.1:$(sed -n 's/.*ready, port //p' "$work/metad2.out")
KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" watch >"$work/outlives.out" &
outlives=$!
for _ in $(seq 1200); do grep -q attached "$work/outlives.out" && break; sleep 0.05; done
probe=$(pgrep -P "$outlives")
kill -STOP "$probe"
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
kill -CONT "$probe"
wait "$outlives" || true
grep -q '^ended: .*the agent is stopping' "$work/outlives.out" ||
    fail "who looks later was told: $(cat "$work/outlives.out")"
ok "a worker that looks after its agent has ended is told why: $(tail -n 1 "$work/outlives.out")"
sed -i "s#^metaservers = .*#metaservers = $url, $url2#" "$work/a.conf"
daemon_start a kedge-agentd || fail "the agent did not start again"
rises_above "$url2" 1
now=$(agent_number a incarnation)
KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" watch >"$work/watch.out" &
watcher=$!
for _ in $(seq 1200); do grep -q attached "$work/watch.out" && break; sleep 0.05; done
kill -STOP "${pids[a]}" # or it renews at the second one before that stands still
register "$url2" $((now + 300000))
kill -STOP "${pids[metad2]}"
register "$url" $((now + 200000))
kill -CONT "${pids[a]}"
rises_above "$url" $((now + 200000))
wait "$watcher" || true
grep -q '^ended: .*the agent has restarted: open another' "$work/watch.out" ||
    fail "the worker was told: $(cat "$work/watch.out")"
ok "an attached worker is told: $(tail -n 1 "$work/watch.out")"
kill -CONT "${pids[metad2]}"
rises_above "$url2" $((now + 300000))
rises_above "$url" $((now + 300000))
ok "each of two metaservers is outdone, $((now + 200000)) and $((now + 300000))" \
    "with $(agent_number a incarnation)"
# SIGTERM while it begins anew, which takes as long as it waits for the one that stands still.
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent did not start again"
rises_above "$url2" $((now + 300000))
rises_above "$url" $((now + 300000))
times=$(grep -c 'beginning anew' "$work/a.log")
kill -STOP "${pids[metad2]}"
register "$url" $((now + 500000))
for _ in $(seq 6000); do
    (($(grep -c 'beginning anew' "$work/a.log") == times)) || break
    sleep 0.01
done
(($(grep -c 'beginning anew' "$work/a.log") > times)) || fail "the agent does not begin anew"
kill -TERM "${pids[a]}"
for _ in $(seq 1200); do kill -0 "${pids[a]}" 2>/dev/null || break; sleep 0.05; done
if kill -0 "${pids[a]}" 2>/dev/null; then fail "SIGTERM was lost while the agent began anew"; fi
wait "${pids[a]}" || fail "the agent ended with $?"
ok "SIGTERM is not lost while the agent begins anew"
kill -CONT "${pids[metad2]}"
daemon_start a kedge-agentd || fail "the agent did not start again"
kill -TERM "${pids[a]}" "${pids[metad2]}"
wait "${pids[a]}" || fail "the agent ended with $?"
wait "${pids[metad2]}" || fail "the second metaserver ended with $?"
sed -i "s#^metaservers = .*#metaservers = $url#" "$work/a.conf"
daemon_start a kedge-agentd || fail "the agent did not start again"

# A device that does not give back what it had would have its say in the next life's memory.
rises_above "$url" $((now + 500000))
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
known=$seen before=${more_fabric-}
more_fabric="${before:+$before
}fault = destroy_error=100%" agent_configure a
: >"$work/a.log"
daemon_start a kedge-agentd || fail "the agent did not start with a device that destroys nothing"
register "$url" $((known + 1000))
for _ in $(seq 1200); do kill -0 "${pids[a]}" 2>/dev/null || break; sleep 0.05; done
! kill -0 "${pids[a]}" 2>/dev/null ||
    fail "it begins anew on a device that it could not close: $(tail -n 5 "$work/a.log")"
code=0
wait "${pids[a]}" || code=$?
[[ $code == 1 ]] || fail "it ended with $code"
grep -q 'the device cannot be closed: objects of it are left' "$work/a.log" ||
    fail "the log does not say what is left"
more_fabric=$before agent_configure a
: >"$work/a.log"
daemon_start a kedge-agentd || fail "the agent did not start again"
rises_above "$url" $((known + 1000))
! grep -q 'beginning anew' "$work/a.log" || fail "the process after it has to begin anew"
ok "an agent that cannot close its device leaves it to another process to begin anew"

# A second agent under the same id: each outdoes the other once, then both stay as they are, and
# the loser says why.
mkdir -m 0700 "$work/state-b"
agent_configure b
sed -i 's/^node = node-b/node = node-a/' "$work/b.conf"
daemon_start b kedge-agentd || fail "the second agent did not start"
for _ in $(seq 1200); do
    ! grep -q 'another agent registers as this node' "$work/a.log" "$work/b.log" || break
    sleep 0.05
done
grep -q 'another agent registers as this node' "$work/a.log" "$work/b.log" ||
    fail "nobody says that the other is there"
settled=$(curl -sf "$url/v1/nodes/node-a" | jq .incarnation)
sleep 2
[[ $(curl -sf "$url/v1/nodes/node-a" | jq .incarnation) == "$settled" ]] ||
    fail "two agents supersede each other for ever"
ok "of two agents with one id the later one stays"
agents=2
stop
