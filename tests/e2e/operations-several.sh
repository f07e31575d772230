#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What docs/operations.md says of three metaservers on one host, each command in its order, from
# nothing: ops/testbed makes them, with TLS and three members of etcd; then each procedure is tried.
# Each command has to succeed, and to print something where it is one that shows; beside that, what
# the page promises of each procedure is looked at. A worker that lends memory lives throughout.
source "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$(dirname "$0")/lib-page.sh"
for tool in etcd etcdctl openssl; do
    command -v $tool >/dev/null || { skip "$tool is not installed"; exit 77; }
done
[[ $provider == soft ]] || { skip "ops/testbed is of soft"; exit 77; }
work=$(mktemp -d /tmp/kedge-XXXXXX)
end_bed() {
    cp "$work"/bed/*.log "$work/" 2>/dev/null || true # for whoever asks why
    [[ ! -e $work/bed/env ]] || "$root/ops/testbed" "$work/bed" end || true
    cleanup
}
trap end_bed EXIT
unset KEDGE_CONTEXT KEDGE_SERVER KEDGE_AGENT_ADMIN KEDGE_METAD_SOCKET KEDGE_SOCKET KEDGE_TOKEN \
    KEDGE_TOKEN_FILE
KEDGE_BUILD=$(cd "$bin/.." && pwd)
export KEDGE_BUILD
cd "$work"
ln -s "$root/ops" ops

exports() { # a worker that lends, until the end; its agent is not restarted by the page
    KEDGE_SOCKET=bed/agent-b.sock export_region "what is lent" <>hold >lent 2>err &
    worker_pids+=($!)
    for _ in $(seq 1200); do
        [[ ! -s lent ]] || return 0
        sleep 0.05
    done
    fail "no worker lends: $(cat err)"
}
reads_lent() { # once node-a, which may have been drained, takes workers again
    local n
    for n in $(seq 100); do
        KEDGE_SOCKET=bed/agent-a.sock timeout 60 read_region "$(cat lent)" >out 2>err && break
        grep -q draining err || break
        sleep 0.1
    done
    grep -q "^what is lent" out || fail "what is lent is not read after $n tries: $line: $(cat err)"
}
# Where the host is busy, or a member has just died, etcd is without a leader for a moment: whoever
# asks in it is told so, and asks again, as a reader of the page would.
run_when_led() {
    local n
    for n in $(seq 30); do
        ! try_command || return 0
        grep -q 'etcd at \|leader\|timed out\|deadline exceeded\|unhealthy\|killed counts' err ||
            break
        sleep 1
    done
    fail "$line: failed $n times: $(cat out err)"
}
mkfifo hold
count=0 lost=
while next_command; do
    case $line in
    '. bed/env') eval "$line" ;;
    rdmactl*' list'* | curl* | kedge-perf* | until* | ops/* | sed*) run_command ;;
    rdmactl* | etcdctl* | ETCDCTL_* | kedge-metad*) run_when_led ;;
    *) fail "the page has a command that this test does not know: $line" ;;
    esac
    count=$((count + 1))
    case $line in
    'rdmactl node list') [[ $(grep -c ' live ' out) == 2 ]] || fail "$line: $(cat out)" ;;
    'etcdctl endpoint health')
        [[ $(cat out err | grep -c 'is healthy') == 3 ]] || fail "$line: $(cat out err)"
        ;;
    'rdmactl metaserver list'*) # whom another one asks has heard of who has just begun soon
        for ((i = 0; i < 60; i++)); do
            [[ $(grep -c ' \(ready\|behind\|failing\) ' out) != 3 ]] ||
                { [[ -z $lost ]] && ! grep -q '^meta-2 .*ready ' out; } || break
            sleep 1
            run_command
        done
        ((i < 60)) || fail "$line: $(cat out)"
        ;;
    *' tenant set web uids='*) exports ;;
    *' tenant get web') grep -q '^sessions  *64$' out || fail "$line: $(cat out)" ;;
    *' kill etcd-2 etcd-3')
        lost=yes
        ! rdmactl tenant set web sessions=1 2>err || fail "a change without a quorum"
        grep -q ': etcd at .* does not answer\|: etcd at .* cannot be reached' err ||
            fail "a change without a quorum is refused without the reason: $(cat err)"
        ;;
    *'readyz?verbose'*)
        [[ -z $lost ]] || grep -q failed out || fail "a lost quorum is not said: $(cat out)"
        ;;
    *' erase '* | *' start '* | *' restore '* | *' uncordon '*)
        [[ $line == *' start agent-a' ]] || reads_lent # which is drained
        ;;
    esac
done 8< <(sed -n "/^$several\$/,/^## What/p" "$page")
((count >= 55)) || fail "only $count commands were found"
[[ ! -e bed ]] || fail "the test bed is still there"
ok "$count commands of docs/operations.md about three metaservers, each ends well"
