#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the settings say of a tenant's queue pairs and regions binds all its workers together, is
# shown to the operator, and comes back when a worker ends; so does what they may ask for in a
# second, which changes while they run.
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
    for _ in $(seq 1200); do grep -q then "$out" && break; sleep 0.05; done
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
metric() { # name [quota, or another label's value [label]]
    curl -sf --unix-socket "$work/a.admin" http://a/metrics |
        sed -n "s/^kedge_agent_tenant_$1{tenant=\"workers\"${2:+,${3:-quota}=\"$2\"}} //p"
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

for kind in regions:mrs:7 vqps:vqps:5; do
    IFS=: read -r what field most <<<"$kind"
    is "$most" "the operator sees how many $what the tenant may have" tenant "max_$field"
    refused=$(metric quota_refused_total "$field")
    take one "$what" $((most - 2))
    [[ $got == "$((most - 2)), then: enough" ]] || fail "$what within the quota: $got"
    take two "$what" "$most"
    [[ $got == "2, then: "*"quota of "*"($field)"* &&
        ($field == vqps || $got == *"(the quota is $most)"*) ]] ||
        fail "$what beyond the quota: $got"
    ok "a second worker gets what is left of the tenant's $what: $got"
    is "$most" "and the operator sees it" tenant "$field"
    is "$most" "in the metrics too" metric "$field"
    is $((refused + 1)) "and that something was refused" metric quota_refused_total "$field"
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
refused=$(metric quota_refused_total sessions)
if out=$(KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" watch); then
    fail "a third worker attached: $out"
fi
raise='`sessions` in \[tenant workers\] of the agent.s file raises it'
grep -q "quota of workers at a time (sessions), which is 2: $raise" <<<"$out" ||
    fail "a third worker was told: $out"
is $((refused + 1)) "a worker beyond the quota of sessions is counted: $out" \
    metric quota_refused_total sessions
! grep -q 'have ended' <<<"$out" || fail "nobody has ended, and it is told: $out"

# Ended by the operator, they count until their processes close them: that is what
# the operator sees.
is 2 "both are there" tenant sessions
is 0 "and none has ended" tenant sessions_ended
is 0 "nor go its requests apart" tenant quarantined
is 0 "nor have they rested" tenant rests
is 0 "in the metrics neither" metric rests_total default pool
bytes=$(tenant memory_bytes)
((bytes > 0)) || fail "no memory is counted: $bytes"
"$bin/rdmactl" --server "$url" node drain node-a --grace 1ms --wait >"$work/drain.out" ||
    fail "drain: $(cat "$work/drain.out")"
"$bin/rdmactl" --server "$url" node uncordon node-a >/dev/null || fail "uncordon"
is 2 "drained, both have ended" tenant sessions_ended
is 2 "and count" tenant sessions
is 2 "in the metrics too" metric sessions
is 2 "and that they have ended" metric sessions_ended
is "$bytes" "with their memory" tenant memory_bytes
is "$bytes" "also in the metrics" metric arena_bytes
attaches() { KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" watch 2>&1 || true; }
is 1 "a third worker is told so" eval \
    "attaches | grep -c '(sessions), which is 2: 2 of its sessions have ended," \
    "and count until their processes close them'"
attaches | tail -n 1
give one
give two
is 0 "their processes gone, nothing is left" tenant sessions
is 0 "nor ended" tenant sessions_ended
is 0 "nor of memory" tenant memory_bytes

# Control operations: each is counted, by its kind in the unit tests.
counts() { # operations sentence command...
    local wanted=$1 sentence=$2 before; shift 2
    before=$(metric control_ops_total)
    "$@"
    is $((before + wanted)) "$sentence" metric control_ops_total
}
named() {
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" connect node-a >"$work/named.out" ||
        fail "$(cat "$work/named.out")"
}
counts 2 "attaching counts, and a name, and no endpoint that is known already" named
counts 4 "so does each arena that a worker gets beside its first" take one arenas 3
[[ $got == "3, then: enough" ]] || fail "arenas: $got"
give one
counts 6 "and each region" take one regions 5
give one
counts 5 "and each queue pair" take one vqps 4
give one

# Over a rate, which the metaserver says while a worker runs that goes on with its data operations.
quota() { # of control operations per second
    "$bin/rdmactl" --server "$url" tenant set workers \
        uids="$(id -u)" control_ops_per_s="$1" >/dev/null ||
        fail "the quota cannot be set"
    is "$([[ $1 == 0 ]] && echo null || echo "$1")" "a quota of $1 is in force" \
        tenant max_control_ops_per_s
}
export_text a "still here"
KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" reader "$token" "still here" >"$work/reader.out" 2>&1 &
reader=$!
worker_pids+=("$reader")
for _ in $(seq 1200); do grep -q served "$work/reader.out" && break; sleep 0.05; done
grep -q served "$work/reader.out" || fail "the worker does not read: $(cat "$work/reader.out")"
rate=3 most=200
quota $rate
begin=$(date +%s%N)
take one regions $most
over=$(((($(date +%s%N) - begin) / 1000000 * rate + 999) / 1000))
granted=${got%%,*}
[[ $got == *"(control_ops_per_s)"*"(the quota is $rate)"* ]] || fail "$most regions at once: $got"
# The worker attached before them.
((granted + 1 >= rate && granted + 1 <= rate + over)) ||
    fail "$granted regions, of $rate a second: $got"
ok "no more than a second's worth at once: $got"
(($(metric quota_refused_total control_ops_per_s) >= 1)) || fail "nothing was counted as refused"
[[ $(tenant refused.control_ops_per_s) == "$(metric quota_refused_total control_ops_per_s)" ]] ||
    fail "the status says otherwise: $(tenant refused)"
for _ in $(seq 200); do # of so many, one comes within the second of another
    KEDGE_SOCKET=$work/a.sock timeout 120 "$bin/kedge-probe" connect node-a \
        >"$work/named.out" && continue
    break
done
grep -q 'quota of control operations per second (control_ops_per_s), which is 3: try again' \
    "$work/named.out" ||
    fail "attaching is not refused: $(cat "$work/named.out")"
ok "attaching and names are of the same budget: $(cat "$work/named.out")"
give one
quota 0
take one regions $most
[[ $got == "$most, then: enough" ]] || fail "without that quota: $got"
ok "without a quota there is no bound"
out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" huge)
grep -q 'this host has no room for an arena of 1099511627776 bytes: .*seven eighths of its memory' \
    <<<"$out" || fail "1 TiB: $out"
ok "but what the host has: $out"
give one
kill -0 "$reader" || fail "the reader ended: $(cat "$work/reader.out")"
[[ $(wc -l <"$work/reader.out") == 1 ]] || fail "the reader was held up: $(cat "$work/reader.out")"
ok "data operations went on all the time: $(cat "$work/reader.out")"
kill -KILL "$reader"

"$bin/rdmactl" --server "$url" tenant set workers memory_bytes=64KiB >/dev/null ||
    fail "the quota of memory cannot be set"
is 65536 "a quota of memory that is less than one arena is in force" tenant max_memory_bytes
out=$(attaches)
wanted="an arena of 2097152 bytes is more than tenant workers may have in all:"
wanted+=" its quota of memory (memory) is 65536 bytes:"
wanted+=" rdmactl tenant set workers memory_bytes=... raises it"
[[ $out == *"$wanted" ]] ||
    fail "a worker beyond it is told: $out"
ok "and who attaches is told so: $out"
"$bin/rdmactl" --server "$url" tenant set workers uids=1 memory_bytes=0 >/dev/null ||
    fail "the uids cannot be set"
told() {
    local what="[tenant workers] of the agent's file has it,"
    what+=" and the metaserver's tenant of that name stands in its place without it"
    [[ $(attaches) == *"$what"* ]] && echo yes || echo no
}
is yes "a uid that the file has and the metaserver's tenant has not is told so" told
stop
