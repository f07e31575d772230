# SPDX-License-Identifier: Apache-2.0
# For scripts that run in each of two guests: what they say of what they find, and how they wait for
# each other, by files in /out/at. $NODE is 1 or 2.
mkdir -p /out/at
begin=$(date +%s%N)
say() { echo "[$((($(date +%s%N) - begin) / 1000000)) ms] $*"; }
ok() { say "ok: $*" | tee -a "/out/parts.$NODE"; }
# What is not shown, so that the host's script prints it as such.
skip() { say "skip: $*" | tee -a "/out/parts.$NODE"; }
fail() {
    say "FAILED: $*" | tee -a "/out/parts.$NODE"
    tail -n 20 "${work:-/nowhere}"/*.log || true
    exit 1
}
reached() { : >"/out/at/$1"; }
# Gives up when the other node has failed, so that its failure is the one that is seen.
wait_for() { # what, seconds
    for _ in $(seq $(($2 * 10))); do
        [[ ! -e /out/at/$1 ]] || return 0
        if grep -q FAILED "/out/parts.$((3 - NODE))" 2>/dev/null; then
            fail "the other node gave up before \"$1\""
        fi
        sleep 0.1
    done
    fail "the other node did not come to \"$1\" within $2 s"
}
