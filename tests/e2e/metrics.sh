#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What metaserver and agent tell Prometheus keeps to its format and to its conventions of names and
# units (metrics.awk, which is shown to find what it looks for), and counters only grow. Values of
# labels are names that hold nothing to escape; that they would be is shown by unit.base.hist. What
# the pages name is there. Beside that, their logs are JSON, as they are told.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-commit.sh"
checker=$(dirname "$0")/metrics.awk
root=$(cd "$(dirname "$0")/../.." && pwd)
good='# HELP kedge_x_total Things.
# TYPE kedge_x_total counter
kedge_x_total{why="a\"b\\c\nd",of="{},="} 3
kedge_x_total 4
# HELP kedge_y_seconds Time.
# TYPE kedge_y_seconds histogram
kedge_y_seconds_bucket{le="0.1"} 1
kedge_y_seconds_bucket{le="+Inf"} 2
kedge_y_seconds_sum 0.25
kedge_y_seconds_count 2
# HELP kedge_z_bytes Sizes.
# TYPE kedge_z_bytes gauge
kedge_z_bytes -1.5e+10'
check() { awk -v prefix="$1" -f "$checker"; }
tmp=$(check kedge_ <<<"$good") || fail "what is right is refused: $tmp"
finds() { # pattern; a sed program that spoils what is right
    local found
    ! cmp -s <(sed "$2" <<<"$good") <(echo "$good") || fail "\"$2\" spoils nothing"
    ! found=$(sed "$2" <<<"$good" | check kedge_) || fail "not found after $2: $1"
    grep -qF "$1" <<<"$found" || fail "after $2 it finds: $found"
}
finds "counters, and they alone" 's/kedge_x_total/kedge_x/'
finds "counters, and they alone" 's/counter$/gauge/'
finds "does not begin with" 's/kedge_z/other_z/'
finds "words of a-z" 's/kedge_z/kedge_Z/'
finds "time is in seconds" 's/kedge_y_seconds/kedge_y_ms/'
finds "sizes are in bytes" 's/kedge_z_bytes/kedge_z_kib/'
finds "the unit stands at the end" 's/kedge_z_bytes/kedge_bytes_z/'
finds "does not say its type" 's/kedge_z_bytes/kedge_z_gauge/'
finds "HELP says nothing" 's/ Sizes.$//'
finds "HELP does not stand before it" '/HELP kedge_z/d'
finds "no TYPE stands before it" '/TYPE kedge_z/d'
finds "there twice" 's/^kedge_x_total 4/&\n&/'
finds "there twice" 's/,of="{},="/,why="x"/'
finds "malformed labels" 's/a\\"b/a"b/'
finds "malformed labels" 's/\\\\c/\\c/'
finds "malformed value" 's/^kedge_x_total 4/& 5 6/'
finds "malformed value" 's/^kedge_x_total 4/kedge_x_total four/'
finds "never negative" 's/^kedge_x_total 4/kedge_x_total -4/'
finds "stands among samples of" 's/^kedge_z_bytes -1.5e+10/kedge_x_total{late="1"} 1/'
finds "neither HELP nor TYPE" 's/^kedge_x_total 4/&\n/'
finds "buckets hold those below" 's/"0.1"} 1/"0.1"} 3/'
finds "_count is not" 's/_count 2/_count 3/'
finds "le is of histograms" 's/why=/le=/'
ok "the checker finds each offence that it is for"

agents=2
more_metad='log_format = json' more_agent=$more_metad
start
export_text b "counted"
read_text a "$token" >"$work/read" || fail "the read failed: $(cat "$work/read")"
scrape() { # into files: metad, a, b
    curl -sf -D "$work/headers" "$url/metrics" >"$work/metad.$1" ||
        fail "the metaserver gives no metrics"
    local name
    for name in a b; do
        curl -sf --unix-socket "$work/$name.admin" http://a/metrics >"$work/$name.$1" ||
            fail "agent $name gives no metrics"
    done
}
scrape first
grep -qi '^content-type: text/plain; version=0.0.4' "$work/headers" ||
    fail "the type is another one: $(cat "$work/headers")"
grep -qE "^kedge_metad_build_info\{version=\"[0-9.]+\",commit=\"($commit)$commit_maybe\"\} 1$" \
    "$work/metad.first" || fail "the metaserver's version and commit are not there"
