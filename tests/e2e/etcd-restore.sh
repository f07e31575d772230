#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three metaservers on three members of etcd that is restored from a snapshot, while metaservers run
# and while none does, with one metaserver's disk lost: no token that was deleted lives again, and
# agents register again with what they are now, and publish again what they have.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-shared-store.sh"
needs_built publish_region
command -v etcdctl >/dev/null || {
    echo "skip: etcdctl is not installed (Debian's etcd-client)"
    exit 77
}
trap 'cleanup; etcd_end' EXIT

cluster_directories
shared_store_begin a

declare -A secret
make_token() { # name
    secret[$1]=$(curl -sf --max-time 20 --unix-socket "$work/one.metad.sock" -X PUT \
        -H 'Content-Type: application/json' --data '{"scope":"admin"}' \
        "http://metad/v1/tokens/$1" | jq -r .secret)
    [[ -n ${secret[$1]} ]] || fail "the token $1 is not made"
}
delete_token() { # name
    curl -sf --max-time 20 --unix-socket "$work/two.metad.sock" -X DELETE \
        "http://metad/v1/tokens/$1" || fail "the token $1 is not deleted"
}
shows() { # metaserver token [path]: the status
    curl -s -o /dev/null -w '%{http_code}' --max-time 20 \
        -H "Authorization: Bearer ${secret[$2]}" "$(at "$1")${3:-/v1/tokens}"
}
everywhere() { # status token sentence [path]
    local name
    for name in "${metaservers[@]}"; do
        until_is "$1" "$3 ($name)" shows "$name" "$2" "${4:-/v1/tokens}"
    done
}
node() { # metaserver
    curl -sf --max-time 20 "$(at "$1")/v1/nodes/node-a" | jq -r '"\(.state) \(.incarnation)"'
}
has_life() { # incarnation
    local name
    for name in "${metaservers[@]}"; do
        until_is "live $1" "the node is as it is now at $name" node "$name"
    done
}
# It is not good at any of them; if it is, that is written down.
touch "$work/good"
try_deleted() { # token metaserver...
    local token=$1 name status
    shift
    for name in "$@"; do
        status=$(shows "$name" "$token")
        [[ $status == 401 || $status == 000 ]] || echo "$token is $status at $name" >>"$work/good"
    done
}
was_never_good() {
    [[ ! -s $work/good ]] || fail "$(head -n 1 "$work/good")"
    ok "$1"
}
list_keys() { # into $work/keys
    ETCDCTL_API=3 etcdctl --endpoints="$etcd_urls" get --prefix / --keys-only >"$work/keys"
}
# Whether etcd has it no more, while it is tried at some.
gone_again() { # token metaserver...
    try_deleted "$@"
    list_keys &&
        grep -q 'resources/token/kept$' "$work/keys" &&
        ! grep -q "resources/token/$1\$" "$work/keys" && echo deleted
}

# ---- restored while they run
make_token kept
make_token gone
everywhere 200 gone "a token is good"
etcd_save "$work/first.snapshot"
delete_token gone
everywhere 401 gone "a token that was deleted is none"
former=$(node one)
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
unset "pids[a]"
daemon_start a kedge-agentd || fail "the agent did not start again"
registered_again() {
    local now
    now=$(node one)
    [[ $now != live* || $now == "$former" ]] || echo again
}
until_is again "the agent is registered again" registered_again
life=$(node one)
life=${life#live }
for name in "${members[@]}"; do etcd_kill "$name"; done
etcd_restore "$work/first.snapshot" "${members[@]}"
shared_members_begin
until_is deleted "what came back with a snapshot is deleted again" gone_again gone \
    "${metaservers[@]}"
was_never_good "and was never good at any metaserver"
everywhere 401 gone "a token that came back with a snapshot is none"
everywhere 200 kept "one that was there is good"
has_life "$life"

# ---- a name that was published since the snapshot
region() { # metaserver: as it shows it
    curl -sf --max-time 20 "$(at "$1")/v1/regions" |
        jq -r '.regions[] | "\(.id) \(.node) \(.incarnation) \(.state)"'
}
is_shown() { # sentence
    local name
    for name in "${metaservers[@]}"; do
        until_is "workers/late node-a $life live" "$1 ($name)" region "$name"
    done
}
is_stored() {
    list_keys && grep -q '/names/workers/late$' "$work/keys" && echo stored
}
[[ $(is_stored) == "" ]] || fail "there is a name already"
etcd_save "$work/names.snapshot"
# For a lease the store gives names to none but those who had them.
settled() {
    KEDGE_SOCKET=$work/a.sock timeout 30 "$bin/publish_region" first "a text" </dev/null \
        >/dev/null && echo settled
}
until_is settled "names are given again a lease after the store was put back" settled
mkfifo "$work/hold"
exec 8<>"$work/hold"
KEDGE_SOCKET=$work/a.sock "$bin/publish_region" late "a text" <&8 >"$work/published" &
worker_pids+=($!)
is_shown "a worker's region has a name"
for name in "${members[@]}"; do etcd_kill "$name"; done
etcd_restore "$work/names.snapshot" "${members[@]}"
shared_members_begin
until_is stored "and is published again when the store was put back to a moment before" is_stored
is_shown "where all find it"
has_life "$life"

# ---- and one that was taken back since
is_gone() { list_keys && ! grep -q '/names/workers/late$' "$work/keys" && echo gone; }
has_none() { # metaserver
    curl -sf --max-time 20 "$(at "$1")/v1/regions" |
        jq -r 'if .regions == [] then "none" else "some" end'
}
etcd_save "$work/late.snapshot"
kill -KILL "${worker_pids[-1]}"
until_is gone "a name goes with its worker" is_gone
for name in "${members[@]}"; do etcd_kill "$name"; done
etcd_restore "$work/late.snapshot" "${members[@]}"
shared_members_begin
until_is gone "and again when the store was put back to when it was there" is_gone
for name in "${metaservers[@]}"; do until_is none "nobody finds it ($name)" has_none "$name"; done
has_life "$life"

# ---- restored while none runs
make_token late
everywhere 200 late "another token is good"
etcd_save "$work/second.snapshot"
delete_token late
everywhere 401 late "and deleted"
remembers() { jq -r '.tokens | keys | join(" ")' "$work/data-$1/store-known.json"; }
for name in one two; do until_is kept "$name remembers which there are" remembers "$name"; done
for name in "${metaservers[@]}"; do
    kill -KILL "${pids[$name]}"
    wait "${pids[$name]}" 2>/dev/null || true
    unset "pids[$name]"
done
rm -rf "$work/data-three" # its disk
mkdir "$work/data-three"
for name in "${members[@]}"; do etcd_kill "$name"; done
etcd_restore "$work/second.snapshot" "${members[@]}"
shared_members_begin
for name in one two; do
    shared_metad_begin "$name"
    try_deleted late "$name"
done
shared_metad_begin three
until_is deleted "what came back while none ran is deleted again" gone_again late one two
was_never_good "and was never good where one remembers"
everywhere 401 late "and is none"
everywhere 200 kept "the other one is good"
has_life "$life"
for name in "${metaservers[@]}"; do
    kill -TERM "${pids[$name]}"
    wait "${pids[$name]}" || fail "$name ended with $?"
    unset "pids[$name]"
done
stop
etcd_end
