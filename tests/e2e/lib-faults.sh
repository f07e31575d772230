# SPDX-License-Identifier: Apache-2.0
# What faults.sh judges of what goes on meanwhile. Sourced after lib-shared-store.sh.

# ---- writes

# How long after etcd itself metaservers may take to write again: $FAULTS_BEHIND_MS. Where more
# wants to run than there are processors it is as many times that, 20 s at most; 20 s where nothing
# is said, since a machine that runs all tests may be that busy a second later.
behind_ms=${FAULTS_BEHIND_MS:-20000}
may_be_behind() { # the bound, in ms
    awk -v ms="$behind_ms" -v cpus="$(nproc)" -v slow="$slow" '{
        busy = $1 / cpus
        most = ms * (busy > 1 ? busy : 1)
        printf "%d", (most < 20000 ? most : ms > 20000 ? ms : 20000) * slow
    }' /proc/loadavg
}
judge_writes() { # how long they took after etcd, in ms; what was done to them
    local most
    most=$(may_be_behind)
    (($1 <= most)) ||
        fail "$2: metaservers wrote again $1 ms after etcd, which is more than $most ms"
}

# ---- traffic

# Of the reader's READs none fails, and it is always connected: what else it says is when the agent
# got no processor. The longest time without one, 30 ms where nothing else runs, is this machine's
# matter as well.
gap_ms=5000
judge_traffic() {
    local gap said='served|none for [0-9]+ ms|the agent (goes on|has not moved for .*)'
    kill -0 "$reader" 2>/dev/null || fail "the reader ended: $(cat "$work/reader.out")"
    lacks "$work/reader.out" -vE "^[0-9]+ ms: ($said)\$" ||
        fail "a READ between living nodes failed: $(cat "$work/reader.out")"
    gap=$(sed -n 's/.*: none for \([0-9]*\) ms$/\1/p' "$work/reader.out" | tail -n 1)
    ((gap <= gap_ms * slow)) ||
        fail "no READ between living nodes for $gap ms: $(cat "$work/reader.out")"
}

# ---- lookups: a worker of c publishes the number of c's life, and one of a looks for it throughout

publisher=
lives=()
publish_life() { # until c is killed, which has just begun
    lives+=("$(agent_number c incarnation)")
    rm -f "$work/hold-c"
    mkfifo "$work/hold-c"
    exec 7<>"$work/hold-c"
    # No metaserver may have heard of c yet, or of the end of its former life's names.
    for _ in $(seq $((120 * slow))); do
        : >"$work/published"
        KEDGE_SOCKET=$work/c.sock "$bin/publish_region" life "${lives[-1]}" \
            <&7 >"$work/published" 2>"$work/publisher.err" &
        publisher=$!
        worker_pids+=("$publisher")
        until [[ -s $work/published ]] || ! kill -0 "$publisher" 2>/dev/null; do sleep 0.02; done
        [[ ! -s $work/published ]] || return 0
        sleep 0.5
    done
    fail "c's life ${lives[-1]} is not published: $(cat "$work/publisher.err")"
}
end_c() {
    end_daemon c
    kill -KILL "$publisher" 2>/dev/null || true
    wait "$publisher" 2>/dev/null || true
}
begin_c() {
    daemon_start c kedge-agentd || fail "agent c did not start"
    publish_life
}
# Each line comes whole to what both append to.
begin_finding() {
    : >"$work/finder.out"
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-finder" life node-c >>"$work/finder.out" 2>&1 &
    finder=$!
    worker_pids+=("$finder")
    await_finding
}
await_finding() { # of c's life
    until_is yes "life ${lives[-1]} of node-c is found" finds_life
}
finds_life() { # where what came last is that life, and the node
    [[ $(tail -n 1 "$work/finder.out") != "lookup: ${lives[-1]}; node: connected" ]] || echo yes
}
judge_lookups() {
    kill -0 "$finder" 2>/dev/null || fail "who looks up: $(tail -n 5 "$work/finder.out")"
    awk '/^gone/ {gone = 1} /^back/ {gone = 0} gone && /^found|^lookup: [0-9]|node: connected/ {
            print "line " NR ": " $0; exit 1}' "$work/finder.out" ||
        fail "node-c is found, which has expired a lease ago"
}

# ---- c is away for longer than a lease: while other faults go on it expires, and a lease later
# nobody has its endpoint any more. It comes back when it was gone for two faults.

away=no gone_for=0 expired_ms=
leave() {
    echo "agent c is killed, and stays away"
    end_c
    away=yes gone_for=0 expired_ms=
}
look_for_expiry() { # after a fault, or again and again in the end
    local name
    [[ $away == yes ]] || return 0
    if [[ -n $expired_ms ]]; then
        (($(now_ms) - expired_ms >= lease * 1000)) || return 0
        ((gone_for++ > 0)) || echo gone >>"$work/finder.out"
        return 0
    fi
    for name in "${metaservers[@]}"; do
        [[ $(state "$name" c) == expired ]] || return 0
    done
    expired_ms=$(now_ms)
}
has_looked() { # since it was said that c is gone
    awk '/^gone/ {lines = 0} {lines++} END {if (lines > 3) print "yes"}' "$work/finder.out"
}
come_back() {
    [[ $away == yes ]] || return 0
    for ((i = 0; gone_for < 3; i++)); do
        ((i < 1200 * slow)) || fail "node-c does not expire: $(state one c)"
        look_for_expiry
        sleep 0.1
    done
    until_is yes "node-c has expired, and is looked for" has_looked
    judge_lookups
    echo back >>"$work/finder.out"
    away=no
    begin_c
}
