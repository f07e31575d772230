#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers find regions by their names, with one READ of a metaserver's table, which it need not be
# awake for; after the owner's restart they find the new one, and no tenant finds another's.
source "$(dirname "$0")/lib.sh"
needs_built kedge-probe
agents=0
start
agents=2
more_tenants="[tenant other]
socket = $work/other.sock"
for name in a b; do
    mkdir -m 0700 "$work/state-$name"
    agent_configure $name
    more_tenants=
    daemon_start $name kedge-agentd || fail "agent $name did not start"
    agent_wait $name || fail "agent $name did not register"
done

# The owner is a worker of b; who looks is one of a, or of the other tenant there.
probe() { KEDGE_SOCKET=$work/$1.sock timeout 60 "$bin/kedge-probe" lookup "${@:2}"; }
publish() { # name: the region whose token is $token
    local incarnation
    incarnation=$(curl -sf --max-time 20 "$url/v1/nodes/node-b" | jq .incarnation)
    jq -n --arg name "$1" --arg grant "$token" --argjson incarnation "$incarnation" \
        '{$incarnation, tenant: "workers", $name, $grant}' |
        curl -sf --max-time 20 -X PUT --json @- "$url/v1/nodes/node-b/regions" >"$work/published" ||
        fail "it is not published: $(curl -s "$url/v1/regions")"
}
finds() { # text sentence
    key=$(probe a kv/shard-17 "$1") || fail "$2: $key"
    ok "$2"
}
lacks() { # agent name pattern sentence
    local out
    ! out=$(probe "$1" "$2") || fail "$4: it is found: $out"
    grep -qE -- "$3" <<<"$out" || fail "$4: $out"
    ok "$4: $out"
}

export_text b "of the first life"
lacks a kv/shard-17 'is published as "kv/shard-17"' "what nobody has published is not found"
publish kv/shard-17
before=$(agent_number a name_reads)
finds "of the first life" "a worker of another node finds the region, and READs it"
(($(agent_number a name_reads) == before + 1)) ||
    fail "that took $(($(agent_number a name_reads) - before)) READs of the table of names"
ok "with one READ of the metaserver's table of names"
first=$key
lacks other kv/shard-17 'no region of this session.s tenant' "another tenant does not find it"
kill -STOP "${pids[metad]}"
finds "of the first life" "it is found while the metaserver stands still"
kill -CONT "${pids[metad]}"

# The owner's agent is killed, and comes again.
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null || true
end_workers
exec 9>&-
rm -f "$work/hold-b"
daemon_start b kedge-agentd || fail "agent b did not start again"
agent_wait b || fail "agent b did not register again"
gone() { probe a kv/shard-17 || true; }
until_is 'yes' "the name of the former life goes" \
    eval 'gone | grep >/dev/null "not found: no region" && echo yes'
export_text b "of the second life"
publish kv/shard-17
finds "of the second life" "published again it is found, and READ"
[[ $key != "$first" ]] || fail "the key is that of the first life"
lacks a $'kv\nshard' '1 to 255 bytes' "what is no name is refused"

# A metaserver that has just begun knows name and owner from its store, but not how to reach the
# owner, whose agent stands still; and an agent begins that knows nobody.
kill -STOP "${pids[b]}"
kill -KILL "${pids[metad]}" "${pids[a]}"
wait "${pids[metad]}" "${pids[a]}" 2>/dev/null || true
port=${url##*:} metad_configure
for name in metad a; do
    program=kedge-agentd
    [[ $name == a ]] || program=kedge-metad
    daemon_start "$name" "$program" || fail "$name did not start again"
done
agent_wait a || fail "agent a did not register again"
"$bin/rdmactl" --server "$url" metaserver list >"$work/list" || fail "$(cat "$work/list")"
grep -q ' filling .*not registered here yet: 1' "$work/list" ||
    fail "it hides it: $(cat "$work/list")"
before=$(agent_number a lookups_awaited)
(
    until_is yes "it is looked up again" \
        eval '(($(agent_number a lookups_awaited) == before)) || echo yes'
    kill -CONT "${pids[b]}"
) &
finds "of the second life" "who looks up a node that a metaserver awaits waits for it"
wait $!

kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
unset 'pids[metad]'
# soft hears of a death a little late
until_is yes "without a metaserver nobody can tell" \
    eval 'gone | grep >/dev/null "no metaserver answered" && echo yes'
stop
