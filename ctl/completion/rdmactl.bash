# SPDX-License-Identifier: Apache-2.0
# Completion of rdmactl for bash. Node ids come from the metaserver, if it answers.
_rdmactl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=() i agent=() server=() # and its token
    COMPREPLY=()
    case $before in
    -o | --output) mapfile -t COMPREPLY < <(compgen -W "table wide json" -- "$word"); return ;;
    --agent-socket | --config | -f | --file | --token-file | --secret-file) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --provider) mapfile -t COMPREPLY < <(compgen -W "soft verbs" -- "$word"); return ;;
    --device) mapfile -t COMPREPLY < <(compgen -W "$(ls /sys/class/infiniband 2>/dev/null)" -- "$word"); return ;;
    --server | --revision | --tenant | --worker | --label | --reason | --grace) return ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --server | --token-file) server+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}"); ((i++)) ;;
        --agent-socket) agent=(--agent-socket "${COMP_WORDS[i + 1]}"); ((i++)) ;;
        -o | --output | --config | --provider | --device | -f | --file | --revision | --tenant | --worker | --label | --reason | --grace) ((i++)) ;;
        -*) ;;
        *) words+=("${COMP_WORDS[i]}") ;;
        esac
    done
    local choices
    case "${words[*]}" in
    "") choices="status node agent worker lease tenant window pool token event apply doctor" ;;
    worker) choices="list get" ;;
    lease) choices="list get revoke" ;;
    "worker get" | "lease get" | "lease revoke")
        choices=$(rdmactl "${agent[@]}" "${words[0]}" list -o json 2>/dev/null | grep -o '{"id":"[^"]*"' | cut -d'"' -f4) ;;
    node) choices="list get label cordon uncordon drain watch" ;;
    agent) choices="status" ;;
    tenant | window | pool | token) choices="list get create set delete watch" ;;
    event) choices="list watch" ;;
    "tenant get" | "tenant set" | "tenant delete" | "window get" | "window set" | "window delete" | \
        "token get" | "token set" | "token delete" | "pool get" | "pool set" | "pool delete")
        choices=$(rdmactl "${server[@]}" "${words[0]}" list -o json 2>/dev/null | grep -o '{"name":"[^"]*"' | cut -d'"' -f4) ;;
    "tenant set "* | "tenant create "*) choices="uids= sessions= vqps= mrs= memory_bytes= window_bytes= window_ops=" ;;
    "window set "* | "window create "*) choices="scope=device scope=destination scope=tenant tenant= bytes= ops=" ;;
    "pool set "* | "pool create "*) choices="nodes= sessions_ahead= arenas_ahead= ahead_max= queue_pairs_ahead= dcis= spares=" ;;
    "token set "* | "token create "*) choices="scope=admin scope=operator scope=reader scope=agent node= gids= expires=" ;;
    "node get" | "node label" | "node cordon" | "node uncordon" | "node drain") choices=$(rdmactl "${server[@]}" node list -o json 2>/dev/null | grep -o '"id":"[^"]*"' | cut -d'"' -f4) ;;
    *) choices= ;;
    esac
    [[ $word != -* ]] || choices="--output --server --token-file --agent-socket --config --provider --device --file --revision --tenant --worker --force --label --reason --grace --wait --help --version"
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -F _rdmactl rdmactl
