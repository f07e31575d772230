#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Metaservers of two versions share one store in etcd: this one, and an older one that knows nothing
# of regions' names (`store` in ops/previous-version, built here from this repository's history).
# One is new first, beside the old one, then both, then one is old again, with agents of both
# throughout: what the one sets or hears of is known at the other, nodes expire by both, and the
# old one destroys nothing of what it does not know.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-previous.sh"
previous_build "$1" "$(sed -n 's/^store //p' "$root/ops/previous-version")"
source "$(dirname "$0")/lib-shared-store.sh"
needs_built publish_region kedge-probe
trap 'end_quickly' EXIT
metaservers=(one two) members=(e1) agents=3
end_quickly() {
    local name
    for name in "${!pids[@]}"; do end_daemon "$name"; done
    cleanup
    etcd_end
}

ctl() { # build metaserver arguments...
    timeout 60 "$1/rdmactl" --server "$(at "$2")" "${@:3}" ||
        fail "rdmactl of $1 at $2: ${*:3}" >&2
}
admin() { # build metaserver arguments...
    timeout 60 "$1/rdmactl" --server "unix:$work/$2.metad.sock" "${@:3}" ||
        fail "rdmactl of $1 at $2: ${*:3}" >&2
}
ends() { # name
    kill -TERM "${pids[$1]}"
    wait "${pids[$1]}" || fail "$1 ended with $?: $(tail -n 5 "$work/$1.log")"
    unset "pids[$1]"
}
# As the same member of the same store, by another build.
changes_to() { # build metaserver
    ends "$2"
    bin=$1 shared_metad_begin "$2"
}
# What both have to say of the store alike.
what_is_set() { # metaserver
    local path kind
    for path in tenants windows pools tokens; do
        curl -sf --max-time 20 --unix-socket "$work/$1.metad.sock" "http://a/v1/$path" |
            jq -S .
    done
    curl -sf --max-time 20 "$(at "$1")/v1/nodes?limit=1000" |
        jq -c '[.nodes[] | [.id, .incarnation, .state, .settings]] | sort'
    for kind in tenant window node token; do
        curl -sf --max-time 20 "$(at "$1")/v1/events?kind=$kind" |
            jq -c '[.events[] | [.revision, .kind, .name, .time, .who, .from, .to]]'
    done
}
is_one_truth() { # sentence
    local i
    for ((i = 0; i < 400 * slow; i++)); do
        what_is_set one >"$work/set-one" && what_is_set two >"$work/set-two" &&
            cmp -s "$work/set-one" "$work/set-two" && { ok "$1"; return; }
        sleep 0.05
    done
    diff "$work/set-one" "$work/set-two" >&2 || true
    fail "$1"
}
names() { # metaserver: TENANT/NAME=NODE:STATE ...
    curl -sf --max-time 20 "$(at "$1")/v1/regions" |
        jq -r '[.regions[] | "\(.id)=\(.node):\(.state)"] | join(" ")'
}
publishes() { # agent name text sentence
    local pid
    rm -f "$work/hold-$2"
    mkfifo "$work/hold-$2"
    exec 8<>"$work/hold-$2"
    KEDGE_SOCKET=$work/$1.sock "$new/publish_region" "$2" "$3" \
        <&8 >"$work/out-$2" 2>"$work/err-$2" &
    pid=$!
    worker_pids+=("$pid")
    for _ in $(seq $((600 * slow))); do
        [[ ! -s $work/out-$2 ]] || { ok "$4"; return; }
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    fail "$4: $(cat "$work/err-$2")"
}
finds() { # agent name text sentence
    local out
    out=$(KEDGE_SOCKET=$work/$1.sock timeout 60 "$new/kedge-probe" lookup "$2" "$3") ||
        fail "$4: $out"
    ok "$4"
}
reads() { # agent build sentence
    local out
    out=$(with "$2" read_text "$1" "$lent") || fail "$3: ended with $?"
    [[ $out == *"what is lent"* ]] || fail "$3: $out"
    ok "$3"
}
node_body() { # number: the body of its registration
    printf '{"incarnation":5,"endpoints":[{"gid":"fd01::%x","pool":1,"transports":["dc"],' "$1"
    printf '"dct_number":%u,"dc_key":"%016x","mtu":4096}]}' "$1" "$1"
}
# That many nodes at once, whatever they are: one request each, beside each other.
registers_many() { # metaserver first count
    local i
    for ((i = $2; i < $2 + $3; i++)); do
        node_body "$i" >"$work/body-$i"
        printf '%s\n' next "url = \"$(at "$1")/v1/nodes/n$i\"" "request = PUT" silent fail \
            "output = /dev/null" "header = \"Content-Type: application/json\"" \
            "data = \"@$work/body-$i\""
    done | sed 1d >"$work/many"
    curl --parallel --parallel-immediate --no-progress-meter --parallel-max "$3" --max-time 60 \
        --config "$work/many" || fail "$1 takes no $3 registrations at once"
}
count_of() { # metaserver: of nodes
    curl -sf --max-time 20 "$(at "$1")/v1/nodes?limit=1000" | jq '.nodes | length'
}
watch_trail() { # metaserver
    curl -sN --max-time 600 -o "$work/trail-$1" "$(at "$1")/v1/events?watch=1&revision=0" &
    worker_pids+=($!)
}
trail_of() { grep . "$work/trail-$1" | jq -s -c 'map(.revision)'; } # metaserver
has_no_gap() { # metaserver sentence
    local last
    last=$(curl -sf --max-time 20 "$(at "$1")/v1/tenants/web" | jq .revision)
    until_is "$(seq "$last" | jq -s -c .)" "$2" trail_of "$1"
}

