#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts that run in guests make of a failure, without a guest: a part that fails once has
# failed, and shows what it printed; between two, node 1 excuses what failed while it stood still,
# and nothing else.
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

# Node 1 is a watcher that is stopped. What it excuses is longer than what this machine does by
# itself, or the second attempt would be excused too.
export GUEST_OUT=$work/out PAUSE_MS=4000
mkdir "$work/out/at"
skip() { echo "$*" >>"$work/skipped"; }
source "$here/lib-pauses.sh"
watch_pauses & watch=$!; disown
trap 'kill -KILL $watch; rm -rf "$work"' EXIT
stopped_then() { # which call is good
    local calls
    echo >>"$work/calls"
    calls=$(wc -l <"$work/calls")
    ((calls < $1)) || return 0
    kill -STOP $watch; sleep 5; kill -CONT $watch
    echo "call $calls"
    return 1
}
shows 2 "a job" stopped_then 2
[[ $(<"$work/skipped") == "a job failed, and node 1 stood still for "*"(call 1)" ]] ||
    fail "what is forgiven is not said: $(cat "$work/skipped")"
ok "who fails while node 1 stands still tries again, and says so"
if said=$(shows 2 "a job" false); then fail "a pause before an attempt excuses it"; fi
[[ $said == "FAILED: a job, and node 1 stood still for "* ]] || fail "it failed with: $said"
ok "a pause excuses no later attempt"
if said=$(shows 1 "a job" stopped_then 9); then fail "who never succeeds has passed"; fi
[[ $said == "FAILED: a job: 1 tries have failed"* ]] || fail "it failed with: $said"
ok "that all attempts are excused is a failure"
