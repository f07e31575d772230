#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdmactl against a metaserver: what files would change is shown before it is, one thing is
# described on a page, fields are explained, and lists are sorted and watched.
source "$(dirname "$0")/lib-metad.sh"
source "$(dirname "$0")/lib-ctl.sh"
configure "node_lease = 10m" # so that its node does not expire meanwhile
start
trap '[[ -z ${watching-} ]] || kill "$watching" 2>/dev/null || true; cleanup' EXIT
export KEDGE_SERVER=unix:$work/metad.sock XDG_CONFIG_HOME=$work/config
: >"$work/body"

# ---- diff and apply --dry-run
cat >"$work/all.json" <<'EOF'
[{"kind": "tenant", "name": "web", "uids": [2000, "3000-3999", 1000], "memory_bytes": "4GiB"},
 {"kind": "window", "name": "of-web", "scope": "tenant", "tenant": "web", "ops": 128},
 {"kind": "pool", "name": "gold", "nodes": {}, "tenants": ["web"], "lanes": 2,
  "mr_lease_ms": "50ms"},
 {"kind": "node", "name": "n1", "labels": {"zone": "a"}}]
EOF
refuses 1 '4 objects differ' diff -f "$work/all.json"
shows '^--- /dev/null$'
shows '^\+\+\+ tenant web$'
shows '^\+uids: 1000,2000,3000-3999$|^\+uids: 2000,3000-3999,1000$'
does "a dry run says what would be created" apply --dry-run -f "$work/all.json"
shows '^pool gold would be created \(dry run\)$'
[[ $(ctl event list -o json; jq '.events | length' "$work/out") == 0 ]] ||
    fail "a dry run has changed something"
does "that is applied" apply -f "$work/all.json"
does "then nothing differs" diff -f "$work/all.json"
[[ ! -s $work/out ]] || fail "something is shown: $(cat "$work/out")"
does "and a dry run says so" apply --dry-run -f "$work/all.json" -o json
[[ $(jq -c '[.dry_run[].change] | unique' "$work/out") == '["unchanged"]' ]] ||
    fail "$(cat "$work/out")"
for kind in tenant window pool node; do # what is shown is what would be set
    if [[ $kind == node ]]; then
        ctl node get n1 -o json
    else
        ctl "$kind" list -o json
    fi
    cp "$work/out" "$work/shown.json"
    does "of $kind what is shown differs in nothing" diff -f "$work/shown.json"
done
ctl tenant get web -o json
jq '.sessions = 64 | del(.memory_bytes)' "$work/out" >"$work/web.json"
refuses 1 '1 object differs' diff -f "$work/web.json"
shows '^--- tenant web.revision 1$'
shows '^\+sessions: 64$'
shows '^-memory_bytes: 4GiB$'
! grep -q uids "$work/out" || fail "what stays is shown: $(cat "$work/out")"
refuses 1 '1 object differs' diff -f "$work/web.json" -o json
[[ $(jq -c '[.differences[0].fields[] | [.field, .before, .after]]' "$work/out") == \
    '[["sessions",0,64],["memory_bytes",4294967296,0]]' ]] || fail "$(cat "$work/out")"
does "somebody else changes it" tenant set web vqps=4
refuses 5 'of 1 apply would be refused' apply --dry-run -f "$work/web.json"
refuses 5 'the file has it as of revision 1' apply -f "$work/web.json"
echo '{"kind": "tenant", "name": "slip", "uidz": [5]}' >"$work/slip.json"
refuses 2 'tenant slip: uidz: unknown field: see rdmactl explain tenant' diff -f "$work/slip.json"
refuses 2 'tenant slip: uidz' apply --dry-run -f "$work/slip.json"
ctl pool get gold -o json
jq '.lanes = 3' "$work/out" >"$work/lanes.json"
refuses 1 '1 object differs' diff -f "$work/lanes.json"
shows '^-lanes: 2$'
shows '^\+lanes: 3$'
echo '{"kind": "pool", "name": "p", "nodes": {}, "lanes": 9}' >"$work/slip.json"
refuses 2 'pool p: lanes: must be an integer from 1 to 8' apply --dry-run -f "$work/slip.json"
echo '{"kind": "pool", "name": "p", "nodes": {}, "dcis": 33}' >"$work/slip.json"
refuses 2 'pool p: dcis: must be an integer from 2 to 32' apply --dry-run -f "$work/slip.json"
echo '[{"kind": "tenant", "name": "first"}, {"kind": "pool", "name": "p", "dcis": 4}]' \
    >"$work/slip.json"
