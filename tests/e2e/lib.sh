# SPDX-License-Identifier: Apache-2.0
# What the tests of the main job share. Sourced with the build directory as $1. On which provider
# they run, see ops/cluster.sh. What a test leaves out it says in a line that begins with "skip:";
# ops/test prints those.
set -euo pipefail
bin=${1:?usage: $0 BUILD_DIRECTORY}/bin
# Our own programs are part of the build: that one is missing is a mistake, and no reason to skip.
needs_built() { # program...
    local program
    for program in "$@"; do
        [[ -x $bin/$program ]] || { echo "FAILED: $bin/$program is not built"; exit 1; }
    done
}
needs_built kedge-metad kedge-agentd rdmactl kedge-perf export_region read_region
for tool in jq curl; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
source "$(dirname "${BASH_SOURCE[0]}")/../../ops/cluster.sh"
# Whatever sends or receives bears these: soft takes no address and no queue pair that does not.
service=("service_level = 3" "traffic_class = 104")
[[ $provider != soft ]] || service+=("flow_label = 74565" "pkey_index = 2")
worker_pids=()
end_workers() {
    local pid
    for pid in "${worker_pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}
cleanup() {
    end_workers
    cluster_stop 2>/dev/null || true
}
trap cleanup EXIT

# Machines are slow now and then, and a guest under emulation always: limits of time are so many
# times longer there.
slow=${KEDGE_TEST_SLOW:-1}
skip() { echo "skip: $*"; }
# In guests it is said when, so that one that is slow somewhere shows where.
ok() { echo "ok: $*${KEDGE_TEST_SLOW:+ (after $SECONDS s)}"; }
source "$(dirname "${BASH_SOURCE[0]}")/lib-lacks.sh"
fail() {
    echo "FAILED: $*"
    tail -n 20 "$work"/*.log 2>/dev/null || true
    exit 1
}
start() { cluster_start || fail "the cluster did not start"; }
# Workers that are left see their agents end, and are ended then.
stop() { cluster_stop || fail "the cluster did not stop"; end_workers; trap - EXIT; }

# Waits until what the command prints is the value.
until_is() { # value sentence command...
    local value=$1 sentence=$2 now
    shift 2
    for _ in $(seq $((1200 * slow))); do
        now=$("$@" 2>/dev/null) || now=nothing
        [[ $now != "$value" ]] || { ok "$sentence"; return; }
        sleep 0.05
    done
    fail "$sentence: $now, not $value"
}

# Starts a worker of an agent that exports a text until it is killed; sets $token.
export_text() { # agent text [command to run it with...]
    local agent=$1 text=$2; shift 2
    mkfifo "$work/hold-$agent"
    # the shell that begins the worker may come to it only after this one looks
    : >"$work/token-$agent"
    "$@" env KEDGE_SOCKET="$work/$agent.sock" "$bin/export_region" "$text" \
        <"$work/hold-$agent" >"$work/token-$agent" 2>"$work/export-$agent.log" &
    worker_pids+=($!)
    exec 9>"$work/hold-$agent"
    for _ in $(seq 1200); do
        token=$(cat "$work/token-$agent")
        [[ -z $token ]] || return 0
        sleep 0.05
    done
    fail "the exporting worker printed no token"
}

# Reads it back through an agent; prints what read_region prints.
read_text() { # agent token [command to run it with...]
    local agent=$1 token=$2; shift 2
    timeout 60 "$@" env KEDGE_SOCKET="$work/$agent.sock" "$bin/read_region" "$token"
}

# A number of an agent's metrics; of each pool, if they have it.
agent_metric() { # agent name
    curl -sf --unix-socket "$work/$1.admin" http://a/metrics |
        sed -n "s/^kedge_agent_$2\({pool=[^}]*}\)\? //p"
}
