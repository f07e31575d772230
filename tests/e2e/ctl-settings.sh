#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdmactl against a metaserver: tenants, windows and events are listed, set, watched and deleted;
# what is wrong has its exit code, and a sentence that says what to do.
source "$(dirname "$0")/lib-metad.sh"
source "$(dirname "$0")/lib-ctl.sh"
configure "events = 16"
start
export KEDGE_SERVER=$url
: >"$work/body"

does "an empty list says how to go on" tenant list
shows 'rdmactl tenant set NAME'
for words in "pool --help" "--help pool" "pool -h" "help pool"; do
    read -ra line <<<"$words"
    does "the help of one kind" "${line[@]}"
    shows '^usage: rdmactl \[OPTIONS\] pool list\|get\|create\|set\|delete\|watch$'
    shows '^  nodes  +zone=a,rack=7: '
    shows '^  pool create NAME KEY=VALUE\.\.\.  '
    shows '^  rdmactl pool create gold nodes='
    shows '^  --mr-lease DURATION  +pool create, set: '
    shows '^  --revision NUMBER  +watch: '
    ! grep -qE 'lease revoke|--uid|--wait|--peer|--label' "$work/out" ||
        fail "rdmactl $words is not of pools alone: $(cat "$work/out")"
done
refuses 2 'there is no command "poool", but status, node, .*: see rdmactl --help' \
    poool create --help
refuses 7 'a server without TLS is http://' --server "https${url#http}" tenant list
refuses 2 'the token in \. cannot be read: it is no regular file' --token-file . tenant list
KEDGE_TOKEN=$'kedge_x\n' \
    refuses 2 'KEDGE_TOKEN is set, but to no token: it has a blank, a newline' tenant list
echo '[]' >"$work/empty.json"
does "a file without an object" apply -f "$work/empty.json"
shows '^there is nothing to apply$'
echo '[{"kind": "tenant", "name": "slip", "uidz": [5]}]' >"$work/slip.json"
refuses 2 'uidz: unknown field: see rdmactl explain tenant \(nothing is applied\)' \
    apply -f "$work/slip.json"
does "the help of tokens says which scopes there are" token --help
shows '^  scope  +reader, operator, admin, agent or worker'
shows '^  --secret-file FILE  '
does "that of nodes has what drain takes" node --help
for option in reason grace wait label; do shows "^  --$option "; done
for words in "node drain --help" "help node drain" "-h node drain"; do
    read -ra line <<<"$words"
    does "that of one command" "${line[@]}"
    shows '^usage: rdmactl \[OPTIONS\] node drain ID$'
    shows '^  rdmactl node drain host-17 '
    for option in reason grace wait; do shows "^  --$option "; done
    ! grep -qE -- '--label|--number|node list' "$work/out" ||
        fail "rdmactl $words is not of that alone: $(cat "$work/out")"
done
refuses 2 'say rdmactl node list, or ' help node fly
does "that of doctor has two nodes" doctor --help
for option in config provider serve peer; do shows "^  --$option "; done
refuses 2 'needs what to set, as KEY=VALUE: of uids, sessions, .*region_names$' tenant set web
does "a tenant is made" tenant set web uids=1000,2000-2999 sessions=64 memory_bytes=4GiB
shows '^memory_bytes +4GiB$'
[[ $(grep -E '^[a-z_]+ +[^ ]+$' "$work/out" | sed -E 's/[^ ]+$//' | awk '{print length}' |
    sort -u | wc -l) == 1 ]] ||
    fail "the values are not below each other: $(cat "$work/out")"
does "and changed in part" tenant set web vqps=4096
does "it has both" tenant get web -o json
[[ $(jq -c '[.sessions, .vqps, .memory_bytes, .uids]' "$work/out") == \
    '[64,4096,4294967296,[1000,"2000-2999"]]' ]] ||
    fail "$(cat "$work/out")"
