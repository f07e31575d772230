# SPDX-License-Identifier: Apache-2.0
# Builds of former versions, made here from this repository's history. Sourced after lib.sh with the
# build directory as $1.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
new=$bin
# Sets $old, where the programs of that commit are.
previous_build() { # build-directory commit
    local dir=$1/previous/${2:0:12} log=$1/previous/log-${2:0:12}
    git -C "$root" cat-file -e "$2^{commit}" 2>/dev/null || {
        skip "the history of this repository is not here: version $2 cannot be built"
        exit 77
    }
    if [[ ! -e $dir/built ]]; then
        rm -rf "$dir"
        mkdir -p "$dir"
        git -C "$root" archive "$2" | tar -x -C "$dir"
        (cd "$dir" && cmake --preset release && cmake --build build --target kedge-agentd \
            kedge-metad rdmactl export_region read_region) >"$log" 2>&1 ||
            fail "version $2 cannot be built: $(tail -n 20 "$log")"
        touch "$dir/built"
    fi
    old=$dir/build/bin
}

with() { # build command...: of that build's programs
    local bin=$1
    shift
    "$@"
}
