#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each program says the commit that it was built from; and what the build takes for one: that of a
# repository, marked where something was changed, none elsewhere, and a warning where git refuses.
set -euo pipefail
bin=${1:?usage: $0 BUILD_DIRECTORY}/bin
source "$(dirname "$0")/lib-commit.sh"
script=$(cd "$(dirname "$0")/../.." && pwd)/base/commit.cmake
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
ok() { echo "ok: $*"; }
fail() { echo "FAILED: $*"; exit 1; }
for program in kedge-agentd kedge-metad rdmactl kedge-perf; do
    says_commit "$bin/$program" || fail "$program --version: $("$bin/$program" --version)"
done
ok "each program says its commit${commit_maybe:+, if it has one: the sources are no repository}"
for tool in git cmake; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done

cmake=$(command -v cmake) path=$PATH
# No settings of this user or host, and no repository around.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_CEILING_DIRECTORIES=$work
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX
git_in() { git -C "$work/sources" -c user.name=x -c user.email=x@example.org "$@"; }
takes() { # expression sentence sources [argument of cmake]
    local said
    PATH=$path "$cmake" -DSOURCE="$3" -DOUTPUT="$work/commit.h" "${@:4}" -P "$script" \
        >"$work/out" 2>&1 ||
        fail "$2: $(cat "$work/out")"
    said=$(sed -n 's/^#define KEDGE_COMMIT "\(.*\)"$/\1/p' "$work/commit.h")
    [[ $(wc -l <"$work/commit.h") == 1 && $said =~ ^($1)$ ]] ||
        fail "$2: $(cat "$work/commit.h" "$work/out")"
}
silent() { [[ ! -s $work/out ]] || fail "it says: $(cat "$work/out")"; ok "$*"; }
mkdir -p "$work/sources/part"
echo one >"$work/sources/part/file"
takes "" "no repository" "$work/sources"
silent "sources that are no repository have no commit"
takes 'of-a-package' "a commit that is given" "$work/sources" -DCOMMIT=of-a-package
silent "but one that they are given"
git_in init -q
takes "" "a repository without a commit" "$work/sources"
grep -q 'Warning' "$work/out" || fail "nothing is said of a repository without a commit"
git_in add part
git_in commit -q -m one
takes '[0-9a-f]{12}' "a repository" "$work/sources"
silent "a repository has the commit that is checked out"
takes "" "a folder of a repository" "$work/sources/part"
silent "a folder in the repository of something else has none"
echo two >"$work/sources/part/file"
takes '[0-9a-f]{12}-changed' "a file that is changed" "$work/sources"
silent "one that was changed says so"
GIT_TEST_ASSUME_DIFFERENT_OWNER=1 takes "" "somebody else's repository" "$work/sources"
grep -q 'Warning' "$work/out" && grep -q 'safe\.directory' "$work/out" ||
    fail "what git said is not told: $(cat "$work/out")"
ok "where git refuses, the build has none, and warns with what git said"
mkdir "$work/none"
path=$work/none takes "" "no git" "$work/sources"
grep -q 'Warning' "$work/out" && grep -q 'git cannot be run' "$work/out" ||
    fail "that there is no git is not said: $(cat "$work/out")"
ok "where there is no git, it warns too"
