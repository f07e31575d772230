#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Streams over real sockets: watchers of the configuration and of the trail, one that is stopped,
# one too many, and the end of the metaserver.
source "$(dirname "$0")/lib-metad.sh"
configure "node_lease = 1h" "max_watches = 4" "events = 64"
start
pids=()
end_watchers() { for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done; }
trap 'end_watchers; cleanup' EXIT
watch() { # name, path: a client whose lines go into a file
    curl -sN --max-time 300 -w '%{http_code}\n' -o "$work/$1" "$url$2" \
        >"$work/$1.status" 2>/dev/null &
    pids+=($!)
    eval "$1=\$!"
}
# Waits until a command succeeds.
until_true() { # sentence, command...
    local sentence=$1
    shift
    for _ in $(seq 600); do
        if "$@"; then ok "$sentence"; return; fi
        sleep 0.1
    done
    fail "$sentence: not within 30 s"
}
open_streams() { ask /metrics; [[ $(sed -n 's/^kedge_metad_watches //p' "$work/body") == "$1" ]]; }
last() { grep . "$work/$1" | tail -n 1; }
has_revision() { [[ $(last "$1" | jq .revision 2>/dev/null) == "$2" ]]; }

send PUT /v1/nodes/n1 "$(node 5 1)"
ask '/v1/nodes/n2/configuration?watch=1'
expect 404 "the configuration of a node that is not known is 404"
watch one '/v1/nodes/n1/configuration?watch=1&revision=0'
watch two '/v1/nodes/n1/configuration?watch=1'
watch trail '/v1/events?watch=1&revision=0'
until_true "three streams are open" open_streams 3
until_true "who says nothing of a revision is told at once" has_revision two 0
# but empty lines, where that took three seconds
[[ -z $(tr -d '\n' <"$work/one") ]] || fail "who has the present revision was told something"
send PUT /v1/tenants/web '{"uids":[1000]}'
until_true "one watcher is told" has_revision one 1
until_true "so is the other" has_revision two 1
until_true "and the trail's" has_revision trail 1
[[ $(last one) == "$(last two)" && $(last one | jq -r '.tenants[0].name') == web ]] ||
    fail "they are told different things"
[[ $(last trail | jq -r .to.uids[0]) == 1000 ]] || fail "the trail does not say to what"
for n in $(seq 2 20); do send PUT /v1/windows/w "{\"scope\":\"device\",\"ops\":$n}"; done
until_true "after twenty changes both have the newest" has_revision one 20
until_true "both" has_revision two 20
until_true "the trail's has the newest" has_revision trail 20
[[ $(grep . "$work/trail" | jq -s -c 'map(.revision)') == "$(seq 20 | jq -s -c .)" ]] ||
    fail "the trail skips"
ok "the trail's has each, in order"
beats() { [[ $(grep -c '^$' "$work/one") -gt 0 ]]; }
until_true "a silent stream has a heartbeat" beats

# One too many, and what is malformed.
watch four '/v1/events?watch=1'
until_true "a fourth stream" open_streams 4
ask '/v1/events?watch=1'
expect 503 "a stream more than max_watches is 503"
kill -KILL "$four"
wait "$four" 2>/dev/null || true
until_true "whose client is gone makes room" open_streams 3
ask '/v1/events?watch=2'
expect 400 "?watch=2 is 400"
ask '/v1/events?watch=1&revision=-1'
expect 400 "a revision that is no number is 400"

# A reader that is stopped: the others go on, and it is cut off. A configuration of some
# size fills its socket.
uids=$(seq 32 | jq -s -c "map(\"\(. * 100000000)-\(. * 100000000 + 99)\")")
send PUT /v1/tenants/wide "{\"uids\":$uids}"
for n in $(seq 250); do printf 'url = "%s/v1/windows/w%057d"\n' "$url" "$n"; done |
    curl -s --max-time 300 -K - -X PUT -H 'Content-Type: application/json' >"$work/out" \
        --data-binary \
        '{"scope":"tenant","tenant":"wide","bytes":9007199254740992,"ops":9007199254740992}'
ask /v1/nodes/n1/configuration
bytes=$(stat -c %s "$work/body") revision=$(jq .revision "$work/body")
((bytes > 40000)) || fail "the configuration has $bytes bytes alone"
until_true "both have a configuration of $bytes bytes" has_revision one "$revision"
kill -STOP "$two"
rss() { awk '/^VmRSS/ {print $2}' "/proc/$metad_pid/status"; }
before=$(rss)
cut_off() {
    send PUT /v1/windows/w "{\"scope\":\"device\",\"ops\":$RANDOM}"
    ask /metrics
    [[ $(sed -n 's/^kedge_metad_watches //p' "$work/body") == 2 ]]
}
for _ in $(seq 2000); do
    if cut_off; then break; fi
done
until_true "a reader that is stopped is cut off" open_streams 2
ask /v1/nodes/n1/configuration
until_true "the other one has the newest" has_revision one "$(jq .revision "$work/body")"
during=$(rss)
if grep -q -a __asan_init "$metad"; then
    skip "the bound of the metaserver's memory (a sanitizer keeps what was freed)"
else
    ((during - before < 20000)) || fail "memory grew by $((during - before)) KiB"
    ok "it took $((during - before)) KiB"
fi
kill -CONT "$two"
ask '/v1/events?watch=1&revision=1'
expect 410 "a revision that has left the trail is 410"

# A node that goes ends its streams; the metaserver's end ends all.
ask -X DELETE /v1/nodes/n1
until_true "the stream of a node that is deleted ends" open_streams 1
send PUT /v1/nodes/n1 "$(node 6 1)"
watch five '/v1/nodes/n1/configuration?watch=1'
until_true "a new stream begins" open_streams 2
stop
wait "$five" || fail "the stream was not ended properly: curl says $?"
wait "$trail" || fail "the trail's stream was not ended properly: curl says $?"
[[ $(cat "$work/five.status") == 200 ]] || fail "the status was $(cat "$work/five.status")"
ok "it stops while streams are open, and ends them"
