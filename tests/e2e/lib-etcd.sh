# SPDX-License-Identifier: Apache-2.0
# Members of an etcd cluster, for tests, beside lib.sh: each on ports that were free, of 127.0.0.1
# or of what the test says in etcd_host[NAME]; etcd_under[NAME] is a program that runs it, if it is
# set.
command -v etcd >/dev/null || {
    echo "skip: etcd is not installed (Debian's etcd-server)"
    exit 77
}
declare -A etcd_client=() etcd_peer=() etcd_pids=() etcd_host=() etcd_under=()
# A port that nobody listens on, and that the kernel gives to nobody who asks for any.
free_port() {
    local port low
    low=$(cut -f1 /proc/sys/net/ipv4/ip_local_port_range)
    while :; do
        port=$((low - 1 - RANDOM % (low - 2048)))
        [[ -n ${port_taken[$port]:-} ]] || (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null ||
            break
    done
    port_taken[$port]=yes
    echo "$port"
}
declare -A port_taken=()
etcd_at() { echo "${etcd_host[$1]:-127.0.0.1}"; }
# Says the members; their ports stay what they are.
etcd_cluster() { # name...
    local name
    for name in "$@"; do
        etcd_client[$name]=$(free_port) etcd_peer[$name]=$(free_port)
        port_taken[${etcd_client[$name]}]=yes port_taken[${etcd_peer[$name]}]=yes
    done
    etcd_members=$(for name in "$@"; do
        printf '%s=http://%s:%d,' "$name" "$(etcd_at "$name")" "${etcd_peer[$name]}"
    done)
    etcd_members=${etcd_members%,}
    etcd_urls=$(for name in "$@"; do
        printf 'http://%s:%d,' "$(etcd_at "$name")" "${etcd_client[$name]}"
    done)
    etcd_urls=${etcd_urls%,}
}
# In memory: what a power cut takes is not the matter here, and disks of test machines are slow.
etcd_dir=$(mktemp -d /dev/shm/kedge-etcd-XXXXXX)
etcd_begin() { # name [option...]
    local name=$1 client peer
    client=http://$(etcd_at "$name"):${etcd_client[$name]}
    peer=http://$(etcd_at "$name"):${etcd_peer[$name]}
    shift
    # shellcheck disable=SC2086
    setsid ${etcd_under[$name]-} etcd --name "$name" --data-dir "$etcd_dir/$name" --log-level warn \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "$etcd_members" --heartbeat-interval 200 --election-timeout 2000 \
        "$@" >>"$work/etcd-$name.log" 2>&1 </dev/null &
    etcd_pids[$name]=$!
}
etcd_ready() { # name
    curl -sf --max-time 5 "http://$(etcd_at "$1"):${etcd_client[$1]}/health" | jq -r .health
}
etcd_kill() { # name
    kill -KILL "${etcd_pids[$1]}"
    wait "${etcd_pids[$1]}" 2>/dev/null || true
    unset "etcd_pids[$1]"
}
# All of the cluster's data, as one moment of it was: the members do not run when they are put back.
etcd_save() { # file
    ETCDCTL_API=3 etcdctl --endpoints="${etcd_urls%%,*}" snapshot save "$1" >/dev/null 2>&1 ||
        fail "etcd gives no snapshot"
}
etcd_restore() { # file name...
    local file=$1 name tool=etcdutl # 3.6 has it nowhere else
    shift
    command -v etcdutl >/dev/null || tool=etcdctl
    for name in "$@"; do
        rm -rf "${etcd_dir:?}/$name"
        ETCDCTL_API=3 "$tool" snapshot restore "$file" --name "$name" \
            --data-dir "$etcd_dir/$name" --initial-cluster "$etcd_members" \
            --initial-advertise-peer-urls "http://127.0.0.1:${etcd_peer[$name]}" \
            >"$work/restore-$name.log" 2>&1 || fail "etcd's $name takes no snapshot"
    done
}
# At the end of the test, however it ends.
etcd_end() {
    local name
    for name in "${!etcd_pids[@]}"; do etcd_kill "$name"; done
    rm -rf "$etcd_dir"
}
