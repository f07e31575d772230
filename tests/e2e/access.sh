#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may do what: every route of schema/openapi.yaml, with every method and every scope, gets the
# status that its `security` asks for, and what is refused changes nothing; and every route of the
# daemon is in that document. Then a cluster whose agents have tokens.
source "$(dirname "$0")/lib-metad.sh"
rdmactl=$1/bin/rdmactl agentd=$1/bin/kedge-agentd
for program in "$rdmactl" "$agentd"; do
    [[ -x $program ]] || { echo "FAILED: $program is not built"; exit 1; }
done
unset KEDGE_SERVER KEDGE_TOKEN KEDGE_TOKEN_FILE
configure "access = tokens" "node_lease = 1h" "max_watches = 64"
start
for _ in $(seq 1200); do # after it has said that it is ready
    ! grep -q 'no token of the scope admin yet make_one="rdmactl --server unix:' "$work/stderr" ||
        break
    sleep 0.05
done
grep -q 'no token of the scope admin yet make_one="rdmactl --server unix:' "$work/stderr" ||
    fail "it does not say how to begin"
ok "it says how to make the first token"
admin=(--unix-socket "$work/metad.sock")

# A token's secret, into a file of that name.
token() { # name, body
    ask -X PUT -H 'Content-Type: application/json' --data-binary "$2" "${admin[@]}" "/v1/tokens/$1"
    [[ $status == 201 ]] || fail "token $1: status $status"
    printf 'Authorization: Bearer %s\n' "$(jq -r .secret "$work/body")" >"$work/$1.header"
}
for scope in reader operator admin; do token "$scope" "{\"scope\":\"$scope\"}"; done
token own '{"scope":"agent","node":"n1","gids":["fd00::1","fd00::2"]}'
token other '{"scope":"agent","node":"n2","gids":["fd00::1"]}'
ask -X PUT -H 'Content-Type: application/json' \
    --data-binary '{"scope":"admin","expires":"2001-01-01T00:00:00Z"}' \
    "${admin[@]}" /v1/tokens/past
expect 400 "a token is not made to have expired"
ends=$(($(date +%s) + 5))
token expired "{\"scope\":\"admin\",\"expires\":\"$(date -u -d "@$ends" +%Y-%m-%dT%H:%M:%SZ)\"}"
until (($(date +%s) >= ends)); do sleep 0.2; done
ask "${admin[@]}" /v1/tokens
[[ $(jq -c '[.tokens[] | select(.expired) | .name]' "$work/body") == '["expired"]' ]] ||
    fail "which token has expired is not shown"
sed 's/....$/AAAA/' "$work/admin.header" >"$work/wrong.header"
printf 'Authorization: Basic YTpi\n' >"$work/basic.header"
: >"$work/none.header"

documented >"$work/documented"
! grep missing "$work/documented" || fail "an operation has no security"
# What the daemon has, from its table: "METHOD /path".
{
    sed -nE 's/^ *\{"([A-Z]+)", "(\/[^"]*)",.*/\1 \2/p' "$root/metaserver/api/routes.c"
    sed -nE 's/^ *RESOURCES\("(\/[^"]*)",.*/\1/p' "$root/metaserver/api/routes.c" |
        while read -r path; do
            printf '%s\n' "GET $path" "GET $path/{name}" "PUT $path/{name}" "DELETE $path/{name}"
        done
} | sort >"$work/has"
awk '{print $2, $1}' "$work/documented" | sort >"$work/says"
diff "$work/has" "$work/says" >"$work/diff" ||
    fail "the daemon's routes and the document's differ: $(cat "$work/diff")"
ok "each of the $(wc -l <"$work/has") routes is in the document, with what it needs"

cut -d' ' -f1 "$work/documented" | sort -u | sed -E 's/\{([a-z]+)\}/\U\1/g' >"$work/paths"
while read -r path; do
    grep -qE "(^| )$path( |\$)" "$root/docs/man/kedge-metad.8" || fail "kedge-metad(8) has no $path"
