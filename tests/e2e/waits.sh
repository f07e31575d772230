#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a worker's requests wait for, as its operator sees it: at a window; and for a path, while the
# device answers nothing that its agent asks of it. On the host and through the metaserver.
source "$(dirname "$0")/lib.sh"
agents=2
more_fabric="fault = hang_while=/tmp/kedge-waits-$$" hang=/tmp/kedge-waits-$$
more_pool='window_ops = 1'
trap 'rm -f "$hang"; cleanup' EXIT
start

ctl() { timeout 60 "$bin/rdmactl" --agent-socket "$work/a.admin" "$@"; }
waits() { ctl worker list -o json | jq -r "[.workers[].waits.$1 // 0] | add // 0"; }
through() { # word
    timeout 60 "$bin/rdmactl" --server "$url" worker list --node node-a -o json |
        jq -r "[.workers[].waits.$1 // 0] | add // 0"
}
at_least_one() { # command...: prints 1 if what it prints is 1 or more
    local n
    n=$("$@") && ((n > 0)) && echo 1
}
worker() { ctl worker list -o json | jq -r '.workers[0].id'; }
says() { # sentence: that a worker waits, by the words of worker get; its load may be in between
    ctl worker get "$(worker)" | grep -Eo "$1" | head -n 1
}

is_shown() { until_is 1 "$1" at_least_one "${@:2}"; }

# ---- at a window
"$bin/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" --depth 32 \
    --count 1000000000 >"$work/load.out" 2>&1 &
worker_pids+=($!)
busy=$!
is_shown "a worker is shown to wait at the device's window" waits device_window
is_shown "and with the request that is out" waits answer
is_shown "through the metaserver too" through device_window
sentence='device_window: 1 virtual queue pair: the window of the device is full'
until_is "$sentence" "and it is said in a sentence" says "$sentence"
until_is 'device_window=1' "and in the list" \
    eval 'ctl worker list | grep -o "device_window=1" | head -n 1'
kill -0 "$busy" || fail "the load ended: $(cat "$work/load.out")"
kill -TERM "$busy"
wait "$busy" 2>/dev/null || true
until_is 0 "it has gone" eval 'ctl worker list -o json | jq ".workers | length"'

# ---- for a path: of an agent that knows none yet
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "it ended with $?"
daemon_start a kedge-agentd || fail "it does not start again"
agent_wait a
export_text b "what was waited for"
touch "$hang"
read_text a "$token" >"$work/read" 2>&1 &
worker_pids+=($!)
reader=$!
is_shown "a worker is shown to wait for a path that the device does not make" waits path
is_shown "through the metaserver too" through path
ctl worker get "$(worker)" >"$work/said"
grep -Eq '^waits +path=1$' "$work/said" &&
    grep -q '^  path: 1 virtual queue pair: the path to the node that it goes to is being made' \
        "$work/said" || fail "it says $(cat "$work/said")"
ok "and it is said in a sentence"
rm "$hang"
wait "$reader" || fail "it reads nothing: $(cat "$work/read")"
grep -q 'what was waited for' "$work/read" || fail "it reads $(cat "$work/read")"
ok "when the device goes on it does too"
stop
