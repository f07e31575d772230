#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three metaservers that share a store in three members of etcd, and two agents: what is set, or
# published, at one is known at all, with a quorum or without, and after all were killed, agents and
# workers too. What becomes of them one by one is tried in faults.sh.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-shared-store.sh"
needs_built kedge-probe publish_region
# Who begins anew is found where it was before: what is left of its former life would be met there.
[[ $provider != soft ]] || gids=(fd00::{0..8})
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
last_revision() { curl -sf --max-time 20 "$(at two)/v1/events?limit=1" | jq .revision; }
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

# ---- names: published is what each of them shows, at once
# Starts a worker that publishes what holds a text.
begin_publishing() { # agent name text
    rm -f "$work/hold-$2" "$work/said-$2"
    mkfifo "$work/hold-$2" "$work/said-$2"
    exec 8<>"$work/hold-$2" 7<>"$work/said-$2"
    KEDGE_SOCKET=$work/$1.sock "$bin/publish_region" "$2" "$3" \
        <&8 >&7 2>"$work/publish.err" &
    worker_pids+=($!)
}
# As soon as it has.
await_published() {
    read -r -t $((60 * slow)) said <&7 || fail "nothing is published: $(cat "$work/publish.err")"
}
shown_now() { # name owner: by each of them, of which none is asked twice
    local name
    for name in "${metaservers[@]}"; do
        curl -sf --max-time 20 "$(at "$name")/v1/regions" >"$work/regions-$name" ||
            fail "$name does not say which names there are"
    done
    for name in "${metaservers[@]}"; do
        jq -e --arg name "$1" --arg node "$2" \
            'any(.regions[]; .name == $name and .node == $node)' "$work/regions-$name" \
            >"$work/shown" || fail "$name does not show $1, which is published"
    done
}
for number in 1 2; do
    owner=a
    ((number % 2 == 0)) || owner=b
    begin_publishing "$owner" "name-$number" "text $number"
    await_published
    shown_now "name-$number" "node-$owner"
done
ok "each of them shows a name when its worker hears that it is published"
# A metaserver that stands still for less than an agent takes to give up a call, if this machine is
# not too busy for that: one of three times it is not.
waits_for_three() { # name
    local early=no
    kill -STOP "${pids[three]}"
    begin_publishing a "$1" "text"
    ! read -r -t 1 said <&7 || early=yes
    kill -CONT "${pids[three]}"
    [[ $early == no ]] || { sleep $((lease / 2)); return 1; }
    await_published
    shown_now "$1" node-a
}
waits_for_three slowly || waits_for_three once-more || waits_for_three again ||
    fail "published, and three, which agents reach, does not show it yet"
ok "which waits for one that is slow"

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

# ---- who watches goes on at another one, from the same revision
watch_by() { # name of files, what rdmactl is told...
    "$bin/rdmactl" --server "$(at one),$(at two)" "${@:2}" >"$work/$1.out" 2>"$work/$1.err" &
    worker_pids+=($!)
}
told() { # file what
    [[ $(tail -n 4 "$work/$1.out") != *"$2"* ]] || echo told
}
revisions() { awk '{print $2}' "$work/events.out" | paste -sd ' '; }
watch_by events event watch --kind tenant --revision "$(last_revision)"
watch_by list tenant list --watch
until_is written "a change while one is watched" writes three web $((++uid))
until_is told "it is told" told events "tenant web"
until_is told "and listed" told list $uid
end_daemon one
from=$(revisions)
until_is written "a change while one is gone" writes three web $((++uid))
until_is told "it is listed by who asks two" told list $uid
until_is "$from $(last_revision)" "and told once, in order" revisions
grep -q "is asked in place of" "$work/events.err" || fail "$(cat "$work/events.err")"
shared_metad_begin one
known_everywhere web $uid "one is back"

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

# ---- all of it, agents and workers too
incarnation() { # metaserver node
    curl -sf --max-time 20 "$(at "$1")/v1/nodes/node-$2" | jq -r .incarnation
}
begin_publishing b last "before"
await_published
looks_up() { # text
    KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" lookup last "$1"
}
out=$(looks_up "before") || fail "what is published is not found: $out"
declare -A former=()
for name in a b; do former[$name]=$(incarnation one "$name"); done
for name in a b "${metaservers[@]}"; do end_daemon "$name"; done
for name in "${members[@]}"; do etcd_kill "$name"; done
end_workers
worker_pids=()
exec 7>&- 8>&- 9>&-
shared_members_begin
for name in "${metaservers[@]}"; do shared_metad_begin "$name"; done
for name in a b; do daemon_start "$name" kedge-agentd || fail "agent $name did not start"; done
known_everywhere web $uid "what was acknowledged is there after all of it was killed"
has_grown() { # metaserver node
    (($(incarnation "$1" "$2") > former[$2])) && echo yes
}
for name in "${metaservers[@]}"; do
    for node in a b; do
        until_is live "$node is live at $name" state "$name" "$node"
        [[ $(has_grown "$name" "$node") == yes ]] || fail "$node's incarnation at $name is $(
            incarnation "$name" "$node"), after ${former[$node]}"
    done
done
ok "each of them has the agents' new lives"
if out=$(read_text a "$lent" 2>&1); then fail "what a former life lent is read: $out"; fi
ok "what a former life lent is not read: ${out//$'\n'/; }"
if out=$(looks_up "before"); then fail "what a former life published is read: $out"; fi
begin_publishing b last "after"
await_published
shown_now last node-b
out=$(looks_up "after") || fail "what is published in the new life is not found: $out"
finds b
ok "and what the new one publishes is found"
for name in "${metaservers[@]}"; do
    kill -TERM "${pids[$name]}"
    wait "${pids[$name]}" || fail "$name ended with $?"
    unset "pids[$name]"
done
ok "metaservers end"
stop
etcd_end
