#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the settings say of a tenant's queue pairs and regions binds all its workers together, is shown to the
# operator, and comes back when a worker ends.
source "$(dirname "$0")/lib.sh"
needs_built kedge-probe
agents=1
more_tenants='vqps = 5
mrs = 7
sessions = 2'
start

# Starts a worker that takes so many and keeps them; sets $got to what it prints.
take() { # name kind number
    local out=$work/$1.out
    : >"$out"
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" "$2" "$3" >"$out" 2>&1 &
    pid[$1]=$!
    worker_pids+=($!)
    for _ in $(seq 200); do grep -q then "$out" && break; sleep 0.05; done
    got=$(cat "$out")
}
give() { # name
    kill -TERM "${pid[$1]}"
    wait "${pid[$1]}" 2>/dev/null || true
}
declare -A pid
tenant() { # a field of the status, all sessions being over that have ended
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json | jq ".tenants[0].$1"
}
metric() { curl -sf --unix-socket "$work/a.admin" http://a/metrics | sed -n "s/^kedge_agent_tenant_$1{tenant=\"workers\"} //p"; }
is() { # value sentence command...
    local wanted=$1 sentence=$2 now; shift 2
    for _ in $(seq 100); do
        now=$("$@")
        [[ $now == "$wanted" ]] && { ok "$sentence"; return; }
        sleep 0.05
    done
    fail "$sentence: $now, not $wanted"
}

for kind in regions:mrs:7 vqps:vqps:5; do
    IFS=: read -r what field most <<<"$kind"
    is "$most" "the operator sees how many $what the tenant may have" tenant "max_$field"
    refused=$(metric quota_refused_total)
    take one "$what" $((most - 2))
    [[ $got == "$((most - 2)), then: enough" ]] || fail "$what within the quota: $got"
    take two "$what" "$most"
    [[ $got == "2, then: "*quota* ]] || fail "$what beyond the quota: $got"
    ok "a second worker gets what is left of the tenant's $what: $got"
    is "$most" "and the operator sees it" tenant "$field"
    is "$most" "in the metrics too" metric "$field"
    is $((refused + 1)) "and that something was refused" metric quota_refused_total
    give one
    is 2 "a worker that ends gives its $what back" tenant "$field"
    give two
    is 0 "and so does the other" tenant "$field"
    take one "$what" "$most"
    [[ $got == "$most, then: enough" ]] || fail "$what after all were given back: $got"
    give one
done

take one regions 1
take two regions 1
refused=$(metric quota_refused_total)
if out=$(KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" watch); then fail "a third worker attached: $out"; fi
grep -q 'quota' <<<"$out" || fail "a third worker was told: $out"
is $((refused + 1)) "a worker beyond the quota of sessions is counted: $out" metric quota_refused_total
give one
give two
stop
