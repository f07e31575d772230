#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whose a worker is where all have one uid, as in containers: its token says it, which the
# metaserver has made or the agent's file names, or the socket of its tenant where it attaches.
# Tokens that are wrong, expired, deleted or too long are refused and counted, whoever guesses keeps
# nobody out, and no secret is anywhere but with who bears it.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-follow.sh"
command -v sha256sum >/dev/null || { skip "sha256sum is not installed"; exit 77; }
boxes=$(mktemp -d /tmp/kedge-boxes-XXXXXX)
trap 'cleanup; rm -rf "$boxes"' EXIT
random() { head -c 32 /dev/urandom | sha256sum | cut -c1-64; }
hash() { printf %s "$1" | sha256sum | cut -c1-64; }
of_file=$(random) of_file_later=$(random)
agents=1 more_pool="max_sessions = 16"
more_tenants="[tenant file]
token_sha256 = $(hash "$of_file")
[tenant boxed]
socket = $boxes/boxed.sock
socket_mode = 0600
[tenant other]
socket = $boxes/other.sock"
start
admin() { timeout 60 "$bin/rdmactl" --server "unix:$work/metad.sock" "$@"; }
token() { admin token create "$@" -o json | jq -re .secret; } # name, KEY=VALUE...: the secret
# Starts a worker that stays, and waits until it says something; then $worker, and what it says
# is in $work/NAME.out.
shows_token() { KEDGE_WORKER_TOKEN=$2 worker "$1" watch; }
tenant_of() { status | jq -r --argjson pid "$1" '.sessions_list[] | select(.pid == $pid).tenant'; }
attaches() { # name tenant sentence
    grep -q '^attached' "$work/$1.out" || fail "$3: $(cat "$work/$1.out")"
    [[ $(tenant_of "$worker") == "$2" ]] || fail "$3: it is of \"$(tenant_of "$worker")\""
    ok "$3"
}
refused() { # token pattern sentence
    local code=0
    KEDGE_WORKER_TOKEN=$1 KEDGE_SOCKET=${socket:-$work/a.sock} \
        timeout 60 "$bin/kedge-probe" watch >"$work/out" 2>&1 || code=$?
    [[ $code == 1 ]] || fail "$3: it ended with $code: $(cat "$work/out")"
    grep -qE "^not attached: .*$2" "$work/out" || fail "$3: it is told $(cat "$work/out")"
    ok "$3: $(cat "$work/out")"
}

# Two workers of one uid, of two tenants.
ctl tenant create red uids=
ctl tenant create blue uids=
! admin token create nobodys scope=worker tenant=nobody >"$work/out" 2>&1 ||
    fail "a token of no tenant is made"
shows 'there is no such tenant'
red_secret=$(token red-workers scope=worker tenant=red) || fail "no token: $(admin token list)"
blue_secret=$(token blue-workers scope=worker tenant=blue)
is '[1,1]' "the agent knows that both have a token" \
    '[.tenants[] | select(.name == "red" or .name == "blue").tokens]'
shows_token red "$red_secret"; red=$worker
attaches red red "a worker is of its token's tenant"
shows_token blue "$blue_secret"; blue=$worker
attaches blue blue "another one of the same uid is of another token's"
shows_token empty ""
attaches empty workers "an empty token is none: the uid says whose it is"
kill "$worker"
shows_token file "$of_file"
attaches file file "the agent's file may name a token too"
kill "$worker"

# Wrong ones.
counted=$(metric wrong_tokens_total)
begin=$(date +%s%N)
refused "${red_secret%?}$([[ $red_secret == *A ]] && echo B || echo A)" 'no tenant has the token' \
    "a wrong token is refused, and not taken for the uid's tenant"
((($(date +%s%N) - begin) / 1000000 >= 1000)) || fail "and at once"
ok "a second later"
refused red-workers 'no tenant has the token' "a token's name is none"
refused "$(hash "$of_file")" 'no tenant has the token' "nor is its hash"
refused "$(printf 'x%.0s' {1..128})" 'the token has 128 bytes: at most 127' \
    "one that is too long is refused before anything is sent"
past=$(token past scope=worker tenant=red expires=5s)
sleep 6
is '[2]' "the agent knows of one that has expired" '[.tenants[] | select(.name == "red").tokens]'
refused "$past" 'expired' "one that has expired is refused"
[[ $(metric wrong_tokens_total) == $((counted + 4)) ]] ||
    fail "$(metric wrong_tokens_total) wrong tokens are counted, $counted before"
[[ $(status | jq .wrong_tokens) == $((counted + 4)) ]] ||
    fail "the status says another number of them"
grep -q 'shown a token that no tenant has.*uid=' "$work/a.log" ||
    fail "the log says nothing of them"
ok "they are counted, and the log says whose process it was"
echo "$red_secret" >"$work/red.token"
chmod 600 "$work/red.token"
refuses 4 'this needs the scope reader.* the token.s is worker of tenant red' \
    --token-file "$work/red.token" tenant list

# Guessing: who hangs up at once keeps a place for a second, or until another needs it.
counted=$(metric wrong_tokens_total)
KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" guess 1000 >"$work/out" 2>&1 ||
    fail "guessing: $(cat "$work/out")"
shows_token after "$blue_secret"
attaches after blue "a right one gets in behind 1000 guesses at once"
guessed=$(($(metric wrong_tokens_total) - counted))
((guessed >= 1 && guessed <= 1000)) || fail "of 1000 guesses $guessed are counted"
kill "$worker"

