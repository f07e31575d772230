# SPDX-License-Identifier: Apache-2.0
# What the tests of an agent that follows its metaserver share; sourced after lib.sh. Times are
# printed, and none is demanded: they begin when the rdmactl before them does, and end when it was
# seen, which is looked at every 50 ms.
needs_built kedge-probe
ctl() {
    told_at=
    [[ $2 == list || $2 == get ]] || told_at=$(date +%s%N)
    timeout 60 "$bin/rdmactl" --server "$url" "$@" >"$work/out" 2>&1 ||
        fail "rdmactl $*: $(cat "$work/out")"
}
refuses() { # exit code, pattern, arguments...
    local wanted=$1 pattern=$2 code=0
    shift 2
    timeout 60 "$bin/rdmactl" --server "$url" "$@" >"$work/out" 2>&1 || code=$?
    [[ $code == "$wanted" ]] || fail "rdmactl $* ended with $code, not $wanted: $(cat "$work/out")"
    grep -qE -- "$pattern" "$work/out" ||
        fail "rdmactl $*: \"$(cat "$work/out")\" lacks \"$pattern\""
    ok "rdmactl $* ends with $code: $(cat "$work/out")"
}
shows() { grep -qE -- "$1" "$work/out" || fail "not shown: $1 in: $(cat "$work/out")"; }
status() { "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json; }
node() { "$bin/rdmactl" --server "$url" node get node-a -o json; }
metric() { agent_metric a "$1"; }
metad_metric() { curl -sf "$url/metrics" | sed -n "s/^kedge_metad_$1 //p"; }
# Waits until a command's output, filtered, is as it should be.
becomes() { # value sentence command filter
    local now begin=${told_at:-$(date +%s%N)} of=${told_at:+ after rdmactl began}
    told_at=
    for _ in $(seq $((1200 * slow))); do
        now=$("$3" | jq -c "$4" 2>/dev/null) || now=nothing
        [[ $now == "$1" ]] && { ok "$2 ($((($(date +%s%N) - begin) / 1000000)) ms$of)"; return; }
        sleep 0.05
    done
    fail "$2: $now, not $1"
}
is() { becomes "$1" "$2" status "$3"; }
says() { becomes "$1" "$2" node "$3"; } # the metaserver, of the node
# Starts a worker that stays: its pid in $worker, what it prints in $work/NAME.out.
worker_by() { # name command...
    local name=$1; shift
    : >"$work/$name.out"
    "$@" >"$work/$name.out" 2>&1 &
    worker=$!
    worker_pids+=("$worker")
    for _ in $(seq $((1200 * slow))); do [[ ! -s $work/$name.out ]] || return 0; sleep 0.05; done
    fail "the worker $name says nothing"
}
worker() { # name, its arguments...
    worker_by "$1" env KEDGE_SOCKET="$work/a.sock" "$bin/kedge-probe" "${@:2}"
}
goes_on() { kill -0 "$1" 2>/dev/null || fail "the worker did not go on: $2"; }