done <"$work/paths"
ok "and each of the $(wc -l <"$work/paths") paths in kedge-metad(8)"

# Whether a caller may what has these schemes.
allowed() { # caller, schemes
    case $1 in
    none) [[ $access == open && $2 != ,admin, ]] ;;
    reader | operator | admin) [[ $2 == *,"$1",* ]] ;;
    own) [[ $2 == *,agent,* || $2 == *,ownAgent,* ]] ;;
    other) [[ $2 == *,agent,* ]] ;; # the paths below are of n1
    *) false ;;
    esac
}
# Of a region of node 5 1's endpoint.
grant=kedge1._QAAAAAAAAAAAAAAAAAAAQEACAAZzeBbAAA0EgB_AAAAAEAAAAAAAFEOUn-t5oLRmwVojCs-bB9TSnpa
# A body that is right, so that who is let in gets no 400: what is allowed shows in a 2xx, or a
# 404 of what is gone.
body_of() { # path
    case $1 in
    /v1/nodes/\{id\}) node 5 1 ;;
    /v1/nodes/\{id\}/renew) echo '{"incarnation":5}' ;;
    /v1/nodes/\{id\}/reach) echo '{"incarnation":5,"pool":1,"targets":[]}' ;;
    /v1/nodes/\{id\}/applied) echo '{"incarnation":5,"revision":0,"seen":0}' ;;
    /v1/nodes/\{id\}/regions)
        echo '{"incarnation":5,"tenant":"web","name":"kv/shard-17","grant":"'"$grant"'"}'
        ;;
    /v1/nodes/\{id\}/answers/*) echo '{"status":200,"body":{}}' ;;
    /v1/tenants/*) echo '{"uids":[1000]}' ;;
    /v1/windows/*) echo '{"scope":"device"}' ;;
    /v1/tokens/*) echo '{"scope":"reader"}' ;;
    /v1/pools/*) echo '{"nodes":{}}' ;;
    *) echo '{}' ;;
    esac
}
# What a request that is refused must leave as it was, and there is some of it.
unchanged() { # files
    awk '$1 ~ /^kedge_metad_(changes|registrations|renewals|removals)_total$/ {
             if (FNR == NR) { was[$1] = $2; n++ } else if (was[$1] != $2) differs = 1; else same++
         }
         END { exit !(n > 0 && same == n && !differs) }' "$1" "$2"
}
# Several requests of one curl, since most of what this test takes is beginning programs.
several=()
also() { several+=(--next -s --max-time 60 "$@"); }
ask_all() { # sets $statuses to those that also() was told to print
    mapfile -t statuses < <(curl "${several[@]:1}")
    several=()
}
# What $status and the files of that caller's request, $as.*, have to be. Without programs of their
# own, of which there would be thousands.
answered() { # request, caller, schemes
    local wanted body= headers=
    [[ ! -e $as.body ]] || body=$(<"$as.body")
    [[ ! -e $as.headers ]] || headers=$(<"$as.headers")
    case $2 in
    none | wrong | basic | expired) wanted=401 ;;
    *) wanted=403 ;;
    esac
    seen[$status]=$((${seen[$status]-0} + 1))
    if [[ $3 == - ]] || allowed "$2" "$3"; then
        # n1 has no agent here that could be asked.
        [[ $status == 20[014] || $status == 404 ||
            ($status == 503 && $(jq -r .type <<<"$body") == *:agent-unreachable) ]] ||
            fail "$1 as $2: $status: $body"
        return
    fi
    [[ $status == "$wanted" ]] || fail "$1 as $2: $status, not $wanted: $body"
    [[ ${headers,,} == *$'\n''www-authenticate: bearer'* ]] || fail "$1 as $2: no WWW-Authenticate"
    [[ $body == '{'*'"status":'"$wanted"[,}]* ]] || fail "$1 as $2: no problem"
    local names='"detail":"[^"]*needs the scope (reader|operator|admin)'
    ((wanted == 401)) || [[ $body =~ $names ]] || fail "$1 as $2: $body names no scope"
    if [[ $1 != GET* ]]; then
        unchanged "$as.before" "$as.then" || fail "$1 as $2: refused, and yet it has changed"
        kept=$((kept + 1))
    fi
}
everyone() { # with $access and $callers: every route and method
    local path method schemes target caller options got other wrong registration documented as
    registration=$(node 5 1) documented=$'\n'$(<"$work/documented")
    tried=0 kept=0
    seen=()
    while read -r path method schemes; do
        target=$(target_of "$path")
        [[ "$method $path" != "DELETE /v1/leases" ]] || target="$path?worker=n1:1-00000001"
        [[ "$method $path" != "DELETE /v1/nodes/{id}/regions" ]] ||
            target="$target?incarnation=5&tenant=web&name=kv%2Fshard-17"
        [[ "$method $path" != "GET /v1/nodes/{id}/regions" ]] || target="$target?incarnation=5"
        rm -f "$work"/as.*
        for caller in "${callers[@]}"; do
            [[ $path != /v1/nodes* ]] || # is there, whatever was done to it
                also "${admin[@]}" -o /dev/null -X PUT -H 'Content-Type: application/json' \
                    --data-binary "$registration" "$url/v1/nodes/n1"
            options=(-H "@$work/$caller.header" -X "$method")
            [[ $method == GET || $method == DELETE ]] ||
                options+=(-H 'Content-Type: application/json' --data-binary "$(body_of "$path")")
            [[ $method == GET ]] || also "${admin[@]}" -o "$work/as.$caller.before" "$url/metrics"
            also "${options[@]}" -o "$work/as.$caller.body" -D "$work/as.$caller.headers" \
                -w '%{http_code}\n' "$url$target"
            if [[ $method == GET ]]; then
                also -I -H "@$work/$caller.header" -o /dev/null -w '%{http_code}\n' "$url$target"
            else
                also "${admin[@]}" -o "$work/as.$caller.then" "$url/metrics"
            fi
        done
        ask_all
        for caller in "${callers[@]}"; do
            status=${statuses[0]-000} as=$work/as.$caller
            answered "$method $path" "$caller" "$schemes"
            if [[ $method == GET ]]; then
                [[ ${statuses[1]-} == "$status" ]] ||
                    fail "HEAD $path as $caller: ${statuses[1]-}, but GET $status"
                statuses=("${statuses[@]:1}")
            fi
            statuses=("${statuses[@]:1}")
            tried=$((tried + 1))
        done
        # What it has no method for is 405, whoever asks.
        wrong=0
        for other in GET PUT POST DELETE PATCH BREW; do
            [[ $documented != *$'\n'"$path $other "* ]] || continue
            for caller in none admin; do
                also -H "@$work/$caller.header" -X "$other" -o /dev/null \
                    -w "%{http_code} $other as $caller\n" "$url$target"
                wrong=$((wrong + 1))
            done
        done
        ask_all
        for got in "${statuses[@]}"; do [[ $got == 405* ]] || fail "$path: $got"; done
        ((${#statuses[@]} == wrong)) ||
            fail "$path: ${#statuses[@]} of $wrong wrong methods were answered"
        tried=$((tried + wrong))
    done <"$work/documented"
    ((${seen[401]} > 30 && ${seen[403]-0} >= $1 && ${seen[200]} > 30 && kept > 15)) ||
        fail "the statuses are ${!seen[*]}: ${seen[*]}"
    ok "access = $access: $tried requests of ${#callers[@]} callers got the status that the" \
        "document says (401: ${seen[401]}, 403: ${seen[403]-0});" \
        "$kept that were refused changed nothing"
}
declare -A seen
access=open callers=(none wrong admin) # scopes are the same, whatever access is
stop
configure "access = open" "node_lease = 1h" "max_watches = 64"
start
everyone 0
grep -q \
    'warn kedge-metad: whoever reaches the port may .*workers of this host included.*access=open' \
    "$work/stderr" ||
    fail "it does not warn that it is open"
ok "one that is open says what that means:" \
    "$(sed -n 's/.*warn kedge-metad: \(whoever.*\)/\1/p' "$work/stderr")"
stop
access=tokens callers=(none wrong basic expired worker reader operator other own admin)
configure "node_lease = 1h" "max_watches = 64"
sed -i '/^access = /d' "$work/metad.conf" # tokens are the default, on loopback too
start
ask -X PUT -H 'Content-Type: application/json' --data-binary '{"uids":[]}' \
    "${admin[@]}" /v1/tenants/crowd
token worker '{"scope":"worker","tenant":"crowd"}'
everyone 50
ask /v1/nothing
expect 404 "an unknown path is 404, whoever asks"

# Who may be asked what a node's workers do: who may speak for the node.
ask "${admin[@]}" -X PUT -H 'Content-Type: application/json' \
    --data-binary "$(node 5 1)" /v1/nodes/n1
for caller in reader operator other; do
    ask -H "@$work/$caller.header" '/v1/nodes/n1/configuration?watch=1&answers=1'
    expect 403 "$caller is not asked"
done
: >"$work/headers"
curl -sN --max-time 300 -o /dev/null -D "$work/headers" -H "@$work/own.header" \
    "$url/v1/nodes/n1/configuration?watch=1&answers=1" &
stream=$! # it does not end by itself
for _ in $(seq 1200); do ! grep -q '^HTTP' "$work/headers" || break; sleep 0.05; done
kill "$stream"; wait "$stream" || true
grep -q '^HTTP/1.1 200' "$work/headers" ||
    fail "the node's agent is not asked: $(cat "$work/headers")"
ok "the node's agent is"

# What an agent may say.
ask -H "@$work/own.header" -X PUT -H 'Content-Type: application/json' \
    --data-binary "$(node 5 3)" /v1/nodes/n1
expect 403 "an agent with a GID that is not the token's is refused"
[[ $(jq -r .field "$work/body") == 'endpoints[0].gid' ]] || fail "the field is not named"
ask -H "@$work/own.header" -X PUT -H 'Content-Type: application/json' \
    --data-binary "$(node 5 1 |
        jq -c '. + {reader: {gid: "fd00::3", qpn: 7, psn: 7, mtu: 1024}}')" /v1/nodes/n1
expect 403 "a reader with such a GID too"

# What is shown, and what never is.
ask "${admin[@]}" '/v1/events?limit=1000'
expect 200 "the trail"
cp "$work/body" "$work/trail"
[[ $(jq '[.events[] | select(.kind == "tenant") | .who] |
    (.[0] | startswith("127.0.0.1:")) and any(. == "token operator")' "$work/trail") == true ]] ||
    fail "who has changed it"
ask -H "@$work/admin.header" /v1/tokens
cp "$work/body" "$work/tokens"
looked=0
for file in "$work"/{trail,tokens,stderr}; do
    for secret in "$work"/*.header; do
        tail=$(sed -n 's/.*Bearer kedge_[^_]*_//p' "$secret")
        hash=$(sed -n 's/.*Bearer //p' "$secret" | tr -d '\n' | sha256sum | cut -d' ' -f1)
        [[ -n $tail ]] || continue
        lacks "$file" -F -e "$tail" -e "$hash" || fail "$file holds a secret or its hash"
        looked=$((looked + 1))
    done
    lacks "$file" -i 'sha256\|"secret"' || fail "$file speaks of hashes"
done
((looked >= 3 * 6)) || fail "only $looked secrets were looked for"
ok "the trail, the list and the log hold no secret and no hash"
# A secret may begin with a '-', which is no option of grep's.
tail=$(sed -n 's/.*Bearer kedge_[^_]*_//p' "$work/admin.header")
((${#tail} > 20)) || fail "the test does not find the secret"
cat "$work"/data/metad.db* >"$work/store"
lacks "$work/store" -F -e "$tail" || fail "the store holds a secret"
grep -qa "$(sed -n 's/.*Bearer //p' "$work/admin.header" | tr -d '\n' | sha256sum |
    cut -d' ' -f1)" "$work"/data/metad.db* ||
    fail "the store does not hold its hash either: it was not looked for well"
ok "nor does the store hold a secret, but its hash"

# A stream ends with its token.
: >"$work/begun"
timeout 60 curl -sN -H "@$work/reader.header" -o "$work/stream" -D "$work/begun" \
    "$url/v1/events?watch=1" &
stream=$!
for _ in $(seq 1200); do ! grep -q '^HTTP' "$work/begun" || break; sleep 0.05; done
grep -q '^HTTP/1.1 200' "$work/begun" && kill -0 "$stream" ||
    fail "the stream does not begin: $(cat "$work/begun")"
ask "${admin[@]}" -X DELETE /v1/tokens/reader
wait "$stream" || fail "curl ended with $?"
! grep -q '"name":"reader"' "$work/stream" || fail "the stream told of its token's end"
ask -H "@$work/reader.header" /v1/nodes
expect 401 "a token that was deleted is refused, and its stream has ended"

# Killed right after it was acknowledged.
for round in $(seq "${KEDGE_KILL_ROUNDS:-5}"); do
    token "round-$round" '{"scope":"operator"}'
    kill -KILL "$metad_pid"
    wait "$metad_pid" 2>/dev/null || true
    start
    for ((n = 1; n <= round; n++)); do
        ask -H "@$work/round-$n.header" /v1/nodes
        [[ $status == 200 ]] || fail "token round-$n is gone after kill $round: $status"
    done
    ask -H "@$work/reader.header" /v1/nodes
    [[ $status == 401 ]] || fail "the deleted token is back"
done
ok "each of $round tokens outlives kill -9"

# rdmactl and an agent.
ctl() { timeout 60 "$rdmactl" --server "unix:$work/metad.sock" "$@"; }
"$rdmactl" --server "$url" node list >"$work/out" 2>&1 && fail "rdmactl needs no token"
[[ $(cat "$work/out") == \
    *401*"rdmactl --server unix:$work/metad.sock token create NAME scope=reader"* ]] ||
    fail "rdmactl says: $(cat "$work/out")"
ok "rdmactl without a token: $(cat "$work/out")"
ctl token create me scope=operator expires=1d -o json | jq -r .secret >"$work/me"
chmod 600 "$work/me"
"$rdmactl" --server "$url" --token-file "$work/me" tenant set web uids=5 >/dev/null ||
    fail "--token-file"
KEDGE_TOKEN_FILE=$work/me "$rdmactl" --server "$url" tenant list | grep >/dev/null '^web' ||
    fail "KEDGE_TOKEN_FILE"
KEDGE_TOKEN=$(cat "$work/me") "$rdmactl" --server "$url" tenant get web >/dev/null ||
    fail "KEDGE_TOKEN"
code=0
"$rdmactl" --server "$url" --token-file "$work/me" token list 2>"$work/out" || code=$?
[[ $code == 4 && $(cat "$work/out") == *"needs the scope admin; the token's is operator"* ]] ||
    fail "$code: $(cat "$work/out")"
ok "with one it does what the token allows, and says what it lacks"
ctl token create me scope=reader 2>"$work/out" && fail "a token is created twice"
grep -q 'already: change it with rdmactl token set' "$work/out" || fail "$(cat "$work/out")"
ctl token set me scope=reader | grep >/dev/null '^scope *reader' || fail "token set"
ctl token list | grep -E >/dev/null '^me +reader +- +- +- +20' ||
    fail "token list: $(ctl token list)"
ctl token list | grep -E >/dev/null '^expired +admin +- +- +- +expired$' ||
    fail "token list: $(ctl token list)"
ctl token delete me >/dev/null
ctl token set me scope=reader 2>/dev/null && fail "token set makes one, whose secret nobody sees"
ctl event list | grep >/dev/null 'token me' || fail "event list"
ok "tokens are created, listed, changed and deleted"
ctl token create twin scope=reader -o json | jq -r .secret >"$work/twin"
chmod 600 "$work/twin"
ctl token delete twin >/dev/null
ctl token create twin scope=reader --secret-file "$work/twin" -o json >"$work/out" ||
    fail "--secret-file"
lacks "$work/out" secret || fail "a secret that was given is shown"
"$rdmactl" --server "$url" --token-file "$work/twin" node list >/dev/null ||
    fail "a secret that was given is refused"
ctl token create other-twin scope=reader --secret-file "$work/twin" 2>"$work/out" &&
    fail "another token's secret is taken"
grep -q 'secret: must be what another metaserver has shown' "$work/out" || fail "$(cat "$work/out")"
ok "a secret that another metaserver has made can be given"
gid=${gids[1]}
mkdir -m 0700 "$work/state"
cat >"$work/agent.conf" <<END
[agent]
node = worker-1
socket = $work/agent.sock
admin_socket = $work/agent.admin
state_dir = $work/state
metaservers = $url
token_file = $work/agent.token
[fabric]
provider = $provider
device = $device
gid = $gid
END
"$agentd" --config "$work/agent.conf" --check-config >"$work/out" 2>&1 ||
    fail "without a token it would not begin: $(cat "$work/out")"
unreadable="its token_file $work/agent.token cannot be read \(No such file or directory\)"
makes_one="on the metaserver's host .rdmactl token create worker-1 scope=agent node=worker-1"
makes_one+=" gids=[0-9a-f:]+ --secret-out FILE. makes one"
grep -qE "$unreadable: $makes_one" "$work/out" || fail "$(cat "$work/out")"
ok "an agent without its token says: $(tail -n 1 "$work/out")"
agent_start() {
    : >"$work/agent.log"
    "$agentd" --config "$work/agent.conf" >"$work/agent.out" 2>"$work/agent.log" &
    agent=$!
    trap 'kill -KILL $agent 2>/dev/null || true; cleanup' EXIT
}
agent_stop() {
    kill -TERM "$agent"
    wait "$agent" || fail "the agent ended with $?"
}
until_log() { # pattern
    for _ in $(seq 600); do
        ! grep -qE "$1" "$work/agent.log" || return 0
        kill -0 "$agent" 2>/dev/null || fail "the agent ended: $(tail -n 3 "$work/agent.log")"
        sleep 0.1
    done
    fail "the agent does not log \"$1\": $(tail -n 5 "$work/agent.log")"
}
(umask 022; echo kedge_x >"$work/agent.token")
"$agentd" --config "$work/agent.conf" --check-config >"$work/out" 2>&1 ||
    fail "with a token that others may read: $(cat "$work/out")"
grep -q \
    "it would begin, but others may read the token in $work/agent.token, or write it: chmod 600" \
    "$work/out" || fail "$(cat "$work/out")"
ok "an agent whose token others may read says: $(tail -n 1 "$work/out")"
agent_start
until_log "others may read the token in $work/agent.token"
agent_stop
rm "$work/agent.token"
sed -i '/^token_file = /d' "$work/agent.conf"
"$agentd" --config "$work/agent.conf" --check-config >"$work/out" 2>&1 ||
    fail "with no token_file: $(cat "$work/out")"
grep -q 'let in only by metaservers with access = open: token_file is not set' "$work/out" ||
    fail "$(cat "$work/out")"
ok "an agent that is told of no token file says with --check-config: $(tail -n 1 "$work/out")"
agent_start
creates="rdmactl --server unix:$work/metad.sock token create worker-1 scope=agent node=worker-1"
until_log "not registered.*401: show a token .*token_file.*$creates gids=$gid. makes one"
ok "an agent that is told of no token file says what it needs, and how to get it:" \
    "$(sed -n 's/.*why="\([^"]*\)".*/\1/p' "$work/agent.log" | head -n 1)"
