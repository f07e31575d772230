#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers of two nodes send each other messages: each comes once, in order and whole; what can go
# wrong is an error of verbs at the queue pair that it concerns, in bounded time, and nobody else's.
source "$(dirname "$0")/lib-messages.sh"
needs_built kedge-hostile
begins a "messages = yes"
begins b "messages = yes"

says '^64\n' "a session has so many receives" a max
hears echo b echo 80
pings 4000 "messages of one length are answered by who hears them" a 80 64 16
pings 4000 "and of all lengths, in order and whole" a 80 0 32
pings 2000 "and one after the other" a 80 100 1
pings 2000 "a worker of the same node is one like others" b 80 0 16
pings=()
for i in 1 2 3 4; do
    messenger $([[ $i -gt 2 ]] && echo a || echo b) ping "$gid" 80 $((2000 / part)) 0 8 \
        >"$work/ping-$i" &
    pings+=($!)
done
for i in 1 2 3 4; do
    wait "${pings[i - 1]}" || fail "one of four workers: $(cat "$work/ping-$i" "$work/echo.out")"
done
ok "four workers at a time, of both nodes"
still_hears echo

# Errors, each at the queue pair that it concerns.
hears full b hear 81 0 64
says '^1 ended with 13: .*\nbeside others\nand 100 behind it\n' \
    "no buffer: RNR, for that queue pair alone" a beside "$gid" 81 80 24
hears short b hear 82 3 100
says '^1 ended with 9: .*\n2 ended with 5: .*a message before it was refused' \
    "too long for the buffer" a send "$gid" 82 3 101
until_is 1 "where the receive says so" grep -cx 'receive 1 0' "$work/short.out"
says '^2 ended with 0: .*\n1 ended with 13: ' "and hears on, as far as it has receives" \
    a send "$gid" 82 3 100
grep -cx 'receive 0 100' "$work/short.out" | grep -qx 2 || fail "it has $(cat "$work/short.out")"
ok "which hold the messages"
says '^1 ended with 11: .*\n4 ended with 5: ' "nobody has bound the port" a send "$gid" 83 5 64
unbound=$(messenger a send "$gid" 83 1 64)
strange=$(messenger a-other send "$gid" 80 1 64)
in_time 1000 "another tenant's port is refused" "$strange"
[[ $(head -n 1 <<<"$strange") == "$(head -n 1 <<<"$unbound")" ]] ||
    fail "that a port is another tenant's is said: $strange, and not $unbound"
ok "as one that nobody has bound"
says 'hears' "which the other tenant may bind itself" b-other bind 80
says 'hears port 80' "and no second worker of the tenant" b bind 80
still_hears echo

# Ports for another tenant: whom a worker lets in, and nobody else.
MESSENGER_GRANT=other hears door b echo 86
strange=$(MESSENGER_OWNER=workers messenger a-other send "$gid" 80 1 64)
[[ $(head -n 1 <<<"$strange") == "$(head -n 1 <<<"$unbound")" ]] ||
    fail "that a port is there is said to another tenant: $strange, and not $unbound"
ok "a port beside it is to another tenant as one that nobody has bound"
(($(lane b messages_unadmitted) > 0)) || fail "b counts $(lane b messages_unadmitted) strangers"
[[ $(lane b port_guests) == 1 ]] || fail "b counts $(lane b port_guests) tenants that are let in"
ok "operators see how often, and that one tenant is let in"
MESSENGER_OWNER=workers \
    pings 4000 "a tenant that is let in sends of all lengths, and is answered" a-other 86 0 32
MESSENGER_OWNER=workers pings 1000 "also from the same node" b-other 86 0 16
pings 2000 "as is its own tenant" a 86 0 16
still_hears door
MESSENGER_GRANT=other hears flooded b sink 87
for i in 1 2 3; do
    MESSENGER_OWNER=workers KEDGE_SOCKET=$work/a-other.sock "$bin/kedge-messenger" \
        stream "$gid" 87 1000 >"$work/guest-$i.out" 2>&1 &
    guests[i]=$!
    worker_pids+=($!)
done
for i in 1 2 3; do
    until_is 1 "guest $i streams" grep -c '^streams' "$work/guest-$i.out"
done
says '^64 ended with 0: ' "beside three streams of guests its own tenant is heard" \
    a send "$gid" 87 64 1000
kill -USR1 "${hearer[flooded]}"
for i in 1 2 3; do
    wait "${guests[i]}" || fail "guest $i: $(cat "$work/guest-$i.out")"
    grep -Eq '^1 ended with 11: ' "$work/guest-$i.out" || fail "$(cat "$work/guest-$i.out")"
    in_time 1000 "guest $i is shut out" "$(cat "$work/guest-$i.out")"
done
grep -qx 'shut out' "$work/flooded.out" || fail "it says $(cat "$work/flooded.out")"
[[ $(MESSENGER_OWNER=workers messenger a-other send "$gid" 87 1 64 | head -n 1) == \
    "$(head -n 1 <<<"$unbound")" ]] || fail "who is shut out is told more than who never was in"
