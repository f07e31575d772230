#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As many agents as descriptors allow, 10,000 at most, come up at once: how long until all of them
# are in, what each metaserver has of memory and CPU then, and what its death and return does.
#
#   tests/bench/agents/storm.sh BUILD [--agents N] [--etcd] [--tls] [--rest S] [--lease S]
#       [--patience S]
#
# One metaserver on SQLite; with --etcd three that share a store in three members of etcd, each on
# this host. No threshold: it prints figures, and what else this host does at that time. Ends with 1
# if some agents were not in after S seconds, of --patience.
build=${1:?usage: $0 BUILD [--agents N] [--etcd] [--tls] [--rest S] [--lease S] [--patience S]}
shift
agents=10000 shared= tls= rest=20 lease=30 patience=300
while (($# > 0)); do
    case $1 in
    --agents) agents=$2; shift ;;
    --rest) rest=$2; shift ;;
    --lease) lease=$2; shift ;;
    --patience) patience=$2; shift ;;
    --etcd) shared=yes ;;
    --tls) tls=yes ;;
    *) echo "unknown: $1"; exit 2 ;;
    esac
    shift
done
# All agents are of one host, which has some 28,000 ports for its connections to one place: a third
# of the agents' time would go to the search for a free one.
if [[ -z ${STORM_ALONE-} ]]; then
    if unshare --net true 2>/dev/null; then
        again=("$build" --agents "$agents" --rest "$rest" --lease "$lease" --patience "$patience")
        STORM_ALONE=yes exec unshare --net bash "$0" "${again[@]}" ${shared:+--etcd} ${tls:+--tls}
    fi
    echo "note: no network of its own (root is needed): connecting takes longer than elsewhere"
else
    ip link set lo up && echo "1024 65535" >/proc/sys/net/ipv4/ip_local_port_range
fi
set -- "$build"
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../e2e/lib.sh"
source "$here/../../e2e/lib-metaservers.sh"
needs_built kedge-agents
metaservers=(one) scheme=http
declare -A gid_number=([one]=0 [two]=3 [three]=4)
ulimit -n "$(ulimit -Hn)"
# A metaserver's: with TLS each is three descriptors.
connections=$((${#tls} ? ($(ulimit -n) - 450) / 3 : $(ulimit -n) - 150))
most=$(((connections - 50) / 2)) # a stream each, and a connection for what else it asks
((agents <= most)) || { echo "note: $most agents, for $(ulimit -n) descriptors"; agents=$most; }
end_all() {
    local name
    for name in "${metaservers[@]}"; do
        [[ -z ${pids[$name]-} ]] || kill -KILL "${pids[$name]}" 2>/dev/null || true
    done
    cleanup
    ! declare -F etcd_end >/dev/null || etcd_end
}
trap end_all EXIT
cluster_directories
if [[ -n $shared ]]; then
    source "$here/../../e2e/lib-etcd.sh"
    metaservers=(one two three)
    etcd_cluster e1 e2 e3
    for name in e1 e2 e3; do etcd_begin "$name"; done
    for name in e1 e2 e3; do until_is true "etcd's $name is well" etcd_ready "$name"; done
fi
if [[ -n $tls ]]; then
    scheme=https
    "$here/../../../ops/certificates" "$work/ca" server=meta,127.0.0.1 >/dev/null 2>&1 ||
        fail "no certificates"
fi
for name in "${metaservers[@]}"; do
    metad_conf "$name" 127.0.0.1:0
    sed -i "s/^listen = .*/&\nconnections = $connections\nclient_connections = $connections\n$(
        )client_rate = 0\nmax_watches = $((agents * 2 + 100))\nlog_level = warn/" "$work/$name.conf"
    [[ -z $tls ]] || sed -i "s|^listen = .*|&\ncert_file = $work/ca/meta.pem\n$(
        )key_file = $work/ca/meta-key.pem|" "$work/$name.conf"
    [[ -z $shared ]] || printf '%s\n' "[store]" "kind = etcd" "member = $name" \
        "endpoints = $etcd_urls" >>"$work/$name.conf"
    metad_start "$name"
    port=port_$name
    sed -i "s/^listen = .*/listen = 127.0.0.1:${!port}/" "$work/$name.conf" # from now on
done
urls=()
for name in "${metaservers[@]}"; do
    port=port_$name
    urls+=(--server "$scheme://127.0.0.1:${!port}")
done
[[ -z $tls ]] || urls+=(--trusted-ca-file "$work/ca/ca.pem")

ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; } # of its CPU, 100 a second
memory() { awk '/^VmRSS/ {printf "%.0f", $2 / 1024}' "/proc/$1/status"; }
others() { cut -d' ' -f1 /proc/loadavg; }
line() { tail -n 1 "$work/agents.out"; }
cpu_of_agents() {
    local p sum=0
    for p in $(pgrep -P "$agents_pid"); do sum=$((sum + $(ticks "$p"))); done
    echo $sum
}
cpu_of_etcd() {
    local p sum=0
    for p in "${etcd_pids[@]}"; do sum=$((sum + $(ticks "$p"))); done
    echo $sum
}
await_all() { # sentence
    local before=$1 i
    for ((i = 0; i < patience * 2; i++)); do
        [[ $(line) != *" in=$agents "* ]] || return 0
        kill -0 "$agents_pid" 2>/dev/null || fail "the agents have ended: $(cat "$work/agents.err")"
        sleep 0.5
    done
    echo "not in after $patience s: $before: $(line)"
    return 1
}
store=SQLite processes=4
[[ -z $shared ]] || store=etcd processes=8
echo "$agents agents, ${#metaservers[@]} metaserver(s) on $store${tls:+, TLS}"
echo "node_lease ${lease}s, $(nproc) CPUs, load before $(others)"
"$bin/kedge-agents" "${urls[@]}" --agents "$agents" --processes $processes \
    --seconds $((2 * patience + rest + 120)) \
    >"$work/agents.out" 2>"$work/agents.err" &