echo '{"kind": "tenant", "name": "quoted", "uids": ["5"]}' >"$work/quoted.json"
refuses 2 'uids\[0\]: must be a uid, which is a number without quotes' apply -f "$work/quoted.json"
does "a window of it" window set of-web scope=tenant tenant=web bytes=1MiB ops=128
does "the list of tenants" tenant list
shows '^NAME +UIDS +SESSIONS +VQPS +MRS +MEMORY$'
shows '^web +1000,2000-2999 +64 +4096 +- +4GiB$'
does "a wide one" tenant list -o wide
shows 'WINDOW OPS +CONTROL OPS/S +REGION NAMES +REVISION$'
does "one for programs" window list -o json
[[ $(jq -r '.windows[0].tenant' "$work/out") == web ]] || fail "$(cat "$work/out")"
does "the trail" event list
shows '^3 +.*window of-web +created, scope: tenant'
shows 'tenant web +vqps: - -> 4096$'
does "the trail for programs" event list -o json
[[ $(jq '.events | length' "$work/out") == 3 ]] || fail "$(cat "$work/out")"

does "of the trail what concerns one" event list --kind tenant --name web -o json
[[ $(jq -c '[.events[] | [.kind, .name, .revision]]' "$work/out") == \
    '[["tenant","web",1],["tenant","web",2]]' ]] || fail "$(cat "$work/out")"
does "of the trail the newest" event list --limit 2 -o json
[[ $(jq -c '[.events[].revision]' "$work/out") == '[2,3]' ]] || fail "$(cat "$work/out")"
does "more than there is" event list --limit 99
[[ $(wc -l <"$work/out") == 4 ]] || fail "$(cat "$work/out")"
does "the newest of one kind" event list --limit=1 --kind=tenant
shows '^2 +.*vqps'
does "of nobody there is none" event list --name nobody
shows 'there is no such event'
does "windows of one tenant" window list --tenant web --scope tenant -o json
[[ $(jq -c '[.windows[].name]' "$work/out") == '["of-web"]' ]] || fail "$(cat "$work/out")"
does "of another one there is none" window list --tenant db
shows 'there is no such window'
does "neither of another scope" window list --scope device
shows 'there is no such window'
does "whose uid it is" tenant list --uid 2345
shows '^web '
does "or is not" tenant list --uid 7
shows 'there is no such tenant'
refuses 2 'scope: must be device' window list --scope planet
refuses 2 'uid: must be' tenant list --uid me
refuses 2 'kind: must be' event list --kind planet
refuses 2 '--limit must be a number from 1 to 1000' event list --limit 0
refuses 2 'token list alone' tenant list --scope reader
refuses 2 'tenant list alone' window list --uid 5
refuses 2 'event watch alone' tenant watch --kind window
refuses 2 'KEY=VALUE, with one of uids' tenant set web colour=red
refuses 2 'a size such as 4GiB' tenant set web memory_bytes=much
refuses 2 'memory_bytes: must be 0 or at least' tenant set web memory_bytes=1
refuses 2 'scope: must be' window set w ops=1
refuses 2 'tenant list, or tenant get NAME' tenant
refuses 3 'see rdmactl tenant list' tenant get nobody
refuses 3 'see rdmactl window list' window delete nobody
refuses 5 'uids\[0\]: uid 1000 belongs to tenant web' tenant set db uids=1000
refuses 5 'window of-web refers to it' tenant delete web
refuses 3 'revision: it begins with' event watch --revision 99
refuses 2 'needs a file' apply

# Watching: what happens meanwhile is shown, until the metaserver ends.
timeout 120 "$rdmactl" event watch --revision 2 >"$work/watched" 2>"$work/watch.err" &
all=$!
timeout 120 "$rdmactl" window watch -o json >"$work/windows" 2>/dev/null &
windows=$!
timeout 120 "$rdmactl" tenant watch --name nobody >"$work/nobody" 2>"$work/nobody.err" &
nobody=$!
for _ in $(seq 600); do
    ask /metrics
    [[ $(sed -n 's/^kedge_metad_watches //p' "$work/body") != 3 ]] || break
    sleep 0.1
done
does "a tenant is changed while somebody watches" tenant set web sessions=65
does "a window too" window set of-web ops=129
does "and deleted" window delete of-web
for _ in $(seq 600); do
    if [[ $(wc -l <"$work/watched") == 4 && $(wc -l <"$work/windows") == 2 ]]; then break; fi
    sleep 0.1
done
grep -q '4  tenant web  sessions: 64 -> 65' "$work/watched" ||
    fail "watched: $(cat "$work/watched")"
[[ $(jq -s -c 'map(.revision)' "$work/windows") == '[5,6]' ]] ||
    fail "watched: $(cat "$work/windows")"
