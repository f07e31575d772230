#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds tests/history/porcupine, which checks histories with porcupine, and prints the program's
# path. Go fetches that one's module itself. Without Go, or where it cannot be fetched: prints a
# line that begins with "skip:", and ends with 77.
#
#   porcupine.sh BUILD_DIRECTORY
set -euo pipefail
out=$(realpath -m "${1:?usage: $0 BUILD_DIRECTORY}/tests/porcupine")
here=$(cd "$(dirname "$0")" && pwd)
PATH+=:/usr/local/go/bin
command -v go >/dev/null || { echo "skip: porcupine (Go is not installed)"; exit 77; }
mkdir -p "$(dirname "$out")"
exec 8>"$out.lock"
flock 8
[[ -n ${HOME-} || -n ${GOPATH-} ]] || export GOPATH=$out.go GOCACHE=$out.cache
export GOFLAGS="-modcacherw -buildvcs=false" GOTOOLCHAIN=local CGO_ENABLED=0
cd "$here/porcupine"
timeout 300 go mod download >"$out.log" 2>&1 || {
    echo "skip: porcupine (its module cannot be fetched: $(tail -n 1 "$out.log"))"
    exit 77
}
timeout 300 go build -p 2 -o "$out" . >"$out.log" 2>&1 || {
    echo "FAILED: tests/history/porcupine is not built: $(cat "$out.log")"
    exit 1
}
echo "$out"
