#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the settings say of windows is held to under load, changes while requests are in flight, and is shown to the
# operator; what makes no sense changes nothing.
source "$(dirname "$0")/lib.sh"
agents=2
more_pool='window_ops = 4
window_bytes = 0
destination_window_bytes = 1MiB'
more_tenants='window_bytes = 64KiB'
start

status() { "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json; }
window() { status | jq ".windows.$1"; }
metric() { # name labels
    curl -sf --unix-socket "$work/a.admin" http://a/metrics | sed -n "s/^kedge_agent_window_$1{$2} //p"
}
is() { # value sentence command...
    local wanted=$1 sentence=$2 now; shift 2
    for _ in $(seq 200); do
        now=$("$@")
        [[ $now == "$wanted" ]] && { ok "$sentence"; return; }
        sleep 0.05
    done
    fail "$sentence: $now, not $wanted"
}
load() { # more options; in the background, until it is stopped
    "$bin/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" --depth 64 --size 4096 \
        --count 1000000000 "$@" >"$work/load.out" 2>&1 &
    worker_pids+=($!)
    busy=$!
}
settings() { # window_ops window_bytes: of the device
    sed -i "/^\[pool\]/,/^\[tenant/{s/^window_ops = .*/window_ops = $1/; s/^window_bytes = .*/window_bytes = $2/}" "$work/a.conf"
    kill -HUP "${pids[a]}"
}
waits() { window device.waits; }
grows() { # sentence
    local before now; before=$(waits)
    for _ in $(seq 200); do
        now=$(waits)
        ((now > before)) && { ok "$1"; return; }
        sleep 0.05
    done
    fail "$1: nothing waited any more after $before requests"
}
holds() { # ops: 20 looks at what is in flight
    local now
    for _ in $(seq 20); do
        now=$(window device.in_flight_ops)
        ((now <= $1)) || fail "$now requests are in flight, of $1 that may be"
    done
    ok "never more than $1 in flight when the operator looks"
}

is 4 "the operator sees the device's limit" window device.limit_ops
is null "and that there is none of bytes" window device.limit_bytes
is 65536 "and the tenant's" window 'tenants[0].limit_bytes'
is 1048576 "and, in the metrics, the destinations'" metric limit_bytes 'scope="destination"'
load
grows "requests wait for the device's window"
holds 4
is 4 "the most that was in flight is what may be" window device.most_ops
is 16384 "in bytes too" window device.most_bytes
[[ $(metric in_flight_operations 'scope="device"') -le 4 && $(metric most_operations 'scope="device"') == 4 ]] ||
    fail "the metrics say otherwise"
grep -q '^windows.device.limit_ops *4 *$' <<<"$("$bin/rdmactl" --agent-socket "$work/a.admin" agent status)" ||
    fail "rdmactl's table does not show the window"

settings 9 0
is 9 "a larger window comes into force under load" window device.limit_ops
is 9 "and is used" window device.most_ops
settings 2 6000
is 2 "a smaller one too" window device.limit_ops
grows "requests wait for it"
holds 2
sed -i 's/^window_ops = .*/window_ops = many/' "$work/a.conf"
kill -HUP "${pids[a]}"
for _ in $(seq 200); do grep -q 'the settings stay as they were' "$work/a.log" && break; sleep 0.05; done
grep -q 'the settings stay as they were.*window_ops must be a number' "$work/a.log" || fail "nobody said what is wrong"
is 2 "settings that make no sense change nothing" window device.limit_ops
settings 2 100
is 100 "a window smaller than a request" window device.limit_bytes
grows "lets them go one by one"
holds 1
kill -0 "$busy" || fail "the load ended: $(cat "$work/load.out")"
! grep -q 'restart it for the other settings' "$work/a.log" || fail "windows alone have changed, and the log wants a restart"
sed -i '/^\[pool\]/a max_vqps = 255' "$work/a.conf"
settings 0 0
is null "no window at all" window device.limit_ops
is 0 "and nobody waits any more" window device.waiting
for _ in $(seq 200); do grep -q 'restart it for the other settings' "$work/a.log" && break; sleep 0.05; done
grep -q 'restart it for the other settings' "$work/a.log" || fail "nobody said that other settings have changed"
ok "other settings need a restart, and the log says so"
settings 3 0
grows "and again one"
kill -TERM "$busy"
wait "$busy" 2>/dev/null || true
is 0 "a worker that ends leaves the window" window device.in_flight_ops
is 0 "and nobody waiting" window device.waiting
is 0 "and its tenant's" window 'tenants[0].in_flight_bytes'
stop
