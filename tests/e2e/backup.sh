#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `kedge-metad backup` while settings are changed as fast as that goes, and `restore`: each backup
# is one moment, starts a metaserver, and what was taken away before it is not in it.
source "$(dirname "$0")/lib-metad.sh"
configure "access = tokens" "events = 32"
start
admin=(--unix-socket "$work/metad.sock")
run() { # arguments
    "$metad" --config "$work/metad.conf" "$@" 2>"$work/said"
}
for name in kept deleted; do
    ask -X PUT -H 'Content-Type: application/json' --data-binary '{"scope":"admin"}' \
        "${admin[@]}" "/v1/tokens/$name"
    expect 201 "the token $name is made"
    printf 'Authorization: Bearer %s\n' "$(jq -r .secret "$work/body")" >"$work/$name"
done
send_node() {
    ask -X PUT -H 'Content-Type: application/json' --data-binary "$(node 1 1)" -H "@$work/kept" \
        /v1/nodes/n1
}
send_node
expect 201 "a node is registered"
# In a container process ids repeat, and one that was killed has left its part of a file.
leaves_part() { # file arguments: as one that comes after one of the same process id
    # shellcheck disable=SC2016 # the inner shell's
    bash -c 'file=$1; shift; : >"$file.part-$$"; exec "$@"' leaves_part "$1" \
        "$metad" --config "$work/metad.conf" "${@:2}" 2>"$work/said"
}
leaves_part "$work/first.jsonl" backup "$work/first.jsonl" ||
    fail "no backup after one that was killed: $(cat "$work/said")"
