#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool with two lanes over RC, whose second one loses its metaserver while it has workers: the
# metaserver begins anew with room for fewer further lanes, and another node's are first. The pool's
# first lane READs for it, so that workers of both find nodes, names and regions that nobody of them
# knew, and nothing of theirs fails; and when there is room again it READs by itself.
source "$(dirname "$0")/lib.sh"
needs_built kedge-finder publish_region
[[ $provider == soft ]] || { skip "a metaserver begins anew on soft alone"; exit 77; }
transport=rc
agents=4 more_metad="max_endpoints = 64"
cluster_directories
mkdir -m 0700 "$work/metad"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver did not start"
port=$(sed -n 's/.*ready, port //p' "$work/metad.out")
url=http://127.0.0.1:$port
begin_agent() { # name; lines of [pool]
    mkdir -p -m 0700 "$work/state-$1"
    agent_configure "$@"
    daemon_start "$1" kedge-agentd || fail "agent $1 did not start"
    agent_wait "$1" || fail "agent $1 did not register"
}
begin_metad() { # how many endpoints, and further lanes, it has room for
    more_metad="max_endpoints = $1" metad_configure
    daemon_start metad kedge-metad || fail "the metaserver did not start again"
}
end_daemon() {
    kill -TERM "${pids[$1]}"
    wait "${pids[$1]}" || fail "$1 did not end well"
    unset "pids[$1]"
}
of_lanes() { # agent expression
    curl -sf --unix-socket "$work/$1.admin" http://a/v1/status | jq -c "[.pools[0].lanes[] | $2]"
}
# Lanes that the metaserver has a queue pair for.
reading() { curl -sf "$url/metrics" | sed -n "s/^kedge_metad_table_responders //p"; }
relays() { of_lanes a .lane.relays | jq '.[0]'; }
begin_agent a "lanes = 2"
until_is 2 "the metaserver has both lanes" reading

# Four workers share a lane, and the fifth has the other one.
find_life() { # number: a worker that looks for the name and for node-c, throughout
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-finder" life node-c >"$work/finder.$1" 2>&1 &
    finder[$1]=$!
    worker_pids+=($!)
    for _ in $(seq $((1200 * slow))); do
        [[ ! -s $work/finder.$1 ]] || return 0
        sleep 0.05
    done
    fail "worker $1 looks nothing up"
}
finder=()
for n in 1 2 3 4; do find_life $n; done
until_is '[4,0]' "workers of a tenant share a lane" of_lanes a .sessions.live
find_life 5
until_is '[4,1]' "and one has the other" of_lanes a .sessions.live
until_is '[0,0]' "each READs by itself" of_lanes a .lane.relays

# Three of the other node's lanes have what there is room for, before the agent of `a`, which is
# stopped meanwhile, asks again.
begin_agent b "lanes = 4"
until_is 6 "and another node's four" reading
kill -STOP "${pids[a]}"
end_daemon metad
begin_metad 3
until_is 4 "which it has again when it has begun anew" reading
kill -CONT "${pids[a]}"
# It hears of the restart when it asks, and is refused then.
until_is 5 "of this one's it has the first alone" reading
grep -q 'all 3 queue pairs that this metaserver has for further lanes are in use' "$work/a.log" ||
    fail "the agent does not say why"

# A node that nobody knows, and a region by its name.
tried() { # number: how often that worker has looked, to the end of a line
    wc -l <"$work/finder.$1"
}
failed_before=$(of_lanes a .lane.failed)
begin_agent c
publish() { # life
    rm -f "$work/hold.c"
    mkfifo "$work/hold.c"
    exec 8<>"$work/hold.c"
    : >"$work/published"
    KEDGE_SOCKET=$work/c.sock "$bin/publish_region" life "$1" \
        <&8 >"$work/published" 2>"$work/publish.log" &
    publisher=$!
    worker_pids+=($!)
    until_is published "life $1 has its name" cat "$work/published"
}
finds() { # number life
    [[ $(tail -n 1 "$work/finder.$1") != "lookup: $2; node: connected" ]] || echo yes
}
relayed=$(relays)
publish 1
for n in 1 5; do
    until_is yes "worker $n finds the new node, and reads the region of that name" finds $n 1
done
is_more() { # than so many
    (($(relays) <= $1)) || echo yes
}
until_is yes "the first lane READs for the other" is_more "$relayed"

# And another one, of the same name: who has it is looked up again, by both.
kill -KILL "$publisher"
wait "$publisher" 2>/dev/null || true
publish 2
declare -A first_line
for n in 1 5; do
    until_is yes "worker $n finds the next one" finds $n 2
    first_line[$n]=$(($(tried $n) + 1))
done
relayed=$(relays)
looked_again() { # number: 30 times
    (($(tried "$1") < first_line[$1] + 30)) || echo yes
}
for n in 1 5; do until_is yes "worker $n goes on" looked_again $n; done
for n in 1 5; do
    tail -n "+${first_line[$n]}" "$work/finder.$n" >"$work/later.$n"
    lacks "$work/later.$n" -vx 'lookup: 2; node: connected' ||
        fail "worker $n does not always find it: $(cat "$work/later.$n")"
done
ok "each time"
until_is yes "by READs of the first lane still" is_more "$((relayed + 20))"
until_is "$failed_before" "no request of theirs failed" of_lanes a .lane.failed
until_is '[4,1]' "and all have the lanes that they had" of_lanes a .sessions.live
find_life 6
until_is '[5,1]' "one that comes gets the lane that looks up by itself" of_lanes a .sessions.live

# The other node goes, and there is room.
end_daemon b
until_is 3 "the metaserver has both lanes again, and the third node's" reading
before=$(tried 5) relayed=$(relays)
first_line[5]=$((before + 1))
until_is yes "the worker goes on" looked_again 5
until_is "$relayed" "and its lane READs by itself" relays
tail -n "+$((before + 1))" "$work/finder.5" >"$work/later.5"
lacks "$work/later.5" -vx 'lookup: 2; node: connected' ||
    fail "worker 5 does not always find it: $(cat "$work/later.5")"
for n in 1 2 3 4 5 6; do
    kill -0 "${finder[$n]}" 2>/dev/null || fail "worker $n ended: $(tail -n 3 "$work/finder.$n")"
done
ok "nobody of them has ended"
stop
