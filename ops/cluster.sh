# SPDX-License-Identifier: Apache-2.0
# Starts and stops a metaserver and agents of one host, in directories of their own. Sourced by
# ops/quickstart and tests/e2e/lib.sh. The caller sets $bin (where the programs are) first, $agents
# (how many), and $access: open (as most tests have it), or tokens, which the agents are given then.
#
# May set: $service, lines of [fabric] of all daemons; $more_agent, lines of [agent].
#
# Sets: $work (logs, settings, sockets: enterable by workers of any user), $device, $url, $admin
# (the metaserver's admin socket, as rdmactl's --server), ${pids[metad|a|b|...]}.
#
# Environment: KEDGE_TEST_PROVIDER (soft, on a device of its own; verbs: on an RDMA device),
# KEDGE_TEST_TRANSPORT (auto, dc or rc: what agents are told); for verbs KEDGE_TEST_DEVICE (the
# first that does) and KEDGE_TEST_GIDS: GIDs of it, separated by blanks, for the metaserver first
# and then for each agent.
agents=${agents:-2} access=${access:-open}
provider=${KEDGE_TEST_PROVIDER:-soft} transport=${KEDGE_TEST_TRANSPORT:-auto}
read -ra gids <<<"${KEDGE_TEST_GIDS:-}"
# A token is of certain GIDs, and soft gives others with each start unless it is told.
[[ $provider != soft || $access != tokens ]] || gids=(fd00::{0..8})
declare -A pids=()
export KEDGE_CONTEXT=none # what this user's rdmactl is set to is no part of it
names=(a b c d e f g h)

# Starts a daemon and waits for the line that says that it is ready. Prints its last words when it
# is not. run_under is a program that runs it, if it is set.
daemon_start() { # name program
    local name=$1
    : >"$work/$name.out"
    setsid ${run_under-} "$bin/$2" --config "$work/$name.conf" \
        >"$work/$name.out" 2>>"$work/$name.log" </dev/null &
    pids[$name]=$!
    for _ in $(seq 1200); do
        ! grep -q "^$2: ready" "$work/$name.out" || return 0
        kill -0 "${pids[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    echo "$2 ($name) did not become ready: $(tail -n 3 "$work/$name.log")" >&2
    return 1
}

# The lines of [fabric]. The number says which of the GIDs: 0 is the metaserver's, agents follow.
fabric_settings() { # number
    printf '%s\n' "[fabric]" "provider = $provider" "device = $device" ${service:+"${service[@]}"}
    [[ $provider != soft || -n ${gids[$1]-} ]] || return 0
    [[ -n ${gids[$1]-} ]] || { echo "KEDGE_TEST_GIDS has no GID number $1" >&2; return 1; }
    echo "gid = ${gids[$1]}"
}

metad_configure() {
    cat >"$work/metad.conf" <<END
[metaserver]
listen = 127.0.0.1:${port:-0}
admin_socket = $work/metad.sock
access = $access
data_dir = $work/metad
${more_metad:-}
$(fabric_settings 0)
END
}

agent_number_of() { # name: which of the GIDs is its own
    local before=${names[*]}
    before=${before%%"$1"*}
    echo $((${#before} / 2 + 1))
}

# What the agent shows to the metaserver, made where nobody has to show anything.
agent_token() { # name
    local gid=${gids[$(agent_number_of "$1")]}
    (umask 077 &&
        "$bin/rdmactl" --server "$admin" token create "node-$1" scope=agent "node=node-$1" \
            "gids=$gid" -o json |
        jq -er .secret >"$work/$1.token")
}

agent_configure() { # name; more lines of [pool] as arguments
    local name=$1 number; shift
    number=$(agent_number_of "$name")
    cat >"$work/$name.conf" <<END
[agent]
node = node-$name
socket = $work/$name.sock
admin_socket = $work/$name.admin
state_dir = $work/state-$name
metaservers = $url
${more_agent:-}
$([[ $access == open ]] || echo "token_file = $work/$name.token")
$(fabric_settings $number)
$([[ $transport == auto ]] || echo "transport = $transport")
${more_fabric:-}
[pool]
$(printf '%s\n' "$@")
${more_pool:-}
[tenant workers]
uids = ${worker_uids:-$(id -u)}
${more_tenants:-}
END
}

# The readiness of an agent is more than a line: it has registered.
agent_wait() { # name
    local at=$url
    [[ $access == open ]] || at=$admin
    for _ in $(seq 1200); do
        if "$bin/rdmactl" --server "$at" node get "node-$1" 2>/dev/null |
            grep '^state *live' >/dev/null; then
            return
        fi
        sleep 0.05
    done
    echo "the agent of node-$1 did not register: $(tail -n 3 "$work/$1.log")" >&2
    return 1
}

# All agents have in force what operators have set, tokens included.
cluster_settle() {
    for _ in $(seq 1200); do
        ! "$bin/rdmactl" --server "$admin" node list -o json 2>/dev/null |
            jq -e '[.nodes[] | .applied.behind == false] | all' >/dev/null || return 0
        sleep 0.05
    done
    echo "an agent does not apply what is set: $("$bin/rdmactl" --server "$admin" node list)" >&2
    return 1
}

cluster_directories() {
    work=$(mktemp -d /tmp/kedge-XXXXXX)
    chmod 0711 "$work"
    device=${KEDGE_TEST_DEVICE:-}
    [[ $provider != soft ]] || device=$(mktemp -d /dev/shm/kedge-XXXXXX)
}

cluster_start() {
    local name
    cluster_directories
    mkdir -m 0700 "$work/metad"
    metad_configure
    daemon_start metad kedge-metad || return 1
    port=$(sed -n 's/.*ready, port //p' "$work/metad.out")
    url=http://127.0.0.1:$port admin=unix:$work/metad.sock
    for name in "${names[@]:0:agents}"; do
        mkdir -m 0700 "$work/state-$name"
        agent_configure "$name"
        [[ $access == open ]] || agent_token "$name" || return 1
        daemon_start "$name" kedge-agentd || return 1
    done
    for name in "${names[@]:0:agents}"; do agent_wait "$name" || return 1; done
}

# Agents first. Whoever does not end within a minute is killed, and that is a failure; so is an end
# that is not clean.
cluster_stop() {
    local name code status=0
    for name in "${names[@]:0:agents}" metad; do
        [[ -n ${pids[$name]-} ]] || continue
        kill -CONT "${pids[$name]}" 2>/dev/null
        kill -TERM "${pids[$name]}" 2>/dev/null
    done
    for name in "${!pids[@]}"; do
        for _ in $(seq 1200); do
            kill -0 "${pids[$name]}" 2>/dev/null || break
            sleep 0.05
        done
        if kill -KILL "${pids[$name]}" 2>/dev/null; then
            echo "$name did not end after SIGTERM" >&2
            status=1
        fi
        code=0
        wait "${pids[$name]}" 2>/dev/null || code=$?
        if ((code != 0 && code != 127)); then # 127: somebody has waited for it already
            echo "$name ended with $code: $(tail -n 40 "$work/$name.log")" >&2
            status=1
        fi
    done
    pids=()
    [[ -z ${work-} ]] || rm -rf "$work"
    [[ $provider != soft || -z ${device-} ]] || rm -rf "$device"
    return $status
}

# A number of an agent's status, wherever it stands in it.
agent_number() { # name field
    "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json |
        jq -e "[.. | objects | .$2? | numbers] | first"
}
