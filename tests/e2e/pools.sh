#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool grows and shrinks as operators say while workers read and others come and go, and no
# operation fails; bursts find sessions ready; what cannot be in force before a restart is said, and
# is then; without a metaserver too.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
start
ready='[.sessions.ready, .memory.arenas_ahead]'
transport=$(status | jq -r .transport)
is '[16,16]' "the file's numbers are in force" "$ready"

# Bursts: the first one finds what is always kept, the next one as many as came.
burst() { # workers; prints how many of them found all ready
    local n pids=() had now
    had=$(metric attached_ahead_total)
    for n in $(seq "$1"); do
        KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" vqps 1 >"$work/burst.$n" 2>&1 &
        pids+=($!)
    done
    for n in $(seq "$1"); do
        for _ in $(seq $((1200 * slow))); do [[ ! -s $work/burst.$n ]] || break; sleep 0.05; done
        grep -q then "$work/burst.$n" || fail "a worker of the burst: $(cat "$work/burst.$n")"
    done
    now=$(metric attached_ahead_total)
    kill "${pids[@]}"
    wait "${pids[@]}" 2>/dev/null || true
    rm -f "$work"/burst.*
    found=$((now - had))
}
ctl pool set default nodes=all sessions_ahead=1 arenas_ahead=1 ahead_max=64
is '[1,1]' "little is kept ready" "$ready"
burst 24
first=$found
is true "what is kept follows what came" '.sessions.ready >= .pool.sessions_ahead and
    .pool.sessions_ahead == ([.pool.demand_per_s, 1] | max)'
kept=$(status | jq .pool.sessions_ahead)
burst 24
ok "of 24 workers of a burst $first found all ready, of the next $found; $kept are kept"
((found >= first && found >= (kept < 24 ? kept : 24))) ||
    fail "the second burst found $found ready, not $kept"
ctl pool delete default
is '[16,16]' "and is no more when nobody says so" "$ready"

# Workers read from the other node all the while, and others come and go.
export_text b "what is read"
for n in 1 2; do
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" reader "$token" "what is read" \
        >"$work/reader$n.out" 2>&1 &
    worker_pids+=($!)
done
come_and_go() {
    while [[ -e $work/traffic ]]; do
        KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/read_region" "$token" \
            >"$work/visitor.out" 2>&1 ||
            cat "$work/visitor.out" >>"$work/visitors.failed"
        echo >>"$work/visitors"
    done
}
touch "$work/traffic"
come_and_go &
traffic=$!
for _ in $(seq $((1200 * slow))); do
    [[ ! -s $work/reader1.out || ! -s $work/reader2.out || ! -s $work/visitors ]] || break
    sleep 0.05
done
[[ -s $work/visitors ]] || fail "nobody comes: $(cat "$work/visitor.out")"
[[ -s $work/reader1.out && -s $work/reader2.out ]] || fail "not both readers read"
before=$(cat "$work"/reader?.out)
completed=$(agent_number a completed)

ctl pool create default nodes=all sessions_ahead=40 arenas_ahead=40
is '[40,40]' "a pool that grows is in force, with workers that come and go" \
    '[.pool.sessions_ahead, .pool.arenas_ahead]'
refuses 5 'there' pool create default nodes=all sessions_ahead=4
ctl pool set default sessions_ahead=2 arenas_ahead=2
is '[2,2]' "one that shrinks too" '[.pool.sessions_ahead, .pool.arenas_ahead]'
is true "and what was ready is given back" '.sessions.ready <= 2 and .memory.arenas_ahead <= 2'
if [[ $transport == dc ]]; then
    ctl pool set default spares=9
    is '[9,""]' "spares are made" '.pool | [.spares, .why]'
    ctl pool set default spares=0
    is '[0,""]' "and destroyed" '.pool | [.spares, .why]'
fi
ctl pool delete default
is '["file",16,16]' "deleted, the file's numbers are in force again" \
    '.pool | [.from, .sessions_ahead, .arenas_ahead]'
rm "$work/traffic"
wait "$traffic" || true
[[ ! -e $work/visitors.failed ]] || fail "an operation failed: $(cat "$work/visitors.failed")"
[[ $(cat "$work"/reader?.out) == "$before" ]] ||
    fail "something changed for those that read: $(cat "$work"/reader?.out)"
ok "no operation failed: $(wc -l <"$work/visitors") workers came and went," \
    "$(($(agent_number a completed) - completed)) requests completed"
is '[16,16]' "it is filled up again" "$ready"

# What needs a restart is said, and is in force after one; without a metaserver too.
refuses 2 'mr_lease' pool set default mr_lease=5
if [[ $transport == dc ]]; then
    ctl pool set default nodes=all sessions_ahead=5 arenas_ahead=6 ahead_max= spares=5 dcis=6
    says true "what needs a restart is said" '.applied.why | contains("dcis 6 needs a restart")'
    says false "and is not behind" .applied.behind
    is '[5,6,8,5]' "the rest is in force" '.pool | [.sessions_ahead, .arenas_ahead, .dcis, .spares]'
    wanted='[5,6,6,5,""]'
else
    ctl pool set default nodes=all sessions_ahead=5 arenas_ahead=6 ahead_max= queue_pairs_ahead=20
    is true "queue pairs are made ahead" \
        '.connections.initiators_ready >= 20 and .connections.responders_ready >= 20'
    ctl pool set default queue_pairs_ahead=1000
    says true "what there is no room for is said" \
        '.applied.why | contains("queue_pairs_ahead is more than the 72")'
    ctl pool set default queue_pairs_ahead=20 connections=21 responders=40
    says true "what needs a restart is said" '.applied.why | contains(
        "connections 21 needs a restart of the agent (64 in force); responders 40 needs")'
    wanted='[5,6,8,2,""]'
fi
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
is "$wanted" "all of it is after a restart without any metaserver" \
    '.pool | [.sessions_ahead, .arenas_ahead, .dcis, .spares, .why]'
[[ $transport == dc ]] ||
    is '[21,40]' "and so many connections" '.pool | [.connections, .responders]'
is '[5,6]' "and so much is ready" "$ready"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver does not start again"
agent_wait a || fail "the agent did not register again"

# Which nodes, by label; in a file; watched.
timeout 600 "$bin/rdmactl" --server "$url" pool watch >"$work/watched" 2>&1 &
worker_pids+=($!)
cat >"$work/pools.json" <<'JSON'
[{"kind": "pool", "name": "default", "nodes": {"zone": "a"}, "sessions_ahead": 9},
 {"kind": "pool", "name": "elsewhere", "nodes": {"zone": "z"}, "sessions_ahead": 3}]
JSON
for _ in $(seq $((1200 * slow))); do [[ $(metad_metric watches) != 3 ]] || break; sleep 0.05; done
ctl apply -f "$work/pools.json"
is '["file",16]' "a pool of other nodes is none of this one's" '.pool | [.from, .sessions_ahead]'
ctl node label node-a zone=a
is '["metaserver",9]' "until it has the label" '.pool | [.from, .sessions_ahead]'
ctl pool list
shows '^default +zone=a +- +18029 +9 '
shows '^elsewhere +zone=z +- +24030 +3 '
ctl pool get default -o json
[[ $(jq -c .nodes "$work/out") == '{"zone":"a"}' ]] || fail "pool get: $(cat "$work/out")"
for _ in $(seq $((1200 * slow))); do
    ! grep -q 'pool elsewhere' "$work/watched" || break
    sleep 0.05
done
grep -q 'pool elsewhere  created' "$work/watched" || fail "watched: $(cat "$work/watched")"
ok "pools are watched"
stop
