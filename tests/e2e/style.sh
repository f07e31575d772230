#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The style check finds each offence that it is for, and nothing in a file that has none.
set -euo pipefail
shopt -s lastpipe # what is piped into a function changes its variables here
style=$(cd "$(dirname "$0")/../.." && pwd)/ops/style
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
[[ $({ clang-format-14 --version || clang-format --version; } 2>/dev/null) == *' version 14.'* ]] ||
    { echo "skip: clang-format 14 is not installed"; exit 77; }
cp "$(dirname "$style")/../.clang-format" "$work/"
mkdir -p "$work"/{base,schema,fabric,ctl,agent/lane,agent/lane/request,agent/lane/transmit} \
    "$work"/{metaserver/store,libclient/include}
head='/* SPDX-License-Identifier: Apache-2.0 */'

printf '%s\n' "$head" '#include "base/text.h"' '' 'int base_one(void);' '' \
    'int base_one(void)' '{' '    return 1;' '}' >"$work/base/right.c"
mkdir -p "$work"/tests/bench/verbs "$work"/agent/control
printf '%s\nvoid f(void)\n{\n    ibv_fork_init();\n}\n' "$head" >"$work/tests/bench/verbs/right.c"
echo 'target_link_libraries(x PRIVATE PkgConfig::VERBS)' >"$work/tests/bench/verbs/CMakeLists.txt"
printf '%s\n' "$head" 'static int poll_one(void *p)' '{' \
    '    return fab_poll(p, 1, p); /* not usleep() */' '}' '' \
    'int lane_g(void *p)' '{' '    return poll_one(p);' '}' >"$work/agent/lane/polls.c"
printf '%s\n' "$head" 'static int take_one(void)' '{' '    return 1;' '}' '' \
    'int meta_one(void)' '{' '    return take_one();' '}' >"$work/metaserver/answers.c"
printf '%s\nint kedge_one(void);\n' "$head" >"$work/libclient/include/kedge.h"
mkdir -p "$work/base/include/base"
echo "$head" >"$work/base/include/base/assert.h"
printf '%s\n' "$head" 'int client_one(void)' '{' '    return 1;' '}' '' \
    'int kedge_one(void)' '{' '    return client_one();' '}' >"$work/libclient/exports.c"
printf '%s\nint lane_take_above(void)\n{\n    return 1;\n}\n' "$head" \
    >"$work/agent/lane/request/above.c"
printf '%s\n' "$head" 'int lane_take_above(void); /* lane_take_above() */' '' \
    'static inline int peek_above(int x)' '{' '    return x;' '}' \
    >"$work/agent/lane/request/above.h"
printf '%s\nstatic inline int look_beside(int x)\n{\n    return x;\n}\n' "$head" \
    >"$work/agent/lane/beside.h"
printf '%s\n#include "beside.h"\n\nint lane_f(void)\n{\n    return look_beside(1);\n}\n' "$head" \
    >"$work/agent/lane/transmit/looks.c"
printf '%s\nint lane_ring_below(void)\n{\n    return 1;\n}\n' "$head" \
    >"$work/agent/lane/transmit/below.c"
"$style" "$work" >"$work/out" || fail "an offence is seen where none is: $(cat "$work/out")"
echo "ok: what is right passes"

