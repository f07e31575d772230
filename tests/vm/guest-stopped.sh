#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In each of two guests: node 1 has the metaserver, agent a and a worker that lends a region; node 2
# has agent b and a worker that writes there without a pause, and is stopped as a hypervisor stops a
# machine, for longer than a lease, while the region is given back. What was given back is its
# owner's own, and stays so when node 2 goes on.
#
#   guest-stopped.sh BUILD_DIRECTORY
#
# Environment: KINDS of regions, SECONDS_STOPPED.
set -euo pipefail
build=$1 bin=$1/bin
here=$(cd "$(dirname "$0")" && pwd)
cd /tmp
source "$here/lib-guest.sh"
says() { # file, pattern, seconds
    for _ in $(seq $(($3 * 10))); do ! grep -qs -- "$2" "$1" || return 0; sleep 0.1; done
    fail "$1 does not say \"$2\": $(cat "$1")"
}

export KEDGE_TEST_PROVIDER=verbs KEDGE_TEST_DEVICE=rxe0
KEDGE_TEST_GIDS="::ffff:10.0.$NODE.1 ::ffff:10.0.$NODE.2"
agents=1
source "$here/../../ops/cluster.sh"
cluster_directories
url=http://10.0.1.1:7480
if ((NODE == 1)); then names=(a); else names=(b); fi
starts() { # agent
    mkdir -m 0700 "$work/state-$1"
    agent_configure "$1"
    daemon_start "$1" kedge-agentd || fail "agent $1 did not start"
    for _ in $(seq 300); do
        [[ $("$bin/rdmactl" --server "$url" node get "node-$1" 2>/dev/null |
            sed -n 's/^state *//p') != live* ]] || return 0
        sleep 0.2
    done
    fail "agent $1 is not registered"
}

lend() { # kind
    local owner kind=$1 took
    rm -f "$work/hold"
    mkfifo "$work/hold"
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-lend" owner "$kind" \
        <"$work/hold" >"$work/owner.out" 2>&1 & owner=$!
    exec 9>"$work/hold"
    says "$work/owner.out" . 60
    head -n 1 "$work/owner.out" >"/out/token.$kind"
    reached "lent-$kind"
    wait_for "writing-$kind" 120
    sleep 1
    echo "$SECONDS_STOPPED" >/out/.stop.2
    mv /out/.stop.2 /out/stop.2
    for _ in $(seq 300); do [[ ! -e /out/stopped.2 ]] || break; sleep 0.05; done
    [[ -e /out/stopped.2 ]] || fail "node 2 was not stopped"
    echo back >&9
    says "$work/owner.out" 'returned in' 60
    took=$(sed -n 's/^returned in //p' "$work/owner.out")
    [[ -e /out/stopped.2 ]] ||
        fail "node 2 went on before the $kind region was given back, after $took"
    for _ in $(seq 600); do [[ -e /out/stopped.2 ]] || break; sleep 0.1; done
    sleep 5 # it goes on with what it had under way
    exec 9>&-
    wait $owner || fail "the owner: $(cat "$work/owner.out")"
    if [[ $kind != lease-only ]]; then
        [[ $(tail -n 1 "$work/owner.out") == untouched ]] ||
            fail "a $kind region: $(tail -n 1 "$work/owner.out")"
    fi
    ok "a $kind region was given back in $took while the machine that wrote there was stopped for" \
        "$SECONDS_STOPPED s; its memory then: $(tail -n 1 "$work/owner.out")"
    reached "over-$kind"
    wait_for "gone-$kind" 60
}
write_to() { # kind
    local writer kind=$1
    wait_for "lent-$kind" 200
    KEDGE_SOCKET=$work/b.sock "$bin/kedge-lend" writer "$(cat "/out/token.$kind")" \
        >"$work/writer.out" 2>&1 & writer=$!
    says "$work/writer.out" 'status 0$' 60
    reached "writing-$kind"
    wait_for "over-$kind" 200
    kill $writer 2>/dev/null || true
    wait $writer 2>/dev/null || true
    ok "the writer to a $kind region: $(paste -sd ';' "$work/writer.out")"
    reached "gone-$kind"
}

if ((NODE == 1)); then
    "$bin/kedge-registrations" rxe0 2>&1 | tee -a "/out/parts.$NODE"
    metad_configure
    sed -i 's/^listen = .*/listen = 10.0.1.1:7480/' "$work/metad.conf"
    mkdir -m 0700 "$work/metad"
    daemon_start metad kedge-metad || fail "the metaserver did not start"
    starts a
    reached up
    for kind in $KINDS; do lend "$kind"; done
    wait_for over 60
else
    wait_for up 200
    starts b
    for kind in $KINDS; do write_to "$kind"; done
    reached over
fi
cluster_stop || fail "the daemons did not end cleanly"
ok "node $NODE: everything ends on SIGTERM"
