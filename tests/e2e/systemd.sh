#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Under systemd: the units that are installed are right and as tight as we say; both daemons tell
# their supervisor when they serve, read settings again and end; and what they ask the kernel for is
# what the units allow. Nothing is started by systemd itself.
source "$(dirname "$0")/lib.sh"
needs_built kedge-notified
for tool in systemd-analyze systemd-sysusers strace; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
EXPOSURE=20 # ten times what `systemd-analyze security` gives at most: 2.0, "OK"
agents=1
build=$(cd "$bin/.." && pwd)
cluster_directories
root=$work/root
DESTDIR=$root cmake --install "$build" >"$work/install.log" ||
    fail "installing: $(tail -n 3 "$work/install.log")"
prefix=$root$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
units=$prefix/lib/systemd/system

# ---- the units
mkdir "$work/units"
for daemon in kedge-agentd kedge-metad; do
    [[ -s $units/$daemon.service ]] || fail "$daemon.service is not installed"
    program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$units/$daemon.service")
    [[ $root$program == "$prefix/sbin/$daemon" ]] || fail "$daemon.service starts $program"
    sed "s|^ExecStart=|&$root|" "$units/$daemon.service" \
        >"$work/units/$daemon.service" # programs must be there
    out=$(systemd-analyze verify --man=no --recursive-errors=no \
        "$work/units/$daemon.service" 2>&1) ||
        fail "systemd-analyze verify: $out"
    [[ -z $out ]] || fail "systemd-analyze verify: $out"
    ok "$daemon.service is right"
    out=$(systemd-analyze security --offline=true --threshold=$EXPOSURE --no-pager \
        "$units/$daemon.service") ||
        fail "its exposure is more than $EXPOSURE/10: $(tail -n 1 <<<"$out")"
    ok "its exposure: $(grep -o 'level.*' <<<"$out" | grep -o '[0-9.]*[0-9]')"
done
mkdir -p "$work/host/etc"
systemd-sysusers --root="$work/host" "$prefix/lib/sysusers.d/kedge.conf" \
    >"$work/sysusers.log" 2>&1 ||
    fail "systemd-sysusers: $(cat "$work/sysusers.log")"
for unit in "$units"/*; do
    grep -q "^$(sed -n 's/^User=//p' "$unit"):" "$work/host/etc/passwd" ||
        fail "nobody makes the user of $unit"
done
grep -q '^rdma:.*kedge' "$work/host/etc/group" || fail "the user may not open RDMA devices"
ok "the daemons' user is made"

# ---- what the supervisor does not try again
for daemon in kedge-agentd kedge-metad; do
    echo 'nonsense' >"$work/wrong.conf"
    code=0
    "$bin/$daemon" --config "$work/wrong.conf" >/dev/null 2>&1 || code=$?
    grep -qx "RestartPreventExitStatus=$code" "$units/$daemon.service" ||
        fail "$daemon with wrong settings ends with $code, and begins again"
done
ok "with wrong settings they are not started again and again"

# ---- what the supervisor hears
tracer=()
traced() { # name
    tracer=()
    ! grep -q -a __asan_init "$bin/kedge-agentd" || return 0 # it makes calls of its own
    tracer=(strace -D -f -qq -o "$work/$1.calls")
}
begin() { # name program
    "$bin/kedge-notified" "$work/$1.notify" >"$work/$1.said" 2>"$work/$1.ears.log" &
    worker_pids+=($!)
    until_true "its ears" test -S "$work/$1.notify"
    : >"$work/$1.out"
    traced "$1"
    NOTIFY_SOCKET=$work/$1.notify WATCHDOG_USEC=2000000 \
        setsid "${tracer[@]}" "$bin/$2" --config "$work/$1.conf" \
        >"$work/$1.out" 2>>"$work/$1.log" </dev/null &
    pids[$1]=$!
}
until_true() { # sentence command...
    local what=$1; shift
    for _ in $(seq $((600 * slow))); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "it did not come: $what"
}
hears() { # name line [how many times]
    (($(grep -c "^$2" "$work/$1.said") >= ${3:-1}))
}
ends() { # name
    kill -TERM "${pids[$1]}"
    until_true "$1 says STOPPING" hears "$1" STOPPING=1
    wait "${pids[$1]}" || fail "$1 ended with $?"
    unset "pids[$1]"
}

mkdir -m 0700 "$work/metad" "$work/state-a"
metad_configure
begin metad kedge-metad
until_true "the metaserver says READY" hears metad READY=1
port=$(sed -n 's/.*ready, port //p' "$work/metad.out")
url=http://127.0.0.1:$port
curl -fs --max-time $((20 * slow)) "$url/healthz" >"$work/health" ||
    fail "READY=1, and the metaserver does not answer"
grep -q "^STATUS=port $port" "$work/metad.said" || fail "its status names no port"
ok "READY=1 of the metaserver: it serves"

agent_configure a
begin a kedge-agentd
until_true "the agent says READY" hears a READY=1
export_text a "under a supervisor"
out=$(read_text a "$token") || fail "reading through it: $out"
[[ $(tail -n 1 <<<"$out") == "under a supervisor" ]] || fail "read back: $out"
grep -q "^STATUS=node node-a" "$work/a.said" || fail "its status names no node"
ok "READY=1 of the agent: workers attach"

kill -HUP "${pids[a]}"
until_true "READY after SIGHUP" hears a READY=1 2
heard=$(grep -E '^(READY|RELOADING|MONOTONIC_USEC)' "$work/a.said" | sed 's/=.*//' | paste -sd ' ')
[[ $heard == "READY RELOADING MONOTONIC_USEC READY" ]] || fail "on SIGHUP it said: $heard"
ok "SIGHUP: RELOADING=1, and READY=1 when it is done"

