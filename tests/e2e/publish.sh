#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers publish regions under names: each is one region's while its owner lives, whatever becomes
# of workers, agents and metaservers meanwhile.
source "$(dirname "$0")/lib.sh"
needs_built publish_region kedge-probe
more_metad="node_lease = $((6 * slow))s"
cluster_settings() { # sockets that only agent a has
    more_tenants="[tenant other]
socket = $work/other.sock"
}
agents=0
start
cluster_settings
agents=2
for name in a b; do
    mkdir -m 0700 "$work/state-$name"
    [[ $name == a ]] || more_tenants=
    agent_configure $name
    daemon_start $name kedge-agentd || fail "agent $name did not start"
    agent_wait $name || fail "agent $name did not register"
done

# Starts a worker that publishes, until it has; its process is in ${publisher[WORKER]}.
declare -A publisher=()
begin_publishing() { # worker socket name; $reader: the tenant that it is for
    rm -f "$work/hold-$1"
    mkfifo "$work/hold-$1"
    exec 8<>"$work/hold-$1"
    KEDGE_SOCKET=$work/$2.sock "$bin/publish_region" "$3" "text of $1" ${reader:+"$reader"} \
        <&8 >"$work/out-$1" 2>"$work/err-$1" &
    publisher[$1]=$!
    worker_pids+=($!)
}
publishes() { # worker socket name sentence
    begin_publishing "$@"
    for _ in $(seq $((600 * slow))); do
        [[ ! -s $work/out-$1 ]] || { ok "$4"; return; }
        kill -0 "${publisher[$1]}" 2>/dev/null || break
        sleep 0.05
    done
    fail "$4: $(cat "$work/err-$1")"
}
is_refused() { # worker socket name pattern sentence
    begin_publishing "$@"
    if wait "${publisher[$1]}"; then fail "$5: it was not"; fi
    grep -Eq -- "$4" "$work/err-$1" || fail "$5: it hears $(cat "$work/err-$1")"
    ok "$5: $(cat "$work/err-$1")"
}
ends() { # worker signal
    kill -"$2" "${publisher[$1]}"
    wait "${publisher[$1]}" 2>/dev/null || true
}
names() { # as the metaserver shows them: TENANT/NAME=NODE:STATE ...
    curl -sf --max-time 20 "$url/v1/regions" |
        jq -r '[.regions[] | "\(.id)=\(.node):\(.state)"] | join(" ")'
}
finds() { # agent name text sentence
    local out
    out=$(KEDGE_SOCKET=$work/$1.sock timeout 60 "$bin/kedge-probe" lookup "$2" "$3") ||
        fail "$4: $out"
    ok "$4"
}
status() { # agent field
    "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json | jq ".region_names.$2"
}

"$bin/rdmactl" --server "$url" region watch --tenant workers >"$work/watched" 2>"$work/watch-err" &
worker_pids+=($!)
until_is 1 "who watches names sees those that there are, which is none" \
    grep -c CHANGE "$work/watched"
publishes one a kv/shard-17 "a worker publishes a region"
until_is 1 "and the first one when it comes" grep -c '^added .*workers/kv/shard-17' "$work/watched"
[[ ! -s $work/watch-err ]] || fail "rdmactl region watch: $(cat "$work/watch-err")"
[[ $(names) == "workers/kv/shard-17=node-a:live" ]] || fail "the metaserver shows $(names)"
"$bin/rdmactl" --server "$url" region list >"$work/list"
grep -Eq '^workers/kv/shard-17 +node-a +live +4KiB +read' "$work/list" ||
    fail "rdmactl region list: $(cat "$work/list")"
ok "and the metaserver shows it when that is said"
"$bin/rdmactl" --server "$url" describe region workers/kv/shard-17 >"$work/page"
for text in '^region workers/kv/shard-17$' '^state +live$' '^node$' '^id +node-a' ' node live, '; do
    grep -qE "$text" "$work/page" || fail "no $text on a region's page: $(cat "$work/page")"
