# SPDX-License-Identifier: Apache-2.0
# Completion of rdmactl for fish. What can be completed is known to that for bash, which is asked:
# it is beside this file in the source, and where bash looks for it when it is installed.
set -g __rdmactl_directory (status dirname)

function __rdmactl_complete
    set -l engine $__rdmactl_directory/rdmactl.bash
    test -r $engine
    or set engine $__rdmactl_directory/../../bash-completion/completions/rdmactl
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    bash --norc -c 'source "$1" && _rdmactl_complete "${@:2}"' \
        rdmactl $engine $words "$last" 2>/dev/null
    test $status -ne 3
    or __fish_complete_path "$last"
end

complete -c rdmactl -f -a '(__rdmactl_complete)'
