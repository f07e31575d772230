#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdmactl as a whole: each command is in --help, in the manual and in the completion, and its JSON
# says the version of its form; each exit code that the manual has is seen; each key that can be set
# is completed and explained.
source "$(dirname "$0")/lib.sh"
page=$(readlink -f "$(dirname "$0")/../../docs/man/rdmactl.1") \
    completion=$(readlink -f "$(dirname "$0")/../../ctl/completion/rdmactl.bash")
agents=1
more_metad="max_watches = 2" # the agent's own is one
start
export_text a "what a lease is of"
unset KEDGE_CONTEXT KEDGE_TOKEN KEDGE_TOKEN_FILE
export XDG_CONFIG_HOME=$work/config KEDGE_SERVER=unix:$work/metad.sock \
    KEDGE_AGENT_ADMIN=$work/a.admin
PATH=$(readlink -f "$bin"):$PATH
# What it is asked, and what it does then. The page of --help goes with each.
ctl() { timeout $((60 * slow)) rdmactl "$@" >"$work/out" 2>"$work/err"; }
code=0
ctl || code=$?
mapfile -t resources < <(sed 's/.*name a command: //; s/ or /, /; s/, */\n/g' "$work/err")
((${#resources[@]} > 10)) || fail "the commands are not named: $(cat "$work/err")"
rdmactl --help >"$work/help"

# ---- completion: COMPREPLY of a line, of which the last word is the one to complete
source "$completion"
complete_words() { # words...
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _rdmactl
    printf '%s\n' "${COMPREPLY[@]}"
}
same() { # sentence; both lists, sorted
    local sentence=$1
    diff <(sort -u "$work/wanted") <(sort -u "$work/got") >"$work/diff" ||
        fail "$sentence: $(cat "$work/diff")"
    ok "$sentence"
}
completes() { complete_words "$@" >"$work/got"; }
printf '%s\n' "${resources[@]}" >"$work/wanted"
completes rdmactl ""
same "the commands are completed"
grep -oE -- '--[a-z][a-z-]+' "$work/help" >"$work/wanted"
completes rdmactl --
same "the options of --help are completed"
while read -r option; do
    grep -qE "Fl Fl ${option#--}( |\$)" "$page" || fail "$option is not in the manual"
done <"$work/wanted"
ok "and in the manual"

# ---- every command: what a test of its JSON says behind it
declare -A arguments=(
    [status]="" [doctor]="" [help]="node list" [version]="" [check perf]="" [explain]="pool.dcis"
    [diff]="-f $work/set.json"
    [describe node]="node-a" [describe tenant]="web" [describe window]="w" [describe pool]="p"
        [describe token]="t" [describe region]=""
    [apply]="-f $work/set.json" [agent status]="" [metaserver list]=""
    [tenant create]="web uids=5" [tenant set]="web sessions=4" [tenant get]="web"
        [tenant list]="" [tenant delete]="web"
    [window create]="w scope=device ops=1000" [window set]="w ops=999" [window get]="w"
        [window list]="" [window delete]="w"
    [pool create]="p nodes=all spares=1" [pool set]="p spares=2" [pool get]="p"
        [pool list]="" [pool delete]="p"
    [token create]="t scope=reader" [token set]="t expires=30d" [token get]="t"
        [token list]="" [token delete]="t"
    [node list]="" [node get]="node-a" [node label]="node-a zone=a"
        [node cordon]="node-a" [node uncordon]="node-a"
    [node drain]="node-a" [node delete]="ghost" [event list]="" [worker list]="" [lease list]=""
    [region list]=""
    [top nodes]="--interval 100ms" [top tenants]="--interval 100ms"
    [context set]="here output=table" [context get]="here"
        [context list]="" [context use]="here" [context delete]="here"
)
order="status doctor version help explain apply diff list create set label get use cordon drain"
order+=" uncordon perf watch nodes tenants worker lease region metaserver revoke node tenant window"
order+=" pool token delete"
echo '[{"kind": "node", "name": "ghost", "cordoned": true}]' >"$work/set.json"
worker=$(rdmactl worker list -o json | jq -r '.workers[0].id')
lease=$(rdmactl lease list -o json | jq -r '.leases[0].id')
arguments[worker get]=$worker arguments[lease get]=$lease arguments[lease revoke]=$lease
arguments[describe worker]=$worker arguments[describe lease]=$lease
arguments[describe metaserver]=$(rdmactl metaserver list -o json | jq -r '.metaservers[0].name')

verbs_of() { # resource; "" for a command that has none
    local said
    said=$(rdmactl "$1" 2>&1 >/dev/null) || true
    [[ $said == *"say rdmactl $1 "* ]] || { echo; return 0; }
    grep -oE "(say rdmactl|or) $1 [a-z]+" <<<"$said" | sed 's/.* //'
}
until_it_holds() { # what is said when it does not; command...
    local said=$1
    shift
    for _ in $(seq 600); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "$said"
}
has_region() { [[ $(rdmactl region list -o json | jq '.regions | length') != 0 ]]; }
watches_are() { [[ $(curl -s "$url/metrics" | sed -n 's/^kedge_metad_watches //p') == "$1" ]]; }
check_json() { # resource verb
    local line from=(--revision 0) publisher=
    if [[ "$1 $2" == "region watch" || "$1 $2" == "describe region" ]]; then # of what there is
        from=()
        sleep 600 > >(KEDGE_SOCKET=$work/a.sock exec "$bin/publish_region" kv/watched >/dev/null) &
        publisher=$!
    fi
    if [[ "$1 $2" == "describe region" ]]; then
        until_it_holds "no region is published" has_region
        arguments[describe region]=$(rdmactl region list -o json | jq -r '.regions[0].id')
    fi
    if [[ $2 == watch ]]; then
        # It goes on until it is ended, and the metaserver has heard of that. The first change
        # is as good as any.
        rdmactl "$1" watch "${from[@]}" -o json >"$work/watched" 2>"$work/err" &
        local pid=$!
        until_it_holds "nothing was watched: rdmactl $1 watch: $(cat "$work/err")" \
            test -s "$work/watched"
        kill "$pid"
        wait "$pid" 2>/dev/null || true
        until_it_holds "the watch is open still" watches_are 1
        head -n 1 "$work/watched" >"$work/out"
    else
        read -ra line <<<"${arguments[${1}${2:+ $2}]}"
        # how fast it is here, `check perf` may find too slow
        ctl "$1" ${2:+"$2"} "${line[@]}" -o json || [[ $? == 1 && "$1 $2" == "check perf" ]] ||
            fail "rdmactl $1 $2 ${line[*]} ended with $?: $(cat "$work/err")"
    fi
    [[ -z $publisher ]] || kill "$publisher"
    [[ $(jq -s -c 'map(.format_version)' "$work/out") == '[1]' ]] ||
        fail "rdmactl $1 $2 -o json says no version, or more than one object:" \
            "$(head -c 300 "$work/out")"
    count=$((count + 1))
}
in_help() { # resource verb: "tenant|window list" has both of them
    awk -v resource="$1" -v verb="$2" '
        function has(words, word) { return index("|" words "|", "|" word "|") }
        /^  [a-z]/ && has($1, resource) && (verb == "" || has($2, verb)) { found = 1 }
        END { exit !found }' "$work/help"
}
commands=() count=0
for resource in "${resources[@]}"; do
    verbs_of "$resource" >"$work/wanted"
    if [[ -n $(<"$work/wanted") ]]; then
        completes rdmactl "$resource" ""
        same "the verbs of $resource are completed: $(xargs <"$work/wanted")"
    fi
    while read -r verb; do
        commands+=("$resource $verb")
        in_help "$resource" "$verb" || fail "rdmactl $resource $verb is not in --help"
        grep -qE "Cm $resource${verb:+ $verb}( |\$)" "$page" ||
            fail "rdmactl $resource $verb is not in the manual"
        [[ $verb == watch || -v arguments["$resource${verb:+ $verb}"] ]] ||
            fail "no arguments for rdmactl $resource $verb"
    done <"$work/wanted"
done
ok "${#commands[@]} commands are in --help and in the manual"
for verb in $order; do
    [[ $verb != watch ]] || rdmactl token set t expires=31d >/dev/null
    for command in "${commands[@]}"; do
        read -r resource second <<<"$command"
        if [[ ${second:-$resource} == "$verb" ]]; then
            check_json "$resource" "$second"
        fi
    done
done
((count == ${#commands[@]})) ||
    fail "of ${#commands[@]} commands $count were run: is one not in \$order?"
ok "the JSON of each of $count commands says its version"

rdmactl worker list -w >"$work/watched" 2>"$work/err" &
pid=$!
until_it_holds "workers are not watched: $(cat "$work/err")" grep -q "$worker" "$work/watched"
kill "$pid"
wait "$pid" 2>/dev/null || true
grep -q 'nothing tells of changes of workers: they are asked for every 2 s' "$work/err" ||
    fail "it is not said how workers are watched: $(cat "$work/err")"
ok "workers are watched by asking again"

# The list of each kind goes on with what changes in it, which is tried where that is one command.
declare -A watched_row=([node]=node-a [lease]=$lease [metaserver]=' ready ')
declare -A adds=([tenant]="uids=77" [window]="scope=device ops=1000" [pool]="nodes=all spares=1"
    [token]="scope=reader" [context]="output=table")
shows_row() { grep -qE -- "$1" "$work/watched"; } # pattern
for kind in node lease metaserver tenant window pool token context; do
    : >"$work/watched"
    timeout $((120 * slow)) rdmactl "$kind" list -w >"$work/watched" 2>"$work/err" &
    pid=$!
    if [[ -v watched_row[$kind] ]]; then
        until_it_holds "rdmactl $kind list -w shows none: $(cat "$work/watched" "$work/err")" \
            shows_row "${watched_row[$kind]}"
    else
        until_it_holds "rdmactl $kind list -w: $(cat "$work/err")" shows_row '^CHANGE '
        read -ra words <<<"${adds[$kind]}"
        verb=create
        [[ $kind != context ]] || verb=set
        rdmactl "$kind" "$verb" watched "${words[@]}" >/dev/null
        until_it_holds "rdmactl $kind list -w does not show what is new" \
            shows_row '^added .*watched'
        rdmactl "$kind" delete watched >/dev/null
        until_it_holds "rdmactl $kind list -w does not show what is gone" \
            shows_row '^deleted .*watched'
    fi
    kill -0 "$pid" || fail "rdmactl $kind list -w has ended: $(cat "$work/err")"
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    until_it_holds "the watch of $kind is open still" watches_are 1
done
ok "each list is watched, and shows what is new and what is gone"

rdmactl node list -o json | jq -e '[.nodes[].id | select(startswith("rdmactl"))] == []' \
    >/dev/null || fail "check perf leaves something: $(rdmactl node list)"
ok "check perf cleans up behind itself"
ctl top nodes --interval 100ms -o json || fail "top ended with $?: $(cat "$work/err")"
[[ $(jq -c '[.nodes[] | [.node, .sessions, .uncounted, .operations_per_s]]' "$work/out") == \
    '[["node-a",1,0,0]]' ]] || fail "top: $(cat "$work/out")"
ok "the worker is among what top counts"

# ---- keys, and names
for resource in tenant window pool token context; do
    code=0
    ctl "$resource" set x colour=red || code=$?
    [[ $code == 2 || $resource == token ]] || fail "$resource set x colour=red ended with $code"
    [[ $resource != token ]] || ctl token create x colour=red || true
    sed -E 's/.*(with one of|there are) //; s/ and /, /; s/, */\n/g' "$work/err" >"$work/wanted"
    (($(wc -l <"$work/wanted") > 2)) ||
        fail "the keys of a $resource are not named: $(cat "$work/err")"
    complete_words rdmactl "$resource" set x "" | sed 's/=.*//' >"$work/got"
    same "the keys of $resource are completed"
    while read -r key; do
        grep -qE "Cm ([a-z_, ]+ )?$key( |\$)" "$page" ||
            fail "the key $key of $resource is not in the manual"
    done <"$work/wanted"
done
completed() { # wanted, words...
    local wanted=$1 got
    shift
    got=$(complete_words "$@" | xargs)
    [[ $got == "$wanted" ]] || fail "\"$*\" is completed to \"$got\", not \"$wanted\""
}
rdmactl tenant create web uids=5 >/dev/null
rdmactl context set here "server=$url" "agent_socket=$KEDGE_AGENT_ADMIN" >/dev/null
completed "web" rdmactl tenant get ""
completed "web" rdmactl lease list --tenant w
completed "node-a" rdmactl node cordon n
completed "$worker" rdmactl lease revoke --worker ""
completed "here none" rdmactl context use ""
completed "here none" rdmactl status --context ""
completed "uncordon" rdmactl help node u
KEDGE_SERVER=http://127.0.0.1:1 completed "" rdmactl tenant get ""
KEDGE_SERVER=http://127.0.0.1:1 completed "web" rdmactl --context here tenant get ""
KEDGE_SERVER=http://127.0.0.1:1 completed "web" rdmactl --context = here tenant get ""
KEDGE_SERVER=http://127.0.0.1:1 completed "web" rdmactl --server "$url" tenant get w
completed "device destination" rdmactl window set w scope = d
completed "device destination tenant" rdmactl window set w scope =
completed "json" rdmactl status --output = j
completed "json" rdmactl context set here output = j
ok "names, ids and values are completed"

# ---- exit codes, each of which the manual has
seen=()
ends() { # code, pattern of what is said, arguments...
    local wanted=$1 pattern=$2 code=0
    shift 2
    ctl "$@" || code=$?
    [[ $code == "$wanted" ]] || fail "rdmactl $* ended with $code, not $wanted: $(cat "$work/err")"
    [[ $code == 0 ]] || grep -qE "^rdmactl: .*$pattern" "$work/err" ||
        fail "rdmactl $*: \"$(cat "$work/err")\" lacks \"$pattern\""
    seen+=("$code")
    ok "$code: rdmactl $*${pattern:+: $(head -n 1 "$work/err")}"
}
ends 0 "" status
code=0
rdmactl status >/dev/full 2>"$work/err" || code=$?
[[ $code == 1 && $(cat "$work/err") == *"cannot be written"* ]] ||
    fail "on a full disk it ended with $code: $(cat "$work/err")"
seen+=(1)
ok "1: $(cat "$work/err")"
ends 2 '--help' frobnicate
ends 2 'memory_bytes: must be' tenant set web memory_bytes=1
ends 3 'tenant list' tenant get nobody
ends 3 'revision: it begins with' event watch --revision 999999
KEDGE_TOKEN=kedge_wrong ends 4 \
    'no token of a Kedge metaserver \(the token is that of KEDGE_TOKEN\)' \
    --server "$url" tenant list
ends 5 'there is no such tenant: create it first' window set w scope=tenant tenant=nobody ops=5
ends 5 'there is no such tenant: create it first' token create t scope=worker tenant=nobody
ends 2 "$work/a.sock is where workers attach: name the agent.s admin_socket with --agent-socket" \
    --agent-socket "$work/a.sock" agent status
ends 2 "at $work/metad.sock there is kedge-metad, not kedge-agentd: .*--agent-socket" \
    --agent-socket "$work/metad.sock" agent status
ends 2 "at $work/a.admin there is kedge-agentd, not kedge-metad: .*--server" \
    --server "unix:$work/a.admin" node list
ends 2 "$work/a.sock is where workers attach to an agent: .*--server" \
    --server "unix:$work/a.sock" node list
ends 5 'already' tenant create web uids=6
ends 5 'belongs to tenant web' tenant create db uids=5
rdmactl agent status >"$work/out"
grep -v '^sessions_list' "$work/out" >"$work/counters" || fail "there are no counters"
lacks "$work/counters" -E '^ *[a-z_.]+( +(0|-))+ *$' ||
    fail "what is 0 is not left out: $(cat "$work/out")"
grep -qE '^ *[a-z_.]*bytes.* [0-9]+[KMG]iB' "$work/out" ||
    fail "bytes have no unit: $(cat "$work/out")"
way_out='end that first .systemctl stop kedge-agentd there., after rdmactl node drain node-a'
ends 5 "node-a is live: .*$way_out" node delete node-a
timeout 60 rdmactl event watch >/dev/null 2>&1 &
held=$!
until_it_holds "the watch is not open" watches_are 2
ends 7 'max_watches' event watch
kill "$held"
wait "$held" || true
jq -n '[range(65) | {kind: "tenant", name: "t\(.)", uids: [100 + .]}]' >"$work/many.json"
ends 6 'before it are applied' apply -f "$work/many.json"
ends 7 'is kedge-metad running' --server http://127.0.0.1:1 status
ends 7 'there is no agent' --agent-socket "$work/nobody" agent status
sed -n '/^.Sh EXIT STATUS/,/^.Sh EXAMPLES/p' "$page" | sed -n 's/^.It //p' >"$work/wanted"
printf '%s\n' "${seen[@]}" >"$work/got"
same "each exit code of the manual was seen, and no other"

# ---- a node whose agent is gone
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
unset 'pids[a]'
ends 7 \
    "there is no agent at $KEDGE_AGENT_ADMIN: nobody listens there any more .start kedge-agentd" \
    agent status
expired() { rdmactl node get node-a | grep >/dev/null '^state *expired'; }
until_it_holds "it does not expire" expired
ends 0 "" node delete node-a
rdmactl node list -o json | jq -e '.nodes == []' >/dev/null ||
    fail "it is there still: $(rdmactl node list)"
ends 3 'there is no node' node delete node-a
stop
