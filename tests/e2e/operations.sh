#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/operations.md as a newcomer would go through it: every command on that page, in its order, on a cluster with a
# worker; each has to succeed, and to print something where it is one that shows.
source "$(dirname "$0")/lib.sh"
page=$(readlink -f "$(dirname "$0")/../../docs/operations.md")
agents=2
start
export_text a "what an operator may revoke"
cd "$work"
unset KEDGE_CONTEXT
export XDG_CONFIG_HOME=$work/config
export KEDGE_SERVER=$url KEDGE_AGENT_ADMIN=$work/a.admin KEDGE_METAD_SOCKET=$work/metad.sock
PATH=$(readlink -f "$bin"):$PATH
sed -n '/^```json$/,/^```$/p' "$page" | sed '1d;$d' >tenants.json
jq -e 'length > 1' tenants.json >/dev/null || fail "the page has no example of a file"

# Whether a command shows something: those that change a thing may be silent.
shows() { [[ $1 == *list* || $1 == *get* || $1 == *status* || $1 == *metrics* || $1 == *doctor* || $1 == *create* ]]; }
count=0
while IFS= read -r -u 8 line; do
    [[ $line == '    '* ]] || continue
    line=${line#    }
    [[ $line == rdmactl* || $line == curl* || $line == chmod* ]] || fail "the page has a command that this test does not know: $line"
    timeout 60 bash -o pipefail -c "$line" >out 2>err </dev/null || fail "$line: ended with $?: $(cat out err)"
    if shows "$line" && [[ $line != *'>'* && ! -s out ]]; then fail "$line: shows nothing"; fi
    count=$((count + 1))
done 8<"$page"
((count >= 46)) || fail "only $count commands were found"
[[ -s ops.token && -s node-c.token ]] || fail "the tokens that were made are empty"
ok "$count commands of docs/operations.md, each ends well"
stop
