#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdmactl doctor and kedge-agentd --probe on soft: text and JSON, without an agent and beside one,
# with little memory that may be locked, with wrong settings, and without the agent's program.
source "$(dirname "$0")/lib.sh"
agents=1
root=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'cleanup; rm -rf "$root"' EXIT
scratch() { find /dev/shm -maxdepth 1 -name 'kedge-probe-*' -user "$(id -u)" | sort; }
before=$(scratch)

# Whoever judges a report: every check has a name, a known result and a sentence.
sound() { # file, words about it
    jq -e '.version == 1 and (.verdict.sentence | length > 0) and (.checks | length > 20) and
        all(.checks[];
            (.check | length > 0) and (.found | length > 0) and (.numbers | type == "object") and
            (.result | IN("ok", "warning", "failed", "skipped")))' "$1" >/dev/null ||
        fail "$2: $(head -c 2000 "$1")"
    [[ $(jq -r '.checks[].check' "$1" | sort | uniq -d) == "" ]] ||
        fail "$2: two checks of one name"
    ok "$2"
}
result() { # file, check
    jq -r --arg check "$2" '.checks[] | select(.check == $check) | .result' "$1"
}
advice() { jq -r --arg check "$2" '.checks[] | select(.check == $check) | .advice' "$1"; }
found() { jq -r --arg check "$2" '.checks[] | select(.check == $check) | .found' "$1"; }

cat >"$root/soft.conf" <<END
[agent]
node = doctor
[fabric]
provider = soft
device = $root/none
END
cat >"$root/lease.conf" <<END
[agent]
node = doctor
[fabric]
provider = soft
[pool]
mr_lease = 10ms
END

# Without an agent.
"$bin/kedge-agentd" --probe --config "$root/soft.conf" >"$root/text" ||
    fail "the probe: $(cat "$root/text")"
grep -q '^Kedge can run on this device: RC and DC\.$' "$root/text" ||
    fail "no verdict: $(cat "$root/text")"
grep -q 'rdmactl doctor -o json >report.json' "$root/text" ||
    fail "the probe does not say how to send the report"
grep -qE '^ok +rc.read +8 bytes' "$root/text" || fail "no latency of a READ"
[[ ! -e $root/none ]] || fail "the probe made the device's directory, which is the agent's to make"
ok "the probe prints text and a verdict"
"$bin/kedge-agentd" --probe --config "$root/soft.conf" -o json >"$root/probe.json" ||
    fail "the probe with JSON"
sound "$root/probe.json" "the probe prints JSON"
[[ $(found "$root/probe.json" rc.error_behind) == \
    *"is not carried out: flushed after another error (WR_FLUSH_ERR)" ]] ||
    fail "statuses are not in words: $(found "$root/probe.json" rc.error_behind)"
jq -e '.verdict.usable and .verdict.rc and .verdict.dc and (.candidates | type == "array")' \
    "$root/probe.json" >/dev/null ||
    fail "the probe's verdict: $(jq -c .verdict "$root/probe.json")"
# The directory that the settings name is looked at, and not the usual one.
wanted=warning; [[ $(stat -f -c %T "$root") != tmpfs ]] || wanted=ok
[[ $(result "$root/probe.json" soft.directory) == "$wanted" &&
    $(found "$root/probe.json" soft.directory) == "$root/none "* ]] ||
    fail "the device's directory: $(
        jq -c '.checks[] | select(.check == "soft.directory")' "$root/probe.json"
    )"
mkdir -m 755 "$root/open"
sed "s|/none|/open|" "$root/soft.conf" >"$root/open.conf"
"$bin/kedge-agentd" --probe --config "$root/open.conf" -o json >"$root/open.json" &&
    fail "a probe of what others may enter"
[[ $(result "$root/open.json" soft.directory) == failed &&
    $(found "$root/open.json" soft.directory) == *"chmod 700 $root/open"* ]] ||
    fail "others may enter: $(
        jq -c '.checks[] | select(.check == "soft.directory")' "$root/open.json"
    )"
