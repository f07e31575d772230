#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the settings say of windows is held to under load, changes while requests are in flight, and
# is shown to the operator; what makes no sense changes nothing. One destination can have a window
# of its own.
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
    curl -sf --unix-socket "$work/a.admin" http://a/metrics |
        sed -n "s/^kedge_agent_window_$1{$2} //p"
}
is() { # value sentence command...
    local wanted=$1 sentence=$2 now; shift 2
    for _ in $(seq 1200); do
        now=$("$@")
        [[ $now == "$wanted" ]] && { ok "$sentence"; return; }
        sleep 0.05
    done
    fail "$sentence: $now, not $wanted"
}
load() { # more options; in the background, until it is stopped
    "$bin/kedge-perf" read --socket "$work/a.sock" --peer-socket "$work/b.sock" --depth 64 \
        --size 4096 --count 1000000000 "$@" >"$work/load.out" 2>&1 &
    worker_pids+=($!)
    busy=$!
}
settings() { # window_ops window_bytes: of the device
    sed -i "/^\[pool\]/,/^\[tenant/{
        s/^window_ops = .*/window_ops = $1/
        s/^window_bytes = .*/window_bytes = $2/
    }" "$work/a.conf"
    kill -HUP "${pids[a]}"
}
waits() { window device.waits; }
ctl() {
    timeout 60 "$bin/rdmactl" --server "$url" "$@" >"$work/out" 2>&1 ||
        fail "rdmactl $*: $(cat "$work/out")"
}
named() { window "named[] | select(.name == \"$1\") | .$2"; }
to_b() { window "destinations[] | select(.gid == \"$gid\") | .$1"; }
grows() { # sentence
    local before now; before=$(waits)
    for _ in $(seq 1200); do
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
[[ $(metric in_flight_operations 'scope="device"') -le 4 &&
    $(metric most_operations 'scope="device"') == 4 ]] ||
    fail "the metrics say otherwise"
grep -q '^  device.limit_ops *4 *$' \
    <<<"$("$bin/rdmactl" --agent-socket "$work/a.admin" agent status)" ||
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
for _ in $(seq 1200); do
    grep -q 'the settings stay as they were' "$work/a.log" && break
    sleep 0.05
done
grep -q 'the settings stay as they were.*window_ops must be a number' "$work/a.log" ||
    fail "nobody said what is wrong"
is 2 "settings that make no sense change nothing" window device.limit_ops
settings 2 100
is 100 "a window smaller than a request" window device.limit_bytes
grows "lets them go one by one"
holds 1
kill -0 "$busy" || fail "the load ended: $(cat "$work/load.out")"
! grep -q 'restart it for the other settings' "$work/a.log" ||
    fail "windows alone have changed, and the log wants a restart"
sed -i '/^\[pool\]/a max_vqps = 255' "$work/a.conf"
settings 0 0
is null "no window at all" window device.limit_ops
is 0 "and nobody waits any more" window device.waiting
for _ in $(seq 1200); do
    grep -q 'restart it for the other settings' "$work/a.log" && break
    sleep 0.05
done
grep -q 'restart it for the other settings' "$work/a.log" ||
    fail "nobody said that other settings have changed"
ok "other settings need a restart, and the log says so"

# Of one destination.
gid=$("$bin/rdmactl" --server "$url" node get node-b -o json | jq -r '.endpoints[0].gid')
is null "no window for this destination has operations" to_b limit_ops
ctl window set to-b scope=destination node=node-b ops=3
is 3 "a window for one node alone comes into force under load" to_b limit_ops
is "\"$gid\"" "the operator sees whom it is for" named to-b 'gids[]'
is '""' "and that it holds" named to-b why
before=$(to_b waits)
for _ in $(seq 1200); do (($(to_b waits) > before)) && break; sleep 0.05; done
(($(to_b waits) > before)) || fail "no request waits at the destination"
for _ in $(seq 20); do
    now=$(to_b in_flight_ops)
    ((now <= 3)) || fail "$now requests are in flight to the node, of 3 that may be"
done
ok "requests wait for it, and never more than 3 are in flight when the operator looks"
is 1048576 "the window of each destination stands beside it" to_b limit_bytes
ctl window set to-b ops=2
is 2 "it changes" to_b limit_ops
ctl window set by-gid scope=destination gid="$gid" ops=1
is 1 "of two the narrower one holds" to_b limit_ops
ctl window set by-gid pool=other
is 2 "one for another pool does not" to_b limit_ops
is '"this node has no pool other"' "which is said" named by-gid why
ctl window set to-b node=node-q
is null "one for another node does not" to_b limit_ops
is '"no node node-q is registered: nobody is held to it until one is"' \
    "and that nobody knows it is said" named to-b why
is 1 "in the metrics too" eval 'curl -sf --unix-socket "$work/a.admin" http://a/metrics |
    sed -n "s/^kedge_agent_windows_unknown //p"'
ctl window set to-b node=node-b ops=4
is 4 "it is for the other one again" to_b limit_ops
ctl window delete to-b
ctl window delete by-gid
is null "deleted, they are in force no longer" to_b limit_ops
is '[]' "and are shown no longer" window named
kill -0 "$busy" || fail "the load ended: $(cat "$work/load.out")"

settings 3 0
grows "and again one"
kill -TERM "$busy"
wait "$busy" 2>/dev/null || true
is 0 "a worker that ends leaves the window" window device.in_flight_ops
is 0 "and nobody waiting" window device.waiting
is 0 "and its tenant's" window 'tenants[0].in_flight_bytes'

# An agent that no metaserver has told anything yet.
settings 0 0
is null "the device has no window now" window device.limit_ops
kill -TERM "${pids[metad]}" "${pids[a]}"
wait "${pids[metad]}" "${pids[a]}" || fail "they ended with $?"
unset 'pids[metad]'
rm "$work/state-a/settings.json"
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
is 0 "windows that its file has hold before a metaserver has said anything" \
    window device.in_flight_ops
is '"ladder"' "windows find their size where nothing else is set" window policy
[[ $(metric found_operations 'scope="device"') =~ ^[0-9]+$ ]] || fail "what they find is no metric"
sed -i '/^\[pool\]/a window_policy = static' "$work/a.conf"
kill -HUP "${pids[a]}"
is '"static"' "and no more when an operator says so, without a restart" window policy
is 0 "what they had found holds no more" metric found_operations 'scope="device"'
stop
