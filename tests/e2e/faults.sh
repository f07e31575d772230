#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three metaservers on three members of etcd, each on a network of its own, three agents, a worker
# that reads what another one lends, one that looks for what a third one publishes, and clients that
# read, write and watch: faults come by a seed, one after the other. What READs, writes and lookups
# come to is judged after each fault (lib-faults.sh); what clients were answered is recorded, and
# checked in the end (tests/history).
#
#   FAULTS=N        how many (20)
#   FAULTS_SEED=N   which ones (8); any: others each time
#   FAULTS_BEHIND_MS=N   how long after etcd metaservers may take to write again (20000); what is
#                   less is multiplied by load / processors, up to 20000
#   FAULTS_KEEP=DIRECTORY   the history and the logs are left there
#   FAULTS_CLOCKS=yes   in a guest of its own (tests/vm/clocks.sh), whose clock is set meanwhile, by
#                   seconds or days, forward or back
source "$(dirname "$0")/lib.sh"
history=$(cd "$(dirname "$0")" && pwd)/../history
faults=${FAULTS:-20} seed=${FAULTS_SEED:-8}
[[ $seed != any ]] || seed=$RANDOM
if [[ -z ${FAULTS_ALONE-} ]]; then
    if [[ $(id -u) == 0 ]] && command -v ip nsenter >/dev/null &&
        unshare --mount --net true 2>/dev/null; then
        FAULTS_ALONE=yes FAULTS_SEED=$seed exec unshare --mount --net bash "$0" "$@"
    fi
    skip "networks that are cut, and disks that are full (only root can have networks of its own)"
    FAULTS_ALONE=no
fi
[[ -z ${FAULTS_CLOCKS-} ]] || grep -q vm_node= /proc/cmdline ||
    fail "nobody's clock is set but a guest's: tests/vm/clocks.sh"