# A socket of a tenant.
[[ $(stat -c %a "$boxes/boxed.sock") == 600 ]] ||
    fail "its mode is $(stat -c %a "$boxes/boxed.sock")"
[[ $(stat -c %a "$boxes/other.sock") == 660 ]] ||
    fail "its mode is $(stat -c %a "$boxes/other.sock")"
ok "sockets of tenants have the modes that the file says"
KEDGE_SOCKET=$boxes/boxed.sock "$bin/kedge-probe" watch >"$work/boxed.out" 2>&1 &
worker=$! boxed=$worker
worker_pids+=("$worker")
for _ in $(seq $((1200 * slow))); do [[ ! -s $work/boxed.out ]] || break; sleep 0.05; done
attaches boxed boxed "whoever can open a tenant's socket is of that tenant"
socket=$boxes/boxed.sock refused "$blue_secret" \
    'the token is of tenant blue, and this socket of tenant boxed' \
    "another tenant's token is refused there"
socket=$boxes/boxed.sock refused wrong 'no tenant has the token' "and so is a wrong one"
if [[ $(id -u) == 0 ]]; then
    mkdir -m 0755 "$work/worker"
    cp "$bin/kedge-probe" "$bin"/../lib/libkedge.so* "$work/worker/"
    chmod 0711 "$boxes"
    ! setpriv --reuid 65533 --clear-groups \
        env "LD_LIBRARY_PATH=$work/worker" "KEDGE_SOCKET=$boxes/boxed.sock" \
        "$work/worker/kedge-probe" watch >"$work/out" 2>&1 || fail "another user opens it"
    grep -q 'Permission denied' "$work/out" || fail "another user is told $(cat "$work/out")"
    ok "another user cannot open it: $(cat "$work/out")"
else
    skip "whether another user can open the socket: only root can be one"
fi
# With max_sessions = 16 there may be 20 that wait; crowd.sh has more.
out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" beside 30 "$boxes/other.sock" 2>&1) ||
    fail "not beside a crowd of its uid: $out"
out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" beside 30 "$work/a.sock" 2>&1) ||
    fail "connections that say nothing keep out one of their uid: $out"
ok "a crowd that says nothing keeps nobody out, at the socket for all and at a tenant's own"

out=$(KEDGE_SOCKET=$boxes/boxed.sock timeout 60 "$bin/kedge-probe" twice 2>&1) ||
    fail "an arena, and another one meanwhile: $out"
[[ $out == $'1: 5 descriptors\n3: one arena at a time\n2: 1 descriptors' ]] ||
    fail "an arena, and another one meanwhile: $out"
ok "a worker that asks for an arena twice hears of each by its tag"

# Deleted.
admin token delete red-workers >"$work/out" || fail "delete: $(cat "$work/out")"
is '[1]' "the agent hears that a token is deleted" \
    '[.tenants[] | select(.name == "red").tokens]' # "past" is left
refused "$red_secret" 'no tenant has the token' "a deleted one is refused"
goes_on "$red" "and its worker of before stays"
[[ $(tenant_of "$red") == red ]] || fail "its session is gone"
refuses 5 'token past refers to it' tenant delete red

# Over a restart of the agent without a metaserver; and what its file says now.
kill "$boxed" "$blue"
kill -TERM "${pids[metad]}"
wait "${pids[metad]}" || true
unset 'pids[metad]'
kill -TERM "${pids[a]}"
wait "${pids[a]}" || true
daemon_start a kedge-agentd || fail "the agent does not start without a metaserver"
shows_token again "$blue_secret"
attaches again blue "a token that was in force is so after a restart without any metaserver"
refused "$red_secret" 'no tenant has the token' "and a deleted one is not"
sed -i "s/^token_sha256.*/token_sha256 = $(hash "$of_file_later")/" "$work/a.conf"
kill -HUP "${pids[a]}"
for _ in $(seq $((1200 * slow))); do
    ! grep -q 'windows are as the settings say' "$work/a.log" || break
    sleep 0.05
done
shows_token later "$of_file_later"
attaches later file "the file's tokens change with SIGHUP"
refused "$of_file" 'no tenant has the token' "and the one of before is refused"

# Where secrets are not.
mkdir "$work/shown"
status >"$work/shown/status" || fail "there is no status"
curl -sf --unix-socket "$work/a.admin" http://a/metrics >"$work/shown/metrics" ||
    fail "there are no metrics"
cat "/proc/${pids[a]}/cmdline" >"$work/shown/agent-cmdline"
cat "/proc/$worker/cmdline" >"$work/shown/worker-cmdline"
mapfile -t files < <(
    find "$work"/*.log "$work"/state-a "$work"/metad "$work"/*.conf "$work/shown" -type f -size +0
)
looked=0
for secret in "$red_secret" "$blue_secret" "$of_file" "$of_file_later"; do
    tail=${secret: -40}
    for file in "${files[@]}"; do
        lacks "$file" -F -e "$tail" || fail "a secret is in $file"
    done
    looked=$((looked + ${#files[@]}))
done
((looked >= 4 * (4 + 6))) || fail "only $looked times a secret was looked for: ${files[*]}"
tr '\0' '\n' <"/proc/$worker/environ" | grep -F >/dev/null -- "$of_file_later" ||
    fail "the worker's environment has none: nothing was shown"
ok "no secret is in a log, a file, a status, a metric or a command line"
stop
rm -rf "$boxes"
