# SPDX-License-Identifier: Apache-2.0
# The commit, as --version and metrics have it. Sourced with the build directory as $1.
#
# commit: what it looks like, an extended regular expression. commit_maybe: "?" where a build may be
# without, since its sources are not the top of a repository that git reads (base/commit.cmake).
commit='[0-9a-f]{12}(-changed)?'
commit_maybe='?'
sources=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null) || sources=
[[ -z $sources ||
    $(git -C "$sources" rev-parse --show-prefix HEAD 2>/dev/null) != $'\n'[0-9a-f]* ]] ||
    commit_maybe=
# Whether the program says its name, its version and its commit.
says_commit() { # program
    [[ $("$1" --version) =~ ^$(basename "$1")\ [0-9]+(\.[0-9]+)+(\ \($commit\))$commit_maybe$ ]]
}
