#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What ratios.sh runs in its guest: one JSON object a line in /out/ratios.json.
#
#   guest-ratios.sh BUILD_DIRECTORY COUNT POLLING
set -euo pipefail
bin=$1/bin count=$2 polling=$3
here=$(cd "$(dirname "$0")" && pwd)
ulimit -n 65536
ulimit -l unlimited
cd /tmp # on the guest's own tmpfs
export KEDGE_TEST_PROVIDER=verbs KEDGE_TEST_DEVICE=rxe0
# .4 and .5: the program's own
export KEDGE_TEST_GIDS="::ffff:10.0.1.1 ::ffff:10.0.1.2 ::ffff:10.0.1.3"
agents=2 more_pool="messages = yes
polling = $polling"
source "$here/../../ops/cluster.sh"
trap 'cp "$work"/*.log /out/ 2>/dev/null || true' EXIT

cluster_start
for what in "8 1" "8 16" "4096 1" "4096 16"; do
    read -r size depth <<<"$what"
    timeout 300 "$bin/kedge-perf" verbs-data --json --size "$size" --depth "$depth" \
        --count "$count" --socket "$work/a.sock" --peer-socket "$work/b.sock" \
        --device rxe0 --gid ::ffff:10.0.1.4 --peer-gid ::ffff:10.0.1.5 >>/out/ratios.json || {
        echo "FAILED: size $size, depth $depth"
        exit 1
    }
done
cluster_stop
