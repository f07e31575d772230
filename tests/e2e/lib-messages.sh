# SPDX-License-Identifier: Apache-2.0
# What the tests of messages share: agents a and b with what their [pool] is to have, which workers
# begin, and workers that hear and send (messenger.c).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_built kedge-messenger
# An agent that begins anew has the address that it had.
[[ $provider != soft ]] || gids=(fd00::{0..8})
agents=0
start
agents=2
begins() { # agent lines of [pool]...
    local name=$1; shift
    more_tenants="[tenant other]
socket = $work/$name-other.sock"
    mkdir -p -m 0700 "$work/state-$name"
    agent_configure "$name" "$@"
    daemon_start "$name" kedge-agentd || fail "agent $name did not start"
    agent_wait "$name" || fail "agent $name did not register"
}

# A worker that hears, in the background, until it does; sets $gid and ${hearer[NAME]}.
declare -A hearer=()
hears() { # name socket mode...
    local name=$1 socket=$2; shift 2
    KEDGE_SOCKET=$work/$socket.sock "$bin/kedge-messenger" "$@" >"$work/$name.out" 2>&1 &
    hearer[$name]=$!
    worker_pids+=($!)
    for _ in $(seq $((600 * slow))); do
        gid=$(sed -n 's/^hears //p' "$work/$name.out")
        [[ -z $gid ]] || return 0
        kill -0 "${hearer[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    fail "$name does not hear: $(cat "$work/$name.out")"
}
ends() { # name signal
    kill -"$2" "${hearer[$1]}"
    wait "${hearer[$1]}" 2>/dev/null || true
}
part=1
[[ $provider == soft ]] || part=10 # of what is repeated: a guest is slow
messenger() { # socket mode...; prints what it says
    local socket=$1; shift
    KEDGE_SOCKET=$work/$socket.sock timeout $((60 * slow)) "$bin/kedge-messenger" "$@" 2>&1
}
says() { # pattern sentence socket mode...
    local pattern=$1 sentence=$2 out; shift 2
    out=$(messenger "$@") || true
    grep -Pzq -- "$pattern" <<<"$out" || fail "$sentence: it says $out"
    ok "$sentence: $(tr '\n' ' ' <<<"$out")"
}
pings() { # count sentence socket port bytes depth
    local count=$(($1 > part ? $1 / part : 1))
    says "^$count answered\n" "$2" "$3" ping "$gid" "$4" $count "$5" "$6"
}
still_hears() { # name
    kill -0 "${hearer[$1]}" 2>/dev/null || fail "$1 has ended: $(cat "$work/$1.out")"
}
lane() { # agent field
    "$bin/rdmactl" --agent-socket "$work/$1.admin" agent status -o json | jq ".lane.$2"
}
# Of which no word came at all a message may wait for all its questions; else it hears at once.
in_time() { # most_ms sentence text
    local ms
    ms=$(sed -n 's/^after \([0-9]*\) ms$/\1/p' <<<"$3")
    [[ -n $ms ]] && ((ms <= $1 * slow)) || fail "$2: $3"
    ok "$2, after $ms ms"
}
streams() { # name bytes: a worker that streams to port 85 of $gid
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-messenger" stream "$gid" 85 "$2" >"$work/$1.out" 2>&1 &
    stream=$!
    worker_pids+=($stream)
    until_is 1 "a stream goes on" grep -c '^streams' "$work/$1.out"
}
