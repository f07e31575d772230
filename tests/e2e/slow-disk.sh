#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A metaserver whose disk takes seconds: leases are renewed and everything is shown as before, who
# changes something waits, and what was waited for is there also when the metaserver is stopped
# meanwhile. strace(1) makes the disk slow.
source "$(dirname "$0")/lib-metad.sh"
command -v strace >/dev/null || { echo "skip: strace is not installed"; exit 77; }
# its search for leaks does not work under strace
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
delay_s=6
configure "node_lease = 5s"
start
strace_pid=
slow_down() {
    strace -f -p "$metad_pid" -e trace=fdatasync -e inject=fdatasync:delay_enter=${delay_s}000000 \
        -o "$work/trace" 2>"$work/strace" &
    strace_pid=$!
    for _ in $(seq 300); do
        ! grep -q attached "$work/strace" || return 0
        kill -0 "$strace_pid" 2>/dev/null || {
            echo "skip: strace may not attach: $(cat "$work/strace")"
            exit 77
        }
        sleep 0.1
    done
    fail "strace does not attach"
}
# In the background: its status is in $work/later when it is there.
change_later() { # method path body
    rm -f "$work/later"
    (curl -s --max-time 120 -o "$work/later-body" -w '%{http_code}' -X "$1" \
        -H 'Content-Type: application/json' --data-binary "$3" "$url$2" >"$work/later-part" &&
        mv "$work/later-part" "$work/later") &
    later_pid=$!
}
is_pending() { [[ ! -e $work/later ]]; }
is_waiting() {
    [[ $(curl -s --max-time 60 "$url/metrics" |
        sed -n 's/^kedge_metad_store_waiting //p') -ge 1 ]]
}
await_writing() {
    for _ in $(seq 300); do
        ! is_waiting || return 0
        sleep 0.1
    done
    fail "nothing waits for the store"
}

send PUT /v1/nodes/n1 "$(node 5 1)"
expect 201 "a node registers"
slow_down
change_later PUT /v1/tenants/web '{"uids":[5]}'
await_writing
renewed=0 shown=0
while is_pending; do
    send POST /v1/nodes/n1/renew '{"incarnation":5}'
    [[ $status == 200 ]] || fail "a renewal got $status"
    ! is_pending || renewed=$((renewed + 1))
    ask /v1/tenants/web
    [[ $status == 404 ]] || ! is_pending ||
        fail "the tenant is there before its change was answered: $status"
    ! is_pending || shown=$((shown + 1))
    sleep 0.2
done
# A slow machine asks seldom. One of each says nothing: who waits for its disk answers them with the
# change, whose answer is seen a moment later.
((renewed > 0 && shown > 0 && renewed + shown > 2)) ||
    fail "only $renewed renewals and $shown looks were answered while the disk took $delay_s s"
ok "$renewed renewals and $shown looks are answered while the disk takes $delay_s s for a change"
wait "$later_pid"
[[ $(cat "$work/later") == 201 ]] || fail "the change got $(cat "$work/later")"
ok "and then the change is answered"
ask /v1/nodes/n1
[[ $(jq -r .state "$work/body") == live ]] || fail "the node is $(jq -r .state "$work/body")"
ok "the node's lease has not ended"

change_later PUT /v1/tenants/db '{"uids":[6]}'
await_writing
ask /readyz
expect 503 "who asks whether it is ready hears that the disk does not answer"
kill -TERM "$metad_pid"
wait "$later_pid"
[[ $(cat "$work/later") == 201 ]] ||
    fail "the change got $(cat "$work/later") from a metaserver that stopped"
ok "a metaserver that is stopped answers what its disk has"
status=0
wait "$metad_pid" || status=$?
[[ $status == 0 ]] || fail "kedge-metad ended with $status after SIGTERM"
wait "$strace_pid" || true
metad_pid=
start
ask /v1/tenants/db
expect 200 "and it is there afterwards"
stop