# ---- all of it old, but for a place that the new one will have

cluster_directories
shared_etcd_begin
bin=$old shared_metad_first one
port_two=$(free_port)
urls="$(at one), $(at two)"
for name in a b c; do
    mkdir -m 0700 "$work/state-$name"
    url=$urls agent_configure "$name"
done
bin=$old daemon_start a kedge-agentd || fail "the old agent did not start"
until_is live "an old agent registers with the old metaserver" state one a
ctl "$old" one tenant create web uids=20000-20999 sessions=64 >/dev/null
ctl "$old" one window create of-web scope=tenant tenant=web ops=128 >/dev/null
ctl "$old" one node label node-a zone=east >/dev/null
admin "$old" one token create reader scope=reader -o json | jq -er .secret >"$work/reader.token"
with "$old" export_text a "what is lent"
lent=$token

# ---- a new one joins

bin=$new shared_metad_first two >"$work/said" 2>&1 ||
    fail "the new metaserver takes no store of the old one's: $(cat "$work/said")"
sed -i "s|^metaservers = .*|metaservers = $(at one), $(at two)|" "$work"/[abc].conf
ends a
end_workers
worker_pids=()
rm -f "$work/hold-a"
bin=$old daemon_start a kedge-agentd || fail "the old agent did not start again"
with "$old" export_text a "what is lent"
lent=$token
for name in b c; do
    bin=$new daemon_start "$name" kedge-agentd || fail "the new agent $name did not start"
done
live_everywhere a b c
watch_trail one
watch_trail two
is_one_truth "the new metaserver has what the old one stored"
members() { # metaserver
    curl -sf --max-time 20 "$(at "$1")/v1/metaservers" | jq -r '[.metaservers[].name] | join(" ")'
}
for name in one two; do until_is "one two" "$name knows both" members "$name"; done
for name in one two; do
    curl -sf --max-time 20 -H "Authorization: Bearer $(cat "$work/reader.token")" \
        "$(at $name)/v1/nodes" >/dev/null || fail "a token of the old one's is taken at $name"
    ctl "$new" $name worker list --node node-a -o json | jq -e '.workers | length == 1' \
        >/dev/null || fail "$name does not ask the old agent for its workers"
done
ok "either asks an old agent for its workers"
reads b "$new" "a new worker of a new agent reads what an old one's lends"

