# SPDX-License-Identifier: Apache-2.0
# What the tests of docs/operations.md share, beside lib.sh: its commands are its indented lines.
page=$root/docs/operations.md
several='## Three metaservers on one host' # what is of several metaservers is below it

# The next command of the page, which is read on descriptor 8, in $line; several lines are one.
next_command() {
    local more
    while IFS= read -r -u 8 line; do
        [[ $line == '    '* ]] || continue
        line=${line#    }
        while [[ $line == *\\ ]] && IFS= read -r -u 8 more; do line=${line%\\}${more#    }; done
        return 0
    done
    return 1
}
# Whether a command shows something: those that change a thing may be silent.
shows() {
    [[ $1 == *list* || $1 == *get* || $1 == *status* || $1 == *metrics* || $1 == *doctor* ||
        $1 == *create* || $1 == *readyz* ]]
}
# Runs $line; what it says is in the files out and err. Its status is the line's.
try_command() { timeout $((240 * slow)) bash -u -o pipefail -c "$line" >out 2>err </dev/null; }
run_command() {
    try_command || fail "$line: ended with $?: $(cat out err)"
    if shows "$line" && [[ $line != *'>'* && ! -s out ]]; then fail "$line: shows nothing"; fi
}
