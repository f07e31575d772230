#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists of WRITEs that a message ends are heard when they are there, or not at all; counters are
# raised once for each, by who has their token, whoever dies meanwhile.
source "$(dirname "$0")/lib.sh"
needs_built kedge-notifier kedge-hostile
# An agent that begins anew has the address that it had.
[[ $provider != soft ]] || gids=(fd00::{0..8})
part=1
[[ $provider == soft ]] || part=10 # of what is repeated: a guest is slow
some() { echo $(($1 / part)); }
agents=0
start
agents=2
begins() { # agent lines of [pool]...
    local name=$1; shift
    more_tenants="[tenant other]
socket = $work/$name-other.sock"
    mkdir -p -m 0700 "$work/state-$name"
    agent_configure "$name" "$@"
    daemon_start "$name" kedge-agentd || fail "agent $name did not start"
    agent_wait "$name" || fail "agent $name did not register"
}
begins a "messages = yes"
begins b "messages = yes"

# A worker in the background, until it has said what others need; sets $gid, $region, $counter.
declare -A pid_of=()
begins_worker() { # name socket last mode...
    local name=$1 socket=$2 last=$3; shift 3
    KEDGE_SOCKET=$work/$socket.sock "$bin/kedge-notifier" "$@" >"$work/$name.out" 2>&1 &
    pid_of[$name]=$!
    worker_pids+=($!)
    for _ in $(seq $((600 * slow))); do
        ! grep -qs "^$last" "$work/$name.out" || break
        kill -0 "${pid_of[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    grep -q "^$last" "$work/$name.out" || fail "$name: $(cat "$work/$name.out")"
    gid=$(sed -n 's/^hears //p' "$work/$name.out")
    region=$(sed -n 's/^region //p' "$work/$name.out")
    counter=$(sed -n 's/^counter //p' "$work/$name.out")
}
ends() { # name signal
    kill -"$2" "${pid_of[$1]}"
    wait "${pid_of[$1]}" 2>/dev/null || true
}
notifier() { # socket mode...; prints what it says
    local socket=$1; shift
    KEDGE_SOCKET=$work/$socket.sock timeout $((60 * slow)) "$bin/kedge-notifier" "$@" 2>&1
}
says() { # pattern sentence socket mode...
    local pattern=$1 sentence=$2 out; shift 2
    out=$(notifier "$@") || true
    grep -Pzq -- "$pattern" <<<"$out" || fail "$sentence: it says $out"
    ok "$sentence: $(tr '\n' ' ' <<<"$out")"
}
value() { # name
    sed -n 's/^says //p' "$work/$1.out" | tail -n 1
}

# Whoever hears of it has it all.
begins_worker hearer b "hears" hear 80
says "^$(some 3000) were whole\n" \
    "lists, batches and WRITEs with immediate are there when one hears" \
    a lists "$gid" 80 "$region" $(some 3000)
says "^$(some 600) were whole\n" "from the same node too" b lists "$gid" 80 "$region" $(some 600)
kill -0 "${pid_of[hearer]}" || fail "who hears them has ended: $(cat "$work/hearer.out")"

# Counters.
begins_worker owner b counter owner
says '^500 raised\n' "lists raise a counter" a raise "$counter" "$region" 500
until_is 500 "its owner, who sleeps, hears of each" value owner
for at in 0 7 15; do
    says '^70 ended with 10 as a WRITE: .*\n71 ended with 5 as a WRITE: [^\n]*\n$' \
        "of a list whose WRITE $at fails that is the one completion" \
        a fail "$counter" "$region" "$at"
done
says '^1 raised\n' "and the next one raises" a raise "$counter" "$region" 1
until_is 501 "while those that failed have not" value owner
says '^ended with 11 as a SEND: ' "by another secret it is not raised" a forge "$counter"
unknown=$(notifier a forge "$counter")
says '^ended with 11 as a SEND: ' "nor by another tenant without the token" a-other forge "$counter"
owners=$counter owners_region=$region
begins_worker poller b-other counter poller
says '^ended with 11 as a SEND: ' "nor is another worker's by that" a forge "$counter"
says '^300 raised\n' "who has the token raises it, of another tenant" \
    a-other raise "$owners" "$owners_region" 300