grep -qE "^kedge_agent_build_info\{version=\"[0-9.]+\",commit=\"($commit)$commit_maybe\"\} 1$" \
    "$work/a.first" || fail "the agent's version and commit are not there"
for of in metad:metad a:agent; do
    grep -qx "kedge_${of#*:}_log_dropped_total 0" "$work/${of%:*}.first" ||
        fail "lines of the log that were dropped are not counted"
done
found=$(check kedge_metad_ <"$work/metad.first") || fail "metaserver: $found"
found=$(check kedge_agent_ <"$work/a.first") || fail "agent: $found"
found=$(check kedge_agent_ <"$work/b.first") || fail "agent: $found"
ok "$(grep -c '^# TYPE' "$work/metad.first") families of the metaserver and" \
    "$(grep -c '^# TYPE' "$work/a.first") of an agent keep to the conventions"

# What the pages name is there, by the whole name or by its beginning, or as a series of a
# histogram: those of connections with rc alone.
absent() { # of the names on standard input
    local name
    while read -r name; do
        grep -qE "^# TYPE ${name}$([[ $name == *_ ]] || echo ' ')" \
            "$work/metad.first" "$work/a.first" ||
            { [[ $name =~ ^(.*)_(bucket|sum|count)$ ]] && grep -qE \
                "^# TYPE ${BASH_REMATCH[1]} histogram$" "$work/metad.first" "$work/a.first"; } ||
            echo "$name"
    done
}
[[ $(printf '%s\n' kedge_agent_attached_total kedge_agent_clock_ kedge_agent_attached \
    kedge_agent_attach_seconds_sum kedge_agent_port_up_sum | absent) == \
    $'kedge_agent_attached\nkedge_agent_port_up_sum' ]] ||
    fail "a name is not told from a part of one"
named=$(grep -rhoE 'kedge_(agent|metad)_[a-z0-9_]+' \
    "$root/docs" "$root/README.md" "$root/CHANGELOG.md" | sort -u)
(($(wc -l <<<"$named") > 20)) || fail "the pages name few metrics: is this the right search?"
grep -q '^# TYPE kedge_agent_connections_' "$work/a.first" ||
    named=$(grep -v '^kedge_agent_connections_' <<<"$named")
found=$(absent <<<"$named")
[[ -z $found ]] || fail "the pages name what neither of them has: $found"
ok "the $(wc -l <<<"$named") metrics that docs and man pages name are there"

read_text a "$token" >"$work/read" || fail "the read failed: $(cat "$work/read")"
curl -s "$url/v1/nothing" >/dev/null
scrape second
# Alerts and the dashboard are about what there is. The checker is shown to find what it is for.
rules=$root/ops/prometheus/kedge-rules.yaml board=$root/ops/dashboards/kedge.json
alerts() { python3 "$(dirname "$0")/alerts.py" "$1" "$2" "$work/metad.second" "$work/a.second"; }
misses() { # pattern; rules or board; a sed program that spoils it
    [[ $transport != rc ]] || return 0 # it has been shown without
    local spoiled=$work/spoiled found of=("$rules" "$board")
    sed "$3" "${!2}" >"$spoiled"
    ! cmp -s "$spoiled" "${!2}" || fail "\"$3\" spoils nothing"
    [[ $2 == rules ]] && of[0]=$spoiled || of[1]=$spoiled
    ! found=$(alerts "${of[@]}") || fail "not found after $3: $1"
    grep -qF "$1" <<<"$found" || fail "after $3 it finds: $found"
}
if python3 -c 'import yaml' 2>/dev/null; then
    found=$(alerts "$rules" "$board") || fail "alerts and dashboard: $found"
    misses "no daemon has kedge_agent_port" rules 's/kedge_agent_port_up/kedge_agent_port/'
    misses "no daemon has kedge_agent_attach" rules 's/attach_seconds_bucket/attach_ms_bucket/'
    misses "has a label pol" rules 's/le, instance, pool/le, instance, pol/'
    misses "has no label whose" rules 's/{why=~/{whose=~/'
    misses "it says not for how long" rules '0,/for: 1m/s///'
    misses "severity is critical or warning" rules 's/severity: critical/severity: high/'
    misses "annotations.summary says nothing" rules '0,/summary:/s//summery:/'
    misses "it is there twice" rules 's/KedgePortDown/KedgeAddressGone/'
    misses "no daemon has kedge_metad_node" board 's/kedge_metad_nodes{/kedge_metad_node{/'
    misses "there is no variable host" board 's/\$instance/$host/'
    misses "it lies over" board '0,/"x": 8/s//"x": 7/'
    ok "$found are about what the daemons print"
