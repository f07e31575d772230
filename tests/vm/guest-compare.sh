#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What compare.sh runs in its guest: each measurement's JSON goes to /out/NAME.json,
# one object a line.
#
#   guest-compare.sh BUILD_DIRECTORY ROUNDS
set -euo pipefail
bin=$1/bin rounds=$2
here=$(cd "$(dirname "$0")" && pwd)
ulimit -n 65536
ulimit -l unlimited
cd /tmp # on the guest's own tmpfs
export KEDGE_TEST_PROVIDER=verbs KEDGE_TEST_DEVICE=rxe0
# .4 and .5: verbs-connect
export KEDGE_TEST_GIDS="::ffff:10.0.1.1 ::ffff:10.0.1.2 ::ffff:10.0.1.3 ::ffff:10.0.1.6"
# What libibverbs opens to find its drivers is not to come from the host each time, through the
# emulator: a program would wait for that longer than for anything else. Touched, it is on the
# guest's own tmpfs.
touch /etc/libibverbs.d /etc/libibverbs.d/* /usr/lib/*/libibverbs* /usr/lib/*/libibverbs/* \
    /usr/lib/*/libnl* ||
    echo "touching libibverbs' files failed"
agents=3 more_tenants="sessions = 512" \
    more_agent="prove_every = 0ms" # whoever proves a path has met the peer
source "$here/../../ops/cluster.sh"
trap 'cp "$work"/*.log /out/ 2>/dev/null || true' EXIT

measure() { # name, arguments of kedge-perf...
    local name=$1; shift
    "$bin/kedge-perf" "$@" --json >>"/out/$name.json" || { echo "FAILED: kedge-perf $*"; exit 1; }
}
stop() { # agents...
    local name
    for name in "$@"; do kill -TERM "${pids[$name]}"; done
    for name in "$@"; do
        wait "${pids[$name]}" || {
            echo "FAILED: agent $name ended with $?"
            exit 1
        }
    done
}
# Both: what either has learnt of the other is gone.
begin_anew() { # faults, more lines of [pool]...
    local name fault=${1-}
    stop a b
    for name in a b; do
        agent_configure "$name" "${@:2}"
        [[ -z $fault ]] || sed -i "s/^provider = .*/&\nfault = $fault/" "$work/$name.conf"
        daemon_start "$name" kedge-agentd
    done
    for name in a b; do agent_wait "$name"; done
    sleep 1
}
handshakes() {
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
        jq .connections.connected
}
have_had() { # how many, what it means when that is not so
    [[ $(handshakes) == "$1" ]] || {
        echo "FAILED: $2: a has had $(handshakes) handshakes"
        exit 1
    }
}
# An agent that runs has met somebody: the first handshake of its life, with code and memory that
# nothing has touched yet, is not what a peer costs that it has never met. Each meets c in the part
# that it plays with the other.
meet_another() {
    local pair
    for pair in a:c c:b; do
        "$bin/kedge-perf" first-read --count 1 --socket "$work/${pair%:*}.sock" \
            --peer-socket "$work/${pair#*:}.sock" >/dev/null || {
            echo "FAILED: $pair do not meet"
            exit 1
        }
    done
}

cluster_start
both=(--socket "$work/a.sock" --peer-socket "$work/b.sock")
for ((round = 0; round < rounds; round++)); do
    ((round == 0)) || begin_anew
    have_had 0 "an agent that begins has met somebody"
    meet_another
    have_had 1 "it has not met the third, or others beside"
    measure never-met first-read --count 1 "${both[@]}"
    have_had 2 "the agents have not met now for the first time"
    measure known first-read --count 5 "${both[@]}"
    measure verbs verbs-connect --count 3 --gid ::ffff:10.0.1.4 --peer-gid ::ffff:10.0.1.5
done
measure attach attach --count 50 --socket "$work/a.sock"
measure connect connect --cached --count 20000 "${both[@]}"
measure read read --count 500 "${both[@]}"
# All of them have a session ready, so that nothing is made in the background of what is measured.
many=("sessions_ahead = 256" "arenas_ahead = 256" "arena_bytes = 64KiB")
for fault in "" loss=5% loss=20%,seed=3; do
    begin_anew "$fault" "${many[@]}"
    measure "storm${fault:+-${fault%,*}}" storm --workers 240 "${both[@]}" \
        --admin-socket "$work/a.admin"
done
cluster_stop