until_is 801 "which is counted" value owner
begins_worker poller2 b counter poller
says '^100 raised\n' "one whose owner sleeps in poll()" a raise "$counter" "$region" 100
until_is 100 "says so to it" value poller2

# A sender is killed: what it had completed is counted, and nothing twice.
begins_worker owner2 b counter owner
KEDGE_SOCKET=$work/a.sock "$bin/kedge-notifier" raise "$counter" "$region" 4000000 \
    >"$work/killed.out" 2>&1 &
killed=$!
worker_pids+=($killed)
until_is 1 "a sender goes on" grep -c '^goes on' "$work/killed.out"
kill -KILL $killed
wait $killed 2>/dev/null || true
until_is 0 "nothing of it is out any more" agent_number a inflight
before=-1
until [[ $(value owner2) == "$before" ]]; do
    before=$(value owner2)
    sleep 1
done
((before >= 200)) || fail "200 lists were over, and $before are counted"
says '^250 raised\n' "its next life raises it on" a raise "$counter" "$region" 250
until_is $((before + 250)) "exactly, from the $before of before" value owner2

# The owner is killed.
streams() { # name
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-notifier" raise "$counter" "$region" 4000000 \
        >"$work/$1.out" 2>&1 &
    stream=$!
    worker_pids+=($stream)
    until_is 1 "a sender goes on" grep -c '^goes on' "$work/$1.out"
}
streams stream
former=$counter
ends owner2 KILL
wait $stream || fail "the sender: $(cat "$work/stream.out")"
grep -Eq '^ended with (10|11|12) ' "$work/stream.out" || fail "it says $(cat "$work/stream.out")"
ok "a worker that was killed ends its sender's lists: $(tr '\n' ' ' <"$work/stream.out")"
begins_worker owner3 b counter owner
says '^0 raised\nended with 11 as a SEND: ' "its token is nobody's any more" \
    a raise "$former" "$region" 10
says '^10 raised\n' "and a new one is" a raise "$counter" "$region" 10
until_is 10 "the new owner's" value owner3

# A worker that does all that it may not.
for role in messages counters; do
    "$bin/kedge-hostile" $role --socket "$work/b-other.sock" --ms 2000 >"$work/$role.out" 2>&1 &
    guilty=$!
    worker_pids+=($guilty)
    says '^500 raised\n' "lists go on beside $role" a raise "$counter" "$region" 500
    wait $guilty || fail "$role: $(cat "$work/$role.out")"
    ok "$(cat "$work/$role.out")"
done
until_is 1010 "and nothing else has raised it" value owner3

# The owner's agent dies, and begins anew.
streams stream2
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null || true
wait $stream || fail "the sender: $(cat "$work/stream2.out")"
grep -Eq '^ended with (10|12|13) ' "$work/stream2.out" || fail "it says $(cat "$work/stream2.out")"
ok "an agent that was killed ends them: $(tr '\n' ' ' <"$work/stream2.out")"
former=$counter
end_workers
worker_pids=()
begins b "messages = yes"
begins_worker owner4 b counter owner
until_is "10 raised" "its next life has counters of its own" \
    notifier a raise "$counter" "$region" 10
says '^ended with 11 as a SEND: ' "and none of the former" a forge "$former"

# The sender's agent dies, and begins anew.
streams stream3
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
wait $stream 2>/dev/null || true
before=-1
until [[ $(value owner4) == "$before" ]]; do
    before=$(value owner4)
    sleep 1
done
begins a "messages = yes"
says '^50 raised\n' "the next life of a sender's agent raises the same one" \
    a raise "$counter" "$region" 50
until_is $((before + 50)) "exactly, from the $before of before" value owner4
[[ $unknown == *"no counter of its has that token"* ]] || fail "what a stranger hears: $unknown"
stop
