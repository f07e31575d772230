#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Descriptors that can never be closed, from a stranger: only his own uid is refused, the others go
# on attaching, and the agent ends whether it is told to or killed, and begins again, while they are
# still there.
#
# UNANSWERED_COUNT: how many at a time (200).
source "$(dirname "$0")/lib.sh"
needs_built kedge-old-kernel kedge-unanswered kedge-probe
[[ $(id -u) == 0 ]] || { skip "only root mounts FUSE everywhere, and has two users"; exit 77; }
[[ -e /dev/fuse ]] || modprobe ${MODULES:+-d "$MODULES"} fuse 2>/dev/null || true
agents=1 worker_uids=65534 count=${UNANSWERED_COUNT:-200}
more_tenants='[tenant guilty]
uids = 65533'
honest="setpriv --reuid 65534 --clear-groups" guilty="setpriv --reuid 65533 --clear-groups"
run_under=$bin/kedge-old-kernel
start
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-probe" "$bin"/../lib/libkedge.so* "$work/worker/"
chmod -R a+rX "$work/worker"
export LD_LIBRARY_PATH=$work/worker KEDGE_SOCKET=$work/a.sock

attach() { timeout $((60 * slow)) "$@" "$work/worker/kedge-probe" beside 1 "$work/a.sock" 2>&1; }
attaches() { # when
    local out
    out=$(attach $honest) || fail "another uid does not attach $1: $out"
}
# Processes that hang in the end of what they were given; nobody may reap those whose
# parent has ended.
hanging() { ps -eo stat=,comm= | awk '$1 ~ /^D/ && $2 == "kedge-closer"' | wc -l; }
ended() { # pid: all of its threads, or nobody could wait for it
    ! kill -0 "$1" 2>/dev/null ||
        [[ $(awk '/^(State|Threads):/ {print $2}' "/proc/$1/status" 2>/dev/null |
            paste -sd ' ') == "Z 1" ]]
}
ends() { # pid sentence
    for _ in $(seq $((600 * slow))); do
        ! ended "$1" || { ok "$2"; return; }
        sleep 0.05
    done
    fail "not so: $2"
}
# Sends them, while the agent stands still: who sends them has closed his own when it
# looks. Sets $sent.
send() { # number of the attack
    kill -STOP "${pids[a]}"
    mkdir "$work/fuse.$1"
    "$bin/kedge-unanswered" "$work/a.sock" 65533 "$count" "$work/fuse.$1" >"$work/sent.$1" 2>&1 &
    worker_pids+=($!)
    for _ in $(seq $((600 * slow))); do [[ ! -s $work/sent.$1 ]] || break; sleep 0.05; done
    sent=$(cat "$work/sent.$1")
    [[ $sent != mount:* && $sent != /dev/fuse:* ]] || {
        skip "descriptors that never end: FUSE cannot be mounted: $sent"
        exit 77
    }
    [[ $sent == "sent "* ]] || fail "nothing is sent: $sent"
}

send 1
kill -CONT "${pids[a]}"
attaches "at once"
waits() { ps -eLo stat=,comm= | grep -E >/dev/null '^D.* kedge-(closer|agentd)$'; }
for _ in $(seq $((10 * slow))); do ! waits || break; sleep 1; done
waits || { skip "descriptors that never end: this kernel's FUSE does not wait"; exit 77; }
for _ in $(seq $((200 * slow))); do
    ! grep -q 'a uid is refused' "$work/a.log" || break
    sleep 0.05
done
grep -q 'a uid is refused.* uid=65533' "$work/a.log" || fail "nobody is refused"
! grep -q 'a uid is refused.* uid=65534' "$work/a.log" || fail "another uid is refused"
for i in $(seq 10); do attaches "after $sent"; done
out=$(attach $guilty) && fail "the uid that sent them attaches"
ok "$sent: $(hanging) processes hang, another uid attaches, and that one is refused: $out"
(($(hanging) <= 32)) || fail "one uid has $(hanging) processes"
timeout 30 "$bin/rdmactl" --agent-socket "$work/a.admin" agent status >/dev/null ||
    fail "the agent does not answer"

kill -TERM "${pids[a]}"
ends "${pids[a]}" "the agent ends when it is told to, while $(hanging) processes hang"
code=0
wait "${pids[a]}" || code=$?
((code == 0)) || fail "it ended with $code: $(tail -n 5 "$work/a.log")"

daemon_start a kedge-agentd || fail "the agent does not begin again while they hang"
attaches "after that"
ok "it begins again meanwhile, and workers attach"
# Nobody has looked at these when it is killed, nor accepted the connections.
send 2
kill -KILL "${pids[a]}"
ends "${pids[a]}" "the agent ends when it is killed with $sent, unseen"
wait "${pids[a]}" 2>/dev/null || true
daemon_start a kedge-agentd || fail "the agent does not begin again after it was killed"
attaches "after it was killed"
ok "it begins again after that, and workers attach"
# And nobody has accepted these when it is told to end.
send 3
kill -TERM "${pids[a]}"
kill -CONT "${pids[a]}"
ends "${pids[a]}" "the agent ends when it is told to with $sent, unseen"
wait "${pids[a]}" || fail "it ended with an error: $(tail -n 5 "$work/a.log")"
daemon_start a kedge-agentd || fail "the agent does not begin again after that"
before=$(hanging)
end_workers
worker_pids=()
until_is 0 "when the stranger has gone, none of $before processes is left" hanging
for _ in $(seq $((200 * slow))); do ! attach $guilty >/dev/null || break; sleep 0.1; done
out=$(attach $guilty) || fail "the uid that sent them is still refused: $out"
ok "and his uid attaches again"
stop
