# SPDX-License-Identifier: Apache-2.0
# Three metaservers that share a store in three members of etcd, and agents. Sourced after lib.sh;
# the test may say where they are ($etcd_host, $metad_host) and what runs them ($etcd_under,
# $metad_under) before it calls shared_store_begin.
source "$(dirname "${BASH_SOURCE[0]}")/lib-metaservers.sh"
source "$(dirname "${BASH_SOURCE[0]}")/lib-etcd.sh"

lease=$((8 * slow))
metaservers=(one two three) members=(e1 e2 e3)
declare -A gid_number=([one]=0 [two]=4 [three]=5) # 1 to 3 are agents'
declare -A metad_under=()
more_agent="prove_every = 0ms" # which looks up endpoints too

# Whatever etcd does at that moment: a metaserver whose store does not answer ends, and what runs it
# begins it again.
shared_metad_begin() { # name
    local run_under=${metad_under[$1]-}
    for _ in $(seq 60); do
        if daemon_start "$1" kedge-metad 2>>"$work/$1.again"; then
            declare -g "port_$1=$(sed -n 's/.*ready, port //p' "$work/$1.out")"
            return
        fi
        kill -KILL "${pids[$1]}" 2>/dev/null || true
        wait "${pids[$1]}" 2>/dev/null || true
        sleep 0.5
    done
    fail "the metaserver $1 did not start: $(tail -n 3 "$work/$1.again")"
}
# For the first time: its settings are written, and name from now on the port that it got. Lines of
# [metaserver] in $more_metad.
shared_metad_first() { # name
    local name=$1 port=0 # one that is free, or where it is alone its usual one
    [[ -z ${metad_host[$name]-} ]] || port=7480
    metad_conf "$name" "${metad_host[$name]:-127.0.0.1}:$port"
    sed -i "s/^node_lease/${more_metad:+$more_metad\n}node_lease/" "$work/$name.conf"
    printf '%s\n' "[store]" "kind = etcd" "member = $name" "endpoints = $etcd_urls" \
        >>"$work/$name.conf"
    shared_metad_begin "$name"
    port=port_$name
    sed -i "s/^listen = .*/listen = ${metad_host[$name]:-127.0.0.1}:${!port}/" "$work/$name.conf"
}
# All members, the first time or again.
shared_members_begin() {
    local name
    for name in "${members[@]}"; do etcd_begin "$name"; done
    for name in "${members[@]}"; do until_is true "etcd's $name is well" etcd_ready "$name"; done
}
shared_etcd_begin() {
    etcd_cluster "${members[@]}"
    shared_members_begin
}
# Once cluster_directories has been called.
shared_store_begin() { # agent...
    local name
    shared_etcd_begin
    for name in "${metaservers[@]}"; do shared_metad_first "$name"; done
    urls="$(at one), $(at two), $(at three)"
    for name in "$@"; do
        mkdir -m 0700 "$work/state-$name"
        url=$urls agent_configure "$name"
        daemon_start "$name" kedge-agentd || fail "agent $name did not start"
    done
}
state() { # metaserver node
    curl -sf --max-time 20 "$(at "$1")/v1/nodes/node-$2" | jq -r .state
}
live_everywhere() { # node...
    local name node
    for name in "${metaservers[@]}"; do
        for node in "$@"; do until_is live "$node is live at $name" state "$name" "$node"; done
    done
}
put() { # metaserver tenant uid: the status
    curl -s -o "$work/body" -w '%{http_code}' --max-time 20 -X PUT \
        -H 'Content-Type: application/json' --data "{\"uids\":[$3]}" "$(at "$1")/v1/tenants/$2"
}
# A write may meet the moment in which a leader is missing.
writes() { # metaserver tenant uid
    local status
    status=$(put "$@")
    [[ $status != 20[01] ]] || echo written
}
end_daemon() { # name
    kill -KILL "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null || true
    unset "pids[$1]"
}
