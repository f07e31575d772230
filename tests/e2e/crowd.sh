#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One local user with many uids, as whoever has subordinate ones or several containers: they hold
# connections to the socket for all that say nothing. Tenants' workers attach all the same, there
# and at a socket of their own, whether tenants have tokens or not.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
needs_built kedge-crowd
[[ $(id -u) == 0 ]] || { skip "many uids are needed, and only root can be them"; exit 77; }
own=$(mktemp -d /tmp/kedge-crowd-XXXXXX)
trap 'cleanup; rm -rf "$own"' EXIT
agents=1 more_pool="max_sessions = 64"
more_tenants="[tenant own]
socket = $own/own.sock"
start
chmod 0711 "$work"
uids=9 times=6
attach() { # socket sentence
    local i out
    for i in $(seq $times); do
        out=$(KEDGE_SOCKET=$1 timeout 60 "$bin/kedge-probe" beside 1 "$1" 2>&1) ||
            fail "$2, time $i: $out"
    done
    ok "$2: $times times of $times"
}
# With max_sessions = 64 all together may be 128, uids without a tenant 16, one of them 8.
"$bin/kedge-crowd" $uids 30 "$work/a.sock" >"$work/crowd.out" 2>&1 &
worker_pids+=($!)
for _ in $(seq $((1200 * slow))); do [[ ! -s $work/crowd.out ]] || break; sleep 0.05; done
[[ $(cat "$work/crowd.out") == here ]] || fail "the crowd: $(cat "$work/crowd.out")"
attach "$work/a.sock" \
    "a tenant's worker attaches at the socket for all beside $uids uids that no tenant has"
attach "$own/own.sock" "and at its tenant's own"
before=$(agent_metric a crowded_total)
[[ $before == 0 ]] ||
    fail "while no token can be shown $before of the crowd's connections are waited for"
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-probe" "$bin"/../lib/libkedge.so* "$work/worker/"
out=$(setpriv --reuid 250000 --clear-groups \
    env "LD_LIBRARY_PATH=$work/worker" "KEDGE_SOCKET=$work/a.sock" \
    "$work/worker/kedge-probe" silent 2>&1) || fail "a stranger is told: $out"
useless='KEDGE_WORKER_TOKEN would not help: no tenant of this agent has a token)'
[[ $out == *'uid 250000 belongs to no tenant'*"$useless"* ]] ||
    fail "a stranger is told: $out"
ok "a stranger who comes once is told at once: $out"
out=$(agent_metric a kept_out_total)
((out >= uids)) || fail "of $uids uids that come again and again so many were kept out: $out"
grep -q 'that no tenant has connects too often.*uid=200' "$work/a.log" ||
    fail "the log does not name who is kept out"
if grep -q 'the kernel cannot refuse uids' "$work/a.log"; then
    skip "that the kernel keeps them out (this file system has no access lists)"
else
    for _ in $(seq 20); do # it is let in for a moment every five seconds
        out=$(setpriv --reuid 200000 --clear-groups \
            env "LD_LIBRARY_PATH=$work/worker" "KEDGE_SOCKET=$work/a.sock" \
            "$work/worker/kedge-probe" silent 2>&1) || true
        [[ $out != 'connecting: Permission denied'* ]] || break
        sleep 0.2
    done
    [[ $out == 'connecting: Permission denied'* ]] || fail "one of the crowd is told: $out"
    ok "who comes again and again is kept out by the kernel, counted and named: $out"
fi

# A token may be shown by any uid: those that no tenant has are let wait, in one share.
ctl tenant create boxed uids=
secret=$("$bin/rdmactl" --server "$admin" token create boxed-workers \
    scope=worker tenant=boxed -o json | jq -re .secret) ||
    fail "no token"
is '[1]' "the agent knows that a tenant has a token" \
    '[.tenants[] | select(.name == "boxed").tokens]'
for _ in $(seq $((600 * slow))); do
    (($(agent_metric a crowded_total) == 0)) || break
    sleep 0.05
done
attach "$work/a.sock" "where tokens are in use likewise at the socket for all"
attach "$own/own.sock" "and at its tenant's own"
KEDGE_WORKER_TOKEN=$secret attach "$work/a.sock" "and so does who shows a token"
(($(agent_metric a crowded_total) > 0)) || fail "no connection of the crowd made room"
grep -q 'too many connections that have not attached are open.*uid=200' "$work/a.log" ||
    fail "the log does not name the crowd"
ok "the crowd's own connections make room for each other, and are counted and named"

# A worker in a container may have a uid that no tenant has, and be known by its token alone; who
# guesses tokens has as many uids as he likes, or that worker's.
stranger() {
    setpriv --reuid "$1" --clear-groups \
        env "LD_LIBRARY_PATH=$work/worker" "KEDGE_SOCKET=$work/a.sock" "${@:2}"
}
chmod a+rx "$work/worker"/*
: >"$work/crowd.out"
"$bin/kedge-crowd" $uids 30 "$work/a.sock" kedge_boxed-workers_no >"$work/crowd.out" 2>&1 &
worker_pids+=($!)
for _ in $(seq $((1200 * slow))); do [[ ! -s $work/crowd.out ]] || break; sleep 0.05; done
[[ $(cat "$work/crowd.out") == here ]] || fail "the crowd that guesses: $(cat "$work/crowd.out")"
for _ in $(seq $((600 * slow))); do
    (($(agent_metric a wrong_tokens_total) == 0)) || break
    sleep 0.05
done
(($(agent_metric a wrong_tokens_total) > 0)) || fail "the crowd does not guess"
for uid in 300000 200000; do
    refused=0
    for i in $(seq $times); do
        stranger $uid "KEDGE_WORKER_TOKEN=$secret" \
            timeout 60 "$work/worker/kedge-probe" beside 1 "$work/a.sock" \
            >"$work/stranger.out" 2>&1 || refused=$((refused + 1))
    done
    ((refused == 0)) ||
        fail "of $times workers of uid $uid that show a token $refused are refused:" \
            "$(cat "$work/stranger.out")"
    ok "a worker of uid $uid that shows a token attaches beside $uids uids that guess:" \
        "$times times of $times"
done
stop
rm -rf "$own"
