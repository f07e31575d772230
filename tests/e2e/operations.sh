#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# As a newcomer would go through it: ops/quickstart --keep, the lines to export that it prints and
# nothing else, and then every command of docs/operations.md but those of several metaservers
# (operations-several.sh), in its order; each has to succeed, and to print something where it is
# one that shows. In the end the command that is said to stop the cluster.
source "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$(dirname "$0")/lib-page.sh"
check_frames
work=$(mktemp -d /tmp/kedge-XXXXXX)
stop=
end_cluster() { [[ -z $stop ]] || bash -c "$stop"; cleanup; }
trap end_cluster EXIT
unset KEDGE_CONTEXT KEDGE_SERVER KEDGE_AGENT_ADMIN KEDGE_METAD_SOCKET KEDGE_SOCKET KEDGE_TOKEN \
    KEDGE_TOKEN_FILE
export XDG_CONFIG_HOME=$work/config

options=(--no-install --keep)
if [[ $provider != soft ]]; then
    options+=(--no-measure) # --direct is of soft, and 600,000 READs are many in a guest
    skip "what ops/quickstart measures"
fi
KEDGE_BUILD=$(cd "$bin/.." && pwd) timeout $((60 * slow)) "$root/ops/quickstart" "${options[@]}" \
    >"$work/quickstart" 2>"$work/quickstart.log" ||
    fail "ops/quickstart ended with $?: $(tail -n 20 "$work/quickstart")"
stop=$(sed -n '/^== and stop it with$/,$p' "$work/quickstart" | sed 1d)
[[ $stop == "sh "/* ]] || fail "ops/quickstart does not say how the cluster is stopped: $stop"
grep -q '^read back what worker 1 wrote$' "$work/quickstart" ||
    fail "ops/quickstart: $(cat "$work/quickstart")"
list=$(sed -n '/^ID /,/^$/p' "$work/quickstart")
[[ $(grep -c '^node-' <<<"$list") == 2 && $list != *behind* ]] ||
    fail "ops/quickstart begins with nodes that look wrong: $list"
ok "ops/quickstart --keep: $(grep -c '^export ' "$work/quickstart") lines to export"

cd "$work"
ln -s "$root/ops" ops
eval "$(grep '^export ' quickstart)"
port=$(sed -n 's/.*ready, port //p' "$(dirname "${stop#sh }")/metad.out")
[[ $(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/v1/nodes") == 401 ]] ||
    fail "its metaserver asks nobody for a token"
ok "its metaserver wants tokens of whoever comes by the port"

sed -n '/^```json$/,/^```$/p' "$page" | sed '1d;$d' >tenants.json
jq -e 'length > 1' tenants.json >/dev/null || fail "the page has no example of a file"
# The worker's token of the page, in the variable that the page names: whoever attaches with it is
# of its tenant.
variable=$(tr '\n' ' ' <"$page" |
    sed -n 's/.*the environment variable `\([A-Z_]*\)` of the worker.*/\1/p')
[[ -n $variable ]] || fail "the page does not say in which variable a worker has its token"
worker_attaches() { # tenant
    local worker
    mkfifo hold
    for _ in $(seq 100); do # agents hear of a token within a second
        env "$variable=$(cat "$1.token")" export_region "of $1" <>hold >exported 2>err &
        worker=$!
        worker_pids+=("$worker")
        for _ in $(seq 600); do
            [[ ! -s exported ]] && kill -0 "$worker" 2>/dev/null || break
            sleep 0.05
        done
        [[ ! -s exported ]] || break
        kill "$worker" 2>/dev/null || true
        wait "$worker" 2>/dev/null || true
        grep -q 'no tenant has the token' err || fail "a worker with the token of $1: $(cat err)"
    done
    rdmactl worker list --all-nodes -o json >out
    jq -e --arg tenant "$1" \
        '[.. | objects | select(.tenant? == $tenant and has("id"))] | length == 1' out >/dev/null ||
        fail "a worker with $variable is not of the tenant $1: $(cat out)"
    kill "$worker"
    wait "$worker" 2>/dev/null || true
    rm hold
    attached=$1
    ok "a worker with the token that the page makes, in $variable, is of its tenant"
}
count=0 attached=
while next_command; do
    [[ $line == rdmactl* || $line == curl* || $line == umask* || $line == ops/* ]] ||
        fail "the page has a command that this test does not know: $line"
    [[ $line != umask* ]] || eval "$line"
    if [[ $line == ops/certificates* ]] && ! command -v openssl >/dev/null; then
        skip "$line: openssl is not installed"
        continue
    fi
    run_command
    [[ $line != *' --secret-out builds.token' ]] || worker_attaches builds
    count=$((count + 1))
done 8< <(sed "/^$several\$/,/^## What/{/^## What/!d}" "$page")
[[ -n $attached ]] || fail "the page makes no token for a worker"
((count >= 46)) || fail "only $count commands were found"
[[ -s ops.token && -s node-c.token ]] || fail "the tokens that were made are empty"
[[ -z $(find . -maxdepth 1 -name '*.token' -perm /077) ]] ||
    fail "others may read a token that the page makes: $(ls -l ./*.token)"
ok "$count commands of docs/operations.md, each ends well"

timeout $((60 * slow)) bash -c "$stop" >out 2>&1 || fail "$stop: ended with $?: $(cat out)"
[[ ! -e ${KEDGE_METAD_SOCKET%/*} ]] || fail "the cluster's directory is still there"
stop=
ok "and the cluster is stopped as it said"
