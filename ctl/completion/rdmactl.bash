# SPDX-License-Identifier: Apache-2.0
# Completion of rdmactl for bash, which those for other shells ask too. Commands, options, keys and
# the words that a key may be come from rdmactl --help, names and ids from the metaserver or the
# agent, if it answers.

# The members called $2 of the objects that `rdmactl $1 list` shows, asked with the options that
# follow.
_rdmactl_names() { # resource member options...
    rdmactl "${@:3}" "$1" list -o json 2>/dev/null | grep -o "\"$2\":\"[^\"]*\"" | cut -d'"' -f4
}

# "list", "get", ... behind $1; without it the first words.
_rdmactl_commands() { # word
    rdmactl --help 2>/dev/null | sed -n '/^commands:$/,/^$/s/^  \([a-z].*\)/\1/p' | sed 's/  .*//' |
        awk -v word="${1-}" '
            word == "" {print $1}
            word != "" && $1 == word && $2 !~ /^-/ {print $2}' | uniq
}

# Each option of which there is one, with "=" if it takes a value.
_rdmactl_options() {
    rdmactl --help 2>/dev/null | sed -n '/^options:$/,/^$/p' |
        sed -nE 's/^  ((-[a-z]), )?(--[a-z-]+)( [A-Za-z][^ ]*)? .*/\2 \3\4/p' |
        awk 'NF {
            long = $1 ~ /^--/ ? 1 : 2
            value = NF > long ? "=" : ""
            for (i = 1; i <= long; i++) print $i value
        }' | sort -u
}

# The keys that `rdmactl $1 --help` lists; of one that is a choice each of its words too:
# "KEY=WORD".
_rdmactl_keys() { # resource
    rdmactl "$1" --help 2>/dev/null | sed -n '/^keys:$/,/^$/s/^  \([a-z_0-9]*\)  *\(.*\)/\1 \2/p' |
        awk '{
            key = $1
            text = substr($0, length(key) + 2)
            if (match(text, /^[a-z]+(, [a-z]+)* or [a-z]+: /)) {
                n = split(substr(text, 1, RLENGTH - 2), words, /, | or /)
                for (i = 1; i <= n; i++) print key "=" words[i]
            } else print key "="
        }'
}

_rdmactl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local line=() words=() i key= choices= options
    local context=() agent=() server=() # options that say whom to ask, on the line so far
    COMPREPLY=()
    options=$(_rdmactl_options)
    # bash takes "=" for a word of its own: behind an option as good as a blank, behind a key not.
    if [[ $word == = ]]; then
        key=$before word=
    elif [[ $before == = ]]; then
        key=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    [[ $key != -* ]] || { before=$key; key=; }
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == = && ${COMP_WORDS[i - 1]} == -* ]] || line+=("${COMP_WORDS[i]}")
    done
    for ((i = 0; i < ${#line[@]}; i++)); do
        case ${line[i]} in
        --context) context=(--context "${line[++i]-}") ;;
        --server | --token-file | --cacert | --cert | --key)
            server+=("${line[i]}" "${line[i + 1]-}")
            ((++i)) ;;
        --agent-socket) agent+=(--agent-socket "${line[++i]-}") ;;
        --node) agent+=(--node "${line[++i]-}") ;;
        -*) ! grep -qxF -- "${line[i]}=" <<<"$options" || ((++i)) ;;
        *) words+=("${line[i]}") ;;
        esac
    done
    case $before in
    -o | --output) choices="table wide json yaml" ;;
    --provider) choices="soft verbs" ;;
    --device) choices=$(ls /sys/class/infiniband 2>/dev/null) ;;
    --context) choices="$(_rdmactl_names context name) none" ;;
    --tenant) choices=$(_rdmactl_names tenant name "${context[@]}" "${server[@]}") ;;
    --worker) choices=$(_rdmactl_names worker id "${context[@]}" "${server[@]}" "${agent[@]}") ;;
    --node) choices=$(_rdmactl_names node id "${context[@]}" "${server[@]}") ;;
    --agent-socket | --config | -f | --file | --token-file | --secret-file | --secret-out | \
        --cacert | --cert | --key)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        _rdmactl_files=yes # another shell has its own way
        return ;;
    --kind) choices="tenant window token node pool lease restore liveness certificate" ;;
    --scope) choices=$(_rdmactl_keys "${words[0]-window}" | sed -n 's/^scope=//p') ;;
    -*)
        ! grep -qxF -- "$before=" <<<"$options" || return 0
        choices=$(_rdmactl_words "$word") ;;
    *) choices=$(_rdmactl_words "$word") ;;
    esac
    [[ -z $key ]] || choices=$(tr ' ' '\n' <<<"$choices" | sed -n "s/^$key=//p")
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}