source "$(dirname "$0")/lib-shared-store.sh"
# In a guest, which is slow, etcd has one member: what a clock does to elections is etcd's own.
[[ -z ${FAULTS_CLOCKS-} ]] || members=(e1)
source "$(dirname "$0")/lib-faults.sh"
needs_built kedge-probe kedge-finder publish_region
command -v python3 >/dev/null || { skip "python3 is not installed"; exit 77; }
holders=() recorder=
end_all() {
    local name
    [[ -z ${FAULTS_KEEP-} ]] ||
        cp "$work"/*.log "$work"/*.out "$work"/*.jsonl "$FAULTS_KEEP/" || true
    [[ -z $recorder ]] || kill -KILL "$recorder" 2>/dev/null || true
    for name in "${metaservers[@]}" c; do
        [[ -z ${pids[$name]-} ]] || end_daemon "$name"
    done
    for name in "${!etcd_pids[@]}"; do etcd_kill "$name"; done
    [[ $FAULTS_ALONE == no ]] || umount -l "$etcd_dir"/* "$work"/data-* 2>/dev/null || true
    for name in "${holders[@]}"; do
        kill -KILL "$name" 2>/dev/null || true
        wait "$name" 2>/dev/null || true
    done
    cleanup
    etcd_end
}
trap end_all EXIT
RANDOM=$seed
echo "$faults faults of the seed $seed"

# ---- networks: each of the six has one, and all are wired to a bridge on this one's

everybody=("${metaservers[@]}" "${members[@]}")
declare -A address=([one]=10.77.0.11 [two]=10.77.0.12 [three]=10.77.0.13
    [e1]=10.77.0.21 [e2]=10.77.0.22 [e3]=10.77.0.23 [here]=10.77.0.1)
declare -A holder=()
inside() { # name command...: on its network
    local name=$1
    shift
    nsenter -t "${holder[$name]}" --net "$@"
}
make_network() { # name
    local name=$1 there
    unshare --net sleep infinity &
    holder[$name]=$! holders+=($!)
    there=$(readlink /proc/self/ns/net)
    until [[ $(readlink "/proc/${holder[$name]}/ns/net") != "$there" ]]; do sleep 0.02; done
    ip link add "to-$name" type veth peer name out netns "${holder[$name]}"
    ip link set "to-$name" master hub up
    inside "$name" ip link set lo up
    inside "$name" ip link set out up
    inside "$name" ip address add "${address[$name]}/24" dev out
}
make_networks() {
    local name
    ip link set lo up
    ip link add hub type bridge
    ip link set hub up
    ip address add "${address[here]}/24" dev hub
    for name in "${everybody[@]}"; do make_network "$name"; done
    for name in "${metaservers[@]}"; do
        metad_host[$name]=${address[$name]} metad_under[$name]="nsenter -t ${holder[$name]} --net"
    done
    for name in "${members[@]}"; do
        etcd_host[$name]=${address[$name]} etcd_under[$name]="nsenter -t ${holder[$name]} --net"
    done
}

# Nothing of what the one sends comes to the other. Silently, as where a switch has died: it goes to
# an address that nobody has; or the sender's own host says that there is no way.
cut_way() { # silently|loudly from to
    case $1 in
    silently) within "$2" ip neigh replace "${address[$3]}" lladdr 02:00:00:00:00:99 \
        dev "$(device_of "$2")" nud permanent ;;
    loudly) within "$2" ip route replace blackhole "${address[$3]}/32" ;;
    esac
}
mend_way() { # silently|loudly from to
    case $1 in
    silently) within "$2" ip neigh del "${address[$3]}" dev "$(device_of "$2")" ;;
    loudly) within "$2" ip route del blackhole "${address[$3]}/32" ;;
    esac
}
device_of() { if [[ $1 == here ]]; then echo hub; else echo out; fi; }
within() { # name|here command...
    if [[ $1 == here ]]; then "${@:2}"; else inside "$@"; fi
}
# Of those that are chosen to and from all others.
each_way() { # cut_way|mend_way
    local one other
    for one in "${chosen[@]}"; do
        for other in "${everybody[@]}" here; do
            [[ " ${chosen[*]} " != *" $other "* ]] || continue
            [[ $way == in ]] || "$1" "$manner" "$one" "$other"
            [[ $way == out ]] || "$1" "$manner" "$other" "$one"
        done
    done
}

# ---- disks

disk_of() { # name
    if [[ -n ${etcd_client[$1]-} ]]; then echo "$etcd_dir/$1"; else echo "$work/data-$1"; fi
}
make_disks() {
    local name
    for name in "${members[@]}"; do
        mkdir "$etcd_dir/$name"
        mount -t tmpfs -o size=192m tmpfs "$etcd_dir/$name" # etcd takes 128 of them in advance
    done
    for name in "${metaservers[@]}"; do
        mkdir "$work/data-$name"
        mount -t tmpfs -o size=4m tmpfs "$work/data-$name"
    done
}

# ---- faults: each is begun, lasts for a while, and is over

is_member() { [[ -n ${etcd_client[$1]-} ]]; }
pid_of() { if is_member "$1"; then echo "${etcd_pids[$1]}"; else echo "${pids[$1]}"; fi; }
end_process() { # name signal
    local pid
    pid=$(pid_of "$1")
    kill "-$2" "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    if is_member "$1"; then unset "etcd_pids[$1]"; else unset "pids[$1]"; fi
}
# Members first: a metaserver that finds no quorum waits for one.
begin_processes() { # name...
    local name
    for name in "$@"; do ! is_member "$name" || etcd_begin "$name"; done
    for name in "$@"; do is_member "$name" || shared_metad_begin "$name"; done
}
is_running() { kill -0 "$(pid_of "$1")" 2>/dev/null && ! is_zombie "$(pid_of "$1")"; }
is_zombie() { [[ $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) == Z* ]]; }
begin_fault() {
    local name
    case $what in
    kill) for name in "${chosen[@]}"; do end_process "$name" KILL; done ;;
    restart) for name in "${chosen[@]}"; do end_process "$name" TERM; done ;;
    stop) for name in "${chosen[@]}"; do kill -STOP "$(pid_of "$name")"; done ;;
    cut) each_way cut_way ;;
    full)
        for name in "${chosen[@]}"; do
            dd if=/dev/zero of="$(disk_of "$name")/filler" bs=1M 2>/dev/null || true
        done
        ;;
    agent) end_c ;;
    clock) set_clock "$by" ;;
    esac
}
end_fault() {
    local name
    case $what in
    kill | restart) begin_processes "${chosen[@]}" ;;
    stop) for name in "${chosen[@]}"; do kill -CONT "$(pid_of "$name")"; done ;;
    cut) each_way mend_way ;;
    full)
        for name in "${chosen[@]}"; do
            rm -f "$(disk_of "$name")/filler"
            is_running "$name" || { # as etcd does that has no room
                echo "$name had ended"
                end_process "$name" KILL
                begin_processes "$name"
            }
        done
        ;;
    agent) begin_c ;;
    clock) [[ $stays == stays ]] || set_clock $((-by)) ;;
    esac
}
# Of all that run here, and at once, as whoever administers a host does.
set_clock() { # seconds, forward or back
    date -s "@$(($(date +%s) + $1))" >/dev/null || fail "the clock takes no time"
}
one_of() { # word...
    local -a words=("$@")
    echo_one=${words[RANDOM % ${#words[@]}]}
}
choose_some() { # how many
    chosen=()
    while ((${#chosen[@]} < $1)); do
        one_of "${everybody[@]}"
        [[ " ${chosen[*]} " == *" $echo_one "* ]] || chosen+=("$echo_one")
    done
}
# The first six kill each in turn; what comes then, the seed says. Where clocks are set, each second
# fault is that, by each of these steps in turn; each third one is taken back.
steps=(180000 -270000 -3 3700 3 90000 60 -3700)
choose_fault() { # number
    local kinds=(kill stop stop restart agent cut cut cut full)
    [[ $FAULTS_ALONE == yes ]] || kinds=("${kinds[@]:0:5}")
    if [[ -n ${FAULTS_CLOCKS-} ]]; then
        kinds=(kill stop cut agent)
        (($1 % 2 == 0)) || kinds=(clock)
        (($1 != 4)) || kinds=(agent) # whose new life begins a day before its old one
    elif (($1 <= 6)); then
        what=kill chosen=("${everybody[$1 - 1]}") for_ms=$((RANDOM % 1000))
        return
    fi
    one_of "${kinds[@]}"; what=$echo_one
    one_of 1 1 1 2 2 3 6
    choose_some $((echo_one < ${#everybody[@]} ? echo_one : ${#everybody[@]}))
    one_of in out both; way=$echo_one
    one_of silently loudly; manner=$echo_one
    for_ms=$((300 + RANDOM % 2500))
    [[ $what == clock ]] || return 0
    by=${steps[$1 / 2 % ${#steps[@]}]}
    stays=stays
    (($1 % 6 != 5)) || stays=returns
}
# In a long run each of them is killed, and stopped, restarted and cut off as well, before the seed
# says what comes. Once in 40 faults c is away for longer.
choose_in_turn() { # number
    local kinds=(kill stop restart cut) turn=$(($1 - 1)) each=${#everybody[@]}
    if ((faults >= 100 && turn < each * ${#kinds[@]})); then
        what=${kinds[turn / each]} chosen=("${everybody[turn % each]}")
        [[ $what != cut || $FAULTS_ALONE == yes ]] || what=stop
    fi
    [[ -n ${FAULTS_CLOCKS-} ]] || (($1 % 40 != 8)) || leave
    [[ $what != agent || $away == no ]] || what=stop
}
say_fault() {
    case $what in
    cut) echo "cut $way $manner ${chosen[*]}" ;;
    agent) echo "kill agent c" ;;
    clock) echo "clock set by $by s, and $stays" ;;
    *) echo "$what ${chosen[*]}" ;;
    esac
}

# ---- what must hold meanwhile

now_ms() { # of a clock that nobody sets
    local up
    read -r up _ </proc/uptime
    echo $((10#${up//./} * 10))
}
# A clock that is set ends no lease.
all_are_live() {
    local said
    said=$(live_everywhere a b c) || { echo "$said"; exit 1; }
}
are_live_still() {
    local name node is
    for name in "${metaservers[@]}"; do
        for node in a b c; do
            is=$(state "$name" "$node") || is=silent
            [[ $is == live ]] || fail "the clock was set, and node-$node is $is at $name"
        done
    done
}
uid=4000000000 longest=0 longest_behind=0
# Each of them has a write acknowledged; sets $took, from now on, and $each.
wait_for_writes() { # metaserver...
    local name begin
    begin=$(now_ms) each=
    for name in "$@"; do
        until [[ $(writes "$name" probe $((++uid))) == written ]]; do
            (($(now_ms) - begin < 120000 * slow)) ||
                fail "$name does not write: $(cat "$work/body")"
            sleep 0.05
        done
        each+=" $name $(($(now_ms) - begin))"
    done
    took=$(($(now_ms) - begin))
    ((took <= longest)) || longest=$took
}
# How long after its call etcd takes a write, by whichever member: until then no metaserver can. It
# is called in the background, before wait_for_writes().
wait_for_quorum() {
    local begin name
    begin=$(now_ms)
    while kill -0 $$ 2>/dev/null; do # it ends with the test
        for name in "${members[@]}"; do
            curl -sf -o /dev/null --max-time "$((slow / 2)).5" \
                --data '{"key":"cXVvcnVt","value":"MQ=="}' \
                "http://$(etcd_at "$name"):${etcd_client[$name]}/v3/kv/put" || continue
            echo $(($(now_ms) - begin)) >"$work/quorum"
            return
        done
        sleep 0.05
    done
}
traffic_goes_on() {
    judge_traffic
    judge_lookups
}

cluster_directories
if [[ $FAULTS_ALONE == yes ]]; then
    make_networks
    make_disks
fi
more_metad="events = 65536"
[[ $provider != soft ]] || gids=(fd00::{0..8}) # c's lives are all met at one address
shared_store_begin a b c
live_everywhere a b c
publish_life
begin_finding
export_text b "what is lent"
KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" gaps "$token" "what is lent" \
    >"$work/reader.out" 2>&1 &
reader=$!
worker_pids+=("$reader")
until_is 1 "a worker reads what is lent" grep -cm1 "none for" "$work/reader.out"
places=()
for name in "${metaservers[@]}"; do places+=("$name=$(at "$name")"); done
python3 "$history/record.py" "$work/history.jsonl" "$seed" "${places[@]}" \
    >"$work/recorder.out" 2>&1 &
recorder=$!
for ((number = 1; number <= faults; number++)); do
    choose_fault "$number"
    choose_in_turn "$number"
    [[ $what != clock ]] || all_are_live
    begin_fault
    # One alone, which nobody notices who asks another.
    if [[ -z ${FAULTS_CLOCKS-} ]] && ((number <= ${#everybody[@]})); then
        one_of one two
        [[ ${chosen[0]} != "$echo_one" ]] || echo_one=three
        wait_for_writes "$echo_one"
    fi
    sleep "$((for_ms / 1000)).$(printf '%03d' $((for_ms % 1000)))"
    end_fault
    [[ $what != clock ]] || are_live_still
    wait_for_quorum &
    quorum=$!
    wait_for_writes "${metaservers[@]}"
    wait "$quorum"
    traffic_goes_on
    look_for_expiry
    ((gone_for < 3)) || come_back
    behind=$((took - $(cat "$work/quorum")))
    ((behind <= longest_behind)) || longest_behind=$behind
    judge_writes "$behind" "fault $number: $(say_fault)"
    echo "fault $number: $(say_fault), for $for_ms ms; writes after, in ms:$each," \
        "etcd's $(cat "$work/quorum")"
done
ok "$faults faults; all write again $longest ms after each, at most," \
    "and $longest_behind ms after etcd does"

# ---- what was answered

kill -TERM "$recorder"
wait "$recorder" || fail "the recorder: $(tail -n 20 "$work/recorder.out")"
recorder=
ok "$(tail -n 1 "$work/recorder.out")"
come_back
live_everywhere a b c
await_finding
out=$(KEDGE_SOCKET=$work/a.sock timeout 60 "$bin/kedge-probe" connect node-c) ||
    fail "node-c is not found: $out"
traffic_goes_on
ok "$(grep -c '^lookup: [0-9]' "$work/finder.out") lookups found one of c's ${#lives[@]} lives," \
    "and none an older one than before, or one that had expired"
ok "READs went on: $(sed -n 's/.*: none for/none for/p' "$work/reader.out" | tail -n 1), at most"
python3 "$history/check.py" "$work/history.jsonl" >"$work/checked" ||
    fail "the history is not right: $(tail -n 20 "$work/checked")"
ok "$(cat "$work/checked")"
porcupine=
[[ -n ${FAULTS_CLOCKS-} ]] || # tests/vm/clocks.sh asks it: its module cannot be fetched in a guest
    porcupine=$("$history/porcupine.sh" "${bin%/bin}") || {
        [[ $porcupine == skip:* ]] || fail "$porcupine"
        echo "$porcupine"
        porcupine=
    }
if [[ -n $porcupine ]]; then
    "$porcupine" "$work/history.jsonl" >"$work/checked" ||
        fail "porcupine does not take the history: $(cat "$work/checked")"
    ok "$(cat "$work/checked")"
fi
for name in "${metaservers[@]}"; do
    kill -TERM "${pids[$name]}"
    wait "${pids[$name]}" || fail "$name ended with $?"
    unset "pids[$name]"
done
trap - EXIT
end_all
ok "all end"