refuses 2 'pool p: nodes: .*nothing is applied' apply -f "$work/slip.json"
echo '[{"kind": "tenant", "name": "first"}, {"kind": "tenant", "name": "slip", "session": 4}]' \
    >"$work/slip.json"
refuses 2 'tenant slip: session: unknown field.*nothing is applied' apply -f "$work/slip.json"
refuses 3 'there is no tenant "first"' tenant get first
refuses 7 'running' --server http://127.0.0.1:1 diff -f "$work/web.json"

# ---- explain
does "a field is explained" explain pool.dcis
shows '^range +2 to 32$'
shows '^default +as each agent.s own file says$'
does "and a kind" explain tenant
shows '^memory_bytes +size, with a unit or in bytes$'
shows '^only shown:$'
shows '^revision +integer$'
does "what is only shown" explain node.fabric.state
shows '^type +unknown, ok, undecided, failing or unreachable$'
shows '^set by +nobody: it is only shown$'
does "and of what nobody sets" explain lease
shows '^over_in_ms +integer$'
refuses 2 'a pool has no field "dcus", but to be set nodes, .*explain pool$' explain pool.dcus
refuses 2 'a worker has no field "x": see rdmactl explain worker' explain worker.x
refuses 2 'there are tenant, window, .*, lease and region, as in' explain planet

