#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdmactl doctor between two nodes: one serves, the other one tries what agents do between them,
# without agents and beside them; a hop that takes less than both ports say is found, and so are
# settings that differ; who has not the word gets nothing.
source "$(dirname "$0")/lib.sh"
root=$(mktemp -d /tmp/kedge-XXXXXX) work=$root
own=$(mktemp -d /dev/shm/kedge-XXXXXX)
end_all() { cleanup; rm -rf "$root" "$own"; }
trap end_all EXIT
[[ $provider == soft ]] || {
    echo "skip: two nodes of one device reach each other on soft alone"
    exit 77
}
conf() { # name lines of [fabric]...
    local name=$1; shift
    printf '%s\n' "[agent]" "node = $name" "[fabric]" "provider = soft" "device = $own" \
        "${service[@]}" "$@" >"$root/$name.conf"
}
# One node that serves; sets $peer.
serve() { # conf
    : >"$root/served"
    "$bin/rdmactl" doctor --serve 127.0.0.1:0 --config "$1" >"$root/served" 2>"$root/served.err" &
    server=$!
    worker_pids+=("$server")
    for _ in $(seq $((600 * slow))); do
        peer=$(sed -n 's/^  rdmactl doctor --peer //p' "$root/served")
        [[ -z $peer ]] || return 0
        kill -0 "$server" 2>/dev/null || fail "nobody serves: $(cat "$root/served.err")"
        sleep 0.05
    done
    fail "it does not say where it serves: $(cat "$root/served" "$root/served.err")"
}
ends() { wait "$server" || fail "whoever serves ended with $?: $(cat "$root/served.err")"; }
# The other one: its report in $root/report, its end in $code.
try() { # conf
    code=0
    timeout 120 "$bin/rdmactl" doctor --peer "$peer" --config "$1" --agent-socket "$root/no" \
        --server http://127.0.0.1:1 -o json >"$root/report" 2>"$root/err" || code=$?
}
result() { jq -r --arg check "$1" '.checks[] | select(.check == $check) | .result' "$root/report"; }
found() { jq -r --arg check "$1" '.checks[] | select(.check == $check) | .found' "$root/report"; }
advice() { jq -r --arg check "$1" '.checks[] | select(.check == $check) | .advice' "$root/report"; }

conf a
conf b
serve "$root/a.conf"
try "$root/b.conf"
[[ $code == 0 && $(
    jq '[.checks[] | select((.check | startswith("peer.")) and .result != "ok")] | length' \
        "$root/report") == 0 ]] ||
    fail "two nodes that are well: $code $(cat "$root/err") $(
        jq -c '.checks[] | select(.check | startswith("peer."))' "$root/report")"
[[ $(jq '[.checks[] | select(.check | startswith("peer."))] | length' "$root/report") == 11 ]] ||
    fail "checks are missing"
ok "RC and DC between two nodes, without agents: $(found peer.rc.packets)"
[[ $(found coverage) == *"between these two nodes"* ]] || fail "coverage: $(found coverage)"
ok "the report says what it covers"
ends

# A hop that takes less than both ports say; nothing else tells.
conf narrow "fault = hop=1024"
serve "$root/a.conf"
try "$root/narrow.conf"
[[ $code == 1 && $(result peer.rc.reach) == ok && $(result peer.rc.packets) == failed ]] ||
    fail "a hop of 1024: $code $(found peer.rc.packets)"
[[ $(found peer.rc.packets) == *"those of 1024 do"* &&
    $(advice peer.rc.packets) == *"mtu = 1024 in [fabric]"* ]] ||
    fail "it is not found: $(found peer.rc.packets) $(advice peer.rc.packets)"
[[ $(result peer.dc.packets) == failed &&
    $(jq -r .verdict.sentence "$root/report") == \
        *"not with the other node, because peer.rc.packets failed"* ]] ||
    fail "$(jq -c .verdict "$root/report")"
ok "a hop of 1024 bytes is found: $(found peer.rc.packets)"
ends

# Ports that differ; and settings that do.
conf small "mtu = 1024"
serve "$root/a.conf"
try "$root/small.conf"
[[ $code == 1 && $(result peer.meet) == failed && $(advice peer.meet) == *"mtu = 1024"* ]] ||
    fail "ports that differ: $(found peer.meet)"
ok "ports that take packets of different lengths, with DC: $(found peer.meet)"
ends
conf other "transport = rc"
serve "$root/a.conf"
try "$root/other.conf"
[[ $code == 1 && $(found peer.meet) == *"would use RC and the other one's DC"* ]] ||
    fail "transports that differ: $(found peer.meet)"
ok "transports that differ: $(found peer.meet)"
ends

# Whoever has not the word, or is nobody, gets nothing; and is no end of it.
serve "$root/a.conf"
right=$peer
peer=${right%/*}/0123456789abcdef
try "$root/b.conf"
[[ $code == 1 && $(found peer.meet) == *"does not let us in"* ]] ||
    fail "a wrong word: $code $(found peer.meet)"
ok "a wrong word: $(found peer.meet)"
exec 8<>"/dev/tcp/127.0.0.1/$(sed 's/.*:\([0-9]*\)\/.*/\1/' <<<"$right")"
head -c 2000 /dev/zero >&8
exec 8>&-
peer=$right
exec 8<>"/dev/tcp/127.0.0.1/$(sed 's/.*:\([0-9]*\)\/.*/\1/' <<<"$right")"
(for _ in $(seq 120); do printf w >&8 || break; sleep 0.5; done) 2>/dev/null & # never a whole line
slow_stranger=$!
worker_pids+=("$slow_stranger")
exec 8>&-
try "$root/b.conf"
[[ $code == 0 ]] || fail "after strangers: $code $(found peer.meet)"
ok "and the right one after it"
ends
peer=127.0.0.1:1/0
try "$root/b.conf"
[[ $code == 1 && $(found peer.meet) == *"nobody serves at 127.0.0.1:1"* &&
    $(jq .verdict.usable "$root/report") == false ]] ||
    fail "nobody: $(found peer.meet)"
ok "nobody is there: $(found peer.meet)"

# Beside agents, with their settings and GIDs.
start
for name in a b; do
    gid=$("$bin/rdmactl" --agent-socket "$work/$name.admin" agent status -o json |
        jq -r '.. | .gid? | strings' | head -n 1)
    sed "s/^device = .*/&\ngid = $gid/" "$work/$name.conf" >"$root/beside-$name.conf"
done
serve "$root/beside-a.conf"
try "$root/beside-b.conf"
[[ $code == 0 && $(result peer.dc.packets) == ok ]] ||
    fail "beside agents: $code $(found peer.meet) $(found peer.dc.packets)"
ends
for name in a b; do
    "$bin/rdmactl" --agent-socket "$work/$name.admin" agent status >/dev/null ||
        fail "the agent $name did not survive it"
done
ok "beside agents that run"
stop
rm -rf "$root" "$own"
