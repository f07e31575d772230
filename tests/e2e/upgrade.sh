#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster goes from the version before this one (ops/previous-version, built here from this
# repository's history) to this one, and its metaserver back, as docs/operations.md says: old
# agents with a new metaserver and new ones with an old one, old and new agents with each other, old
# workers and libkedge with a new agent and new ones with an old one, old and new rdmactl, and the
# store of the old metaserver. A worker of the old version lends throughout.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-previous.sh"
previous_build "$1" "$(sed -n 's/^version //p' "$root/ops/previous-version")"
[[ $("$old/rdmactl" --version) != "$("$new/rdmactl" --version)" ]] ||
    echo "note: both say the version $("$new/rdmactl" --version)"

ctl() { # build arguments...
    timeout 60 "$1/rdmactl" --server "$url" "${@:2}" ||
        fail "rdmactl of $1: ${*:2}" >&2
}
end_daemon() { # name
    kill -TERM "${pids[$1]}"
    wait "${pids[$1]}" || fail "$1 ended with $?: $(tail -n 5 "$work/$1.log")"
    unset "pids[$1]"
}
port_is_kept() { sed -i "s/^listen = .*/listen = 127.0.0.1:$port/" "$work/metad.conf"; }
# What lends is the same worker until the end; $1 says who reads: agent and build.
reads_lent() { # agent build sentence
    local out
    out=$(with "$2" read_text "$1" "$lent") || fail "$3: ended with $?"
    [[ $out == *"lent by the old"* ]] || fail "$3: $out"
    ok "$3"
}
lends_and_reads() { # lender build reader build sentence
    local out
    with "$2" export_text "$1" "of $5"
    out=$(with "$4" read_text "$3" "$token") || fail "$5: ended with $?"
    [[ $out == *"of $5"* ]] || fail "$5: $out"
    kill "${worker_pids[-1]}"
    wait "${worker_pids[-1]}" 2>/dev/null || true
    rm "$work/hold-$1"
    ok "$5"
}
settles() { # sentence
    bin=$new cluster_settle || fail "$1"
    ok "$1"
}

# ---- all of it old

bin=$old cluster_start || fail "the old cluster did not start"
port_is_kept
ctl "$old" tenant create web uids=20000-20999 sessions=64 >/dev/null
ctl "$old" window create of-web scope=tenant tenant=web ops=128 >/dev/null
ctl "$old" node label node-a zone=east >/dev/null
with "$old" export_text b "lent by the old"
lent=$token
reads_lent a "$old" "a worker of the old version reads what another lends"
ctl "$new" node list >"$work/out"
[[ $(grep -c ' live ' "$work/out") == 2 ]] ||
    fail "the new rdmactl, the old metaserver: $(cat "$work/out")"
settles "old agents follow the old metaserver"
ctl "$new" event list >/dev/null
ctl "$new" worker list --all-nodes >/dev/null
timeout 60 "$new/rdmactl" --agent-socket "$work/a.admin" agent status >/dev/null ||
    fail "the new rdmactl, the old agent: agent status"
ok "the new rdmactl asks the old metaserver and agents"

# ---- the metaserver is new

backup_with() { # build file
    "$1/kedge-metad" --config "$work/metad.conf" backup "$2" 2>"$work/said" ||
        fail "a backup: $(cat "$work/said")"
}
what_is_set() { # build
    { ctl "$1" tenant list; ctl "$1" window list; } | tr -s ' '
    ctl "$1" node get node-a -o json | jq -c .settings.labels
    ctl "$1" event list -o json | jq -c '[.events[] | select(.kind != "liveness") |
        [.revision, .kind, .name, .time, .who]]'
}
what_is_set "$old" >"$work/set"
backup_with "$old" "$work/old.jsonl"
end_daemon metad
bin=$new daemon_start metad kedge-metad || fail "the new metaserver refuses the old one's store"
for name in a b; do bin=$new agent_wait "$name" || fail "old agents, new metaserver"; done
what_is_set "$new" >"$work/now"
diff "$work/set" "$work/now" >&2 || fail "the new metaserver does not know what the old one did"
ok "the new metaserver has what the old one's store had, and old agents register with it"
reads_lent a "$old" "workers go on"
ctl "$old" node list >/dev/null
ctl "$old" tenant set web sessions=96 >/dev/null
settles "what the old rdmactl sets at the new metaserver is in force at old agents"
ctl "$new" worker list --node node-b -o json |
    jq -e '.workers | length == 1' >/dev/null || fail "the new metaserver asks an old agent"
ok "the new metaserver asks an old agent for its workers"

# ---- one agent is new

ctl "$new" node drain node-a --grace 0 --wait >/dev/null
end_daemon a
bin=$new daemon_start a kedge-agentd || fail "the new agent did not start"
bin=$new agent_wait a || fail "a new agent, the new metaserver"
ctl "$new" node uncordon node-a >/dev/null
settles "a new agent takes the place of an old one, with its state"
reads_lent a "$new" "a new worker at a new agent reads what an old one at an old agent lends"
reads_lent a "$old" "so does an old worker at a new agent"
lends_and_reads a "$new" b "$old" "an old worker at an old agent reads from a new agent's new one"
lends_and_reads a "$old" b "$new" "a new worker at an old agent reads from a new agent's old one"
timeout 60 "$old/rdmactl" --agent-socket "$work/a.admin" agent status >/dev/null ||
    fail "the old rdmactl, the new agent"

# ---- the metaserver is old again

backup_with "$new" "$work/new.jsonl"
end_daemon metad
if bin=$old daemon_start metad kedge-metad 2>"$work/said"; then
    ok "the old metaserver goes on with the new one's store"
else
    grep -q 'newer kedge-metad' "$work/said" ||
        fail "the old metaserver does not say why it refuses the store: $(cat "$work/said")"
    ok "the old metaserver refuses the new one's store: $(cat "$work/said")"
    rm -rf "$work/metad"
    mkdir -m 0700 "$work/metad"
    "$old/kedge-metad" --config "$work/metad.conf" restore "$work/old.jsonl" 2>"$work/said" ||
        fail "the old metaserver's backup: $(cat "$work/said")"
    bin=$old daemon_start metad kedge-metad || fail "the old metaserver with its backup"
fi
for name in a b; do bin=$new agent_wait "$name" || fail "an old metaserver, $name"; done
settles "old and new agents follow the old metaserver"
ctl "$new" tenant set web sessions=32 >/dev/null
settles "what is set at the old metaserver is in force at both"
reads_lent a "$new" "workers go on"

# ---- all of it new; what the old one has left is in nobody's way

end_daemon metad
bin=$new daemon_start metad kedge-metad || fail "the new metaserver, once more"
end_workers # what the old worker has lent ends with its agent
worker_pids=()
end_daemon b
bin=$new daemon_start b kedge-agentd || fail "the new agent of node-b did not start"
for name in a b; do bin=$new agent_wait "$name" || fail "new agents, new metaserver"; done
settles "all of it is new"
rm -f "$work/hold-b"
lends_and_reads b "$new" a "$new" "and new workers read from each other"
ctl "$new" tenant get web -o json | jq -e '.sessions == 32' >/dev/null ||
    fail "what was set in between: $(ctl "$new" tenant get web)"
stop
