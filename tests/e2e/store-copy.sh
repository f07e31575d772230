#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `kedge-metad store copy` from SQLite to etcd, within etcd and back: the same lines of a backup
# everywhere, and a metaserver goes on with them. What is not empty is not copied to, and what a
# metaserver runs with is not copied from.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-metaservers.sh"
source "$(dirname "$0")/lib-etcd.sh"
trap 'cleanup; etcd_end' EXIT
lease=$((8 * slow))
declare -A gid_number=([a]=0 [b]=1 [one]=2 [two]=3)
cluster_directories
etcd_cluster only
etcd_begin only
until_is true "etcd is well" etcd_ready only
for name in a b one two; do metad_conf $name 127.0.0.1:0; done
for name in one two; do
    printf '%s\n' "[store]" "kind = etcd" "member = m" "prefix = /$name/" "endpoints = $etcd_urls" \
        >>"$work/$name.conf"
done
command_of() { # name arguments
    timeout $((60 * slow)) "$bin/kedge-metad" --config "$work/$1.conf" "${@:2}" >"$work/said" 2>&1
}
lines() { # name: what a backup has of it, but for when that was made, and its sum
    command_of "$1" backup "$work/$1.jsonl" || fail "no backup of $1: $(cat "$work/said")"
    sed '1d;$d' "$work/$1.jsonl" >"$work/$1.lines"
}
copies() { # from to
    command_of "$1" store copy "$work/$2.conf" || fail "from $1 to $2: $(cat "$work/said")"
    grep -q 'copied 0 nodes, [1-9][0-9]* resources and [1-9][0-9]* entries' "$work/said" ||
        fail "from $1 to $2: $(cat "$work/said")"
    ok "from $1 to $2: $(cat "$work/said")"
    lines "$1"
    lines "$2"
    diff "$work/$1.lines" "$work/$2.lines" >"$work/diff" ||
        fail "$2 is not $1: $(cat "$work/diff")"
}
refused() { # from to pattern
    ! command_of "$1" store copy "$work/$2.conf" || fail "from $1 to $2: $(cat "$work/said")"
    grep -q -- "$3" "$work/said" || fail "from $1 to $2: $(cat "$work/said")"
    ok "refused: $(cat "$work/said")"
}
ends() { # name
    kill -TERM "${pids[$1]}"
    wait "${pids[$1]}" || fail "$1 ended with $?"
    unset "pids[$1]"
}
ctl() { timeout $((60 * slow)) "$bin/rdmactl" --server "unix:$work/$1.metad.sock" "${@:2}"; }

metad_start a
ctl a tenant create web uids=7 >/dev/null
ctl a tenant set web sessions=8 >/dev/null
ctl a token create t scope=reader --secret-out "$work/t" >/dev/null
refused a one 'a metaserver runs with the store .*data-a/metad.db: stop it'
ends a
copies a one
refused a one "$work/one.conf names holds 0 nodes, .*: only an empty one can be copied to"
copies one two
copies two b

# The last one goes on where the first one ended, with its tokens; and so does one in etcd, from
# which nothing is taken meanwhile.
metad_start b
[[ $(curl -s -o /dev/null -w '%{http_code}' --max-time 20 -H "Authorization: Bearer $(<"$work/t")" \
    "$(at b)/v1/tenants/web") == 200 ]] || fail "its token is not good any more"
[[ $(ctl b tenant get web -o json | jq .revision) == 2 ]] || fail "$(ctl b tenant get web)"
ends b
metad_start one
ctl one tenant set web sessions=9 >/dev/null
rm -r "$work/data-b"
mkdir -m 0700 "$work/data-b"
refused one b 'the metaserver m runs with the store /one/ in etcd: stop all that have it'
ends one
copies one b
cluster_stop || fail "a daemon did not stop"
etcd_end
trap - EXIT
