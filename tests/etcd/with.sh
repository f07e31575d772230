#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test with another version of etcd than the one that is installed: etcd, etcdctl and etcdutl
# are built from their Go modules, once for each build directory, and come first in PATH. Go fetches
# the modules itself, and its checksums say that they are those that everybody has. Without Go, or
# where they cannot be fetched: prints a line that begins with "skip:", and ends with 77.
#
#   with.sh VERSION BUILD_DIRECTORY command...
set -euo pipefail
version=${1:?usage: $0 VERSION BUILD_DIRECTORY command...}
out=$(realpath -m "${2:?}/tests/etcd/$version")
shift 2
PATH+=:/usr/local/go/bin
skip() { echo "skip: etcd $version ($*)"; exit 77; }
# Why it could not be fetched, for the tests that come after this one: it is tried anew an hour
# later.
refused=$out/refused
build() {
    local log=$out/log program
    command -v go >/dev/null || skip "Go is not installed"
    # One package after the other, and behind everybody else: tests run meanwhile.
    [[ -n ${HOME-} || -n ${GOPATH-} ]] || export GOPATH=$out.go GOCACHE=$out.cache
    export GOFLAGS="-modcacherw -buildvcs=false -p=1" GOTOOLCHAIN=local CGO_ENABLED=0
    cd "$out"
    [[ -e go.mod ]] || go mod init kedge.test/etcd >"$log" 2>&1
    timeout 600 go get "go.etcd.io/etcd/"{server,etcdctl,etcdutl}"/v3@v$version" >"$log" 2>&1 || {
        echo "its modules cannot be fetched: $(tail -n 1 "$log")" >"$refused"
        skip "$(<"$refused")"
    }
    for program in etcd=server etcdctl=etcdctl etcdutl=etcdutl; do
        nice go build -trimpath -o "${program%=*}.part" \
            "go.etcd.io/etcd/${program#*=}/v3" >"$log" 2>&1 || {
            echo "FAILED: ${program%=*} $version is not built: $(tail -n 20 "$log")"
            exit 1
        }
        mv "${program%=*}.part" "${program%=*}"
    done
    cd - >/dev/null
}
mkdir -p "$out"
exec 8>"${out%/*}/lock"
flock 8
if [[ ! -x $out/etcdutl ]]; then
    [[ -z $(find "$refused" -mmin -60 2>/dev/null) ]] || skip "$(<"$refused")"
    build
fi
exec 8>&-
export PATH=$out:$PATH
echo "with etcd $(etcd --version | sed -n 's/^etcd Version: //p')"
exec "$@"