ok "the directory of the settings is looked at, and what file system it is on"
# With RC each lane has connections of its own.
cat >"$root/lanes.conf" <<END
[agent]
node = doctor
[fabric]
provider = soft
device = $root/none
transport = rc
[pool]
lanes = 8
responders = 8000
END
"$bin/kedge-agentd" --probe --config "$root/lanes.conf" -o json >"$root/lanes.json" &&
    fail "a probe of lanes that the device has too few queue pairs for"
[[ $(found "$root/lanes.json" limits) == \
    "the device allows 8192 queue pairs, and this configuration needs 8600" ]] ||
    fail "queue pairs of lanes: $(found "$root/lanes.json" limits)"
ok "the probe counts the queue pairs of all lanes"
"$bin/rdmactl" doctor --config "$root/soft.conf" --agent-socket "$root/no" \
    --server http://127.0.0.1:1 >"$root/text" ||
    fail "doctor without an agent: $(cat "$root/text")"
grep -q '^Kedge can run on this device: RC and DC\.$' "$root/text" ||
    fail "doctor has no verdict: $(cat "$root/text")"
grep -qE '^warning +agent +' "$root/text" || fail "doctor does not tell that there is no agent"
"$bin/rdmactl" doctor --config "$root/soft.conf" --agent-socket "$root/no" \
    --server http://127.0.0.1:1 -o json >"$root/doctor.json" || fail "doctor with JSON"
sound "$root/doctor.json" "doctor joins its checks and the probe's"
[[ $(found "$root/doctor.json" agent) == "$root/no is not ready: "*"$root/no"* &&
    $(advice "$root/doctor.json" agent) == *"systemctl start kedge-agentd"* ]] ||
    fail "without an agent: $(jq -c '.checks[] | select(.check == "agent")' "$root/doctor.json")"
[[ $(result "$root/doctor.json" "soft device")$(result "$root/doctor.json" /dev/shm) == "" ]] ||
    fail "doctor speaks of another device"
[[ $(result "$root/doctor.json" kernel) == ok && $(result "$root/doctor.json" dc.read) == ok &&
    $(jq -r .probe.provider "$root/doctor.json") == soft ]] ||
    fail "doctor's report lacks something"

# Beside an agent, whose GID the settings name.
start
gid=$("$bin/rdmactl" --agent-socket "$work/a.admin" agent status -o json |
    jq -r '.. | .gid? | strings' | head -n 1)
sed "s/^device = .*/&\ngid = $gid/" "$work/a.conf" >"$root/same.conf"
"$bin/rdmactl" doctor --config "$root/same.conf" --agent-socket "$work/a.admin" --server "$url" \
    -o json >"$root/beside.json" || fail "doctor beside an agent: $(cat "$root/beside.json")"
sound "$root/beside.json" "doctor runs beside an agent"
[[ $(found "$root/beside.json" opening) == *"in use by the agent"* ]] ||
    fail "$(found "$root/beside.json" opening)"
[[ $(result "$root/beside.json" agent) == ok && $(result "$root/beside.json" metaserver) == ok ]] ||
    fail "the agent or the metaserver is not seen"
[[ $(jq -r .probe.gid "$root/beside.json") != "$gid" ]] || fail "the probe claims the agent's GID"
"$bin/rdmactl" --agent-socket "$work/a.admin" agent status >/dev/null ||
    fail "the agent did not survive the probe"
# One that is ready, and not well: what is the matter is no advice.
kill -KILL "${pids[metad]}"
wait "${pids[metad]}" 2>/dev/null || true
lost='no metaserver has this node any more'
for _ in $(seq $((1200 * slow))); do
    curl -s --unix-socket "$work/a.admin" http://a/readyz >"$root/ready" || true
    if grep -q "$lost" "$root/ready"; then break; fi
    sleep 0.05