# What may stand behind $words, which with the others is _rdmactl's.
_rdmactl_words() { # word so far
    if [[ $1 == -* ]]; then
        grep '^--' <<<"$options" | tr -d =
        return
    fi
    case "${words[*]}" in
    "" | help) _rdmactl_commands ;;
    "help "*" "*) ;;
    "help "*) _rdmactl_commands "${words[1]}" ;;
    "describe node" | "describe region")
        _rdmactl_names "${words[1]}" id "${context[@]}" "${server[@]}" ;;
    "describe worker" | "describe lease")
        _rdmactl_names "${words[1]}" id "${context[@]}" "${server[@]}" "${agent[@]}" ;;
    "describe "*" "*) ;;
    "describe "*) _rdmactl_names "${words[1]}" name "${context[@]}" "${server[@]}" ;;
    explain)
        for i in tenant window token node pool worker lease region; do
            echo "$i"
            rdmactl explain "$i" 2>/dev/null | sed -n "s/^\([a-z_0-9][a-z_0-9]*\)  .*/$i.\1/p"
        done ;;
    "worker get" | "lease get" | "lease revoke")
        _rdmactl_names "${words[0]}" id "${context[@]}" "${server[@]}" "${agent[@]}" ;;
    "tenant get" | "tenant set" | "tenant delete" | \
        "window get" | "window set" | "window delete" | \
        "token get" | "token set" | "token delete" | "pool get" | "pool set" | "pool delete")
        _rdmactl_names "${words[0]}" name "${context[@]}" "${server[@]}" ;;
    "node get" | "node label" | "node cordon" | "node uncordon" | "node drain" | "node delete")
        _rdmactl_names node id "${context[@]}" "${server[@]}" ;;
    "context get" | "context set" | "context delete") _rdmactl_names context name ;;
    "context use") _rdmactl_names context name; echo none ;;
    "context set "*)
        echo server= token_file= agent_socket= output={table,wide,json,yaml} cacert= cert= key= \
            allow_plain_tokens={yes,no} ;;
    *" set "* | *" create "*) _rdmactl_keys "${words[0]}" ;;
    *" "*) ;;
    *) _rdmactl_commands "${words[0]}" ;;
    esac
}

# For other shells: prints what the last of the words may become, a whole word a line; 3: files.
_rdmactl_complete() { # words of the line...
    local word last=${*: -1} _rdmactl_files=
    local -a COMP_WORDS=() COMPREPLY=()
    for word in "$@"; do # "=" is a word of its own, as for bash
        if [[ $word == ?*=* ]]; then
            COMP_WORDS+=("${word%%=*}" =)
            word=${word#*=}
            [[ -n $word ]] || continue
        fi
        COMP_WORDS+=("$word")
    done
    local COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _rdmactl 2>/dev/null
    [[ -z $_rdmactl_files ]] || return 3
    [[ $last == ?*=* ]] && last=${last%%=*}= || last=
    ((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]/#/"$last"}"
}
complete -F _rdmactl rdmactl