# Those whose file may have any name get one of their own, and are looked at together: a run of the
# check takes a third of a second.
queued=() patterns=()
finds() { # file, pattern; the file's text from standard input
    local file=$1
    case ${1##*/} in
    a.*) file=${1%a.*}a${#queued[@]}.${1##*/a.} ;;
    *) find_queued ;;
    esac
    cat >"$work/$file"
    queued+=("$file")
    patterns+=("$2")
    [[ ${1##*/} == a.* ]] || find_queued
}
find_queued() {
    local i
    ((${#queued[@]})) || return 0
    if "$style" "$work" >"$work/out"; then fail "${patterns[*]}: not seen"; fi
    for i in "${!queued[@]}"; do
        grep -qE "^${queued[i]}.*${patterns[i]}" "$work/out" ||
            fail "${patterns[i]}: not named in ${queued[i]}: $(cat "$work/out")"
        rm "$work/${queued[i]}"
        echo "ok: ${patterns[i]}"
    done
    queued=() patterns=()
}
eval "$(grep '^take_records_out=' "$style")" # and each of them is a function of the tree
for name in ${take_records_out//|/ }; do
    grep -rqE --include='*.h' "\b$name\(" "$(dirname "$style")"/../{schema,agent} ||
        fail "ops/style looks for $name(), which is not there any more"
    printf '%s\n' "$head" 'void take_one(void)' '{' "    $name();" \
        '    atomic_thread_fence(memory_order_seq_cst);' '}' |
        finds agent/lane/request/a.c ':5: devices read these records'
done
echo 'int x;' | finds base/a.c 'no SPDX line'
{ echo "$head"; seq 601 | sed 's|.*|/* . */|'; } | finds base/a.c 'at most 600'
{ echo "$head"; printf '/* %0100d */\n' 1; } | finds base/a.c 'over 100 columns'
for name in tests/a.sh tests/a.awk tests/a.bash; do
    printf '# %099d\n' 1 | finds "$name" ':1: over 100 columns'
done
absent='passes when the command before grep fails'
echo '! status | grep -q secret || fail "shown"' | finds tests/a.sh ":1: $absent"
printf '%s\n' true '! status |' '    grep -q secret ||' '    fail "shown"' |
    finds tests/a.sh ":2: $absent"
printf '%s\n' 'if ok && ! status --all \' '    | sort | grep -q secret; then' '    true' fi |
    finds tests/a.sh ":1: $absent"
echo 'ldd program | grep -q secret && fail "shown"' | finds tests/a.sh ":1: $absent"
printf '%s\n' 'status | grep -q seen || fail "not shown"' '! grep -q secret out || fail "shown"' \
    '# ! status | grep -q secret || fail' 'if status | grep seen; then echo; fi' \
    'while ! status || ! grep -q seen out; do sleep 1; done' >"$work/tests/right.sh"
printf 'é%.0s' {1..100} >"$work/tests/wide.sh"
find_queued
"$style" "$work" >"$work/out" || fail "100 characters are over 100 columns: $(cat "$work/out")"
rm "$work/tests/wide.sh"
echo "ok: 100 characters of two bytes each pass"
mkdir -p "$work/docs"
{ printf '| %0100d |\n' 1; printf '%0100d\n' 1; printf '%0100d1\n' 1; } |
    finds docs/a.md ':3: over 100 columns'
echo "$head" | finds agent/limits.h "a header of the C library's has that name"
{ echo "$head"; printf 'void f(char *t)\n{\n    strcpy(t, "");\n}\n'; } |
    finds base/a.c 'forbidden function'
{ echo "$head"; printf 'void f(void)\n{\n    ibv_fork_init();\n}\n'; } |
    finds agent/a.c "verbs' functions are called in fabric/verbs"
{
    echo "$head"
    printf 'void f(struct base_text *t)\n{\n    base_text_printf(t, ",\\"age_ms\\":%%d}", 1);\n}\n'
} | finds ctl/a.c 'JSON is written with base_json_'
{
    echo "$head"
    printf '%s\n' 'void f(struct base_text *t)' '{' \
        '    base_text_append(' '        t, ",\"worker\":", 10);' '}'
} | finds agent/a.c 'JSON is written with base_json_'
{ echo "$head"; printf 'void f(void)\n{\n    printf("{\\"worker\\":%%d}", 1);\n}\n'; } |
    finds ctl/a.c 'JSON is written with base_json_'
{ echo "$head"; printf 'bool f(const char *p)\n{\n    return strcmp(p, "soft") == 0;\n}\n'; } |
    finds agent/a.c "nobody asks for a provider's name"
{ echo "$head"; printf 'const void *f(void)\n{\n    return &fab_soft;\n}\n'; } |
    finds metaserver/a.c "nobody asks for a provider's name"
{ echo "$head"; echo '#include "agent/lane.h"'; } |
    finds base/a.c 'base/ may not include agent/lane.h'
{ echo "$head"; echo '#include "fabric/fabric.h"'; } |
    finds ctl/a.c 'ctl/ may not include fabric/fabric.h'
{ echo "$head"; echo '#include <sqlite3.h>'; } |
    finds agent/a.c 'sqlite3.h has its home in metaserver/store/'
{ echo "$head"; printf 'void f(void)\n{\n'; seq 70 | sed 's|.*|    f();|'; echo '}'; } |
    finds base/a.c 'a function of 71 lines'
{ echo "$head"; echo 'int   x ;'; } | finds base/a.c 'not formatted'
find_queued
mkdir "$work/other"
printf '#!/bin/sh\necho "clang-format version 19.1.0"\n' >"$work/other/clang-format"
chmod +x "$work/other/clang-format"
cp "$work/other/clang-format" "$work/other/clang-format-14"
find_queued
PATH=$work/other:$PATH "$style" "$work" >"$work/out" || fail "$(cat "$work/out")"
grep -q '^skip: whether sources are formatted: there is no clang-format 14$' "$work/out" ||
    fail "another clang-format is taken: $(cat "$work/out")"
rm -r "$work/other"
echo "ok: without the right clang-format it says that formats are not looked at"
echo 'target_link_libraries(x PRIVATE PkgConfig::VERBS)' |
    finds agent/CMakeLists.txt \
        'PkgConfig::VERBS is linked in fabric/CMakeLists.txt tests/bench/verbs/CMakeLists.txt alone'
{ echo "$head"; printf 'void f(void)\n{\n    ibv_fork_init();\n}\n'; } |
    finds tests/bench/a.c "verbs' functions are called in fabric/verbs"
{ echo "$head"; printf 'int f(const void *qp)\n{\n    return fab_qp_state(qp);\n}\n'; } |
    finds agent/lane/a.c 'a lane may not call fab_qp_state'
{ echo "$head"; printf 'void f(void)\n{\n    usleep(1);\n}\n'; } |
    finds agent/lane/a.c 'a lane may not call usleep'
{ echo "$head"; printf 'void f(struct fab *fab)\n{\n    fab->ops->submit(fab);\n}\n'; } |
    finds agent/lane/a.c 'a lane may not call submit'
{ echo "$head"; printf 'int f(void)\n{\n    return lane_take_above();\n}\n'; } |
    finds agent/lane/transmit/a.c 'lane_take_above is of a layer above'
{ echo "$head"; printf 'int f(void)\n{\n    return peek_above(1);\n}\n'; } |
    finds agent/lane/transmit/a.c 'peek_above is of a layer above'
{ echo "$head"; echo '#include "request/above.h"'; } |
    finds agent/lane/transmit/a.c '"request/above.h" is of a layer above'
{ echo "$head"; printf 'static int take(void)\n{\n    return 1;\n}\n'; } |
    finds metaserver/a.c 'take is one word'
{ echo "$head"; printf 'static const struct x *find(int x);\n'; } |
    finds base/a.c 'find is one word'
{ echo "$head"; printf 'static int take(void)\n{\n    return 1;\n}\n'; } |
    finds agent/a.c 'take is one word'
{ echo "$head"; printf 'static int take(void)\n{\n    return 1;\n}\n'; } |
    finds fabric/a.c 'take is one word'
{ echo "$head"; printf 'int take_one(void)\n{\n    return 1;\n}\n'; } |
    finds ctl/a.c 'take_one .* does not begin with ctl_'
{ echo "$head"; printf 'void kedge_take(void)\n{\n}\n'; } |
    finds metaserver/a.c 'kedge_take .* does not begin with meta_'
{ echo "$head"; printf 'void kedge_take(void)\n{\n}\n'; } |
    finds agent/control/a.c 'kedge_take is not in kedge.h'
{ echo "$head"; printf 'void take_one(void)\n{\n}\n'; } |
    finds fabric/a.c 'take_one .* does not begin with fab_'
{ echo "$head"; printf 'void take_one(void)\n{\n}\n'; } |
    finds agent/lane/a.c 'take_one .* does not begin with lane_'
{ echo "$head"; printf 'void take_one(void)\n{\n}\n'; } |
    finds agent/control/a.c 'take_one .* does not begin with agent_'
{ echo "$head"; printf 'void take_one(void)\n{\n}\n'; } |
    finds base/a.c 'take_one .* does not begin with base_'
{ echo "$head"; printf 'void kedge_two(void)\n{\n}\n'; } |
    finds libclient/a.c 'kedge_two is not in kedge.h'
echo "$head" |
    finds metaserver/store/answers.c 'has that name too, both are kedge-metad'
mkdir -p "$work/fabric/soft"
echo "$head" | finds fabric/soft/right.c 'base/right.c has that name too'

# What documents and comments name is there.
mkdir -p "$work"/docs "$work"/tests/unit/base "$work"/tests/e2e "$work"/schema/include/schema
echo "$head" >"$work/tests/unit/base/test_right.c"
echo "$head" >"$work/schema/include/schema/right.h"
touch "$work/tests/e2e/right.sh"
printf '# How it is\n\n## One `thing`, and another\n\n```sh\n# no heading\n```\n' \
    >"$work/docs/other.md"
{
    echo '[a](other.md) [b](other.md#one-thing-and-another) [c](../base/right.c)'
    echo '[d](https://kedge.invalid/x) [e](#here)'
    echo '`base/right.c` `base/*.c` `./base/` `base/right.c now` `schema/right.h`'
    echo 'unit.base unit.base.right unit.base.right.rc e2e.right and e2e.right.rc.'
    printf '\n# Here\n'
} >"$work/docs/right.md"
printf '%s\n' "$head" \
    '/* As docs/other.md says, and base/right.c does (docs/other.md#one-thing-and-another). */' \
    >"$work/base/comment.c"
find_queued
"$style" "$work" >"$work/out" || fail "an offence is seen in right documents: $(cat "$work/out")"
echo "ok: documents that name what is there pass"
echo '[a](gone.md)' | finds docs/a.md 'a link to gone.md, which is not there'
echo '[a](docs/gone.md)' | finds README.md 'a link to docs/gone.md, which is not there'
echo '[a](other.md#no-heading)' | finds docs/a.md 'no such heading'
echo '[a](#gone)' | finds docs/a.md 'no such heading'
echo 'See `base/gone.c`.' | finds docs/a.md 'base/gone.c is not there'
echo 'See `agent/gone/*.c`.' | finds docs/a.md 'agent/gone/\*.c is not there'
echo 'It is `unit.base.gone` that shows it.' | finds docs/a.md 'there is no test unit.base.gone'
echo '(e2e.gone.rc)' | finds docs/a.md 'there is no test e2e.gone'
echo 'It reads as a question: `gone_is_there()`.' |
    finds docs/a.md 'there is no function gone_is_there()'
{ echo "$head"; echo '/* As base/gone.c does. */'; } | finds base/a.c 'base/gone.c is not there'
{ echo "$head"; echo '/* docs/gone.md has the rule. */'; } |
    finds base/a.c 'docs/gone.md is not there'
{ echo "$head"; echo '/* docs/other.md#gone has the rule. */'; } |
    finds base/a.c 'docs/other.md#gone: there is no such heading'

{ echo "$head"; printf 'struct a {\n    int x; /* made by: */\n    int y;\n};\n'; } |
    finds base/a.h '1 comments that lean on the next line'
{ echo "$head"; printf '/* Those of a lane,\n * and of: */\nstruct a {\n    int x;\n};\n'; } |
    finds base/a.h '1 comments that lean on the next line'
printf '%s\n' "$head" 'struct a {' '    /* Made by a lane: */' '    int x; /* its own; or 0 */' \
    '};' >"$work/base/a.h"
find_queued
"$style" "$work" >"$work/out" || fail "a heading leans: $(cat "$work/out")"
rm "$work/base/a.h"
echo "ok: a comment may head what follows"

# Commits that documents name.
git_here() { git -C "$work" -c user.name=x -c user.email=x@kedge.invalid "$@" >"$work/git" 2>&1; }
echo 'The tree of 0123abcd.' >"$work/docs/a.md"
find_queued
"$style" "$work" >"$work/out" || fail "a commit is looked for without a history"
grep -q '^skip: whether commits .* there is no full history here$' "$work/out" ||
    fail "it does not say that it cannot look for commits: $(cat "$work/out")"
rm "$work/docs/a.md"
git_here init && git_here add docs && git_here commit -m one || fail "$(cat "$work/git")"
echo 'The tree of 0123abcd.' | finds docs/a.md ':1: there is no commit 0123abcd'
commit=$(git -C "$work" rev-parse HEAD)
echo "${commit:0:12} of 1000001 and defaced, 4294967296" >"$work/docs/a.md"
find_queued
"$style" "$work" >"$work/out" || fail "a commit that is there is not found: $(cat "$work/out")"
rm -rf "$work/docs/a.md" "$work/.git"
echo "ok: a commit that is there, and numbers, pass"

{ echo "$head"; seq 200 | sed 's|.*|/* . */|'; } | finds base/long.h 'a header of 201 lines'

# What is known of a tree may stay, and neither grows nor outlives its reason.
knows() { # what ops/style-known says, pattern of what is said of it, or "" where that is right;
    # what it is, for people
    echo "$1" >"$work/ops/style-known"
    if "$style" "$work" ${build:+"$build"} >"$work/out"; then
        [[ -z $2 ]] && grep -q '^1 known offences are left' "$work/out" ||
            fail "$3: $(cat "$work/out")"
    else
        [[ -n $2 ]] && grep -qE "$2" "$work/out" || fail "$3: $(cat "$work/out")"
    fi
    rm "$work/ops/style-known"
    echo "ok: $3"
}
find_queued
mkdir "$work/ops"
build=
{ echo "$head"; seq 210 | sed 's|.*|/* . */|'; } >"$work/base/long.h"
knows 'header base/long.h 211' '' 'a long header that is known may stay'
knows 'header base/long.h 205' \
    '^base/long.h: a header of 211 lines, at most 200 .ops/style-known: 205.$' \
    'a known header may not grow'
knows 'header base/long.h 220' \
    '^ops/style-known: header base/long.h is 211 by now, not 220: lower it' \
    'what is known is lowered with it'
rm "$work/base/long.h"
knows 'header base/long.h 211' '^ops/style-known: header base/long.h is over: take it out' \
    'what is over is known no more'
{ echo "$head"; seq 300 | sed 's|.*|/* . */|'; } >"$work/libclient/include/kedge.h"
echo 'int kedge_one(void);' >>"$work/libclient/include/kedge.h"
find_queued
"$style" "$work" >"$work/out" || fail "kedge.h is as long as it must: $(cat "$work/out")"
echo "ok: kedge.h may be longer"

# The objects of a build: who calls whom, and what code that decides reaches.
build=$work/build
source_of() { # file, what its function is called, whom it calls...
    local file=$1 name=$2 call
    shift 2
    mkdir -p "$(dirname "$work/$file")"
    {
        echo "$head"
        echo "int $name(void);"
        # In parentheses it is not taken for one of the folder's own.
        for call in "$@"; do echo "int($call)(void);"; done
        printf '\nint %s(void)\n{\n' "$name"
        for call in "$@"; do echo "    $call();"; done
        printf '    return 0;\n}\n'
    } >"$work/$file"
    compile_as_cmake "$file"
}
compile_as_cmake() { # file
    local object=$build/${1%%/*}/CMakeFiles/x.dir/${1#*/}.o
    mkdir -p "$(dirname "$object")"
    cc -w -fno-builtin -I "${style%/ops/style}/base/include" -I "$work/agent/lane" -c "$work/$1" \
        -o "$object"
}
circle_of() { # folder, count
    local i
    for ((i = 1; i <= $2; i++)); do
        source_of "$1/part$i.c" "meta_part$i" "meta_part$((i % $2 + 1))"
    done
}
objects_show() { # pattern, what it is; "" where that is right
    if "$style" "$work" "$build" >"$work/out"; then
        [[ -z $1 ]] || fail "$2: not seen"
    else
        [[ -n $1 ]] && grep -qE "$1" "$work/out" || fail "$2: $(cat "$work/out")"
    fi
    echo "ok: $2"
}
clear_parts() { rm -f "$work"/*/part*.c "$work"/*/*/part*.c; }
while read -r file; do
    compile_as_cmake "$file"
done < <(cd "$work" && find base agent metaserver libclient -name '*.c')
circle_of metaserver 4
objects_show '' 'four files may call each other'
circle_of metaserver 5
objects_show '^metaserver: 5 files call each other in a circle' 'five files may not call each other'
knows 'circle metaserver 5' '' 'a circle that is known may stay'
circle_of metaserver 6
knows 'circle metaserver 5' '^metaserver: 6 files .*ops/style-known: 5' \
    'a known circle may not grow'
knows 'circle metaserver 7' 'circle metaserver is 6 by now, not 7: lower it' \
    'a known circle is lowered with it'
clear_parts
knows 'circle metaserver 6' 'circle metaserver is over: take it out' \
    'a circle that is over is known no more'
source_of metaserver/part1.c meta_part1 meta_part2
source_of metaserver/store/part2.c meta_part2
objects_show '' 'one folder may call another one'
source_of metaserver/store/part2.c meta_part2 meta_part1
objects_show '^metaserver.metaserver/store: folders of one program' \
    'two folders may not call each other'
clear_parts
for call in uv_run clock_gettime base_clock_wall_ms getrandom \
    open socket pthread_create base_log; do
    source_of agent/connect/part1.c connector_part1 "$call"
    objects_show "^agent/connect: code that decides may not reach $call .agent/connect/part1.c" \
        "code that decides may not reach $call"
    clear_parts
done
source_of agent/connect/part1.c connector_part1 memcpy base_prng_next
objects_show '' 'code that decides may copy, and draw from a seed that it is given'
touch -d '+1 min' "$work/agent/connect/part1.c"
objects_show 'sources are newer than their objects, such as agent/connect/part1.c: build first' \
    'old objects are no proof'
build=$work/no-build
{ echo "$head"; echo 'int   x ;'; } >"$work/base/a.c"
objects_show "^$build: there is no such directory: build first" \
    'a build that is not there is an offence'
grep -q '^base/a.c: not formatted' "$work/out" ||
    fail "what needs no build is not looked at without it: $(cat "$work/out")"
grep -q '^2 offences$' "$work/out" || fail "more than that is seen: $(cat "$work/out")"
echo "ok: without its build the rest of a tree is looked at all the same"
