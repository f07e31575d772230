# SPDX-License-Identifier: Apache-2.0
# What the tests of docs/operations.md share, beside lib.sh: its commands are its indented lines.
page=$root/docs/operations.md
several='## Three metaservers on one host' # what is of several metaservers is below it

# The next command of the page, which is read on descriptor 8, in $line; several lines are one.
next_command() {
    local more
    while IFS= read -r -u 8 line; do
        [[ $line == '    '* ]] || continue
        line=${line#    }
        while [[ $line == *\\ ]] && IFS= read -r -u 8 more; do line=${line%\\}${more#    }; done
        return 0
    done
    return 1
}
# Whether a command shows something: those that change a thing may be silent.
shows() {
    [[ $1 == *list* || $1 == *get* || $1 == *status* || $1 == *metrics* || $1 == *doctor* ||
        $1 == *create* || $1 == *readyz* ]]
}
# Runs $line; what it says is in the files out and err. Its status is the line's.
try_command() { timeout $((240 * slow)) bash -u -o pipefail -c "$line" >out 2>err </dev/null; }
run_command() {
    try_command || fail "$line: ended with $?: $(cat out err)"
    if shows "$line" && [[ $line != *'>'* && ! -s out ]]; then fail "$line: shows nothing"; fi
}

# ---- what is in frames, and not run as it stands there
# Which test runs each line of them, or what is nearest to it: root's doing on a host of its own, to
# its packages, units and users, is no test's on the host that it runs on.
declare -A framed=()
run_by() { # test line...
    local test=$1 command
    shift
    [[ -f $root/tests/e2e/$test.sh ]] || fail "there is no test $test"
    for command in "$@"; do framed[$command]=$test; done
}
# ninja, of a build that ops/test has configured; cmake --install, with and without --prefix
run_by install 'cmake --preset release && cmake --build --preset release' \
    'sudo cmake --install build --prefix /usr/local' 'sudo ldconfig'
# systemd-sysusers below a root of its own, and what systemd would do with the units
run_by systemd 'sudo systemd-sysusers /usr/local/lib/sysusers.d/kedge.conf' \
    'sudo systemctl daemon-reload'
# the same files in the same places, by dpkg, where daemons take them
run_by debs 'sudo install -d /etc/kedge' \
    'sudo install -m 644 /usr/local/share/doc/kedge/examples/kedge-*.conf /etc/kedge' \
    'sudo mv /etc/kedge/kedge-agent.conf /etc/kedge/agent.conf' \
    'sudo mv /etc/kedge/kedge-metad.conf /etc/kedge/metad.conf'
# dpkg -i of the same packages, in a copy of this host
run_by debs 'sudo apt-get install debhelper' 'ops/debs build/debs' \
    'sudo apt-get install ./build/debs/kedge-{agent,metaserver,ctl}_*.deb'\
' ./build/debs/libkedge0_*.deb'
# rdmactl and kedge-perf as they stand here; daemons without their units
run_by first-host 'sudo systemctl enable --now kedge-metad' \
    'sudo rdmactl token create node-1 scope=agent node=node-1 gids=fd00::1'\
' --secret-out agent.token' \
    'sudo install -o kedge -m 600 agent.token /etc/kedge/agent.token && sudo rm agent.token' \
    'sudo systemctl enable --now kedge-agentd' \
    'sudo rdmactl tenant create web uids=1000-1999' 'kedge-perf read' \
    'sudo rdmactl token create node-2 scope=agent node=node-2 gids=fd00::2'\
' --secret-out agent.token' 'sudo rdmactl agent status'
run_by operations-several \
    'sudo -u kedge kedge-metad --config /etc/kedge/metad.conf store copy shared.conf'
# the same, of a metaserver that is not there and one that is
run_by contexts \
    'rdmactl context set site server=https://meta-1:7480,https://meta-2:7480,https://meta-3:7480'
# each request of it, and what is written
run_by metrics 'cd /var/lib/prometheus/node-exporter &&' \
    'curl -sf -m 10 --unix-socket /run/kedge/agent-admin.sock http://agent/metrics -o kedge.new'\
' &&' \
    'mv kedge.new kedge.prom'
# Every line of a shell's frame, or of one of which nothing is said, is in that list, and no other.
check_frames() {
    local command count=0 within=
    local -A seen=()
    while IFS= read -r command; do
        case $command in
        '```sh' | '```') [[ $within ]] && within= || within=shell ;;
        '```'*) within=other ;;
        '' | '#'*) ;;
        *)
            [[ $within == shell ]] || continue
            [[ -n ${framed[$command]-} ]] || fail "no test runs this line of a frame: $command"
            seen[$command]=yes count=$((count + 1))
            ;;
        esac
    done <"$page"
    for command in "${!framed[@]}"; do
        [[ -n ${seen[$command]-} ]] || fail "the page has no such line any more: $command"
    done
    ok "$count lines in frames, each of which a test runs, or what is nearest to it"
}