agent_stop
sed -i "s|^metaservers = .*|&\ntoken_file = $work/agent.token|" "$work/agent.conf"
agent_start
until_log "there is no token yet.*$work/agent.token cannot be read .No such file"
until_log "not registered.*$unreadable: $makes_one"
ok "an agent whose token_file is not there yet begins, and says so"
"$rdmactl" --server "unix:$work/metad.sock" --agent-socket "$work/agent.admin" status \
    >"$work/out" || fail "rdmactl status ended with $?"
grep -qE "not ready .*$makes_one" "$work/out" ||
    fail "rdmactl status has not the whole command: $(cat "$work/out")"
ok "rdmactl status has the command that makes one, to its end"
: >"$work/agent.token"
until_log "not registered.*its token_file $work/agent.token holds no token: $makes_one"
ok "and likewise while it is empty"
cut -d' ' -f3 "$work/other.header" >"$work/agent.token"
until_log 'not registered.*403.*agent for node worker-1'
ok "an agent with another node's token is refused, and says which it needs"
ctl token create worker-1 scope=agent node=worker-1 "gids=$gid" -o json |
    jq -r .secret >"$work/new" &&
    mv "$work/new" "$work/agent.token"
until_live() {
    for _ in $(seq 600); do
        if ctl node get worker-1 2>/dev/null | grep '^state *live' >/dev/null; then return; fi
        sleep 0.1
    done
    fail "the agent does not register: $(tail -n 5 "$work/agent.log")"
}
until_live
ok "when its token is replaced, it registers"
until_log "others may read the token in $work/agent.token"
ok "and warns of a token that came later, which others may read"
ctl tenant set web uids=6 >/dev/null
revision=$(ctl tenant get web -o json | jq .revision)
for _ in $(seq 600); do
    [[ $("$rdmactl" --agent-socket "$work/agent.admin" agent status -o json |
        jq '[.. | objects | .revision? | numbers] | max') != "$revision" ]] || break
    sleep 0.1
