#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completion of rdmactl in zsh and fish: what that for bash knows, which e2e.rdmactl looks at; as it
# is in the source, and as it is installed.
set -euo pipefail
bin=$(readlink -f "${1:?usage: $0 BUILD_DIRECTORY}")/bin
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
ok() { echo "ok: $*"; }
export PATH=$bin:$PATH XDG_CONFIG_HOME=$work/config HOME=$work
unset KEDGE_CONTEXT KEDGE_SERVER KEDGE_AGENT_ADMIN KEDGE_TOKEN KEDGE_TOKEN_FILE
rdmactl context set site-one server=http://127.0.0.1:1 >/dev/null
touch "$work/manifest.json"
mkdir -p "$work"/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
cp "$root/ctl/completion/rdmactl.bash" "$work/share/bash-completion/completions/rdmactl"
cp "$root/ctl/completion/rdmactl.zsh" "$work/share/zsh/site-functions/_rdmactl"
cp "$root/ctl/completion/rdmactl.fish" "$work/share/fish/vendor_completions.d/"

# A line, of which the last word is completed: $4... are among what it may become, one a line, each
# whole; "!" before one: it is not.
check_line() { # shell file line word...
    local shell=$1 file=$2 line=$3 word
    shift 3
    (cd "$work" && "complete_in_$shell" "$file" "$line") >"$work/got" 2>"$work/err" ||
        fail "$shell: \"$line\" ended with $?: $(cat "$work/err")"
    for word in "$@"; do
        if [[ $word == !* ]]; then
            ! grep -qxF -- "${word#!}" "$work/got" || fail "$shell: \"$line\" may become $word"
        else
            grep -qxF -- "$word" "$work/got" ||
                fail "$shell: \"$line\" lacks $word: $(cat "$work/got" "$work/err")"
        fi
    done
}
check_shell() { # shell file
    check_line "$1" "$2" "rdmactl " node metaserver tenant !list
    check_line "$1" "$2" "rdmactl no" node !tenant
    check_line "$1" "$2" "rdmactl metaserver " list
    check_line "$1" "$2" "rdmactl node list --" --label --server !label
    check_line "$1" "$2" "rdmactl -o " table yaml
    check_line "$1" "$2" "rdmactl context use " site-one none
    check_line "$1" "$2" "rdmactl token create t ex" expires=
    check_line "$1" "$2" "rdmactl token create t scope=" scope=admin scope=reader
    check_line "$1" "$2" "rdmactl token create t scope=ad" scope=admin !scope=reader
    check_line "$1" "$2" "rdmactl explain tenant.se" tenant.sessions
    check_line "$1" "$2" "rdmactl apply -f man" manifest.json
    ok "$1 completes rdmactl ($(basename "$2"))"
}

complete_in_fish() { # file line
    fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$1" "$2" | cut -f1
}
# The functions that only exist while the line editor completes are ours, and print.
complete_in_zsh() { # file line
    # shellcheck disable=SC2016 # zsh's
    zsh -f -c '
        zmodload zsh/parameter
        compadd() { while [[ $1 != -- ]]; do shift; done; shift; (($#)) && print -l -- "$@" }
        _files() { print -l -- $PREFIX*(N) }
        fpath=($1:h $fpath)
        words=(${=2}); [[ $2 != *" " ]] || words+=("")
        CURRENT=$#words PREFIX=$words[-1]
        ln -sf $1 '"$work"'/functions/_rdmactl
        fpath=('"$work"'/functions $fpath)
        autoload -U _rdmactl && _rdmactl; true' zsh "$1" "$2"
}
mkdir "$work/functions"
for shell in zsh fish; do
    command -v $shell >/dev/null || { echo "skip: $shell is not installed"; continue; }
    check_shell $shell "$root/ctl/completion/rdmactl.$shell"
done
! command -v fish >/dev/null ||
    check_shell fish "$work/share/fish/vendor_completions.d/rdmactl.fish"
if command -v zsh >/dev/null; then
    check_shell zsh "$work/share/zsh/site-functions/_rdmactl"
    [[ $(zsh -f -c 'fpath=($1 $fpath); autoload -U compinit && compinit -u -D
        print $_comps[rdmactl]' zsh "$work/share/zsh/site-functions") == _rdmactl ]] ||
        fail "zsh does not find it by itself"
    ok "zsh finds it by itself"
fi
