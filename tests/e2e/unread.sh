#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A tenant's workers that leave the descriptors that they are sent unread, in sessions that are
# over: the kernel lets an agent without capabilities send as many as it may have open and no more,
# to anybody. Those of other tenants attach all the time, also after the agent was killed and begun
# again beside what its former life has sent.
here=$(dirname "$(readlink -f "$0")")
# the kernel does not bound root: all of it runs as somebody else, wherever this checkout is
if [[ $(id -u) == 0 ]]; then
    copy=$(mktemp -d /tmp/kedge-XXXXXX)
    trap 'rm -rf "$copy"' EXIT
    mkdir -p "$copy"/{build/bin,build/lib,ops,tests/e2e}
    cp "$1"/bin/{kedge-metad,kedge-agentd,rdmactl,kedge-perf} \
        "$1"/bin/{export_region,read_region,kedge-hostile,kedge-probe} "$copy/build/bin/"
    cp "$1"/lib/libkedge.so* "$copy/build/lib/"
    cp "$here"/../../ops/cluster.sh "$copy/ops/"
    cp "$here"/*.sh "$copy/tests/e2e/"
    chmod -R a+rX "$copy"
    setpriv --reuid 65532 --regid 65532 --clear-groups --inh-caps=-all --bounding-set=-all \
        env "LD_LIBRARY_PATH=$copy/build/lib" HOME=/ bash "$copy/tests/e2e/unread.sh" "$copy/build"
    exit
fi
source "$here/lib.sh"
needs_built kedge-hostile kedge-probe
agents=1 sockets=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'cleanup; rm -rf "$sockets"' EXIT
more_pool=$'max_sessions = 16\nsessions_ahead = 4\narenas_ahead = 4'
more_tenants="[tenant guilty]
socket = $sockets/guilty.sock"
ulimit -Sn 1024 # of the agent, which raises it to what it needs, and no more
start
refused() { agent_metric a unread_refused_total; }
attaches() { # sentence; times
    local i out
    for i in $(seq "$2"); do
        out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" back 2>&1) ||
            fail "$1: the $i. worker: $out"
    done
    ok "$1: $2 workers attach"
}
kill_agent() {
    kill -KILL "${pids[a]}"
    wait "${pids[a]}" 2>/dev/null || true
}
attaches "before" 1
"$bin/kedge-hostile" unread --socket "$sockets/guilty.sock" --ms 600000 >"$work/hostile.out" 2>&1 &
hostile=$!
worker_pids+=("$hostile")
for _ in $(seq $((600 * slow))); do
    out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" back 2>&1) ||
        fail "beside who does not read: $out"
    kill -0 "$hostile" || fail "who does not read has ended: $(cat "$work/hostile.out")"
    (($(refused) < 10)) || break
    sleep 0.05
done
(($(refused) >= 10)) || fail "who does not read is refused $(refused) times"
# some are closed meanwhile
held=$({ ls -l "/proc/$hostile/fd" || true; } 2>/dev/null | grep -c socket)
((held >= 50)) || fail "who does not read holds $held sockets"
attaches "beside $held sockets of workers that do not read" 50
out=$(KEDGE_SOCKET=$sockets/guilty.sock timeout 60 "$bin/kedge-probe" back 2>&1) &&
    fail "their tenant's own attach still"
[[ $out == *"workers of tenant guilty have left"*"unread"* ]] ||
    fail "the tenant of those who do not read hears: $out"
ok "its own tenant hears: $out"

kill_agent
daemon_start a kedge-agentd || fail "the agent does not begin beside what its former life has sent"
agent_wait a || fail "the agent does not register"
for _ in $(seq $((600 * slow))); do (($(refused) < 10)) || break; sleep 0.05; done
(($(refused) >= 10)) || fail "who does not read is refused $(refused) times in the next life"
attaches "in the agent's next life, and beside them" 20

kill_agent
daemon_start a kedge-agentd ||
    fail "the agent does not begin beside what two former lives have sent"
agent_wait a || fail "the agent does not register"
grep -q 'have not read descriptors that this user sent' "$work/a.log" ||
    fail "nothing is said of the former lives"
ok "the log: $(grep 'have not read descriptors that this user sent' "$work/a.log" | tail -n 1)"
no_more() { grep -c 'are unread no more' "$work/a.log" || true; } # of what former lives have sent
before=$(no_more)
kill -KILL "$hostile"
for _ in $(seq $((600 * slow))); do (($(no_more) == before)) || break; sleep 0.05; done
(($(no_more) > before)) || fail "what is unread no more is not found out"
attaches "when they are gone" 1
out=$(KEDGE_SOCKET=$sockets/guilty.sock timeout 60 "$bin/kedge-probe" back 2>&1) ||
    fail "their tenant's workers: $out"
ok "and so do those of their tenant"
stop
rm -rf "$sockets"