# ---- each sets, the other hears of it

ctl "$old" one tenant set web sessions=96 >/dev/null
ctl "$new" two tenant set web sessions=97 >/dev/null
ctl "$old" one tenant set web sessions=98 >/dev/null
ctl "$new" two node cordon node-a >/dev/null
ctl "$old" one node uncordon node-a >/dev/null
admin "$new" two token create short scope=reader >/dev/null
admin "$old" one token delete short >/dev/null
admin "$old" one token create kept scope=reader >/dev/null
ctl "$new" two tenant set web sessions=99 >/dev/null
is_one_truth "what is set at the one is set at the other"
has_no_gap one "the old one's watch has each change, in order"
has_no_gap two "and the new one's"

# ---- registrations, many to a transaction at the new one

registers_many two 1 200
registers_many one 201 200
until_is 403 "200 nodes that register at the new one at once, and 200 at the old one" count_of one
until_is 403 "are known at both" count_of two
lacks "$work/one.log" "makes no sense" || fail "the old one: $(tail -n 3 "$work/one.log")"
is_one_truth "with the same lives"

# ---- names, of which the old one knows nothing

publishes b kv "of b" "a worker of a new agent publishes beside an old metaserver"
until_is "workers/kv=node-b:live" "the new one shows it" names two
finds c kv "of b" "a worker of another new agent finds it"
ctl "$old" one tenant set web sessions=100 >/dev/null
changes_to "$old" one
is_one_truth "the old one starts on a store with names"
ctl "$new" two metaserver list >"$work/list"
grep -Eq '^one +ready ' "$work/list" || fail "rdmactl metaserver list: $(cat "$work/list")"
ok "rdmactl metaserver list of the new one asks the old one how it is"
kept() { # metaserver sentence
    until_is "workers/kv=node-b:live" "$2" names "$1"
    finds c kv "of b" "and it is found"
}
changes_to "$new" two
live_everywhere a b c
kept two "a name is there after both have started again"

backup_with() { # build metaserver file
    "$1/kedge-metad" --config "$work/$2.conf" backup "$3" 2>"$work/said" ||
        fail "a backup: $(cat "$work/said")"
}
backup_with "$old" one "$work/old.jsonl"
backup_with "$new" two "$work/new.jsonl"
for name in old new; do
    lacks "$work/$name.jsonl" '"kv"' || fail "the $name one's backup has names of regions"
done
ok "backups of neither have names of regions"

# ---- expiry: both have their say

kill -STOP "${pids[c]}"
for name in one two; do until_is expired "c expires at $name" state "$name" c; done
kill -CONT "${pids[c]}"
live_everywhere a b c
kept two "names of those who live are there when another has expired"
# The old one alone expires who owns a name; the new one finds that out when it comes.
publishes c gone "of c" "a worker of the other publishes too"
until_is "workers/gone=node-c:live workers/kv=node-b:live" "both names are shown" names two
ends two
kill -KILL "${pids[c]}"
wait "${pids[c]}" 2>/dev/null || true
unset "pids[c]"
until_is expired "the old one alone lets the owner of a name expire" state one c
bin=$new shared_metad_begin two
until_is "workers/kv=node-b:live" "which the new one takes back when it comes" names two

# ---- forward and back, as docs/operations.md has it

ends two # the last of the new ones: nobody keeps names
ctl "$old" one tenant set web sessions=101 >/dev/null
bin=$new shared_metad_begin two
changes_to "$new" one
live_everywhere a b
is_one_truth "both are new, one on the data of an old one"
for name in one two; do
    until_is "workers/kv=node-b:live" "the name is shown at $name" names "$name"
done
changes_to "$old" two
live_everywhere a b
ctl "$old" two tenant set web sessions=102 >/dev/null
is_one_truth "the other one is old again, on the data of a new one"
until_is "workers/kv=node-b:live" "the name is shown at one" names one
reads b "$new" "a worker that lends goes on throughout"
for name in one two; do ends "$name"; done
ok "metaservers end"
stop
etcd_end
