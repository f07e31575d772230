#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# schema/openapi.yaml against programs of others, from npm: a linter, and a proxy that holds each
# request and each answer of the daemon against the document. They are installed into the build
# directory once.
source "$(dirname "$0")/lib-metad.sh"
tools=$1/npm-openapi
for tool in node npm; do
    command -v "$tool" >/dev/null || {
        echo "skip: $tool is not installed (the document's linter and validating proxy)"
        exit 77
    }
done
if [[ ! -x $tools/node_modules/.bin/prism || ! -x $tools/node_modules/.bin/redocly ]]; then
    mkdir -p "$tools"
    if ! timeout 400 npm install --prefix "$tools" --no-audit --no-fund \
        --ignore-scripts --loglevel=error @stoplight/prism-cli@5.14.2 @redocly/cli@2.77.0 \
        >"$work/npm" 2>&1; then
        echo "skip: npm cannot install the document's linter and validating proxy:" \
            "$(tail -n 1 "$work/npm")"
        exit 77
    fi
fi
export PATH=$tools/node_modules/.bin:$PATH REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
# Without operationId, since nobody generates code from it; and it names no server but an example.
redocly lint "$root/schema/openapi.yaml" --skip-rule operation-operationId \
    --skip-rule no-server-example.com --skip-rule operation-4xx-response \
    --max-problems 50 >"$work/lint" 2>&1 ||
    fail "the linter: $(cat "$work/lint")"
! grep -E '^\[[0-9]+\]' "$work/lint" >"$work/warned" ||
    fail "the linter warns: $(cat "$work/warned" "$work/lint")"
ok "the linter has nothing to say"
sed 's,responses/Malformed"},responses/Malforme"},' "$root/schema/openapi.yaml" >"$work/wrong.yaml"
! redocly lint "$work/wrong.yaml" >/dev/null 2>&1 || fail "the linter sees nothing"

configure "access = tokens" "client_rate = 0"
start
daemon=$url
ask -X PUT -H 'Content-Type: application/json' --data-binary '{"scope":"admin"}' \
    --unix-socket "$work/metad.sock" /v1/tokens/root
expect 201 "a token is made"
printf 'Authorization: Bearer %s\n' "$(jq -r .secret "$work/body")" >"$work/header"
proxy_pid=
end_proxy() {
    [[ -z $proxy_pid ]] || {
        kill "$proxy_pid" 2>/dev/null || true
        wait "$proxy_pid" 2>/dev/null || true
    }
    proxy_pid=
}
trap 'end_proxy; cleanup' EXIT
# Below the ports that the kernel gives to whoever connects, of which any may be in use; one that is
# so is left.
begin_proxy() { # document
    local at
    end_proxy
    for _ in $(seq 5); do
        at=$((20000 + RANDOM % 12000))
        prism proxy "$1" "$daemon" --errors --port "$at" --host 127.0.0.1 >"$work/proxy" 2>&1 &
        proxy_pid=$!
        for _ in $(seq 600); do
            ! grep -q 'listening on' "$work/proxy" || { url=http://127.0.0.1:$at; return; }
            kill -0 "$proxy_pid" 2>/dev/null || break
            sleep 0.1
        done
        grep -q EADDRINUSE "$work/proxy" || break
        end_proxy
    done
    fail "the proxy does not start: $(cat "$work/proxy")"
}
count=0
try() { # status method path [body]
    if [[ -n ${4-} ]]; then
        ask -X "$2" -H "@$work/header" -H 'Content-Type: application/json' --data-binary "$4" "$3"
    else
        ask -X "$2" -H "@$work/header" "$3"
    fi
    [[ $status == "$1" ]] || fail "$2 $3: $status, not $1; the proxy: $(tail -n 5 "$work/proxy")"
    count=$((count + 1))
}
begin_proxy "$root/schema/openapi.yaml"
try 201 PUT /v1/nodes/n1 "$(node 5 1)"
try 200 PUT /v1/nodes/n1 "$(node 5 1)"
try 409 PUT /v1/nodes/n1 "$(node 4 1)"
try 200 POST /v1/nodes/n1/renew '{"incarnation":5}'
try 404 POST /v1/nodes/n2/renew '{"incarnation":5}'
try 204 PUT /v1/nodes/n1/applied '{"incarnation":5,"revision":1,"seen":1,"sessions":0}'
try 200 PUT /v1/nodes/n1/reach '{"incarnation":5,"pool":1,"table":{"error":"timeout","for_ms":7},'\
'"targets":[{"gid":"fd00::9"}]}'
try 201 PUT /v1/nodes/n1/settings '{"cordoned":true,"labels":{"rack":"a"},"reason":"a test"}'
try 200 GET /v1/nodes/n1/settings
try 201 PUT /v1/tenants/web '{"uids":[5],"sessions":3}'
try 200 PUT /v1/tenants/web '{"uids":[5],"sessions":4}'
try 201 PUT /v1/windows/w '{"scope":"device","ops":4}'
try 201 PUT /v1/pools/fast '{"nodes":{"rack":"a"},"dcis":4,"connections":64,"responders":128,'\
'"mr_lease_ms":100,"grace_ms":5}'
try 201 PUT /v1/tokens/agent '{"scope":"agent","node":"n1","gids":["fd00::1"]}'
try 201 PUT /v1/tokens/reader '{"scope":"reader","expires":"2099-01-01T00:00:00Z"}'
for path in nodes nodes/n1 nodes/n1/configuration tenants tenants/web windows windows/w pools \
    pools/fast tokens tokens/agent events; do
    try 200 GET "/v1/$path"
done
for path in nodes/none tenants/none windows/none pools/none tokens/none leases/n1:1-1-1 \
    workers/none:1-1; do
    [[ $path != leases/* ]] || { try 503 GET "/v1/$path"; continue; }
    try 404 GET "/v1/$path"
done
for path in healthz livez readyz 'readyz?verbose' metrics version; do try 200 GET "/$path"; done
try 200 GET '/v1/nodes?limit=1&label=rack=a'
try 200 GET '/v1/events?kind=node,liveness&limit=2'
try 400 GET '/v1/events?kind=liveness&position=0123456789abcdef-5'
try 410 GET '/v1/events?watch=1&revision=99'
try 400 GET '/v1/nodes?cursor=!'
try 204 DELETE /v1/windows/w
try 204 DELETE /v1/nodes/n1
cp "$work/header" "$work/admin"
sed 's/....$/AAAA/' "$work/admin" >"$work/header"
try 401 GET /v1/nodes
ok "$count answers of the daemon are what the document says, to a validating proxy"

# And it sees what it is for: without its two fields of a pool that come last, a pool is
# something else.
cp "$work/admin" "$work/header"
sed '/^    Pool:/,/^    Revision:/ {
        s/^      type: object/&\n      additionalProperties: false/
        /^        \(connections\|responders\): /d
    }' "$root/schema/openapi.yaml" >"$work/wrong.yaml"
begin_proxy "$work/wrong.yaml"
try 500 GET /v1/pools/fast
ok "the proxy sees a field that the document does not have"
end_proxy
stop
