#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an operator gets wrong: kedge-agentd ends with one sentence that names the cause and the way
# out. And what its two sockets say to those that come too many, too late or with the wrong method.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-commit.sh"
needs_built kedge-probe
agents=1 more_pool=$'max_sessions = 8\nconnections_per_peer = 2'
start
grep -q 'connections_per_peer is of connections' "$work/a.log" ||
    [[ $transport == rc || $provider != soft ]] ||
    fail "connections that there will not be are taken without a word: $(cat "$work/a.log")"
agentd=$bin/kedge-agentd

# What the settings and the host alone can tell: --check-config and the start must say the same, and
# end the same.
refuses_before_start() { # as refuses
    local first code=0
    refuses "$@"
    first=$(tail -n 1 "$work/err"); shift 3
    timeout 300 "$@" "$agentd" --config "$work/x.conf" >/dev/null 2>&1 || code=$?
    local checked=0
    timeout 300 "$@" "$agentd" --config "$work/x.conf" --check-config \
        >"$work/out" 2>"$work/err" || checked=$?
    [[ $checked == "$code" && $(tail -n 1 "$work/err") == "$first" ]] ||
        fail "the start ends with $code and says: $first;" \
            "--check-config ends with $checked and says: $(cat "$work/err")"
}

# Runs it with one line of a.conf changed (sed's script); it must end by itself, not with 0, and
# say why.
refuses() { # pattern sentence [sed script] [command to run it with...]
    local pattern=$1 sentence=$2 script=${3:-}; shift 3 || shift $#
    mkdir -p "$work/state-x"
    sed -e "s#$work/a\.#$work/x.#; s#state-a#state-x#; s#node = node-a#node = node-x#" \
        -e "s#^gid = .*#gid = ${gids[2]-}#" -e "$script" "$work/a.conf" >"$work/x.conf"
    if timeout 300 "$@" "$agentd" --config "$work/x.conf" >"$work/out" 2>"$work/err"; then
        fail "$sentence: it ended with 0"
    fi
    tail -n 1 "$work/err" | grep -E >/dev/null "^kedge-agentd: .*$pattern" || {
        cat "$work/err"
        fail "$sentence: not said"
    }
    ok "$sentence: $(tail -n 1 "$work/err")"
}

says_commit "$agentd" || fail "--version: $("$agentd" --version)"
"$agentd" --help | grep mr_lease >/dev/null || fail "--help does not name the settings"
"$agentd" --config "$work/a.conf" --check-config >"$work/out" ||
    fail "--check-config refuses what is right"
grep -qx 'kedge-agentd: the settings are right' "$work/out" ||
    fail "--check-config says: $(cat "$work/out")"
ok "--version, --help and --check-config answer"
if "$agentd" --config /nonexistent.conf 2>"$work/err"; then
    fail "a missing configuration is accepted"
fi
grep -q '/nonexistent.conf' "$work/err" || fail "a missing configuration is not named"
if "$agentd" --config "$work" 2>"$work/err"; then
    fail "a directory is accepted as configuration"
fi
grep -q "the configuration $work cannot be read: is it a file" "$work/err" ||
    fail "not said: $(cat "$work/err")"
ok "a configuration that cannot be read is named"
refuses_before_start 'x.conf:[0-9]+: there is no section \[pol\]' \
    "a section that there is not is named, without a setting too" 's/^\[pool\]/[pol]\n&/'
refuses_before_start 'x.conf:[0-9]+: there is no setting dcs' \
    "an unknown setting is named with its line" 's/^\[pool\]/&\ndcs = 3/'
refuses_before_start 'x.conf:[0-9]+: dcis must be a number from 2 to 32' "a wrong value is named" \
    's/^\[pool\]/&\ndcis = many/'
refuses 'mr_lease is too short' "a lease that the device cannot keep is refused" \
    's/^\[pool\]/&\nmr_lease = 10ms/'
code=0
timeout 300 "$agentd" --config "$work/x.conf" >"$work/out" 2>"$work/err" || code=$?
[[ $code == 2 ]] || fail "to begin again is of no use then, and it ends with $code"
refuses_before_start \
    'x.conf:[0-9]+: mr_lease must be a duration such as 100ms, from 10 to 3600000 ms' \
    "and one that no pool may have" 's/^\[pool\]/&\nmr_lease = 5ms/'
refuses_before_start 'lane_cpu = 1000: this process may not run there' \
    "a CPU that is not there is named" 's/^\[pool\]/&\nlane_cpu = 1000/'
refuses_before_start 'no fabric provider "carrier-pigeon"' "an unknown provider is named" \
    's/^provider = .*/provider = carrier-pigeon/'
refuses_before_start 'fault must be a list such as .*kedge-agent.conf\(5\) names, not "nonsense"' \
    "a fault that is none is named" 's/^\[fabric\]/&\nfault = nonsense/'
refuses_before_start '/nowhere' "a missing state directory is named" \
    's#^state_dir = .*#state_dir = /nowhere#'