done
"$bin/rdmactl" doctor --config "$root/same.conf" --agent-socket "$work/a.admin" --server "$url" \
    -o json >"$root/lost.json" || fail "doctor without a metaserver: $(cat "$root/lost.json")"
[[ $(result "$root/lost.json" agent) == warning &&
    $(found "$root/lost.json" agent) == "$work/a.admin is ready, but $lost"* &&
    $(advice "$root/lost.json" agent) == "rdmactl agent status on this host says more"* ]] ||
    fail "of the agent: $(jq -c '.checks[] | select(.check == "agent")' "$root/lost.json")"
ok "it says what is the matter with an agent, and apart from that what to do"
metad_configure
daemon_start metad kedge-metad || fail "the metaserver does not start again"
stop
trap 'cleanup; rm -rf "$root"' EXIT

# Memory that may be locked: soft locks none, and says what a device would need.
(
    ulimit -l 64
    "$bin/kedge-agentd" --probe --config "$root/soft.conf" -o json
) >"$root/memlock.json" || fail "ulimit -l 64"
[[ $(result "$root/memlock.json" "locked memory") == ok &&
    $(found "$root/memlock.json" "locked memory") == \
        *"locks no memory"*" MiB when it starts"*"allowed here: 64 KiB"* ]] ||
    fail "locked memory: $(found "$root/memlock.json" "locked memory")"
ok "locked memory is held against what the settings need"

# What cannot work.
code=0
"$bin/rdmactl" doctor --config "$root/lease.conf" -o json >"$root/lease.json" 2>"$root/err" ||
    code=$?
[[ $code == 1 && $(result "$root/lease.json" lease) == failed &&
    $(jq .verdict.usable "$root/lease.json") == false &&
    $(jq -r .verdict.sentence "$root/lease.json") == *"because lease failed"* ]] ||
    fail "a lease that is too short: $code"
ok "a lease that is too short is a verdict"
code=0
"$bin/kedge-agentd" --probe --provider verbs --device no-such-device >"$root/text" || code=$?
[[ $code == 1 ]] &&
    grep -qE 'cannot run on this device, because devices failed: there is no RDMA device' \
        "$root/text" ||
    fail "a device that is not there: $code, $(cat "$root/text")"
ok "a device that is not there is named"
echo "nonsense" >"$root/bad.conf"
code=0
"$bin/kedge-agentd" --probe --config "$root/bad.conf" >"$root/text" 2>"$root/err" || code=$?
[[ $code == 2 && ! -s $root/text && -s $root/err ]] || fail "wrong settings: $code"
code=0
"$bin/rdmactl" doctor --config "$root/bad.conf" -o json >"$root/bad.json" 2>/dev/null || code=$?
[[ $code == 1 && $(found "$root/bad.json" device) == *"bad.conf"* ]] ||
    fail "doctor with wrong settings: $code"
ok "wrong settings are told of"

# rdmactl alone, as on an operator's own machine.
cp "$bin/rdmactl" "$root/rdmactl"
if [[ ! -x /usr/sbin/kedge-agentd && ! -x /usr/local/sbin/kedge-agentd ]] &&
    ! command -v kedge-agentd >/dev/null; then
    "$root/rdmactl" doctor -o json >"$root/alone.json" || fail "doctor without kedge-agentd"
    [[ $(result "$root/alone.json" device) == warning &&
        $(jq .probe "$root/alone.json") == null ]] ||
        fail "doctor without kedge-agentd: $(cat "$root/alone.json")"
    ok "doctor does without kedge-agentd, and says so"
fi
# Probes of this user that others have begun beside this test have theirs there as long as they run,
# which rdmactl bounds.
new=$(comm -13 <(echo "$before") <(scratch))
for _ in $(seq $((1800 * slow))); do
    left=$(comm -12 <(echo "$new") <(scratch))
    [[ -n $left ]] || break
    sleep 0.1
done
[[ -z $left ]] || fail "a probe left something in /dev/shm: $left"
ok "nothing is left behind"