ok "what a backup that was killed has left is in nobody's way"
[[ $(stat -c %a "$work/first.jsonl") == 600 ]] || fail "others may read the backup"
secret=$(cut -d_ -f3- "$work/kept") # which may have a '_' or a '-' in it
((${#secret} > 20)) || fail "the test does not find the secret"
lacks "$work/first.jsonl" -F -e "$secret" || fail "a secret is in the backup"
[[ $(jq -s '.[-1].lines == (length - 1)' "$work/first.jsonl") == true ]] ||
    fail "its last line has not the number of lines"
[[ $(head -n -1 "$work/first.jsonl" | sha256sum) == \
    "$(jq -rs '.[-1].sha256' "$work/first.jsonl")  -" ]] || fail "its sum is wrong"
ok "a backup is lines of JSON with their SHA-256, for its owner alone"
ask -X DELETE "${admin[@]}" /v1/tokens/deleted
expect 204 "a token is deleted"
mkdir "$work/copy"
cp "$work/data/metad.db" "$work/copy/"

# Under load: tenants come and go in pairs, one after the other.
for n in $(seq 1500); do
    for what in PUT DELETE; do
        printf 'url = "http://m/v1/tenants/t%u"\nunix-socket = "%s"\n' $((n % 5)) "$work/metad.sock"
        printf 'request = %s\noutput = "/dev/null"\nsilent\n' "$what"
        [[ $what == DELETE ]] ||
            printf 'header = "Content-Type: application/json"\ndata = "{\\"uids\\":[%u]}"\n' "$n"
        echo next
    done
done >"$work/load"
curl -K "$work/load" >/dev/null 2>&1 &
load=$!
revision() { ask "${admin[@]}" "/v1/events?limit=1" && jq -r .revision "$work/body"; }
for _ in $(seq 600); do
    (($(revision) < 10)) || break
    sleep 0.1
done
last_change() { jq -s 'map(select(.change)) | map(.change) | max' "$1"; }
for n in $(seq 8); do
    run backup "$work/load-$n.jsonl" || fail "a backup under load: $(cat "$work/said")"
    for _ in $(seq 600); do # until the load has gone on
        (($(revision) <= $(last_change "$work/load-$n.jsonl"))) || continue 2
        sleep 0.1
    done
    fail "there is no load any more: $(revision)"
done
run backup - >"$work/last.jsonl" || fail "to the standard output: $(cat "$work/said")"
contents='[0-9]+ resources \([0-9]+ of them tokens\), [0-9]+ nodes and [0-9]+ entries of the trail'
grep -qE "^kedge-metad: the backup on the standard output has $contents\$" "$work/said" ||
    fail "it does not say what it has: $(cat "$work/said")"
if run restore "$work/first.jsonl"; then fail "it was restored under a metaserver"; fi
grep -q 'in use by another metaserver' "$work/said" ||
    fail "it does not say why: $(cat "$work/said")"
ok "nothing is restored while a metaserver runs"
kill "$load" 2>/dev/null || true
wait "$load" 2>/dev/null || true
changes=$(last_change "$work/last.jsonl")
((changes > $(last_change "$work/load-8.jsonl") &&
    $(last_change "$work/load-8.jsonl") > $(last_change "$work/load-1.jsonl"))) ||
    fail "there was no load: $changes changes"
stop
tokens() { # sentence, names
    ask "${admin[@]}" /v1/tokens
    [[ $(jq -r '[.tokens[].name] | join(" ")' "$work/body") == "$2" ]] ||
        fail "$1: $(jq -c '[.tokens[].name]' "$work/body")"
}
for n in 1 4 8 last; do
    file=$work/load-$n.jsonl
    [[ $n != last ]] || file=$work/last.jsonl
    data_dir=$work/restored-$n
    mkdir "$data_dir"
    configure "access = tokens" "events = 32"
    run restore "$file" || fail "a backup under load is not restored: $(cat "$work/said")"
    start
    tokens "a backup under load" kept
    run backup "$work/again.jsonl" || fail "no backup of what was restored: $(cat "$work/said")"
    [[ $(sed '1d;$d' "$work/again.jsonl" | sed '$d') == "$(sed '1d;$d' "$file")" ]] ||
        fail "what was restored is something else"
    stop
done
ok "what was backed up under load of $changes changes is restored as it was, each as of one moment"
data_dir=$work/copy
configure "access = tokens" "events = 32"
start
tokens "a copy of metad.db alone" kept
ok "a copy of metad.db alone does not bring a deleted token back"
send_node
stop
run restore "$work/first.jsonl" || fail "over an older store: $(cat "$work/said")"
grep -q 'delete again what was deleted since' "$work/said" ||
    fail "it does not say that tokens are back: $(cat "$work/said")"
before=$(jq -s 'map(.change // 0) | max' \
    "$work/copy/before-restore.jsonl") # which the backup does not have
now=$(sed -n 's/.*the trail goes on with \([0-9]*\),.*/\1/p' "$work/said")
((now > before)) || fail "the trail goes on with $now, and $before was used"
start
tokens "the first backup" "deleted kept"
ask "${admin[@]}" "/v1/events?kind=restore"
[[ $(jq -c '[.revision, (.events[] | [.revision, .name, .to.revision])]' "$work/body") == \
    "[$now,[$now,\"store\",$(last_change "$work/first.jsonl")]]" ]] ||
    fail "the restore is not in the trail"
ok "a restore is in the trail, with a revision that was never used"
ask "${admin[@]}" "/v1/events?watch=1&revision=$before"
expect 410 "who knows a revision that came after the backup has to list again"
ask -X PUT -H 'Content-Type: application/json' --data-binary '{"uids":[7]}' "${admin[@]}" \
    "/v1/tenants/later"
expect 201 "the next change"
[[ $(revision) == $((now + 1)) ]] || fail "the next revision is $(revision)"
stop
run restore "$work/copy/before-restore.jsonl" || fail "what was there before: $(cat "$work/said")"
start
tokens "what was there before" kept
stop
ok "what was there before a restore is kept"
sed '3s/[a-z]/X/' "$work/first.jsonl" >"$work/changed.jsonl" # whatever is there
for what in changed.jsonl nothing; do
    if run restore "$work/$what"; then fail "$what was restored"; fi
done
head -c 300 "$work/first.jsonl" >"$work/part.jsonl"
if run restore "$work/part.jsonl"; then fail "a part was restored"; fi
grep -q 'no whole backup' "$work/said" || fail "it does not say why: $(cat "$work/said")"
start
tokens "after what was refused" kept
ok "what is not whole or was changed is refused, and nothing is replaced"
stop
