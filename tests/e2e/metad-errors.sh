#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an operator gets wrong: kedge-metad ends with one sentence that names the
# cause and the way out.
source "$(dirname "$0")/lib-metad.sh"
source "$(dirname "$0")/lib-commit.sh"

# Runs it; it must end by itself, not with 0, and its last line must match.
refuses() { # pattern sentence arguments...
    local pattern=$1 sentence=$2
    shift 2
    if timeout 300 "$metad" "$@" >"$work/out" 2>"$work/err"; then
        fail "$sentence: it ended with 0"
    fi
    tail -n 1 "$work/err" | grep -E >/dev/null "^kedge-metad: .*$pattern" || {
        cat "$work/err"
        fail "$sentence: not said"
    }
    ok "$sentence: $(tail -n 1 "$work/err")"
}

# What the settings and the host alone can tell: --check-config and the start must say the
# same, and end the same.
refuses_before_start() { # as refuses
    local first code=0 checked=0
    refuses "$@"
    first=$(tail -n 1 "$work/err"); shift 2
    timeout 300 "$metad" "$@" >/dev/null 2>&1 || code=$?
    timeout 300 "$metad" --check-config "$@" >/dev/null 2>"$work/err" || checked=$?
    [[ $checked == "$code" && $(tail -n 1 "$work/err") == "$first" ]] ||
        fail "the start ends with $code and says: $first;" \
            "--check-config ends with $checked and says: $(cat "$work/err")"
}

says_commit "$metad" || fail "--version: $("$metad" --version)"
"$metad" --help | grep max_endpoints >/dev/null || fail "--help does not name the settings"
ok "--version and --help answer"
refuses "see --help" "an unknown option is refused" --bogus
refuses 'there is no command "bakcup", but backup, restore and store copy: see --help' \
    "an unknown command is refused" bakcup
refuses 'backup needs a FILE, or - for the standard output' \
    "a backup without a file is refused" backup
refuses '"b" is one word too many: restore takes one FILE' "a second file is refused" restore a b
refuses "/nonexistent.conf" "a missing configuration is named" --config /nonexistent.conf
configure "max_endpoint = 3"
refuses "metad.conf:5: there is no setting max_endpoint" "an unknown key is named with its line" \
    --config "$work/metad.conf"
configure "max_endpoints = many"
refuses "metad.conf:5: max_endpoints must be a number" "a wrong value is named" \
    --check-config --config "$work/metad.conf"
configure "access = perhaps"
refuses "metad.conf:5: access must be tokens or open" "a wrong access is named" \
    --config "$work/metad.conf"
configure "access = auto"
auto_was='open is what auto was on loopback: .*'
refuses "metad.conf:5: access must be tokens or open \($auto_was\), not \"auto\"" \
    "who has relied on auto is told what to choose" --check-config --config "$work/metad.conf"
for access in open tokens; do
    configure "access = $access"
    sed -i "s/^listen = .*/listen = 0.0.0.0:7480/" "$work/metad.conf"
    "$metad" --check-config --config "$work/metad.conf" | grep >/dev/null "are right" ||
        fail "access = $access"
done
configure
"$metad" --check-config --config "$work/metad.conf" | grep >/dev/null "are right" ||
    fail "--check-config"
ok "--check-config accepts what is right"
data_dir=$work/missing configure
refuses_before_start "the directory .*/missing is missing: make it" \
    "a missing data directory is named" --config "$work/metad.conf"
echo rubbish >"$work/file"
data_dir=$work/file configure
refuses_before_start "cannot be used: Not a directory" \
    "a file in the place of the data directory is named" --config "$work/metad.conf"
data_dir=/proc configure
refuses_before_start 'in /proc no file can be made: change data_dir' \
    "a directory where there are no files is named" --config "$work/metad.conf"
mkdir -p "$work/folder/metad.db"
data_dir=$work/folder configure
refuses "$work/folder/metad.db is a directory, and no database: move it away" \
    "a directory in the database's place is named" --config "$work/metad.conf"
refuses "$work/folder/metad.db is a directory, and no database: move it away" \
    "so it is to a backup" --config "$work/metad.conf" backup -
mkdir "$work/damaged"
head -c 8192 /dev/urandom >"$work/damaged/metad.db"
data_dir=$work/damaged configure
refuses "damaged or is no database" "a damaged database is named" --config "$work/metad.conf"
configure
sed -i 's/^provider = .*/provider = carrier-pigeon/' "$work/metad.conf"
refuses_before_start "no fabric provider" "an unknown provider is named" --config "$work/metad.conf"
if [[ $provider == soft ]]; then
    mkdir -m 0755 "$work/open-device"
    configure
    sed -i "s#^device = .*#device = $work/open-device#" "$work/metad.conf"
    refuses_before_start "chmod 700 $work/open-device" \
        "a soft device that others may enter is named" --config "$work/metad.conf"
