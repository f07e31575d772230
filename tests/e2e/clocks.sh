#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A host whose clock the device's contradicts, as after its hypervisor has stopped it or while it is
# slewed: its agent posts only where hardware refuses what comes late, says so wherever an operator
# looks, and its workers hear why.
source "$(dirname "$0")/lib.sh"
needs_built kedge-lend
[[ $provider == soft ]] || {
    echo "skip: this device's clock cannot be made to lie: soft's can"
    exit 77
}
more_fabric='fault = deadlines=off' # as RNICs are
start

lend() { # kind: a worker of a's that keeps a region until it is ended; sets $token
    mkfifo "$work/hold-$1"
    : >"$work/lent-$1"
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-lend" owner "$1" <"$work/hold-$1" >"$work/lent-$1" 2>&1 &
    worker_pids+=($!)
    exec {held}>"$work/hold-$1"
    for _ in $(seq 1200); do [[ ! -s $work/lent-$1 ]] || break; sleep 0.05; done
    token=$(cat "$work/lent-$1")
    [[ -n $token ]] || fail "a worker lends nothing as $1"
}
restart() { # plan: b, with another fault beside
    kill -TERM "${pids[b]}"
    wait "${pids[b]}" || fail "b did not end well"
    more_fabric="fault = deadlines=off, $1" agent_configure b
    daemon_start b kedge-agentd || fail "b does not start with $1"
    agent_wait b || fail "b does not register with $1"
}
reaches() { # token: in the end; a peer that has restarted may be asked for in its former life first
    local i
    for i in $(seq $((100 * slow))); do
        if read_text b "$1" >"$work/read" 2>&1; then return 0; fi
        ! grep -q 'clock cannot be trusted' "$work/read" || return 1
        sleep 0.1
    done
    fail "a region is not read: $(cat "$work/read")"
}
clock() { "$bin/rdmactl" --agent-socket "$work/b.admin" agent status -o json | jq -r ".clock.$1"; }
until_clock() { # state sentence
    local i
    for i in $(seq $((2400 * slow))); do
        [[ $(clock state) != "$1" ]] || { ok "$2"; return 0; }
        sleep 0.05
    done
    fail "$2: it is $(clock state): $(clock why)"
}
ready_why() { curl -s --unix-socket "$work/b.admin" http://a/readyz | jq -r '.why // ""'; }

lend ordinary && ordinary=$token
lend lease-only && lease_only=$token

# ---- no device clock: nobody knows, and all is as ever
restart "clock=off"
[[ $(clock state) == unknown && $(clock device_clock) == false ]] ||
    fail "without a second clock it is $(clock state)"
reaches "$lease_only" || fail "an unknown clock is held against it: $(cat "$work/read")"
ok "without a second clock it is unknown, and nothing is refused"

# ---- it agrees; then the device's clock is 2 s ahead, as it is when a machine was stopped. On a
# busy machine that may be before all is seen that is so before.
for after_ms in 6000 60000; do
    restart "clock_jump=2000, clock_jump_after=$after_ms"
    until_clock trusted "a clock that agrees with the device's is trusted"
    trusted=$(agent_metric b clock_trusted) why=$(ready_why)
    if reaches "$lease_only" && [[ $trusted == 1 && -z $why ]]; then break; fi
    [[ $(clock state) == doubted && $after_ms == 6000 ]] ||
        fail "a trusted clock ($trusted) is held against it: $why $(cat "$work/read")"
done
ok "a region that only its lease guards is read"
until_clock doubted "a machine that was stopped is found out"
! reaches "$lease_only" || fail "a region that only its lease guards is read with a clock that lied"
ok "and its worker hears: $(grep -o "READ failed.*" "$work/read")"
reaches "$ordinary" ||
    fail "a region with a registration of its own is refused: $(cat "$work/read")"
ok "one with a registration of its own is read as ever"
clock why | grep >/dev/null 'hypervisor stopped' || fail "the status says $(clock why)"
ready_why | grep >/dev/null 'clock cannot be trusted' || fail "readyz says $(ready_why)"
"$bin/rdmactl" --server "$url" --agent-socket "$work/b.admin" status |
    grep >/dev/null 'clock cannot be trusted' ||
    fail "rdmactl status does not say so"
"$bin/rdmactl" doctor --config "$work/b.conf" --server "$url" --agent-socket "$work/b.admin" \
    -o json >"$work/report" 2>&1 || true
jq -e '[.. | objects | select(.check? == "agent") | tostring |
    contains("clock cannot be trusted")] | any' "$work/report" >/dev/null ||
    fail "rdmactl doctor does not say so: $(cat "$work/report")"
[[ $(agent_metric b clock_doubted) == 1 && $(agent_metric b clock_trusted) == 0 &&
    $(agent_metric b clock_lies_total) -ge 1 ]] ||
    fail "metrics: $(agent_metric b clock_doubted) $(agent_metric b clock_lies_total)"
grep -q 'error kedge-agentd: .*clock cannot be trusted.*drain a node' "$work/b.log" ||
    fail "the log does not say what to do"
ok "status, readiness, doctor, metrics and log say so"
[[ $(agent_metric a clock_doubted) == 0 ]] || fail "the owner's agent doubts its own clock"

# ---- a clock that is slow
restart "clock_drift=2%"
until_clock doubted "a clock that is slow by 2 % is found out"
! reaches "$lease_only" || fail "a region that only its lease guards is read with a slow clock"
reaches "$ordinary" ||
    fail "a region with a registration of its own is refused: $(cat "$work/read")"
ok "with the same result"
stop
