#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doorbells that are rung without an end, with nothing in the rings, do not keep a lane awake; and who asks for something
# after that is answered.
source "$(dirname "$0")/lib.sh"
needs_built kedge-hostile kedge-probe
agents=1
start
passes() { agent_number a passes; }
before=$(passes)
"$bin/kedge-hostile" doorbells --socket "$work/a.sock" --ms 3000 >"$work/out" 2>&1 || fail "$(cat "$work/out")"
took=$(($(passes) - before)) rung=$(sed -n 's/^doorbells: did \([0-9]*\),.*/\1/p' "$work/out")
((rung > 10000)) || fail "too few to tell: $(cat "$work/out")"
((4 * took < rung)) || fail "$rung rings without a request had the lane make $took passes"
ok "$rung rings without a request had the lane make $took passes"
out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" back 2>&1) || fail "after that: $out"
ok "others have what they ask for"
stop
