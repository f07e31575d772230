#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Descriptors that a stranger sends to the attach socket: the kernel refuses them where it can, and
# elsewhere it is not the agent that pays for their end.
source "$(dirname "$0")/lib.sh"
agents=1 mib=256 times=3
needs_built kedge-old-kernel
# The time on processors of the thread that serves workers, and of the process that closes for it
# and its children, in ticks of 10 ms.
ticks() { # main|others
    case $1 in
    main) cat "/proc/${pids[a]}/task/${pids[a]}/stat" ;;
    others) cat "/proc/$(pgrep -P "${pids[a]}" -x kedge-closer)/stat" ;;
    esac | sed 's/.*) //' | awk '{print $12 + $13 + $14 + $15}'
}
probe() { KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" "$@" 2>&1; }

run_under=$bin/kedge-old-kernel
start
main=$(ticks main) others=$(ticks others)
for i in $(seq $times); do
    kill -STOP "${pids[a]}" # until the sender has closed its own
    probe descriptors $mib >"$work/sent.$i" &
    sender=$!
    for _ in $(seq $((600 * slow))); do [[ ! -s $work/sent.$i ]] || break; sleep 0.05; done
    kill -CONT "${pids[a]}"
    wait "$sender" || fail "descriptors are: $(cat "$work/sent.$i")"
    [[ $(cat "$work/sent.$i") == $'sent\ncut off' ]] ||
        fail "descriptors are: $(cat "$work/sent.$i")"
done
for _ in $(seq $((200 * slow))); do # until the last of them is closed
    pgrep -P "$(pgrep -P "${pids[a]}" -x kedge-closer)" >/dev/null || break
    sleep 0.05
done
sleep 0.2
main=$(($(ticks main) - main)) others=$(($(ticks others) - others))
((2 * main <= others)) ||
    fail "the thread that serves workers pays for what strangers send: $main ticks," \
        "and $others of the others"
((others >= 3)) || fail "$times memfds of $mib MiB end in $others ticks: nothing was sent"
ok "memfds of $((times * mib)) MiB cost the thread that serves workers $main ticks," \
    "and others $others"
out=$(probe beside 1 "$work/a.sock") || fail "nobody attaches after that: $out"
ok "and workers attach"
stop

unset run_under
trap cleanup EXIT
start
out=$(probe descriptors 1) && {
    skip "whether the kernel refuses descriptors: this one cannot" \
        "(SO_PASSRIGHTS came with Linux 6.16)"
    stop
    exit 0
}
[[ $out == "not sent: EPERM" ]] || fail "descriptors that the kernel can refuse are: $out"
ok "where the kernel can, it refuses them: $out"
stop