agents_pid=$!
worker_pids+=("$agents_pid")
declare -A before
missed=0
await_all "the storm" || missed=1
echo "the storm: $(grep "^all" "$work/agents.out" || true); $(line)"
echo "  CPU: agents $(($(cpu_of_agents) / 100)) s$(for name in "${metaservers[@]}"; do
    echo -n ", $name $(($(ticks "${pids[$name]}") / 100)) s"; done)$(
    [[ -z $shared ]] || echo ", etcd $(($(cpu_of_etcd) / 100)) s"); load $(others)"
for name in "${metaservers[@]}"; do
    curl -sk --max-time 60 "$(at "$name" | sed "s/http/$scheme/")/metrics" \
        >"$work/metrics-$name" || true
    echo "  $name: $(awk '/^kedge_metad_store_transaction_seconds_count/ {n = $2}
        /^kedge_metad_store_transaction_seconds_sum/ {s = $2}
        /^kedge_metad_registrations_total/ {r = $2}
        /^kedge_metad_registrations_put_off_total/ {p = $2}
        END {printf "%d transactions of %.0f ms, %d registrations, %d put off", n,
             (n > 0 ? s / n * 1000 : 0), r, p}' "$work/metrics-$name")"
done
sleep 5
for name in "${metaservers[@]}"; do before[$name]=$(ticks "${pids[$name]}"); done
agents_before=$(cpu_of_agents)
[[ -z $shared ]] || etcd_before=$(cpu_of_etcd)
sleep "$rest"
for name in "${metaservers[@]}"; do
    echo "at rest: $name: $(memory "${pids[$name]}") MiB, $((($(ticks "${pids[$name]}") -
        ${before[$name]}) / rest))% of a CPU; load $(others)"
done
echo "  agents: $((($(cpu_of_agents) - agents_before) / rest))% of a CPU$([[ -z $shared ]] ||
    echo ", etcd: $((($(cpu_of_etcd) - etcd_before) / rest))%")"

name=${metaservers[0]}
kill -KILL "${pids[$name]}"
wait "${pids[$name]}" 2>/dev/null || true
unset "pids[$name]"
sleep 5
echo "$name is dead for 5 s: $(line)"
began=$(date +%s%N)
metad_start "$name"
sleep 3
if await_all "$name is back"; then
    echo "$name is back: all in after $((($(date +%s%N) - began) / 1000000)) ms; $(line)"
else
    missed=1
fi
echo "  load $(others)"
echo "  $name: $(memory "${pids[$name]}") MiB"
exit "$missed"
