#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A first host, with every address, socket and access as it is by default: root's rdmactl needs no
# option and no token; the agent gets one, as docs/operations.md says, and registers; whoever else
# is on that host changes nothing.
#
# It has a network and a /run of its own, so that it does not matter what else runs here.
source "$(dirname "$0")/lib.sh"
[[ $(id -u) == 0 ]] || { skip "only root can have a /run of its own"; exit 77; }
for tool in ip unshare; do
    command -v $tool >/dev/null || { skip "$tool is not installed"; exit 77; }
done
if [[ -z ${FIRST_HOST-} ]]; then
    unshare --mount --net true 2>/dev/null || {
        skip "a network of its own is not allowed here"
        exit 77
    }
    FIRST_HOST=1 exec unshare --mount --net bash "$0" "$@"
fi
ip link set lo up && mount -t tmpfs -o mode=0755 tmpfs /run && mkdir -m 0755 /run/kedge ||
    fail "no /run of its own"
cluster_directories
mkdir -m 0700 "$work/metad" "$work/state"
unset KEDGE_SERVER KEDGE_AGENT_ADMIN KEDGE_TOKEN KEDGE_TOKEN_FILE
page=$(dirname "$0")/../../docs/operations.md
cp "$bin/rdmactl" "$work/" # where any user can run it
ctl() { timeout 60 "$work/rdmactl" "$@"; }
stranger() { setpriv --reuid 65534 --regid 65534 --clear-groups timeout 60 "$work/rdmactl" "$@"; }
refused() { # code, pattern, command...
    local wanted=$1 pattern=$2 code=0
    shift 2
    "$@" >"$work/out" 2>&1 || code=$?
    [[ $code == "$wanted" ]] || fail "$* ended with $code, not $wanted: $(cat "$work/out")"
    grep -qE -- "$pattern" "$work/out" || fail "$*: \"$(cat "$work/out")\" lacks \"$pattern\""
    ok "$*: $(cat "$work/out")"
}

refused 7 \
    'no metaserver at /run/kedge/metad.sock: .*--server URL.*KEDGE_SERVER.*rdmactl context set' \
    ctl node list
printf '%s\n' "[metaserver]" "data_dir = $work/metad" "[fabric]" "device = $device" \
    >"$work/metad.conf"
daemon_start metad kedge-metad || fail "the metaserver did not start"
ctl node list >/dev/null || fail "rdmactl without an option"
ok "root's rdmactl needs neither an option nor a token"
refused 4 '/run/kedge/metad.sock is not for this user: .*sudo.*token.*--server URL' \
    stranger node list
refused 4 '^metaserver +[^ ]+ +forbidden +.*is not for this user' stranger status

printf '%s\n' "[agent]" "node = node-1" "token_file = $work/token" "state_dir = $work/state" \
    "[fabric]" "device = $device" "gid = fd00::1" >"$work/a.conf"
create=$(sed -n 's/^sudo \(rdmactl token create node-1 .* --secret-out \)agent.token$/\1/p' "$page")
[[ -n $create ]] || fail "the page does not say how the agent gets its token"
(cd "$work"; PATH=$work:$PATH bash -o pipefail -c "${create}token") || fail "$create"
daemon_start a kedge-agentd || fail "the agent did not start"
for _ in $(seq 1200); do
    if ctl node get node-1 2>/dev/null | grep '^state *live' >/dev/null; then break; fi
    sleep 0.05
done
ctl node get node-1 | grep >/dev/null '^state *live' ||
    fail "the agent does not register: $(tail -n 3 "$work/a.log")"
ctl agent status >/dev/null || fail "rdmactl agent status"
ok "with a token, made as docs/operations.md says, the agent registers"

# Nobody else's worker may attach until it is said who may, in the words of the page.
mkdir -m 0755 "$work/worker"
cp "$bin/kedge-perf" "${bin%/bin}"/lib/libkedge.so* "$work/worker/"
chmod -R a+rX "$work/worker"
worker() { # uid
    setpriv --reuid "$1" --regid "$1" --clear-groups env "LD_LIBRARY_PATH=$work/worker" \
        timeout 60 "$work/worker/kedge-perf" read --count 100
}
try=$(sed -n '/^Nobody but the user/,/^## /p' "$page" | sed -n 's/^sudo rdmactl //p')
[[ $try == "tenant create"*uids=* ]] || fail "the page does not say who may attach: $try"
uid=${try##*uids=} uid=${uid%%-*}
refused 1 \
    "uid $uid belongs to no tenant .at the metaserver: rdmactl tenant create NAME uids=$uid; " \
    worker "$uid"
read -ra words <<<"$try"
ctl "${words[@]}" >"$work/out" || fail "$try: $(cat "$work/out")"
for _ in $(seq 100); do # the agent hears of it within a second
    ! worker "$uid" >"$work/out" 2>&1 || break
    sleep 0.1
done
worker "$uid" >"$work/out" 2>&1 || fail "uid $uid cannot attach: $(cat "$work/out")"
ok "after $try a worker of uid $uid attaches and reads"
ctl tenant delete "${words[2]}" >/dev/null || fail "the tenant cannot be deleted"

# The second host's token is made here, and any host shows how its agent is.
create=$(sed -n 's/^sudo \(rdmactl token create node-2 .*\)$/\1/p' "$page")
[[ -n $create ]] || fail "the page does not say how a second agent gets its token"
(cd "$work"; PATH=$work:$PATH bash -o pipefail -c "$create") || fail "$create"
[[ -s $work/agent.token ]] || fail "$create: there is no token"
grep -qx 'sudo rdmactl agent status' "$page" || fail "the page does not say how an agent is asked"
ctl token delete node-2 >/dev/null || fail "the token cannot be deleted"

# Anybody may come by the port, and has nothing to show.
trail() { ctl event list -o json | jq -c '[.events[] | [.kind, .name, .revision, .id]]'; }
before=$(trail)
port=http://127.0.0.1:7480
for change in "tenant set mine uids=65534" "node cordon node-1" \
    "lease revoke --worker 0-00000001 --node node-1 --force" \
    "node delete node-1" "token create mine scope=admin" "node list"; do
    read -ra words <<<"$change"
    refused 4 "401: show a token .*rdmactl --server unix:/run/kedge/metad.sock token create" \
        stranger --server "$port" "${words[@]}"
done
[[ -n $before && $(trail) == "$before" ]] || fail "something was changed: $(ctl event list)"
cluster_stop || fail "the daemons did not stop"
trap - EXIT
