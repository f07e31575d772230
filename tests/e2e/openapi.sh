#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# schema/openapi.yaml is valid OpenAPI, and its examples fit its schemas; and the check
# finds what it is for.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
document=$here/../../schema/openapi.yaml
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

status=0
"$here/openapi.py" check "$document" >"$work/out" || status=$?
case $status in
0) echo "ok: $(cat "$work/out")" ;;
77) cat "$work/out"; exit 77 ;;
*) fail "$(cat "$work/out")" ;;
esac

finds() { # what, a sed script that makes it, what is said
    sed -E "$2" "$document" >"$work/wrong.yaml"
    ! cmp -s "$document" "$work/wrong.yaml" || fail "$1: the script changes nothing"
    ! "$here/openapi.py" check "$work/wrong.yaml" >"$work/out" || fail "$1 is not seen"
    grep -qE "$3" "$work/out" || fail "$1: $(cat "$work/out")"
    echo "ok: $1 is seen"
}
finds "a sentence that YAML takes for two fields" \
    's/"Likewise, instead of node"/Likewise, instead of node/' 'WindowBody/properties/gid'
finds "a schema that forbids its own fields" \
    '/^    Pool:/,/^    Revision:/ {
        s/^      type: object/&\n      additionalProperties: false/
        /  name: /d
    }' \
    'pools/get.*Additional properties'
finds "a reference to nothing" 's,schemas/Mtu"\},schemas/Mtus"},' 'Mtus'
finds "a path's parameter that is not described" 's,^  /v1/nodes/\{id\}:,  /v1/nodes/{ids}:,' \
    'get /v1/nodes/\{ids\}: its parameters'
finds "an example of another type" 's/example: \{"status": "ok"\}/example: {"status": 1}/' \
    'healthz.*not of type'
finds "an example with a field that is not described" \
    's/example: \{"status": "ok"\}/example: {"status": "ok", "colour": 1}/' \
    'colour is not described'
finds "a key that comes twice" 's/^  title: Kedge metaserver/&\n  title: Again/' 'title comes twice'
finds "an answer to any request that one path does not describe" \
    '/^  \/readyz:/,/^  \/metrics:/ {/"505"/d}' '^get /readyz: 505 may be answered'
