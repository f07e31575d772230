#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three metaservers that share a store in three members of etcd, and two agents: what is set at one
# is known at all, with a quorum or without, and after all were killed. What becomes of them one by
# one is tried in faults.sh.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-shared-store.sh"
needs_built kedge-probe
trap 'cleanup; etcd_end' EXIT

cluster_directories
shared_store_begin a b
uid_at() { # metaserver tenant
    curl -sf --max-time 20 "$(at "$1")/v1/tenants/$2" | jq -r '.uids[0]'
}
known_everywhere() { # tenant uid sentence
    local name
    for name in "${metaservers[@]}"; do
        until_is "$2" "$3 ($name)" uid_at "$name" "$1"
    done
}
finds() { # node
    local out
    out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" connect "node-$1") ||
        fail "node-$1 is not found: $out"
}
live_everywhere a b
finds b
export_text b "what is lent"
lent=$token
# The worker that lends it is the same throughout.
reads_lent() {
    local out
    out=$(read_text a "$lent") || fail "what is lent is not read: $out"
    [[ $out == *"what is lent"* ]] || fail "what is lent: $out"
}
reads_lent

# ---- one truth
until_is written "a tenant is made at one" writes one web 7
known_everywhere web 7 "a tenant that was made at one is known"
until_is written "and changed at three" writes three web 8
known_everywhere web 8 "a change at three is known"
uid=8
until_is 409 "a uid belongs to one tenant wherever it is asked for" put two other 8
trail() { # metaserver
    curl -sf --max-time 20 "$(at "$1")/v1/events?kind=tenant" |
        jq -c '[.events[] | [.revision, .name, .time, .who]]'
}
wanted=$(trail one)
[[ $(jq length <<<"$wanted") == 2 ]] || fail "the trail of one: $wanted"
for name in two three; do
    until_is "$wanted" "the trail is the same at $name" trail "$name"
done

members() { # metaserver
    curl -sf --max-time 20 "$(at "$1")/v1/metaservers" |
        jq -r '[.metaservers[].name] | join(" ")'
}
for name in "${metaservers[@]}"; do
    until_is "one three two" "$name says which metaservers there are" members "$name"
done
# Whoever has another prefix or other endpoints has another store.
store_of() { # metaserver
    curl -sf --max-time 20 "$(at "$1")/v1/metaservers" | jq -c '[.store | .kind, .prefix, .id]'
}
wanted=$(store_of one)
[[ $wanted == '["etcd","/kedge/","'* ]] || fail "the store of one: $wanted"
for name in two three; do
    [[ $(store_of "$name") == "$wanted" ]] || fail "$wanted is not $name's: $(store_of "$name")"
done
ok "which store it is they say alike"

# ---- nodes
kill -STOP "${pids[b]}"
for name in "${metaservers[@]}"; do until_is expired "b expires at $name" state "$name" b; done
kill -CONT "${pids[b]}"
live_everywhere a b

# ---- without a quorum
etcd_kill e1; etcd_kill e2
until_is 503 "a write without a quorum is refused" put two web 900
[[ $(uid_at two web) == "$uid" ]] || fail "a read without a quorum: $(uid_at two web)"
finds b
ok "what was known is read, and endpoints are found, without a quorum"
behind() { curl -sf --max-time 20 "$(at "$1")/v1/metaservers" | jq -r .store.behind; }
until_is true "two says that it may be behind" behind two
etcd_begin e1; etcd_begin e2
for name in e1 e2; do until_is true "etcd's $name is back" etcd_ready "$name"; done
for name in "${metaservers[@]}"; do
    until_is written "$name writes again" writes "$name" web $((++uid))
done
known_everywhere web $uid "all is known again"

# ---- all at once
for name in "${metaservers[@]}"; do end_daemon "$name"; done
for name in "${members[@]}"; do etcd_kill "$name"; done
shared_members_begin
for name in "${metaservers[@]}"; do shared_metad_begin "$name"; done
known_everywhere web $uid "what was acknowledged is there after all were killed"
live_everywhere a b
finds b
reads_lent
ok "a worker that lends goes on throughout"
for name in "${metaservers[@]}"; do
    kill -TERM "${pids[$name]}"
    wait "${pids[$name]}" || fail "$name ended with $?"
    unset "pids[$name]"
done
ok "metaservers end"
stop
etcd_end