ok "watchers are shown what concerns them"

# A file of them, with what is wrong in it.
cat >"$work/set.json" <<'JSON'
[{"kind": "tenant", "name": "db", "uids": [5]},
    {"kind": "window", "name": "all", "scope": "device", "ops": 1000}]
JSON
does "a file is applied" apply -f "$work/set.json"
shows '^tenant db is created$'
does "again, from standard input" apply -f - <"$work/set.json"
shows '^window all is set$'
sed 's/"device"/"planet"/' "$work/set.json" >"$work/wrong.json"
refuses 2 'window all: .*scope: must be .*\(nothing is applied\)' apply -f "$work/wrong.json"
echo '[' >"$work/wrong.json"
refuses 2 'not JSON: line' apply -f "$work/wrong.json"
refuses 2 'cannot be read: No such file' apply -f "$work/nothing.json"

# Taken, and noted: a window that a narrower one makes useless, one that bounds nothing, one for a
# node that is not there.
notes() { grep -qE -- "^note: $1" "$work/err" || fail "no note of $1 in: $(cat "$work/err")"; }
quiet() { ! grep -q '^note:' "$work/err" || fail "it notes: $(cat "$work/err")"; }
does "a window for each destination that is wider than the device's" \
    window set each scope=destination ops=2000
notes 'window each: ops=2000 has no effect as long as window all \(device\) has ops=1000'
[[ $(wc -l <"$work/err") == 1 ]] || fail "it says: $(cat "$work/err")"
does "the device's becomes wider" window set all ops=4000
quiet
does "and narrower than both" window set all ops=10
notes 'window each: ops=2000 has no effect as long as window all \(device\) has ops=10'
does "a tenant's own is compared too" tenant set web window_ops=11
notes 'tenant web: window_ops=11 has no effect'
does "one that bounds nothing" window set all ops=0
notes 'window all bounds nothing: it has neither bytes nor ops'
[[ $(wc -l <"$work/err") == 1 ]] || fail "it says: $(cat "$work/err")"
does "a file is noted when all of it is there" apply -f - \
    <<<'[{"kind": "window", "name": "each", "scope": "destination", "ops": 500},
    {"kind": "window", "name": "all", "scope": "device", "ops": 1000}]'
quiet
does "and of what it leaves" apply -f - -o json \
    <<<'{"kind": "window", "name": "each", "scope": "destination", "ops": 1001}'
notes 'window each: ops=1001 has no effect as long as window all'
jq -e '.applied[0].name == "each"' "$work/out" >/dev/null || fail "its JSON is $(cat "$work/out")"
does "it goes" window delete each
does "the tenant's goes" tenant set web window_ops=0

does "a tenant's control operations" tenant set web control_ops_per_s=1000
does "are shown" tenant get web
shows '^control_ops_per_s 1000$'
does "a window of one node" window set of-one scope=destination node=host-17 ops=8
notes 'window of-one: node host-17 is not registered: until it is'
does "can be of one GID instead" window set of-one node= gid=fd00::17
does "it has that alone" window list
shows '^of-one +destination +- +- +fd00::17 +- +8$'
does "and of one pool" window set of-one pool=fast
does "which is shown" window get of-one -o json
[[ $(jq -c '[.node, .gid, .pool]' "$work/out") == '[null,"fd00::17","fast"]' ]] ||
    fail "$(cat "$work/out")"
refuses 2 'gid: names the destination, as node does' window set of-one node=host-17
refuses 2 'node: is for the scope destination alone' window set all node=host-17
does "it goes" window delete of-one

stop
code=0
wait "$all" || code=$?
[[ $code == 7 ]] || fail "the watcher ended with $code"
grep -q 'the stream has ended; go on with --revision 23' "$work/watch.err" ||
    fail "it says $(cat "$work/watch.err")"
wait "$windows" || true
wait "$nobody" || true
[[ ! -s $work/nobody ]] || fail "it was shown $(cat "$work/nobody")"
grep -q 'the stream has ended; go on with --revision 3 --position [0-9a-f]*-[0-9]*$' \
    "$work/nobody.err" || fail "who saw nothing is told $(cat "$work/nobody.err")"