# ---- describe
[[ $(curl -s -o "$work/body" -w '%{http_code}' --unix-socket "$work/metad.sock" -X PUT \
    -H 'Content-Type: application/json' -d "$(node 5 1)" http://m/v1/nodes/n1) == 201 ]] ||
    fail "n1 is not registered"
does "a node on a page" describe node n1
for text in '^spec$' '^  labels +zone=a$' '^status$' '^state +live$' '^GID +POOL' '^events$' \
    'created, labels: zone=a' 'node live'; do
    shows "$text"
done
does "a token of it" token create web-1 scope=worker tenant=web --secret-out "$work/web-1"
does "a tenant with what names it" describe tenant web
shows '^named by window of-web, token web-1, pool gold$'
shows 'vqps: (-|0) -> 4$'
does "for programs" describe tenant web -o json
[[ $(jq -c '[.kind, .name, .spec.vqps, (.events | length)]' "$work/out") == \
    '["tenant","web",4,2]' ]] || fail "$(cat "$work/out")"
for i in $(seq 12); do ctl tenant set web "sessions=$i"; done
does "the newest events alone" describe tenant web -o json
[[ $(jq -c '[.events[].to.sessions]' "$work/out") == '[3,4,5,6,7,8,9,10,11,12]' ]] ||
    fail "$(cat "$work/out")"
does "a pool with where it is in force" describe pool gold
shows 'n1 +not yet'
refuses 3 'there is no window "x": see rdmactl window list' describe window x
ctl metaserver list -o json
name=$(jq -r '.metaservers[0].name' "$work/out")
does "a metaserver" describe metaserver "$name"
shows "^metaserver $name\$"
shows '^state +ready$'
shows '^store +sqlite'
shows '^events$'
refuses 3 'there is no metaserver "x": see rdmactl metaserver list' describe metaserver x

# ---- parts of lists, the trail from a time on, versions
does "uids are added" tenant set web uids+=5000,1001-1003
does "and taken away" tenant set web uids-=3500
ctl tenant get web -o json
[[ $(jq -c .uids "$work/out") == '["1000-1003",2000,"3000-3499","3501-3999",5000]' ]] ||
    fail "$(cat "$work/out")"
does "tenants of a pool too" pool set gold tenants-=web
refuses 2 'sessions is no list: say sessions=VALUE' tenant set web sessions+=5
does "events of late" event list --kind tenant,pool --since 1h -o json
[[ $(jq '.events | length' "$work/out") -gt 10 ]] || fail "$(cat "$work/out")"
since=$(jq -r '.events[-2].time' "$work/out")
does "from a time on" event list --kind tenant,pool --since "$since" -o json
[[ $(jq '.events | length' "$work/out") == 2 ]] || fail "since $since: $(cat "$work/out")"
does "none in the future" event list --since 2999-01-01T00:00:00+02:00
shows '^there is no such event yet$'
refuses 2 'since must be a duration such as 10m' event list --since yesterday
does "both versions" version
shows '^client  [0-9]'
shows "^server  [0-9].* at unix:$work/metad.sock$"
does "for programs" version -o json
[[ $(jq -r '.server.program' "$work/out") == kedge-metad ]] || fail "$(cat "$work/out")"
refuses 7 'running' --server http://127.0.0.1:1 version
shows '^client  [0-9]'

# ---- YAML
does "a tenant in YAML" tenant get web -o yaml
shows '^name: web$'
shows '^- "3501-3999"$'
sed 's/^vqps: .*/vqps: 9/' "$work/out" >"$work/web.yaml"
refuses 1 '1 object differs' diff -f "$work/web.yaml"
shows '^\+vqps: 9$'
does "it is applied" apply -f "$work/web.yaml" -o yaml
shows '^- kind: tenant$'
does "a list in YAML" pool list -o yaml
shows '^- kind: pool$'
does "its end too" context list -o yaml
shows '^file: '
printf 'a: &x [1]\nb: *x\n' >"$work/bomb.yaml"
refuses 2 'anchors and aliases are not taken' apply -f "$work/bomb.yaml"

# ---- lists: sorted, and watched
for sessions in 300 20 1; do
    does "a tenant" tenant set "t$sessions" "sessions=$sessions" "uids=$((sessions + 10000))"
done
names() { jq -c "[.tenants[].name]" "$work/out"; }
does "as numbers" tenant list --sort-by sessions -o json
[[ $(names) == '["t1","web","t20","t300"]' ]] || fail "$(names)"
does "the greatest first" tenant list --sort-by=-sessions -o json
[[ $(names) == '["t300","t20","web","t1"]' ]] || fail "$(names)"
does "in a table" tenant list --sort-by -sessions
[[ $(awk 'NR > 1 {print $1}' "$work/out" | xargs) == "t300 t20 web t1" ]] ||
    fail "$(cat "$work/out")"
refuses 2 'sort-by: no row has "colour", but name, revision, ' tenant list --sort-by colour
does "events too" event list --kind tenant --sort-by -revision --limit 2 -o json
[[ $(jq '.events[0].revision > .events[1].revision' "$work/out") == true ]] ||
    fail "$(cat "$work/out")"
watching=
watch() { # file, arguments...
    timeout 300 "$rdmactl" "${@:2}" >"$work/$1" 2>"$work/$1.err" &
    watching=$!
}
until_seen() { # file pattern
    for _ in $(seq 600); do
        ! grep -qE -- "$2" "$work/$1" || { ok "seen: $2"; return 0; }
        kill -0 "$watching" 2>/dev/null || fail "the watch has ended: $(cat "$work/$1.err")"
        sleep 0.1
    done
    fail "$2 is not shown: $(cat "$work/$1" "$work/$1.err")"
}
ended() {
    kill "$watching" 2>/dev/null || true
    wait "$watching" 2>/dev/null || true
    watching=
}
watch table tenant list -w --sort-by name
until_seen table '^ +web '
until_seen table '^CHANGE +NAME +UIDS'
ctl tenant set web sessions=77
until_seen table '^changed +web .* 77 '
ctl tenant set db uids=4
until_seen table '^added +db '
ctl tenant delete db
until_seen table '^deleted +db '
ended
[[ $(grep -c '^changed' "$work/table") == 1 ]] || fail "what did not change is shown again"
watch lines tenant list -w -o json
until_seen lines '"name":"web"'
ctl tenant set web sessions=78
until_seen lines '"change":"changed",.*"sessions":78'
ended
[[ $(jq -s -c '[.[] | [.format_version, .kind]] | unique' "$work/lines") == \
    '[[1,"tenant"]]' ]] || fail "$(cat "$work/lines")"
watch nodes node list -w
until_seen nodes '^ +n1 '
ctl node cordon n1
until_seen nodes '^changed +n1 .*cordoned'
ended
watch trail event list --limit 1 --watch
until_seen trail '^REVISION'
ctl tenant set web sessions=79
until_seen trail 'tenant web  sessions: 78 -> 79'
ended
watch gone tenant list -w
until_seen gone '^ +web '
stop
code=0
wait "$watching" || code=$?
watching=
[[ $code == 7 && $(cat "$work/gone.err") == *"rdmactl: the "* ]] ||
    fail "when the metaserver ended it ended with $code: $(cat "$work/gone.err")"
ok "it ends with 7: $(cat "$work/gone.err")"
