# SPDX-License-Identifier: Apache-2.0
# Completion of rdmactl for bash. Names and ids come from the metaserver or the agent, if it answers.

# The members called $2 of the objects that `rdmactl $1 list` shows, asked with the options that follow.
_rdmactl_names() { # resource member options...
    rdmactl "${@:3}" "$1" list -o json 2>/dev/null | grep -o "\"$2\":\"[^\"]*\"" | cut -d'"' -f4
}

# The keys that `rdmactl $1 --help` lists, which asks nobody.
_rdmactl_keys() { # resource
    rdmactl "$1" --help 2>/dev/null | sed -n '/^keys:$/,/^$/s/^  \([a-z_0-9]*\) .*/\1=/p'
}

_rdmactl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} line=() words=() i key= choices=
    local context=() agent=() server=() # options that say whom to ask, on the line so far
    COMPREPLY=()
    # bash takes "=" for a word of its own: behind an option as good as a blank, behind a key not.
    if [[ $word == = ]]; then key=$before word=; elif [[ $before == = ]]; then key=${COMP_WORDS[COMP_CWORD - 2]}; fi
    [[ $key != -* ]] || { before=$key; key=; }
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == = && ${COMP_WORDS[i - 1]} == -* ]] || line+=("${COMP_WORDS[i]}")
    done
    for ((i = 0; i < ${#line[@]}; i++)); do
        case ${line[i]} in
        --context) context=(--context "${line[++i]-}") ;;
        --server | --token-file) server+=("${line[i]}" "${line[i + 1]-}"); ((++i)) ;;
        --agent-socket) agent+=(--agent-socket "${line[++i]-}") ;;
        --node) agent+=(--node "${line[++i]-}") ;;
        -o | --output | --secret-file | --secret-out | --config | --provider | --device | --serve | --peer | -f | --file | --revision | --position | --tenant | --worker | \
            --label | --reason | --grace | --number | --mr-lease | --scope | --uid | --kind | --name | --limit) ((++i)) ;;
        -*) ;;
        *) words+=("${line[i]}") ;;
        esac
    done
    case $before in
    -o | --output) choices="table wide json" ;;
    --provider) choices="soft verbs" ;;
    --device) choices=$(ls /sys/class/infiniband 2>/dev/null) ;;
    --context) choices="$(_rdmactl_names context name) none" ;;
    --tenant) choices=$(_rdmactl_names tenant name "${context[@]}" "${server[@]}") ;;
    --worker) choices=$(_rdmactl_names worker id "${context[@]}" "${server[@]}" "${agent[@]}") ;;
    --node) choices=$(_rdmactl_names node id "${context[@]}" "${server[@]}") ;;
    --agent-socket | --config | -f | --file | --token-file | --secret-file | --secret-out)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return ;;
    --kind) choices="tenant window token node pool lease restore liveness" ;;
    --scope)
        if [[ ${words[*]} == token* ]]; then choices="reader operator admin agent worker"; else choices="device destination tenant"; fi ;;
    --server | --serve | --peer | --uid | --name | --limit | --revision | --position | --label | --reason | --grace | --number | --mr-lease) return ;;
    *) choices=$(_rdmactl_words "$word") ;;
    esac
    [[ -z $key ]] || choices=$(tr ' ' '\n' <<<"$choices" | sed -n "s/^$key=//p")
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}

# What may stand behind $words, which with the others is _rdmactl's.
_rdmactl_words() { # word so far
    if [[ $1 == -* ]]; then
        echo --output --context --server --token-file --secret-file --secret-out --agent-socket --config --provider --device --serve --peer --file \
            --revision --position --tenant --worker --all --force --node --all-nodes --label --reason --grace --wait --number --mr-lease \
            --scope --uid --kind --name --limit --help --version
        return
    fi
    case "${words[*]}" in
    "") echo status node agent worker lease tenant window pool token event apply context doctor ;;
    agent) echo status ;;
    node) echo list get label cordon uncordon drain delete watch ;;
    worker) echo list get ;;
    lease) echo list get revoke ;;
    tenant | window | pool | token) echo list get create set delete watch ;;
    event) echo list watch ;;
    context) echo list get use set delete ;;
    "worker get" | "lease get" | "lease revoke")
        _rdmactl_names "${words[0]}" id "${context[@]}" "${server[@]}" "${agent[@]}" ;;
    "tenant get" | "tenant set" | "tenant delete" | "window get" | "window set" | "window delete" | \
        "token get" | "token set" | "token delete" | "pool get" | "pool set" | "pool delete")
        _rdmactl_names "${words[0]}" name "${context[@]}" "${server[@]}" ;;
    "node get" | "node label" | "node cordon" | "node uncordon" | "node drain" | "node delete")
        _rdmactl_names node id "${context[@]}" "${server[@]}" ;;
    "context get" | "context set" | "context delete") _rdmactl_names context name ;;
    "context use") _rdmactl_names context name; echo none ;;
    "tenant set "* | "tenant create "*) _rdmactl_keys tenant ;;
    "window set "* | "window create "*)
        _rdmactl_keys window | grep -v '^scope='
        echo scope=device scope=destination scope=tenant ;;
    "pool set "* | "pool create "*) _rdmactl_keys pool ;;
    "token set "* | "token create "*)
        _rdmactl_keys token | grep -v '^scope='
        echo scope=admin scope=operator scope=reader scope=agent scope=worker ;;
    "context set "*) echo server= token_file= agent_socket= output=table output=wide output=json ;;
    esac
}
complete -F _rdmactl rdmactl
