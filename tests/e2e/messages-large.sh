#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Messages of more than 16 KiB, which their receivers READ from where the senders have them: whole
# and in order at all sizes, in several pieces at both ends; who dies meanwhile, or takes none, ends
# those that it concerns, in bounded time, and what was lent is nobody's then.
source "$(dirname "$0")/lib-messages.sh"
begins a "messages = yes"
begins b "messages = yes"
mib=1048576 longest=$((16 * 1048576))
# Where registering memory is slow they have less of it, and several pieces yet.
[[ $provider == soft ]] || export MESSENGER_MEMORY_MIB=8
[[ $provider == soft ]] || longest=$((2 * mib))
export MESSENGER_MOST=$longest
small() { MESSENGER_MOST=16384 "$@"; }
# Regions that senders of large messages have lent are of sessions, and go with them.
lends_nothing() { # agent
    until_is 0 "$2" lane "$1" mrs
}

hears echo b echo 90
pings 100 "messages of 16 KiB and a byte are answered, whole and in order" a 90 16385 2
pings 100 "of 64 KiB" a 90 65536 2
pings 40 "of 1 MiB" a 90 $mib 2
pings 10 "of $((longest / mib)) MiB" a 90 $longest 2
pings 20 "and of all lengths" a 90 0 2
small hears letters b echo 91
small pings 1000 "small ones go beside" a 91 0 16
MESSENGER_MOST=65536 hears both b echo 92
MESSENGER_MOST=65536 pings 400 "small and large ones of one queue pair are in order" a 92 0 16
pings 4 "a worker of the same node is one like others" b 90 $mib 2
pings=()
for i in 1 2 3 4; do
    MESSENGER_MOST=65536 messenger $([[ $i -gt 2 ]] && echo a || echo b) \
        ping "$gid" 92 $((200 / part)) 0 8 >"$work/ping-$i" &
    pings+=($!)
done
for i in 1 2 3 4; do
    wait "${pings[i - 1]}" || fail "one of four workers: $(cat "$work/ping-$i" "$work/both.out")"
done
ok "four workers at a time, of both nodes"
still_hears both
(($(lane a messages_large) > 100 / part && $(lane b messages_large) > 100 / part)) ||
    fail "large ones: $(lane a messages_large) and $(lane b messages_large)"
ok "both agents count them"

# For another tenant.
MESSENGER_GRANT=other MESSENGER_MOST=65536 hears door b echo 197
MESSENGER_OWNER=workers MESSENGER_MOST=65536 \
    pings 200 "a tenant that is let in sends large ones, and is answered" a-other 197 0 8
MESSENGER_GRANT=other hears shuts b sink 198
MESSENGER_OWNER=workers KEDGE_SOCKET=$work/a-other.sock "$bin/kedge-messenger" \
    stream "$gid" 198 $longest >"$work/guest.out" 2>&1 &
shut=$!
worker_pids+=($shut)
until_is 1 "a guest streams" grep -c '^streams' "$work/guest.out"
kill -USR1 "${hearer[shuts]}"
wait "$shut" || fail "the guest: $(cat "$work/guest.out")"
grep -Eq '^1 ended with 11: ' "$work/guest.out" || fail "it ended: $(cat "$work/guest.out")"
in_time 2000 "one that is shut out stops while its message is READ" "$(cat "$work/guest.out")"
says '^2 ended with 0: ' "its own tenant's are READ as before" a send "$gid" 198 2 $mib

# Errors, each at the queue pair that it concerns.
hears short b hear 93 2 100000
says '^1 ended with 9: .*\n1 ended with 5: never sent: ' \
    "too long for the buffer" a send "$gid" 93 2 100001
until_is 1 "where the receive says so" grep -cx 'receive 1 0' "$work/short.out"
says '^1 ended with 0: ' "the next one is for what fits" a send "$gid" 93 1 100000
until_is 1 "and is there" grep -cx 'receive 0 100000' "$work/short.out"
hears full b hear 94 0 64
refused=$(messenger a beside "$gid" 94 91 $mib) || true
grep -Pzq '^1 ended with 13: .*\nbeside others\nand 100 behind it\n' <<<"$refused" ||
    fail "nobody takes it: $refused"
ok "who never takes one leaves its sender an error, and others their messages"
in_time 3000 "in bounded time" "$(messenger a send "$gid" 94 1 $mib)"
says '^1 ended with 11: ' "nobody has bound the port" a send "$gid" 95 1 $mib
hears deaf b deaf 96 2
says '^2 ended with 0: ' "who pops nothing gets what it has buffers for" a send "$gid" 96 2 $mib
says '^1 ended with 13: ' "and no more" a send "$gid" 96 1 $mib
lends_nothing a "what senders have lent goes with them"

# Senders die while they are READ: what was for them is for the next.
small hears words b sink 97
hears sink b sink 85
for i in 1 2 3 4 5 6; do
    streams stream $longest >/dev/null
    sleep 0.0$i
    kill -KILL $stream
    wait $stream 2>/dev/null || true
    still_hears sink
    says '^2 ended with 0: ' "sender $i was killed, and the next one is heard" \
        a send "$gid" 85 2 $longest
done
still_hears words
lends_nothing a "and nothing of theirs is lent"
until_is 256 "all receives are posted" lane b receives_posted

# The receiver's worker dies, and the sender hears so.
for i in 1 2 3; do
    streams stream $longest >/dev/null
    ends sink KILL
    wait "$stream" || fail "the stream: $(cat "$work/stream.out")"
    grep -Eq '^1 ended with 11: ' "$work/stream.out" ||
        fail "it ended: $(cat "$work/stream.out")"
    in_time 3000 "receiver $i was killed: its sender hears" "$(cat "$work/stream.out")"
    hears sink b sink 85
    says '^2 ended with 0: ' "and another one may bind its port" a send "$gid" 85 2 $mib
done
lends_nothing a "nothing is lent to those that are gone"

# The receiver's agent dies, and begins anew.
streams stream $longest
until_is 1 "one region is lent for all of them" lane a mrs
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null || true
wait "$stream" || fail "the stream: $(cat "$work/stream.out")"
grep -Eq '^1 ended with (12|13): ' "$work/stream.out" || fail "it ended: $(cat "$work/stream.out")"
in_time 10000 "the receiver's agent was killed" "$(cat "$work/stream.out")"
lends_nothing a "nothing is lent to it either"
begins b "messages = yes"
end_workers
worker_pids=()
hears echo b echo 90
until_is "4 answered" "its next life answers" messenger a ping "$gid" 90 4 $mib 2

# The sender's agent dies: its peer stops, and hears the next life.
hears sink b sink 85
streams stream $longest
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
begins a "messages = yes"
until_is "4 answered" "the sender's agent was killed: its next life is answered" \
    messenger a ping "$gid" 90 4 $mib 2
still_hears sink
says '^2 ended with 0: ' "and heard where the former one was" a send "$gid" 85 2 $longest
until_is 256 "all receives are posted after all of that" lane b receives_posted
stop
