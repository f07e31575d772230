# SPDX-License-Identifier: Apache-2.0
# What the tests of rdmactl against a metaserver share. Sourced after lib-metad.sh, with the
# build directory as $1.
rdmactl=$(readlink -f "$1")/bin/rdmactl
[[ -x $rdmactl ]] || { echo "FAILED: $rdmactl is not built"; exit 1; }

ctl() { timeout 60 "$rdmactl" "$@" >"$work/out" 2>"$work/err"; }
does() { # sentence, arguments...
    local sentence=$1
    shift
    ctl "$@" || fail "$sentence: rdmactl $* ended with $?: $(cat "$work/err")"
    ok "$sentence"
}
shows() { grep -qE -- "$1" "$work/out" || fail "not shown: $1 in: $(cat "$work/out")"; }
refuses() { # exit code, pattern, arguments...
    local wanted=$1 pattern=$2 code=0
    shift 2
    ctl "$@" || code=$?
    [[ $code == "$wanted" ]] || fail "rdmactl $* ended with $code, not $wanted: $(cat "$work/err")"
    grep -qE "^rdmactl: .*$pattern" "$work/err" ||
        fail "rdmactl $*: \"$(cat "$work/err")\" lacks \"$pattern\""
    ok "rdmactl $* ends with $code: $(cat "$work/err")"
}
