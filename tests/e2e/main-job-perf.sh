#!/usr/bin/env bash
# Every test of kedge-perf is one command that leaves nothing behind, and tells what it measured.
source "$(dirname "$0")/lib.sh"
trap - EXIT
measure() { # what it must be, arguments of kedge-perf...
    local wanted=$1 out left; shift
    out=$(timeout 120 "$bin/kedge-perf" "$@" --local --json 2>&1) || {
        echo "FAILED: kedge-perf $*: $out"
        exit 1
    }
    jq -e "$wanted and .count > 0 and .p50_ns >= 0 and .p99_ns >= .p50_ns and
        .per_second > 0 and .machine.cores > 0" <<<"$out" >/dev/null || {
        echo "FAILED: kedge-perf $*: $out"
        exit 1
    }
    ok "kedge-perf $* (p50 $(jq .p50_ns <<<"$out") ns, $(jq .per_second <<<"$out") per second)"
}
code=0
out=$("$bin/kedge-perf" connect --uncached --server /nonexistent 2>&1) || code=$?
[[ $code == 2 && $out == *'--server (or KEDGE_SERVER) must be a URL'* ]] || {
    echo "FAILED: a server that is none ends with $code: $out"
    exit 1
}
ok "a server that is none is refused: $out"
measure '.test == "attach"' attach --count 50
measure '.test == "connect" and .cached' connect --cached --count 10000
measure '.test == "connect" and (.cached | not) and .count == 40' connect --uncached --count 40
measure '.test == "connect" and (.cached | not) and .count == 40' \
    connect --uncached --transport rc --count 40
for test in read write; do
    measure ".test == \"$test\" and .verified and (.direct | not)" "$test" --count 2000
    measure ".test == \"$test\" and .verified and .depth == 64" \
        "$test" --depth 64 --size 100 --count 20000
    measure ".test == \"$test\" and .verified and .direct" "$test" --direct --depth 64 --count 20000
done
if (($(nproc) >= 2)); then
    measure '.test == "cores" and .loop_alone_ns > 0 and .loop_beside_ns > 0' cores --count 1000
else
    skip "kedge-perf cores (one processor)"
fi
if command -v ucx_perftest >/dev/null && (($(nproc) >= 2)); then
    measure '.test == "read" and .ucx.test == "ucp_get" and .ucx.per_second > 0' \
        read --count 2000 --ucx
    for depth in 1 16; do
        out=$(timeout 120 "$bin/kedge-perf" send --local --ucx --count 500 --depth $depth --json \
            2>&1) &&
            jq -e --arg test "$([[ $depth == 1 ]] && echo ucp_am_lat || echo ucp_am_bw)" \
                '.verified and .ucx.test == $test and .ucx.p50_ns > 0' <<<"$out" >/dev/null || {
            echo "FAILED: kedge-perf send --ucx --depth $depth: $out"
            exit 1
        }
        ok "UCX beside a message, $depth at a time: $(jq -c .ucx <<<"$out")"
    done
else
    skip "kedge-perf --ucx (ucx_perftest, and two processors)"
fi
code=0
out=$(PATH=/nonexistent "$bin/kedge-perf" read --local --ucx 2>&1) || code=$?
[[ $code == 1 && $out == *"--ucx needs ucx_perftest, of Debian's ucx-utils"* ]] || {
    echo "FAILED: without UCX --ucx ends with $code: $out"
    exit 1
}
ok "without UCX --ucx says so: $out"
measure '.test == "memory" and .peers == 20000 and .bytes_with > .bytes_without' \
    memory --count 20000
measure '.test == "isolation" and .alone_p99_ns > 0 and .bad_failed > 0' isolation --count 20000
if ((EUID == 0)); then
    measure '.test == "fairness" and .many_bytes_per_second > 0 and .share_of_one > 0.05' \
        fairness --workers 8
else
    skip "kedge-perf fairness (two tenants are two uids: not root)"
fi
# 18 ms is what a request may take, so that 19 ms is the shortest lease that agents take
for transport in dc rc; do
    measure '.test == "renewal" and .verified and .lease_ms == 19 and .with.renewals > 0 and
        .without.renewals == 0 and .without.waits == 0 and .with.p99_ns > 0 and
        .without.p99_ns > 0 and .p99_ratio > 0' \
        renewal --transport $transport --count 180000 --regions 4
done
if out=$("$bin/kedge-perf" renewal --local --lease 18 2>&1); then
    echo "FAILED: a lease of 18 ms: $out"
    exit 1
fi
[[ $out == *'mr_lease is too short'* ]] || { echo "FAILED: a lease of 18 ms: $out"; exit 1; }
ok "a lease of 18 ms is too short"
measure '.test == "mesh" and .verified and .count == 56' mesh --workers 8
measure '.test == "storm" and .verified and .workers == 240 and .worked == 240 and
    .connections == null' storm
measure '.test == "storm" and .verified and .worked == 40 and .connections == 1' \
    storm --workers 40 --transport rc
for transport in dc rc; do
    out=$(timeout 60 "$bin/kedge-perf" first-read --local --transport $transport --count 3 \
        --json 2>&1) &&
        jq -e '.verified and .count == 3 and ([.cold[]] | length == 7 and min > 0) and
            .cold.total_ns > .cold.read_ns' <<<"$out" >/dev/null || {
        echo "FAILED: kedge-perf first-read over $transport: $out"
        exit 1
    }
    ok "kedge-perf first-read over $transport ($(jq .cold.total_ns <<<"$out") ns)"
done
# What programs without Kedge pay can be measured where there is an RDMA device; elsewhere it
# says what is missing.
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
    out=$("$bin/kedge-perf" verbs-connect --json 2>&1) || {
        echo "FAILED: verbs-connect: $out"
        exit 1
    }
    jq -e '.count == 5 and .cold.device_ns > 0 and .cold.total_ns > .warm.total_ns and
        .warm.read_ns > 0' <<<"$out" >/dev/null || {
        echo "FAILED: verbs-connect: $out"
        exit 1
    }
    ok "kedge-perf verbs-connect"
else
    if out=$("$bin/kedge-perf" verbs-connect 2>&1); then
        echo "FAILED: verbs-connect without a device: $out"
        exit 1
    fi
    [[ $out == 'kedge-perf: there is no RDMA device on this host'* ]] || {
        echo "FAILED: verbs-connect says: $out"
        exit 1
    }
    ok "$out"
    skip "kedge-perf verbs-connect (there is no RDMA device here)"
fi
