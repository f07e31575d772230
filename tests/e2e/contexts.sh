#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdmactl's contexts against two metaservers, of which one wants tokens: which of option,
# environment, context and built-in default is followed, where tokens go, what is refused and how it
# is said, and that the file is written whole.
source "$(dirname "$0")/lib-metad.sh"
source "$(dirname "$0")/lib-ctl.sh"
metad=$(readlink -f "$metad")
unset KEDGE_SERVER KEDGE_TOKEN KEDGE_TOKEN_FILE KEDGE_AGENT_ADMIN KEDGE_CONTEXT
export XDG_CONFIG_HOME=$work/config
file=$XDG_CONFIG_HOME/kedge/rdmactl.conf
cd "$work"

says() { [[ $(jq -c "$1" "$work/out") == "$2" ]] || fail "$1 is not $2 in: $(cat "$work/out")"; }

# ---- the file
does "without a file there are none" context list
shows 'rdmactl context set NAME'
[[ ! -e $XDG_CONFIG_HOME ]] || fail "listing made something"
does "a context is made" context set dev server=http://127.0.0.1:1 token_file=dev.token
shows "^token_file +$work/dev.token\$"
[[ $(stat -c %a "$file") == 600 && $(stat -c %a "${file%/*}") == 700 ]] ||
    fail "$(stat "$file" "${file%/*}")"
does "and changed in part" context set dev agent_socket=/run/dev.sock output=json
does "another one" context set prod server=unix:/run/nobody.sock
does "one of them" context get dev
shows '^server +http://127.0.0.1:1$'
shows '^agent_socket +/run/dev.sock$'
does "one is used from now on" context use dev
does "the list marks it" context list
shows '^\* +dev +http://127.0.0.1:1$'
KEDGE_CONTEXT=prod does "the environment chooses another one" context list -o json
says '[.format_version, .chosen, (.contexts | map(.name))]' '[1,"prod",["dev","prod"]]'
does "and an option yet another one" --context dev context list -o wide
shows '^\* +dev .* json$'
refuses 3 'no context "x" in .*rdmactl context list' context get x
refuses 3 'no context "x"' context use x
refuses 3 'no context "x"' context delete x
refuses 2 'KEY=VALUE' context set dev
refuses 2 'agent_socket, output, cacert, cert, key and' context set dev colour=red
refuses 2 'server must be a URL' context set dev server=localhost
refuses 2 'is no context.s name' context set 'a b' output=json
refuses 2 'is not "none"' context set none output=json
refuses 2 'rdmactl context delete' context set prod server=
cp "$file" "$work/before"
for i in $(seq 20); do "$rdmactl" context set "c$i" output=json >/dev/null & done
wait
does "twenty that are made at once" context list -o json
says '.contexts | length' 22
for i in $(seq 20); do ctl context delete "c$i" || fail "$(cat "$work/err")"; done
cmp "$file" "$work/before" || fail "the file is not as it was"
[[ $(ls -A "${file%/*}") == rdmactl.conf ]] || fail "something is left there: $(ls -A "${file%/*}")"

# ---- whom it asks
configure "access = tokens"
start
# A secret goes to a file that is whole and private, or is not there.
refuses 2 'scope' \
    --server "unix:$work/metad.sock" token create ops scope=nothing --secret-out ops.token
refuses 2 '/nowhere/ops.token cannot be made: No such file' \
    --server "unix:$work/metad.sock" token create ops scope=admin --secret-out /nowhere/ops.token
[[ -z $(find . -name 'ops.token*') ]] || fail "a token that is not made has a file: $(ls -l)"
(
    umask 0
    ctl --server "unix:$work/metad.sock" token create ops scope=admin \
        --secret-out ops.token -o table
) || fail "$(cat "$work/err")"
[[ $(stat -c %a ops.token) == 600 ]] || fail "others may read it: $(ls -l ops.token)"
lacks "$work/out" -F -e "$(cat ops.token)" ||
    fail "the secret is shown all the same: $(cat "$work/out")"
shows 'token ops is created, its secret is in ops.token'
[[ $(find . -name 'ops.token*') == ./ops.token ]] || fail "something is left beside it: $(ls -l)"
cp ops.token "$work/before.token"
refuses 5 'ops.token is there already, and is not overwritten' \
    --server "unix:$work/metad.sock" token create more scope=admin --secret-out ops.token
cmp ops.token "$work/before.token" || fail "it was overwritten"
refuses 3 'there is no token "more"' --server "unix:$work/metad.sock" token get more
refuses 5 'there is a token "ops" already' \
    --server "unix:$work/metad.sock" token create ops scope=admin --secret-out again.token
[[ ! -e again.token ]] || fail "there is a file without a secret"
does "the secret is not in JSON either" \
    --server "unix:$work/metad.sock" token create seen scope=reader --secret-out seen.token -o json
says '[.name, .secret]' '["seen",null]'
[[ -s seen.token ]] || fail "nor is it in its file"
refuses 2 'secret-out is for token create alone' tenant create x --secret-out x.token
refuses 2 'dev.token cannot be read' tenant list
does "the context's server, with its token" \
    context set dev "server=$url" token_file=ops.token output=
does "is asked" tenant create web uids=1000
does "and by another one of the same" --context dev tenant get web
refuses 7 'no metaserver at /run/nobody.sock' --context prod tenant list
KEDGE_CONTEXT=prod refuses 7 'no metaserver at /run/nobody.sock' tenant list
KEDGE_CONTEXT=prod does "--context goes before KEDGE_CONTEXT" --context dev tenant list
KEDGE_SERVER=http://127.0.0.1:1 refuses 7 '127.0.0.1:1/' tenant list
KEDGE_SERVER=http://127.0.0.1:1 does "and stands in place of the environment" \
    --context dev tenant list
KEDGE_SERVER=http://127.0.0.1:1 KEDGE_TOKEN_FILE=ops.token does "options go before it" \
    --server "$url" tenant list
refuses 4 'no valid token|401' --server "$url" tenant list
KEDGE_SERVER=$url refuses 4 'no valid token|401' tenant list
ok "a context's token goes to its own server alone"
KEDGE_TOKEN=kedge_wrong refuses 4 'no valid token|401' tenant list

# ---- several metaservers of one store
does "a context may have several metaservers" \
    context set both "server=http://127.0.0.1:1, $url" token_file=ops.token
asks_on() { # sentence, arguments...
    does "$@"
    grep -qE "^note: $url is asked in place of http://127.0.0.1:1: .*(refused|connect)" \
        "$work/err" || fail "$1: nothing is said of the first one: $(cat "$work/err")"
}
asks_on "where nobody listens at the first, the next is asked" --context both tenant get web
asks_on "and changed" --context both tenant create far uids=2000
asks_on "or deleted" --context both tenant delete far
asks_on "and its events are listed" --context both event list
asks_on "and named where it says who was asked" --context both status
shows "^metaserver +$url +ready"
refuses 7 'none of the 2 metaservers can be asked; of the last: ' \
    --server http://127.0.0.1:1,unix:/run/nobody.sock tenant list
refuses 2 'must be a URL.*, or several.* not "127.0.0.1:2"' \
    --server "$url,127.0.0.1:2" tenant list
refuses 2 'has a blank' --server "$url http://127.0.0.1:2" tenant list
refuses 2 'must be a URL' --server "$url," tenant list
refuses 4 'the token would cross the network to http://192.0.2.1' \
    --server "$url,http://192.0.2.1" --token-file ops.token tenant list
does "the context's output" context set dev output=json
does "is how it prints" tenant list
says '[.format_version, .tenants[0].name]' '[1,"web"]'
does "unless an option says another" tenant list -o table
shows '^NAME'
refuses 3 '"x", which --context names' --context x tenant list
KEDGE_CONTEXT=x refuses 3 '"x", which KEDGE_CONTEXT names' tenant list
refuses 7 '127.0.0.1:1/' --context none --server http://127.0.0.1:1 tenant list

# ---- what is wrong with a file
for mode in 644 640 620 604; do
    chmod $mode ops.token
    case $mode in
    640) does "a token that its group may read" tenant list ;;
    *)
        refuses 4 "others may read the token in $work/ops.token.*chmod 600" tenant list
        refuses 4 "others may read the token in ops.token" \
            --server "$url" --token-file ops.token tenant list
        KEDGE_TOKEN_FILE=ops.token refuses 4 "others may read the token in ops.token" \
            --server "$url" tenant list
        ;;
    esac
done
chmod 600 ops.token
refuses 2 'nope cannot be read: No such file' --token-file nope tenant list
refuses 2 'nope cannot be read: No such file' apply -f nope
refuses 2 'nope cannot be read: No such file' token create t scope=reader --secret-file nope
chmod 666 "$file"
refuses 4 "others may write $file.*chmod go-w" tenant list
refuses 4 "others may write $file" context list
refuses 4 "others may write $file" context set dev output=table
chmod 600 "$file"
wrong() { # line, pattern, text
    printf '%b' "$3" >"$file"
    refuses 2 "$file:$1: .*$2" tenant list
    refuses 2 "$file:$1: .*$2" context use dev
    [[ $(printf '%b' "$3") == "$(<"$file")" ]] || fail "a file that is wrong was overwritten"
}
cp "$file" good
wrong 2 'server must be a URL' '[context dev]\nserver = nowhere\n'
wrong 3 'said twice' '[context dev]\nserver = http://a\nserver = http://b\n'
wrong 1 'neither a \[section\]' 'what is this\n'
wrong 1 'there are \[rdmactl\] and \[context NAME\]' '[contexts]\ndev = http://a\n'
KEDGE_CONTEXT=none does "none needs no file" --server "unix:$work/metad.sock" tenant list
does "neither does help" --help
cp good "$file"
does "the one in use is deleted" context delete dev
shows 'it uses none now'
! grep -q current "$file" || fail "it is still the current one: $(cat "$file")"
stop