ok "a watcher whose metaserver ends says how to go on"
refuses 7 'is kedge-metad running' tenant list
refuses 7 'cannot be watched' event watch

# Pools: a number that stays, and tenants, each in one of them.
start
export KEDGE_SERVER=$url
does "a pool is made" pool create gold --tenant web --tenant batch \
    --mr-lease 50ms --grace 30s nodes=zone=a
notes 'pool gold: no node has the labels zone=a: rdmactl node label'
notes 'pool gold: the metaserver knows no tenant batch: rdmactl tenant create batch'
[[ $(wc -l <"$work/err") == 2 ]] || fail "of what is there it says: $(cat "$work/err")"
does "it is shown" pool get gold -o json
[[ $(jq -c '[.nodes.zone, .number, .tenants, .mr_lease_ms, .grace_ms]' "$work/out") == \
    '["a",32407,["batch","web"],50,30000]' ]] || fail "$(cat "$work/out")"
does "the list of pools" pool list -o wide
shows '^NAME +NODES +TENANTS +NUMBER +LANES +SESSIONS +.*MR LEASE +GRACE'
shows '^gold +zone=a +batch,web +32407 .* 50ms +30s '
does "a pool for all nodes is made" pool create everywhere nodes=all
[[ ! -s $work/err ]] || fail "of all nodes it says: $(cat "$work/err")"
does "and shown as such" pool list
shows '^everywhere +all '
does "its own way, too" pool get everywhere
shows '^nodes +all$'
does "it goes" pool delete everywhere
does "an option changes what it says alone" pool set gold --tenant web
does "and a word that has nothing takes back what was said" pool set gold mr_lease_ms=
[[ $(ctl pool get gold -o json
    jq -c '[.nodes.zone, .number, .tenants, .mr_lease_ms, .grace_ms]' "$work/out") == \
    '["a",32407,["web"],null,30000]' ]] || fail "$(cat "$work/out")"
does "lanes are set" pool set gold lanes=2
does "and shown" pool get gold -o json
jq -e '.lanes == 2' "$work/out" >"$work/found" || fail "$(cat "$work/out")"
does "in the list, too" pool list -o wide
shows '^gold +zone=a +web +32407 +2 '
does "described" describe pool gold
shows '^  lanes +2$'
refuses 2 'lanes: must be an integer from 1 to 8' pool set gold lanes=9
refuses 2 'lanes: must be an integer from 1 to 8' pool set gold lanes=0
does "and taken back" pool set gold lanes=
[[ $(ctl pool get gold -o json; jq -c '.lanes' "$work/out") == null ]] || fail "$(cat "$work/out")"
refuses 5 'number: is 32407 as long as the pool is there' pool set gold --number 7
refuses 5 'number: 32407 is that of pool gold: choose another' \
    pool create lead nodes=all --number 32407
refuses 5 'tenants\[1\]: tenant web is in pool gold: take it' \
    pool create lead nodes=all --tenant zoo --tenant web
refuses 2 'number: must be an integer from 1' pool create lead nodes=all --number 65536
refuses 2 'mr_lease_ms: must be' pool create lead nodes=all --mr-lease 1ms
refuses 2 'grace_ms: must be' pool create lead nodes=all --grace 105d
refuses 2 'say which nodes have this pool: nodes=zone=a, with their labels, or nodes=all' \
    pool create lead
refuses 2 'say which nodes have this pool' pool set lead spares=1
refuses 2 'nodes must be all, or labels such as' pool set gold nodes=
refuses 2 'tenants is said twice' pool set gold --tenant web tenants=batch
refuses 2 'nodes must be all, or labels such as .* each of them once' \
    pool set gold nodes=zone=a,zone=b
does "the list, as it is shown, can be applied" pool list -o json
cp "$work/out" "$work/pools.json"
does "which changes nothing" apply -f "$work/pools.json"

