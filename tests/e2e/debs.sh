#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian packages of this tree are built (ops/debs), lintian finds no error and no warning, and dpkg
# installs, upgrades, removes and purges them: with their user, directories, units that are enabled,
# settings that an operator has changed, and state. That is done in a copy of this host's root that
# nobody else sees: an overlay in memory, in mount and process namespaces of its own. systemd does
# not run there.
set -euo pipefail
build=${1:?usage: $0 BUILD_DIRECTORY}
root=$(cd "$(dirname "$0")/../.." && pwd)
packages=(kedge-agent kedge-metaserver kedge-ctl libkedge0 libkedge-dev)
fail() { echo "FAILED: $*"; exit 1; }
ok() { echo "ok: $*"; }

# ---- in the copy, as its root

expect() { # sentence command...
    local sentence=$1; shift
    "$@" >/tmp/out 2>&1 || fail "$sentence: $* ($(tail -n 5 /tmp/out))"
}
is_gone() { # file...
    local file
    for file in "$@"; do [[ ! -e $file && ! -L $file ]] || fail "$file is there"; done
}
install_all() { # directory of packages
    expect "dpkg installs them" dpkg -i --force-confdef --force-confold "$1"/*.deb
}
wanted=/etc/systemd/system/multi-user.target.wants

check_installed() {
    expect "there is a user" getent passwd kedge
    id -nG kedge | grep -w >/dev/null rdma || fail "the user kedge is in: $(id -nG kedge)"
    for directory in /var/lib/kedge-agent /var/lib/kedge-metad; do
        [[ $(stat -c '%U %a' $directory) == "kedge 700" ]] ||
            fail "$directory is of $(stat -c '%U, %a' $directory)"
    done
    for unit in kedge-agentd kedge-metad; do
        [[ -L $wanted/$unit.service ]] || fail "$unit.service is not enabled"
        expect "systemd takes the unit" systemd-analyze verify --man=no --recursive-errors=no \
            /lib/systemd/system/$unit.service
    done
    install -d -o kedge /run/kedge
    expect "the metaserver's settings are right" runuser -u kedge -- \
        kedge-metad --config /etc/kedge/metad.conf --check-config
    expect "the agent's settings are right" runuser -u kedge -- \
        kedge-agentd --config /etc/kedge/agent.conf --check-config
    expect "rdmactl runs" rdmactl --help
    expect "kedge-perf measures" kedge-perf read --direct --local --count 100 --json
    expect "man pages are there" man -w kedge-agentd kedge-agent.conf kedge-metad rdmactl \
        kedge_open
    expect "a worker builds" sh -c 'cc -o /tmp/worker /usr/share/doc/kedge/examples/read_region.c \
        $(pkg-config --cflags --libs kedge)'
    expect "it finds the library" sh -c \
        'ldd /tmp/worker | grep "libkedge.so.0 => /lib/.*/libkedge.so.0"'
}

# An operator's doing, which neither an upgrade nor a removal takes back.
live_in_it() {
    echo "# mine" >>/etc/kedge/agent.conf
    echo state | tee /var/lib/kedge-agent/incarnation >/var/lib/kedge-metad/store
    expect "a unit is disabled" systemctl --root=/ disable kedge-metad
    is_gone $wanted/kedge-metad.service
}
check_kept() { # what was done
    grep -qx "# mine" /etc/kedge/agent.conf || fail "after $1 the settings are others"
    [[ -s /var/lib/kedge-agent/incarnation && -s /var/lib/kedge-metad/store ]] ||
        fail "after $1 the state is gone"
}
check_upgraded() {
    local version
    version=$(dpkg-query -W -f '${Version}\n' "${packages[@]}" | sort -u)
    [[ $version == "$next" ]] || fail "after the upgrade there is $version"
    check_kept "the upgrade"
    grep -q "of the next version" /etc/kedge/agent.conf.dpkg-dist ||
        fail "the settings of the next version are not beside those that were changed"
    [[ -L $wanted/kedge-agentd.service ]] || fail "the upgrade has disabled the agent"
    is_gone $wanted/kedge-metad.service
}
check_removed() {
    is_gone /usr/sbin/kedge-agentd /usr/sbin/kedge-metad /usr/bin/rdmactl \
        /lib/systemd/system/kedge-agentd.service /usr/include/kedge.h \
        /usr/include/kedge_batch.h \
        /usr/include/kedge_notify.h \
        /usr/include/kedge_msg.h
    check_kept "the removal"
    dpkg --purge kedge-agent >/tmp/out 2>&1 || fail "purging: $(cat /tmp/out)"
    is_gone /etc/kedge/agent.conf /var/lib/kedge-agent $wanted/kedge-agentd.service
    [[ -s /etc/kedge/metad.conf && -s /var/lib/kedge-metad/store ]] ||
        fail "with the agent the metaserver's went"
    dpkg --purge "${packages[@]}" >/tmp/out 2>&1 || fail "purging: $(cat /tmp/out)"
    is_gone /etc/kedge /var/lib/kedge-metad
    [[ -z $(find /etc/systemd /var/lib/systemd -name 'kedge*') ]] ||
        fail "systemd keeps $(find /etc/systemd /var/lib/systemd -name 'kedge*')"
    local left
    left=$(dpkg-query -W -f '${Package} ${Status}\n' 'kedge*' 'libkedge*' 2>/dev/null || true)
    [[ $left != *config-files* && $left != *" installed"* ]] || fail "dpkg remembers $left"
}