refuses 'queue pairs.*hca_object.*rdma\.max' \
    "a limit of the rdma cgroup is named, with what to raise" 's/^\[fabric\]/&\nfault = objects=5/'
if [[ $provider == soft ]]; then
    mkdir -m 0755 "$work/open-device"
    refuses_before_start "chmod 700 $work/open-device" \
        "a soft device that others may enter is named" "s#^device = .*#device = $work/open-device#"
    [[ $(stat -c %a "$work/open-device") == 755 && -z $(ls -A "$work/open-device") ]] ||
        fail "it was changed"
    refuses_before_start 'cannot make /nowhere/device.*make its parent' \
        "a soft device without a parent is named" "s#^device = .*#device = /nowhere/device#"
    refuses_before_start 'a.conf: Not a directory' "a file in its place is named" \
        "s#^device = .*#device = $work/a.conf#"
fi
refuses_before_start 'in /proc no file can be made' \
    "a state directory where there are no files is named" 's#^state_dir = .*#state_dir = /proc#'
refuses_before_start '/nowhere' "a missing directory of the socket is named" \
    's#^socket = .*#socket = /nowhere/sock#'
refuses 'exists and is no socket' "a file in the socket's place is left alone" \
    "s#^socket = .*#socket = $work/a.conf#"
refuses 'another agent listens on' "a socket that is taken is named" \
    "s#^socket = .*#socket = $work/a.sock#"
refuses 'the state directory .*/state-a is in use by another agent' \
    "a second agent with one state directory is refused" \
    "s#^state_dir = .*#state_dir = $work/state-a#"