done
refused=0
"$bin/rdmactl" --server "$url" describe region workers/kv/shard-1 2>"$work/page" || refused=$?
[[ $refused == 3 ]] && grep -q 'no region "workers/kv/shard-1": see rdmactl region list' \
    "$work/page" || fail "a region that is not there: $refused, $(cat "$work/page")"
ok "it is described on a page"
finds b kv/shard-17 "text of one" "a worker of another node finds it, and READs it"
is_refused two a kv/shard-17 '"kv/shard-17" is taken: .*another worker of this node' \
    "another worker of the node is refused the name"
is_refused three b kv/shard-17 '"kv/shard-17" is taken: .*node node-a' \
    "a worker of another node is refused it, and hears whose it is"
is_refused four a $'kv\nx' 'a region.s name has 1 to 255 bytes' "what is no name is refused"
publishes others other kv/shard-17 "another tenant's worker has a name of that kind too"
[[ $(names) == "other/kv/shard-17=node-a:live workers/kv/shard-17=node-a:live" ]] ||
    fail "the metaserver shows $(names)"
finds other kv/shard-17 "text of others" "which its workers find"
finds b kv/shard-17 "text of one" "and no others"
[[ $(status a max_published) == 1024 ]] || fail "the agent's status: $(status a max_published)"
[[ $(status a published) == 2 ]] || fail "the agent's status: $(status a published)"
[[ $(agent_metric a region_names) == 2 ]] || fail "the agent's metric"

# For the other tenant, under a name that it has itself.
reader=other begin_publishing lent a kv/shard-17
until_is "other/kv/shard-17 workers,other/kv/shard-17 workers/kv/shard-17" \
    "a worker publishes a region for another tenant, whose own names stay its own" \
    eval 'names | tr " " "\n" | sed s/=.*// | sort | paste -sd" "'
finds_of() { # agent owner name text sentence
    local out
    out=$(KEDGE_SOCKET=$work/$1.sock timeout 60 "$bin/kedge-probe" lookup-of "$2" "$3" "$4") ||
        fail "$5: $out"
    ok "$5"
}
finds_of other workers kv/shard-17 "text of lent" \
    "whose workers find it as the owner's, and READ it"
finds other kv/shard-17 "text of others" "and their own by the name alone"
finds_of a workers kv/shard-17 "text of one" "the owner's own workers find what is theirs"
! out=$(KEDGE_SOCKET=$work/b.sock timeout 60 "$bin/kedge-probe" lookup-of other kv/shard-17) ||
    fail "what a tenant has for itself is found by another: $out"
ok "nobody finds what a tenant has for itself: $out"
ends lent KILL
until_is "other/kv/shard-17=node-a:live workers/kv/shard-17=node-a:live" \
    "it goes with its worker, as others do" names

ends one KILL
until_is "other/kv/shard-17=node-a:live" "a worker that is killed has its name no more" names
until_is 1 "which who watches is told" grep -c '^deleted .*workers/kv/shard-17' "$work/watched"
publishes two b kv/shard-17 "then a worker of the other node gets it"
finds a kv/shard-17 "text of two" "and who looks again finds that one"

# The metaserver is killed, and comes again on the same port.
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
is_refused five a kv/more 'no metaserver has taken the name' \
    "without a metaserver none is published"
ends others TERM # as well while there is none
rm -rf "$work/metad"
mkdir -m 0700 "$work/metad"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver did not start again"
until_is "workers/kv/shard-17=node-b:live" \
    "a metaserver that has lost its store is told the names of those who live, and no others" names
until_is 0 "nothing is left to take back" status a taking_back

# The owner's node dies, and its name is free when it expires.
kill -KILL "${pids[b]}"
wait "${pids[b]}" 2>/dev/null || true
unset 'pids[b]'
until_is "" "a node that is dead has no names" names
publishes six a kv/shard-17 "and a worker of another node gets its name"
finds a kv/shard-17 "text of six" "which is found"
agents=1
stop
