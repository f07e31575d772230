# SPDX-License-Identifier: Apache-2.0
# What excuses a failure between two guests: that node 1 stood still in the time of that very
# attempt, as emulated nodes do. Node 1 watches itself, and the other one asks it, through files in
# /out/at. Sourced with $work, a directory of the guest's own; uses fail and skip.
#
# rxe repeats for 0.95 s what is not answered. Node 1 may stand still for about as long, and then
# programs on verbs see a failure too (those that ask for 7 retries do not, which rxe takes for
# "without end").
pauses=${GUEST_OUT:-/out}/at
pause_ms=${PAUSE_MS:-700} # the shortest that excuses

# Never ends. Each question is answered with the longest pause since the one before, in ms.
watch_pauses() {
    local now last=${EPOCHREALTIME/./} longest=0
    [[ -p $work/never ]] || mkfifo "$work/never"
    exec 8<>"$work/never" # to sleep without another process
    while :; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            read -r -t 0.02 -u 8 || true
            now=${EPOCHREALTIME/./}
            ((now - last <= longest)) || longest=$((now - last))
            last=$now
        done
        [[ -e $pauses/pause-asked ]] || continue
        echo $((longest / 1000)) >"$pauses/pause"
        longest=0
        rm "$pauses/pause-asked"
    done
}

# Sets $pause to node 1's longest since it was asked before: asked when an attempt begins and when
# it has failed, that of the attempt alone. A pause that has not ended is waited for.
ask_pauses() {
    : >"$pauses/pause-asked"
    for _ in $(seq 600); do
        [[ -e $pauses/pause-asked ]] || { pause=$(<"$pauses/pause"); return 0; }
        sleep 0.1
    done
    fail "node 1 does not say how long it has stood still"
}
# What has failed while node 1 stood still shows nothing, and is said so. After ask_pauses.
forgive() { # what, its last words
    ((pause >= pause_ms)) ||
        fail "$1, and node 1 stood still for $pause ms at the longest meanwhile: $2"
    skip "$1 failed, and node 1 stood still for $pause ms meanwhile:" \
        "nothing is shown ($(tail -n 1 <<<"$2"))"
}
# Until one try is good. Sets $said to what that printed.
shows() { # tries, what, command...
    local tries=$1 what=$2 i; shift 2
    for ((i = 0; i < tries; i++)); do
        ask_pauses
        ! said=$("$@" 2>&1) || return 0
        ask_pauses
        forgive "$what" "$said"
    done
    fail "$what: $tries tries have failed, in each of which node 1 stood still: $said"
}
