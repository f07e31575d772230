#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers and a lane sleep thousands of times, and none of these sleeps has a time-out: a wake-up
# that is lost is a sleep for ever, which is a failure here. And so that this is seen, one kind of
# wake-up after the other is lost on purpose.
source "$(dirname "$0")/lib.sh"
needs_built kedge-agentd-endless kedge-sleepers
[[ $provider == soft ]] || { echo "skip: it runs on soft alone"; exit 77; }

# The agents are those whose lanes sleep without an end.
built=$(realpath "$bin") bin=$(mktemp -d /tmp/kedge-sleeps-XXXXXX)
ln -s "$built"/* "$bin"
ln -sf "$built/kedge-agentd-endless" "$bin/kedge-agentd"
trap 'cleanup; rm -rf "$bin"' EXIT
agents=2

begins() { # polling
    # 64 slots, so that a batch that is prepared finds no room many times over
    more_pool="polling = $1
sq_slots = 64
max_inflight = 64"
    start
    export_text b "what is waited for"
}
ends() { # as stop(), which forgets the trap
    stop
    trap 'cleanup; rm -rf "$bin"' EXIT
}
sleepers() { # seed rounds seconds ways
    SLEEPS_SEED=$1 KEDGE_SOCKET=$work/a.sock timeout $((300 * slow)) \
        "$bin/kedge-sleepers" "$token" "$2" $((slow * $3)) "$4" 2>&1
}

# A sanitizer sees no more in the second one.
seeds="1 2"
! grep -q -a __asan_init "$built/kedge-agentd-endless" || seeds=1
seeds=${SLEEPS_SEEDS:-$seeds}
for polling in adaptive event; do
    begins "$polling"
    for seed in $seeds; do
        out=$(SLEEPS_LOSE='' sleepers "$seed" 3000 60 wwmmmrfff) || fail "polling = $polling: $out"
        read -ra slept < <(tr -dc '0-9 \n' <<<"$out") # rounds, and for one, many, room, in epoll
        for kind in 1 2 3 4; do
            ((slept[kind] >= 1000)) || fail "these are few sleeps: $out"
        done
        ok "polling = $polling, seed $seed: $out"
    done
    (($(agent_number a sleeps) >= 1000)) || fail "the lane slept $(agent_number a sleeps) times"
    ok "and the lane slept $(agent_number a sleeps) times"
    ends
done

# Each of them says who sleeps.
loses() { # what ways sentence
    local out
    export SLEEPS_LOSE=$1:200
    begins event
    ! out=$(sleepers 3 100000 5 "$2") || fail "$1 is lost, and nobody sleeps for ever: $out"
    grep -Eq -- "$3" <<<"$out" || fail "$1 is lost: it says $out"
    ok "$1 is lost, and seen: $out"
    unset SLEEPS_LOSE
    end_workers
    ends
}
# That this test sees what is lost is of the test: a sanitizer has nothing to say of it, and under
# one each of these takes as long as a worker waits.
if [[ -z ${KEDGE_TEST_LONG-} ]] && grep -q -a __asan_init "$built/kedge-agentd-endless"; then
    skip "that a wake-up that is lost is seen (ops/test --long and the release build have it)"
    rm -rf "$bin"
    exit
fi
loses doorbell w "the lane sleeps over [1-9][0-9]* slots of its ring"
loses wake m "the worker sleeps over [1-9][0-9]* completions"
loses wake r "the worker sleeps over (the room that there is|an answer)"
loses tell f "sleeps in epoll_wait.*the worker sleeps over [1-9][0-9]* completions"
rm -rf "$bin"