if [[ ${2-} == inside ]]; then
    next=$3
    install_all /tmp/debs/first
    check_installed
    ok "installed: user, directories, units that are enabled, programs, a worker that builds"
    live_in_it
    install_all /tmp/debs/next
    check_upgraded
    ok "upgraded: changed settings, state, and what is enabled are as they were"
    expect "dpkg removes them" dpkg -r "${packages[@]}"
    check_removed
    ok "removed and purged: first with settings and state left, then without"
    exit
fi

# ---- outside

for tool in dh lintian dpkg-buildpackage git; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
((EUID == 0)) || { echo "skip: only root can install packages"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The same packages, as the next version has them.
make_next() { # package file
    local tree=$work/tree
    rm -rf "$tree"
    dpkg-deb -R "$1" "$tree"
    sed -i "s/^Version: .*/Version: $next/; s/(= $version)/(= $next)/" "$tree/DEBIAN/control"
    [[ ! -e $tree/etc/kedge/agent.conf ]] ||
        echo "# of the next version" >>"$tree/etc/kedge/agent.conf"
    dpkg-deb -b --root-owner-group "$tree" "$work/debs/next/" >/dev/null
}

begin=$SECONDS
mkdir -p "$work/debs/first" "$work/debs/next"
"$root/ops/debs" "$work/all" >"$work/log" 2>&1 || fail "building: $(tail -n 30 "$work/log")"
for package in "${packages[@]}"; do
    mv "$work/all/${package}"_[0-9]*.deb "$work/debs/first"
done
ok "dpkg-buildpackage has made ${packages[*]} in $((SECONDS - begin)) s"
said=$(lintian --allow-root --fail-on error,warning "$work"/debs/first/*.deb 2>&1) ||
    fail "lintian: $said"
ok "lintian finds no error, and nothing to warn of"
version=$(dpkg-deb -f "$work"/debs/first/libkedge0_*.deb Version) next=$version+next
for file in "$work"/debs/first/*.deb; do make_next "$file"; done

status=0
unshare -m -p -f bash -s "$work" "$root" "$build" "$next" <<'END' || status=$?
set -e
top=/mnt work=$1 root=$2
mount -t tmpfs tmpfs $top
mkdir $top/{upper,work,copy}
mount -t overlay overlay -o lowerdir=/,upperdir=$top/upper,workdir=$top/work $top/copy || {
    echo "skip: this kernel makes no overlay of the root"
    exit 77
}
mount -t tmpfs tmpfs $top/copy/tmp
mount -t tmpfs tmpfs $top/copy/run
mount -t proc proc $top/copy/proc
mount --rbind /dev $top/copy/dev
cp -r "$work/debs" $top/copy/tmp
cp "$root/tests/e2e/debs.sh" $top/copy/tmp
chroot $top/copy env DEBIAN_FRONTEND=noninteractive bash /tmp/debs.sh "$3" inside "$4"
END
((status == 0 || status == 77)) || fail "in the copy of this host"
exit $status
