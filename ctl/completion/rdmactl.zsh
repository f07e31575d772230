#compdef rdmactl
# SPDX-License-Identifier: Apache-2.0
# Completion of rdmactl for zsh. What can be completed is known to that for bash, which is asked: it
# is beside this file in the source, and where bash looks for it when it is installed.
local here=${functions_source[_rdmactl]:A:h} engine
local -a found
for engine in $here/rdmactl.bash $here/../../bash-completion/completions/rdmactl; do
    [[ ! -r $engine ]] || break
done
found=("${(@f)$(bash --norc -c 'source "$1" && _rdmactl_complete "${@:2}"' rdmactl "$engine" \
    "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
if (($? == 3)); then
    _files
    return
fi
found=(${(@)found:#})
(($#found)) || return 1
# Behind "key=" the value follows.
compadd -S '' -- ${(M)found:#*=}
compadd -- ${found:#*=}