done
[[ $("$rdmactl" --agent-socket "$work/agent.admin" agent status -o json |
    jq '[.. | objects | .revision? | numbers] | max') == "$revision" ]] ||
    fail "the agent does not follow"
ok "it follows the configuration with it"
endpoints() { # how many the metaserver knows
    for _ in $(seq 600); do
        [[ $(ctl node get worker-1 -o json | jq '.endpoints | length') != "$1" ]] || return 0
        sleep 0.1
    done
    fail "there are not $1 endpoints: $(ctl node get worker-1 -o json)"
}
mv "$work/agent.token" "$work/new"
ctl pool create extra nodes=all sessions_ahead=1 arenas_ahead=1 >/dev/null
until_log 'not registered.*its token_file .* cannot be read'
mv "$work/new" "$work/agent.token"
endpoints 2
ctl pool delete extra >/dev/null
endpoints 1
ok "a pool that it made while it had no token is told later, and so is that one's end"
state() {
    "$rdmactl" --server "unix:$work/metad.sock" --agent-socket "$work/agent.admin" status |
        sed -n 's/^agent *[^ ]* *//p'
}
state | grep -E >/dev/null '^ready +workers attach, metaservers that have it: 1$' ||
    fail "rdmactl status: $(state)"
ctl token delete worker-1 >/dev/null
lost='^ready +no metaserver has this node any more: .*: http.*401'
for _ in $(seq 600); do
    state >"$work/shown" || true # 1, as not all is well
    if grep -qE "$lost" "$work/shown"; then break; fi
    sleep 0.1
done
grep -qE "$lost" "$work/shown" ||
    fail "rdmactl status: $(state)"
ok "rdmactl status says of an agent whose token was deleted: $(state)"
ctl token create worker-1 scope=agent node=worker-1 "gids=$gid" -o json |
    jq -r .secret >"$work/agent.token"
until_live
for _ in $(seq 600); do
    if state | grep 'have it: 1$' >/dev/null; then break; fi
    sleep 0.1
done
state | grep >/dev/null 'have it: 1$' || fail "with another token: $(state)"
agent_stop
ask "${admin[@]}" /v1/nodes/worker-1
expect 404 "and removes its node with it when it ends"
tail=$(cut -d_ -f3- "$work/agent.token")
((${#tail} > 20)) || fail "the test does not find the token's secret"
for file in "$work/agent.log" "$work/stderr"; do
    lacks "$file" -F -e "$tail" || fail "$file holds the token"
done
ok "no log holds the token"
trap cleanup EXIT
stop