ok "and hears what a stranger does"
says '^64 ended with 0: ' "its own tenant is heard as before" a send "$gid" 87 64 1000

# Whoever never pops has his senders wait, and nobody else's.
hears deaf b deaf 84 4
says '^1 ended with 13: .*\nbeside others\nand 100 behind it\n' "who pops nothing" \
    a beside "$gid" 81 80 24
says '^4 ended with 0: .*\n1 ended with 13: .*\n11 ended with 5: ' \
    "what it has receives for is there, the next one is not" a send "$gid" 84 16 64
pings 1000 "others' messages go on beside it" a 80 0 16

# Nor does another tenant that does all that it may, or may not.
for role in messages message-flood ports; do
    "$bin/kedge-hostile" $role --socket "$work/b-other.sock" --ms 2000 >"$work/$role.out" 2>&1 &
    guilty=$!
    worker_pids+=($guilty)
    pings 1000 "others' messages go on beside $role" a 80 0 16
    wait $guilty || fail "$role: $(cat "$work/$role.out")"
    ok "$(cat "$work/$role.out")"
done

# Nor does one that floods a port of its: as a stranger there, and as a guest, who takes receives
# of its hearer's. What the slowest of 100 take is said: it is no bound where many share processors.
ends door TERM
slowest() { # sentence
    local out
    out=$(messenger a post "$gid" 86 $((2000 / part)) 64) || fail "$1: $out"
    ok "$1: $(tail -n 1 <<<"$out")"
}
beside_flood() { # who port
    HOSTILE_PORT=$2 "$bin/kedge-hostile" foreign-port --socket "$work/b-other.sock" --ms 3000 \
        >"$work/foreign.out" 2>&1 &
    guilty=$!
    worker_pids+=($guilty)
    sleep 0.2
    slowest "beside $1 who floods it"
    wait $guilty || fail "foreign-port: $(cat "$work/foreign.out")"
    ok "$(cat "$work/foreign.out")"
}
hears door b drain 86
slowest "a port, one message after the other"
beside_flood "a stranger" ""
ends door TERM
MESSENGER_GRANT=other hears door b drain 86
beside_flood "a guest" 86
still_hears door
ends door TERM

# The receiver's worker dies.
hears other b sink 85
streams stream 24
ends other KILL
wait "$stream" || fail "the stream: $(cat "$work/stream.out")"
grep -Eq '^1 ended with 11: ' "$work/stream.out" || fail "it ended: $(cat "$work/stream.out")"
in_time 2000 "a worker that was killed ends its senders' messages" "$(cat "$work/stream.out")"
hears other b echo 85
pings 500 "and another one may bind its port" a 85 0 8
ends other TERM

# The receiver's agent dies, and begins anew: what its former life has granted buys nothing.
hears other b sink 85
streams stream 24
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null || true
wait "$stream" || fail "the stream: $(cat "$work/stream.out")"
grep -Eq '^1 ended with (12|13): ' "$work/stream.out" || fail "it ended: $(cat "$work/stream.out")"
in_time 10000 "an agent that was killed ends them" "$(cat "$work/stream.out")"
begins b "messages = yes"
end_workers
worker_pids=()
hears echo b echo 80
until_is "200 answered" "its next life answers, with credit of its own" \
    messenger a ping "$gid" 80 200 0 8
pings 4000 "and goes on" a 80 0 32

# What operators see.
for field in messages_sent messages_received; do
    (($(lane a "$field") > 1000 / part && $(lane b "$field") > 1000 / part)) ||
        fail "$field: $(lane a "$field") and $(lane b "$field")"
done
ok "both agents count what was sent and received"
(($(lane a messages_rnr) > 0)) || fail "no RNR is counted at the sender: $(lane a messages_rnr)"
ok "and that there was no buffer"
pool() { # agent field
    "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json |
        jq ".pools[0].messages.$2"
}
[[ $(pool a receives) == 256 && $(pool a for_workers) == true ]] || fail "the pool's: $(pool a .)"
until_is 256 "all receives are posted, whatever was sent" lane b receives_posted
for name in lane_messages_sent_total lane_messages_received_total lane_receives_posted \
        message_memory_bytes; do
    of_all=$(agent_metric a $name | awk '{ n += $1 } END { print n + 0 }') # lanes
    [[ $of_all -gt 0 ]] || fail "kedge_agent_$name is $of_all"
done
ok "metrics have them too"

# An agent without the setting says that there are none, and its peers hear so.
end_workers
worker_pids=()
kill -TERM "${pids[b]}"
wait "${pids[b]}" || fail "agent b did not end well"
begins b
[[ $(messenger b max) == 0 ]] || fail "a session has $(messenger b max) receives"
says '^bind: this host.s agent carries no messages' "without the setting a worker hears so" \
    b bind 80
# Whose agent has not heard yet that this one began anew asks the former life once, in vain.
first=$(messenger a send "$gid" 80 1 64) || true
grep -Eq '^1 ended with (2|12): ' <<<"$first" || fail "the first one: $first"
says '^1 ended with 2: .*\n1 ended with 5: ' "and so does who sends to one of its node" \
    a send "$gid" 80 2 64
stop