else
    skip "alerts and dashboard: python3-yaml is not installed"
fi
if command -v promtool >/dev/null; then
    promtool check rules "$rules" >"$work/promtool" 2>&1 || fail "$(cat "$work/promtool")"
    ok "promtool: $(grep SUCCESS "$work/promtool")"
else
    skip "syntax of the alerts' expressions: there is no promtool (Debian's package prometheus)"
fi

# What took long is a histogram, in which everything is that there was: a worker that attached,
# connected to what it did not know, imported and READ.
counted() { # file, series
    grep -F "$2" "$work/$1.second" | awk '{ n += $NF } END { print n + 0 }'
}
for of in kedge_agent_attach kedge_agent_connect kedge_agent_control_operation \
    kedge_agent_operation; do
    (($(counted a "${of}_seconds_count{") > 0)) || fail "there is nothing in ${of}_seconds"
done
[[ $(counted a kedge_agent_attach_seconds_count) == \
    $(counted a kedge_agent_attached_total) ]] || fail "some who attached are not in the histogram"
for of in 'method="PUT",route="/v1/nodes/{id}"' 'method="GET",route="/metrics"' \
    'method="other",route="other"'; do
    (($(counted metad "kedge_metad_http_request_seconds_count{$of}") > 0)) ||
        fail "there is no request of $of"
done
(($(counted metad kedge_metad_store_transaction_seconds_count) > 0)) ||
    fail "no transaction of the store was timed"
ok "histograms have attaches, connects, operations, requests and transactions"
grown=0
for of in metad a b; do
    awk 'FNR == NR {
            if (/^# TYPE/) type[$3] = $4
            else if (!/^#/) { value = $NF; sub(/ [^ ]*$/, ""); was[$0] = value }
            next
        }
        /^#/ { next }
        { value = $NF; sub(/ [^ ]*$/, ""); name = $0; sub(/\{.*/, "", name) }
        type[name] == "counter" && ($0 in was) && value + 0 < was[$0] + 0 {
            print $0 " fell from " was[$0] " to " value
            bad = 1
        }
        type[name] == "counter" && ($0 in was) && value + 0 > was[$0] + 0 {
            print $0 > "/dev/stderr"
        }
        END { exit bad }' "$work/$of.first" "$work/$of.second" >"$work/fell" 2>"$work/grew" ||
        fail "$of: $(cat "$work/fell")"
    grown=$((grown + $(wc -l <"$work/grew")))
done
((grown > 3)) || fail "only $grown counters grew: is this the right comparison?"

ok "counters grow ($grown did) and never fall"

# One with which a daemon ends is a line of it too.
is_json() { # file program
    jq -es --arg component "$2" 'length > 0 and all(.[]; .component == $component
        and (.level | IN("error", "warn", "info")) and (.message | length > 0)
        and (.time | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{3}Z$")))' \
        "$1" >/dev/null &&
        [[ $(jq -es length "$1") == $(wc -l <"$1") ]]
}
mkdir -m 0700 "$work/other"
sed "s|^listen = .*|listen = 192.0.2.1:1|; s|$work/metad|$work/other|" "$work/metad.conf" \
    >"$work/other.conf"
! timeout 60 "$bin/kedge-metad" --config "$work/other.conf" >/dev/null 2>"$work/other.log" ||
    fail "a metaserver listens where it cannot"
tail -n 1 "$work/other.log" | jq -e '.level == "error" and (.error | test("192.0.2.1"))' \
    >/dev/null || fail "why it ends is: $(tail -n 1 "$work/other.log")"
is_json "$work/other.log" kedge-metad || fail "the log of one that cannot begin is no JSON"
is_json "$work/metad.log" kedge-metad || fail "the metaserver's log is no JSON"
is_json "$work/a.log" kedge-agentd || fail "an agent's log is no JSON"
ok "every line of their logs is an object, $(head -n 1 "$work/a.log" | jq -c keys)"
stop
