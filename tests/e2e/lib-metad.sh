# SPDX-License-Identifier: Apache-2.0
# What the tests of kedge-metad share. Sourced with the build directory as $1.
set -euo pipefail
metad=${1:?usage: $0 BUILD_DIRECTORY}/bin/kedge-metad
[[ -x $metad ]] || { echo "FAILED: $metad is not built"; exit 1; }
for tool in curl jq; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
root=$(dirname "${BASH_SOURCE[0]}")/../..
# The provider, as ops/cluster.sh has it.
provider=${KEDGE_TEST_PROVIDER:-soft}
read -ra gids <<<"${KEDGE_TEST_GIDS:-fd00::ffff fd00::fffe}"
export KEDGE_CONTEXT=none # what this user's rdmactl is set to is no part of it
work=$(mktemp -d)
shm=$(mktemp -d /dev/shm/kedge-e2e-XXXXXX)
device=$shm
[[ $provider == soft ]] || device=${KEDGE_TEST_DEVICE:-}
metad_pid=
cleanup() {
    [[ -z $metad_pid ]] || {
        kill -KILL "$metad_pid" 2>/dev/null || true
        wait "$metad_pid" 2>/dev/null || true
    }
    if mountpoint -q "$work/small" 2>/dev/null; then umount "$work/small"; fi
    rm -rf "$work" "$shm"
}
trap cleanup EXIT

skip() { echo "skip: $*"; }
ok() { echo "ok: $*"; }
source "$root/tests/e2e/lib-lacks.sh"
fail() {
    echo "FAILED: $*"
    [[ ! -s $work/body ]] || { echo "-- last answer"; head -c 2000 "$work/body"; }
    [[ ! -s $work/stderr ]] || { echo "-- kedge-metad"; tail -n 20 "$work/stderr"; }
    exit 1
}

# Writes the configuration: extra lines of [metaserver] as arguments. It asks for no tokens
# unless these say so.
configure() {
    mkdir -p "$work/data"
    {
        echo "[metaserver]"
        echo "listen = 127.0.0.1:${port_wanted:-0}"
        echo "data_dir = ${data_dir:-$work/data}"
        echo "admin_socket = $work/metad.sock"
        printf '%s\n' "$@"
        [[ "$*" == *"access ="* ]] || echo "access = open"
        echo "[fabric]"
        echo "provider = $provider"
        echo "device = $device"
        echo "gid = ${gids[0]}"
    } >"$work/metad.conf"
}

# Starts kedge-metad and waits until it says its port.
start() {
    : >"$work/stdout"
    "$metad" --config "$work/metad.conf" >"$work/stdout" 2>>"$work/stderr" &
    metad_pid=$!
    for _ in $(seq 600); do
        port=$(sed -n 's/.*ready, port //p' "$work/stdout")
        [[ -z $port ]] || { url=http://127.0.0.1:$port; return 0; }
        kill -0 "$metad_pid" 2>/dev/null || fail "kedge-metad did not start"
        sleep 0.1
    done
    fail "kedge-metad was not ready within 30 s"
}

stop() {
    kill -TERM "$metad_pid"
    wait "$metad_pid" || fail "kedge-metad ended with $? after SIGTERM"
    metad_pid=
}

# Sets $status and writes $work/body, $work/headers. Arguments: as curl's, the path last.
ask() {
    local path=${*: -1}
    status=$(curl -s --max-time 60 -o "$work/body" -D "$work/headers" -w '%{http_code}' \
        "${@:1:$#-1}" "$url$path") || status=000
}

send() { # method path body [type]
    ask -X "$1" -H "Content-Type: ${4:-application/json}" --data-binary "$3" "$2"
}

# Checks $status, and that an error is a problem whose own status is the same.
expect() { # status sentence
    [[ $status == "$1" ]] || fail "$2: status $status, not $1"
    if ((status >= 400)); then
        grep -qi '^content-type: application/problem+json' "$work/headers" ||
            fail "$2: not problem+json"
        [[ $(jq -r .status "$work/body") == "$1" ]] ||
            fail "$2: the problem's status is another one"
        [[ $(jq -r .title "$work/body") != null ]] || fail "$2: the problem has no title"
        [[ $(jq -r .type "$work/body") == urn:kedge:problem:* ]] ||
            fail "$2: the problem has no type"
    fi
    ok "$2"
}

# The body of a registration: incarnation, number of the node (its GID and keys).
node() {
    printf '{"incarnation":%u,"endpoints":[{"gid":"fd00::%x","pool":1,"transports":["dc"],' \
        "$1" "$2"
    printf '"dct_number":%u,"dc_key":"%016x","mtu":4096}]}' "$2" "$2"
}

# All operations of schema/openapi.yaml: path, method, the schemes of its security (a line "path
# method -" if it is public).
documented() {
    awk '
        /^[a-z]/ {inside = 0}
        /^paths:/ {inside = 1}
        inside && /^  \// {path = $1; sub(/:$/, "", path)}
        inside && /^    (get|put|post|delete|patch):/ {
            method = toupper($1)
            sub(/:$/, "", method)
            pending = 1
        }
        inside && /^      security: / {
            schemes = ""
            rest = $0
            while (match(rest, /\{[a-zA-Z]+:/)) {
                schemes = schemes "," substr(rest, RSTART + 1, RLENGTH - 2)
                rest = substr(rest, RSTART + RLENGTH)
            }
            print path, method, schemes == "" ? "-" : schemes ","
            pending = 0
        }
        inside && /^      responses:/ && pending {print path, method, "missing"; pending = 0}
    ' "$root/schema/openapi.yaml"
}
# A path of it with names in it, of which the node is n1.
target_of() { # path
    local path=$1
    path=${path//\{id\}/n1}
    path=${path//\{node\}/n1}
    path=${path//\{name\}/x1}
    path=${path//\{query\}/0123456789abcdef}
    path=${path//\{worker\}/1-00000001}
    path=${path//\{lease\}/1-00000001-1}
    echo "$path"
}