# What get prints, edited, is applied to what it was made of, and to nothing newer.
export KEDGE_SERVER=unix:$work/metad.sock # where tokens may be made
ctl token create robot scope=reader || fail "no token is made: $(cat "$work/err")"
ctl window set all ops=1000
ctl node label host-17 zone=a && fail "a node that is not there is labelled"
jq -n '{kind: "node", name: "host-17", labels: {zone: "a"}}' >"$work/node.json"
does "one object is a file too" apply -f "$work/node.json"
edits() { # kind name edit member value: get | edit | apply, twice
    does "$1 $2 is shown" "$1" get "$2" -o json
    cp "$work/out" "$work/old.json"
    jq "$3" "$work/old.json" >"$work/new.json"
    does "edited, and applied" apply -f "$work/new.json"
    ctl "$1" get "$2" -o json
    [[ $(jq -c "$4" "$work/out") == "$5" &&
        $(jq .revision "$work/out") -gt $(jq .revision "$work/old.json") ]] ||
        fail "it is $(cat "$work/out")"
    local newer="the file has it as of revision [0-9]+, but it has been changed: its revision is"
    newer+=" [0-9]+; get it, .*\\(0 before it are applied\\)"
    refuses 5 "$1 $2: $newer" apply -f "$work/old.json"
    ctl "$1" get "$2" -o json
    [[ $(jq -c "$4" "$work/out") == "$5" ]] || fail "it was overwritten: $(cat "$work/out")"
}
edits tenant web '.sessions = 77 | .memory_bytes = "2GiB"' '[.sessions, .memory_bytes]' \
    '[77,2147483648]'
edits window all '.bytes = "1MiB"' '[.ops, .bytes]' '[1000,1048576]'
edits pool gold '.spares = 3' .spares 3
does "tokens of one scope" token list --scope reader -o json
[[ $(jq -c '[.tokens[].name]' "$work/out") == '["robot"]' ]] || fail "$(cat "$work/out")"
does "of another one there is none" token list --scope admin
shows 'there is no such token'
edits token robot '.scope = "operator"' .scope '"operator"'
ctl tenant get web -o json
jq 'del(.revision) | .sessions = 78' "$work/out" >"$work/new.json"
does "without its revision it is set whatever is there" apply -f "$work/new.json"
does "the list of tenants" tenant list -o json
cp "$work/out" "$work/tenants.json"
does "and of windows" window list -o json
cp "$work/out" "$work/windows.json"
does "are applied, one file after the other" \
    apply -f "$work/tenants.json" -f "$work/windows.json" -o json
[[ $(jq -c '[.applied[].kind] | unique' "$work/out") == '["tenant","window"]' ]] ||
    fail "$(cat "$work/out")"
ctl tenant get web -o json
jq '[del(.revision), (del(.revision) | .sessions = 1)]' "$work/out" >"$work/twice.json"
refuses 2 '\[1\]: tenant web is there twice \(nothing is applied\)' apply -f "$work/twice.json"
refuses 2 'tenant web is there twice \(nothing is applied\)' \
    apply -f "$work/new.json" -f "$work/tenants.json"
refuses 2 '/nope cannot be read' apply -f "$work/new.json" -f /nope
ctl tenant get web -o json
[[ $(jq .sessions "$work/out") == 78 ]] || fail "something was applied: $(cat "$work/out")"
ok "and nothing is applied of files of which one is wrong"
does "it is deleted" pool delete gold
does "a tenant needs nothing but its name" tenant create nobody
shows '^uids +-$'
nobody='tenant nobody has no uids'
notes "$nobody and no token: no worker can come .* rdmactl tenant set nobody uids=\.\.\.\$"
does "who may not see tokens" --server "$url" tenant set nobody sessions=6
notes "$nobody: .*, unless it has a token, which your own does not show you\$"
does "a token" token create nobody-1 scope=worker tenant=nobody
does "is enough" tenant set nobody sessions=7
quiet
does "it goes" token delete nobody-1
does "so are uids" tenant set nobody uids=54399
quiet
does "they go" tenant set nobody uids=
notes "$nobody and no token"
does "and goes" tenant delete nobody
echo '{"kind": "tenant", "name": "nobody", "sessions": 5}' >"$work/nobody.json"
does "neither in a file" apply -f "$work/nobody.json"
notes "$nobody and no token"
does "it has nobody" tenant get nobody -o json
[[ $(jq -c '[.uids, .sessions]' "$work/out") == '[[],5]' ]] || fail "$(cat "$work/out")"
does "and goes as well" tenant delete nobody
echo '{"kind": "pool", "name": "oops"}' >"$work/oops.json"
refuses 2 'pool oops: .*nodes: is missing: say which nodes .* or \{\} for all' \
    apply -f "$work/oops.json"