fi

configure
sed -i 's/^listen = .*/listen = nowhere:http/' "$work/metad.conf"
refuses_before_start 'cannot listen on "nowhere:http": it must look like' \
    "an address that is none is named" --config "$work/metad.conf"
configure
sed -i 's/^listen = .*/listen = 192.0.2.1:7480/' "$work/metad.conf"
refuses_before_start 'cannot listen on 192.0.2.1:7480: no interface of this host has that address' \
    "an address of another host is named" --config "$work/metad.conf"
configure
echo '[metaservr]' >>"$work/metad.conf"
refuses_before_start 'metad.conf:[0-9]+: there is no section \[metaservr\]' \
    "a section that there is not is named" --config "$work/metad.conf"
configure
sed -i "s#^admin_socket = .*#admin_socket = $work/missing/metad.sock#" "$work/metad.conf"
refuses_before_start "socket.s directory .*/missing is missing: make it, or set admin_socket" \
    "a missing directory of the admin socket is named" --config "$work/metad.conf"

configure
start
port_wanted=$port data_dir=$work/other configure
mkdir -p "$work/other"
sed -i "s/^gid = .*/gid = ${gids[1]}/" "$work/metad.conf"
refuses "$port" "a port that is taken is named" --config "$work/metad.conf"
configure
refuses "in use by another metaserver" "a data directory that is in use is named" \
    --config "$work/metad.conf"
if [[ $provider == soft ]]; then
    data_dir=$work/other configure
    refuses "GID" "a GID that is in use is named" --config "$work/metad.conf"
else
    skip "a GID that is in use ($provider cannot know)"
fi
stop

((EUID == 0)) || { skip "a full disk (only root can mount a small tmpfs)"; exit 0; }
mkdir "$work/small"
mount -t tmpfs -o size=1m tmpfs "$work/small" 2>/dev/null || {
    skip "a full disk (tmpfs cannot be mounted here)"
    exit 0
}
mount -o remount,ro "$work/small"
data_dir=$work/small configure "node_lease = 1h"
refuses 'cannot be written: Read-only file system \(remount it for writing, or change data_dir\)' \
    "a file system that is read-only is named" --config "$work/metad.conf"
mount -o remount,rw "$work/small"
start
send PUT /v1/nodes/n1 "$(node 5 1)"
expect 201 "a node registers while there is room"
send PUT /v1/tenants/early '{"uids":[5]}'
expect 201 "a tenant is created while there is room"
ask /readyz
expect 200 "while there is room it is ready"
dd if=/dev/zero of="$work/small/fill" bs=1k status=none 2>/dev/null || true
seen=
for n in $(seq 2 60); do
    send PUT "/v1/nodes/n$n" "$(node 5 "$n")"
    [[ $status != 503 ]] || { seen=n$n; break; }
done
[[ -n $seen ]] || fail "the disk is full and nothing was refused"
expect 503 "a full disk is 503"
jq -r .detail "$work/body" | grep >/dev/null "is full: make room" ||
    fail "the full disk is not named"
ask "/v1/nodes/$seen"
expect 404 "what was refused did not happen"
for _ in 1 2 3; do
    ask /readyz
    [[ $status == 503 ]] || fail "with a full disk /readyz says $status"
done
jq -r .detail "$work/body" | grep >/dev/null "is full: make room" ||
    fail "/readyz does not say why: $(cat "$work/body")"
ok "with a full disk it is not ready, and says why"
send PUT /v1/tenants/late '{"uids":[7]}'
expect 503 "a change of settings on a full disk is 503"
ask /v1/tenants/late
expect 404 "and did not happen"
ask /v1/events?kind=tenant
[[ $(jq '.events | length' "$work/body") == 1 ]] || fail "the trail has an entry of it"
ask /v1/tenants/early
expect 200 "settings are read while the disk is full"
send POST /v1/nodes/n1/renew '{"incarnation":5}'
expect 200 "leases are renewed while the disk is full"
ask /v1/nodes/n1
expect 200 "nodes are read while the disk is full"
rm "$work/small/fill"
ask /readyz
expect 200 "with room again it is ready, though nobody has written"
[[ $(cd "$work/small" && echo metad*) == "metad.db metad.db-lock metad.db-shm metad.db-wal" ]] ||
    fail "it left something: $(ls "$work/small")"
send PUT "/v1/nodes/$seen" "$(node 5 99)"
expect 201 "with room again, the node registers"
send PUT /v1/tenants/late '{"uids":[7]}'
expect 201 "and the change is made"
[[ $(jq .revision "$work/body") == 2 ]] || fail "a revision is missing"
stop
dd if=/dev/zero of="$work/small/fill" bs=1k status=none 2>/dev/null || true
rm -f "$work"/small/metad.db*
: >"$work/stderr"
refuses "is full: make room" "starting on a full disk is refused" --config "$work/metad.conf"