if [[ $provider == soft ]]; then
    gid=$("$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json | jq -r .gid)
    refuses "has this GID already.*give each its own" "a GID that is in use is named" \
        "s#^device = .*#&\ngid = $gid#"
else
    skip "a GID that is in use ($provider cannot know)"
fi
refuses 'admin' "an admin socket that is taken is named" \
    "s#^admin_socket = .*#admin_socket = $work/a.admin#"
refuses_before_start 'raise LimitNOFILE' "too few open files are named" \
    's/^max_sessions.*/max_sessions = 512/' bash -c 'ulimit -n 256; exec "$@"' limited
if [[ $(id -u) == 0 ]] && mkdir "$work/small" &&
    mount -t tmpfs -o size=64k tmpfs "$work/small" 2>/dev/null; then
    dd if=/dev/zero of="$work/small/fill" bs=1k status=none 2>/dev/null || true
    refuses 'small' "a full disk under the state directory is named" \
        "s#^state_dir = .*#state_dir = $work/small#"
    chmod 0700 "$work/small"
    [[ $provider != soft ]] ||
        refuses '(room|full|space)' "a full tmpfs under the soft device is named" \
            "s#^device = .*#device = $work/small#"
    umount "$work/small"
    mount -t tmpfs -o nr_inodes=1 tmpfs "$work/small"
    refuses_before_start "no room for another file in $work/small: make room there" \
        "one without room for another file is" "s#^state_dir = .*#state_dir = $work/small#"
    umount "$work/small"
else
    skip "a full disk (tmpfs cannot be mounted here)"
fi

# ---- the admin socket
admin() {
    curl -s -o "$work/body" -D "$work/head" -w '%{http_code}' --unix-socket "$work/a.admin" "$@"
}
[[ $(admin http://a/readyz) == 200 &&
    $(jq -c '[.status, .metaservers]' "$work/body") == '["ready",1]' ]] ||
    fail "/readyz of a registered agent: $(cat "$work/body")"

# A state directory whose disk is full: what is in force is not there at the next start, and that is
# said until it is.
state=$work/state-a
why() { admin http://a/readyz >/dev/null; jq -r '.why // ""' "$work/body"; }
await_why() { # pattern
    for _ in $(seq $((600 * slow))); do
        [[ ! $(why) =~ $1 ]] || return 0
        sleep 0.05
    done
    fail "/readyz says \"$(why)\", and not $1"
}
if [[ $(id -u) == 0 ]] && mount -t tmpfs -o size=64k tmpfs "$state" 2>/dev/null; then
    dd if=/dev/zero of="$state/fill" bs=1k status=none 2>/dev/null || true
    "$bin/rdmactl" --server "$url" tenant create unkept uids=4999 >/dev/null ||
        fail "no tenant is made"
    await_why \
        'in force are not kept for the agent.s next start: .*/state-a: No space left on device'
    [[ $(admin http://a/readyz) == 200 ]] || fail "an agent that serves its workers is not ready"
    "$bin/rdmactl" --agent-socket "$work/a.admin" agent status |
        grep >/dev/null '^  not_kept .*No space left' ||
        fail "agent status does not say it"
    rm "$state/fill"
    await_why '^$'
    jq -e '.tenants[] | select(.name == "unkept")' "$state/settings.json" >/dev/null ||
        fail "it is not kept: $(ls "$state")"
    umount "$state"
    ok "a full disk under the state directory is said, and what was not kept is when there is room"
else
    skip "a full disk under a running agent (tmpfs cannot be mounted here)"
fi
for path in v1/status metrics healthz readyz version; do
    [[ $(admin -X POST "http://a/$path") == 405 ]] || fail "POST /$path"
    grep -qi '^Allow: GET, HEAD' "$work/head" &&
        grep -q '^Content-Type: application/problem+json' "$work/head" ||
        fail "POST /$path: no Allow, or no problem+json: $(cat "$work/head")"
done
[[ $(admin http://a/nothing) == 404 ]] || fail "an unknown path"
[[ $(admin http://a/metrics) == 200 ]] &&
    grep -q 'kedge_agent_tenant_mrs{tenant="workers"} 0' "$work/body" || fail "/metrics"
ok "the admin socket answers wrong methods and paths as it should"

# ---- who says nothing, nonsense, or comes too often, is told so before the connection closes
probe() { KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" "$@"; }
out=$(probe silent) && grep -q '^ETIMEDOUT: attach within 5 s' <<<"$out" ||
    fail "who is silent is told: $out"
ok "who attaches too late is told: $out"
out=$(probe garbage) && grep -q '^EPROTO: malformed' <<<"$out" ||
    fail "who sends nonsense is told: $out"
ok "who sends nonsense is told: $out"
out=$(probe crowd 19) && grep -q '^EAGAIN: too many connections' <<<"$out" ||
    fail "who has said nothing is told beside many: $out"
ok "the oldest of nineteen that wait, of eighteen, makes room and is told: $out"
for _ in $(seq 1200); do out=$(probe connect node-a) && break; sleep 0.05; done
grep -q '^connected' <<<"$out" || fail "nobody can attach after that: $out"
refused=$(agent_number a refused)
((refused >= 3)) || fail "the refused are not counted: $refused"

# ---- a descriptor limit that is reached: workers wait and are served later, and the loop does
# not spin
# The soft limit alone, which may be raised again without any privilege.
allowed=$(prlimit --pid "${pids[a]}" --nofile --output SOFT --noheadings | tr -d ' ')
prlimit --pid "${pids[a]}" --nofile="$(ls "/proc/${pids[a]}/fd" | wc -l):" || fail "no limit"
out=$(KEDGE_SOCKET=$work/a.sock timeout 300 "$bin/read_region" nonsense 2>&1 & pid=$!
    sleep 0.5
    before=$(awk '{print $14 + $15}' "/proc/${pids[a]}/stat"); sleep 1
    after=$(awk '{print $14 + $15}' "/proc/${pids[a]}/stat")
    echo "ticks $((after - before))"
    prlimit --pid "${pids[a]}" --nofile="$allowed:" || echo "the limit cannot be raised again"
    wait $pid || true)
ticks=$(sed -n 's/^ticks //p' <<<"$out")
((ticks < 50)) || fail "the agent spins when it has no descriptor: $ticks ticks in a second"
grep -q 'read_region:' <<<"$out" && ! grep -Eq 'did not answer|cannot be raised' <<<"$out" ||
    fail "the worker was not served later: $out"
ok "without descriptors the agent waits ($ticks ticks in a second), and serves who waited"

# ---- SIGTERM at any moment of starting
kill -TERM "${pids[a]}"
wait "${pids[a]}" || fail "the agent ended with $?"
for n in $(seq "${AGENT_STARTS:-30}"); do
    "$agentd" --config "$work/a.conf" >"$work/out" 2>>"$work/a.log" &
    pid=$!
    # Before it is the agent it is a bash, which loses signals: 15 of 600 that came at once.
    while kill -0 "$pid" 2>/dev/null && [[ ! /proc/$pid/exe -ef $agentd ]]; do sleep 0.001; done
    sleep "0.0$((n % 5))$((RANDOM % 10))"
    kill -TERM "$pid"
    for _ in $(seq 1200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
    if kill -KILL "$pid" 2>/dev/null; then fail "SIGTERM while the agent starts is lost"; fi
    wait "$pid" || (($? == 143)) ||
        fail "the agent ended with $? while it started: $(tail -n 20 "$work/a.log")"
done
ok "SIGTERM ends an agent at any moment of its start"
# Who has seen its first sentence in the log may stop it.
sed "/^state_dir/a token_file = /nonexistent" "$work/a.conf" >"$work/says.conf"
python3 - "$agentd" "$work/says.conf" >"$work/out" 2>&1 <<'END' || \
    fail "an agent that has begun to speak does not end in order: $(cat "$work/out")"
import subprocess, sys

for start in range(30):
    agent = subprocess.Popen(
        [sys.argv[1], "--config", sys.argv[2]], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    first = agent.stderr.readline()
    agent.terminate()
    agent.stderr.read()
    if not first or agent.wait() != 0:
        sys.exit(f"start {start}: {first} and then it ended with {agent.wait()}")
END
ok "and in order from its first sentence on"
stop