for name in metad a; do until_true "signs of life" hears $name WATCHDOG=1 3; done
ok "WATCHDOG=1, again and again"

# ---- what the kernel hears
exec 9>&-
for name in a metad; do ends $name; done
ok "STOPPING=1 of both"

cp "$work/metad.conf" "$work/bad.conf"
sed -i "s|^data_dir.*|data_dir = $work/nowhere|" "$work/bad.conf"
begin bad kedge-metad
! wait "${pids[bad]}" || fail "it starts without its directory"
unset 'pids[bad]'
! hears bad READY=1 || fail "it said READY and could not start"
ok "who cannot start does not say READY=1"

# All names of a set of system calls, and of sets in it; a line each.
members() { # @set or name
    local name
    [[ $1 == @* ]] || { echo "$1"; return 0; }
    for name in $(systemd-analyze syscall-filter "$1" | sed -n 's/^ \+\([-@a-z_0-9]\+\)$/\1/p'); do
        members "$name"
    done
}
allowed() { # unit
    local line name
    : >"$work/allowed"
    while read -r line; do
        for name in ${line#\~}; do members "$name"; done | sort -u >"$work/set"
        if [[ $line == "~"* ]]; then
            sort "$work/allowed" | comm -23 - "$work/set"
        else
            sort -u "$work/allowed" "$work/set"
        fi >"$work/next"
        mv "$work/next" "$work/allowed"
    done < <(sed -n 's/^SystemCallFilter=//p' "$1")
}
for name in a metad; do
    [[ -e $work/$name.calls ]] || { skip "system calls (the sanitizer makes others)"; break; }
    unit=$units/kedge-metad.service
    [[ $name == metad ]] || unit=$units/kedge-agentd.service
    allowed "$unit"
    sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' "$work/$name.calls" | sort -u >"$work/made"
    ((EUID != 0)) ||
        sed -i '/^fchown$/d' "$work/made" # root's SQLite gives its journal to the database's owner
    (($(wc -l <"$work/made") > 40)) ||
        fail "strace saw few calls of $name: $(paste -sd ' ' "$work/made")"
    out=$(comm -13 "$work/allowed" "$work/made" | paste -sd ' ')
    [[ -z $out ]] || fail "$name makes calls that its unit forbids: $out"
    families=$(sed -n 's/^RestrictAddressFamilies=//p' "$unit")
    for family in $(sed -n 's/.* socket\(pair\)\?(\(AF_[A-Z0-9]*\).*/\2/p' "$work/$name.calls" |
        sort -u); do
        [[ " $families " == *" $family "* ]] ||
            fail "$name opens a socket of $family, which its unit forbids"
    done
    ! grep -E '(mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC' "$work/$name.calls" ||
        fail "$name wants to write code"
    ok "$(wc -l <"$work/made") system calls of $name, all of which its unit allows"
done
cluster_stop || fail "it did not stop"
