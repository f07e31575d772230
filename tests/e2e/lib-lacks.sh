# SPDX-License-Identifier: Apache-2.0
# What is not in a file that is there. Sourced by lib.sh and lib-metad.sh, which have fail().

# 0: the file has something, and no line in which grep finds what the other words ask for; 1: one
# has. What could not be looked at ends the test: "! command | grep" and "! grep" take that for
# having found nothing.
lacks() { # file, grep's options and pattern...
    local file=$1 code=0
    shift
    [[ -s $file ]] || fail "$file has nothing, or is not there: nothing can be looked for in it"
    grep -qa "$@" "$file" || code=$?
    ((code <= 1)) || fail "grep ended with $code: $*"
    ((code == 1))
}
