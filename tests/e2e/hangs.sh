#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that answers nothing any more, while its agent begins and while it serves: the agent ends
# within its bound when it is told to, and says what it waited for.
source "$(dirname "$0")/lib.sh"
[[ $provider == soft ]] || { skip "a device is made to hang on soft alone"; exit 77; }
source "$(dirname "$0")/lib-follow.sh"
agents=1
start
ends_within_bound() { # sentence: was told to end
    kill -TERM "${pids[a]}"
    for _ in $(seq $((600 * slow))); do kill -0 "${pids[a]}" 2>/dev/null || break; sleep 0.05; done
    ! kill -0 "${pids[a]}" 2>/dev/null || fail "$1: it does not end: $(tail -n 5 "$work/a.log")"
    code=0
    wait "${pids[a]}" || code=$?
    unset "pids[a]"
    [[ $code == 0 ]] || fail "$1: it ended with $code: $(tail -n 5 "$work/a.log")"
}
await_closed() { # pool
    for _ in $(seq $((200 * slow))); do
        ! grep -q "pool closed pool=$1" "$work/a.log" || return 0
        sleep 0.05
    done
    fail "pool $1 is not closed: $(tail -n 5 "$work/a.log")"
}
ends_within_bound "a device that answers"
! grep -q 'does not answer' "$work/a.log" || fail "a device that answers is not waited for"

more_fabric="fault = hang_while=$work/hang" agent_configure a
: >"$work/hang"
: >"$work/a.log"
setsid "$bin/kedge-agentd" --config "$work/a.conf" >"$work/a.out" 2>>"$work/a.log" </dev/null &
pids[a]=$!
for _ in $(seq $((200 * slow))); do
    ! grep -q 'faults are injected' "$work/a.log" || break
    sleep 0.05
done
grep -q 'faults are injected' "$work/a.log" || fail "it does not begin: $(tail -n 5 "$work/a.log")"
ends_within_bound "a device that hangs at the start"
no_answer='the device does not answer: what the agent has of it is left to the kernel'
making='for="making a protection domain" during="making what the agent lends"'
grep -q "$no_answer.*$making" "$work/a.log" ||
    fail "it does not say what it waited for: $(tail -n 5 "$work/a.log")"
! grep -q '^kedge-agentd: ready' "$work/a.out" || fail "it says that it is ready"
ok "an agent whose device hangs while it begins ends when it is told to," \
    "and says what it waited for"

rm "$work/hang"
daemon_start a kedge-agentd || fail "the agent does not start again"
agent_wait a || fail "it does not register again"
pools='[.pools[] | [.name, .state]]'
ctl pool create batch nodes=all sessions_ahead=2 arenas_ahead=2
is '[["default","running"],["batch","running"]]' "another pool is made" "$pools"
is '[2,2]' "and is ready" '.pools[1] | [.sessions.ready, .memory.arenas_ahead]'
: >"$work/hang"
ctl pool delete batch
gone='"default"' # over DC what peers reach goes first, and is waited for by nobody either
[[ $transport == rc ]] || gone='"default","batch"'
is "[$gone]" "the pool goes, as far as it can, and the agent answers" \
    '[.pools[] | select(.state != "leaving") | .name]'
export_text a "there"
! grep -q 'pool closed' "$work/a.log" || fail "a pool is closed of which the device has something"
exec 9>&-
rm "$work/hang" "$work/hold-a"
is '[["default","running"]]' "it is gone when the device goes on" "$pools"
await_closed batch
ok "a pool that goes while its device hangs keeps nobody waiting"

: >"$work/hang"
ctl pool create slow nodes=all sessions_ahead=2 arenas_ahead=2
for_long='the device has been making a protection domain for long'
is "\"pool slow: $for_long, and the pool begins when that is over (see dmesg)\"" \
    "a pool that cannot begin is said, and for what it waits" '.settings.why'
ctl pool create behind nodes=all
is true "and one behind it" \
    '.settings.why | contains("pool behind: pool slow is being made, and it comes after that")'
is '[["default","running"]]' "neither is there" "$pools"
export_text a "there"
exec 9>&-
rm "$work/hold-a"
ctl pool delete behind
ctl pool delete slow
is '""' "one that is given up before it has begun is said no more" '.settings.why'
rm "$work/hang"
ctl pool create slow nodes=all sessions_ahead=2 arenas_ahead=2
is '[["default","running"],["slow","running"]]' "and can be made when the device goes on" "$pools"
ctl pool delete slow
is '[["default","running"]]' "and goes" "$pools"
await_closed slow # else the next one of that name waits for it
ok "a pool that begins while its device hangs keeps nobody waiting"

: >"$work/hang"
ctl pool create slow nodes=all
is true "a pool begins" \
    '.settings.why | contains("pool slow: the device has been making a protection domain")'
ends_within_bound "a device that hangs while a pool begins"
giving_back='during="giving back what the device has"'
grep -q "$no_answer.*$giving_back" "$work/a.log" ||
    fail "it does not say what it waited for: $(tail -n 5 "$work/a.log")"
ok "an agent that is told to end while a pool begins ends within its bound"
rm "$work/hang"
ctl pool delete slow
daemon_start a kedge-agentd || fail "the agent does not start after that"
agent_wait a || fail "it does not register after that"

: >"$work/hang"
export_text a "there"
curl -sf --max-time 20 --unix-socket "$work/a.admin" http://a/v1/status >/dev/null ||
    fail "its status does not come"
ends_within_bound "a device that hangs while the agent serves"
grep -q "$no_answer.*$giving_back" "$work/a.log" ||
    fail "it does not say what it waited for: $(tail -n 5 "$work/a.log")"
ok "one whose device hangs while it serves lends what it has ready, and ends likewise"
rm "$work/hang"
daemon_start a kedge-agentd || fail "the agent does not start once more"
agent_wait a || fail "it does not register once more"
ok "and begun again, it serves"
stop
