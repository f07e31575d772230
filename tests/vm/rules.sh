#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts that run in guests make of a failure, without a guest: a part that fails once has
# failed, and shows what it printed.
#
#   rules.sh BUILD_DIRECTORY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
ok() { echo "ok: $*"; }
fail() { echo "FAILED: $*"; exit 1; }

# A part that fails the first time alone.
mkdir -p "$work/build/tests" "$work/out"
cat >"$work/build/tests/conformance-suite" <<FIRST
#!/bin/sh
mkdir "$work/second" 2>/dev/null || exit 0
echo "why it failed"
exit 3
FIRST
chmod +x "$work/build/tests/conformance-suite"
status=0
GUEST_OUT=$work/out bash "$here/guest.sh" "$work/build" conformance || status=$?
[[ $status == 1 && $(<"$work/out/parts") == "FAILED conformance "*"(status 3)" ]] ||
    fail "a part that fails once ends with $status: $(cat "$work/out/parts")"
grep -qx 'why it failed' "$work/out/conformance.log" ||
    fail "what it printed is gone: $(cat "$work/out/conformance.log")"
status=0
GUEST_OUT=$work/out bash "$here/guest.sh" "$work/build" conformance || status=$?
[[ $status == 0 && $(tail -n 1 "$work/out/parts") == "ok conformance "* ]] ||
    fail "a part that passes ends with $status: $(cat "$work/out/parts")"
ok "in a guest each part runs once, and fails if that does"
