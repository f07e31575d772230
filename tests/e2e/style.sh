#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The style check finds each offence that it is for, and nothing in a file that has none.
set -euo pipefail
style=$(cd "$(dirname "$0")/../.." && pwd)/ops/style
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
command -v clang-format >/dev/null || { echo "skip: clang-format is not installed"; exit 77; }
cp "$(dirname "$style")/../.clang-format" "$work/"
mkdir -p "$work"/{base,schema,fabric,ctl,agent/lane,agent/lane/request,agent/lane/transmit,metaserver/store,libclient/include}
head='/* SPDX-License-Identifier: Apache-2.0 */'

printf '%s\n#include "base/text.h"\n\nint base_one(void);\n\nint base_one(void)\n{\n    return 1;\n}\n' "$head" >"$work/base/right.c"
mkdir -p "$work"/tests/bench/verbs
printf '%s\nvoid f(void)\n{\n    ibv_fork_init();\n}\n' "$head" >"$work/tests/bench/verbs/right.c"
echo 'target_link_libraries(x PRIVATE PkgConfig::VERBS)' >"$work/tests/bench/verbs/CMakeLists.txt"
printf '%s\nstatic int poll_one(void *p)\n{\n    return fab_poll(p, 1, p); /* not usleep() */\n}\n\nint g(void *p)\n{\n    return poll_one(p);\n}\n' \
    "$head" >"$work/agent/lane/right.c"
printf '%s\nstatic int take_one(void)\n{\n    return 1;\n}\n\nint meta_one(void)\n{\n    return take_one();\n}\n' "$head" \
    >"$work/metaserver/right.c"
printf '%s\nint kedge_one(void);\n' "$head" >"$work/libclient/include/kedge.h"
printf '%s\nint client_one(void)\n{\n    return 1;\n}\n\nint kedge_one(void)\n{\n    return client_one();\n}\n' "$head" \
    >"$work/libclient/right.c"
printf '%s\nint take_above(void)\n{\n    return 1;\n}\n' "$head" >"$work/agent/lane/request/above.c"
printf '%s\nint take_above(void); /* take_above() */\n' "$head" >"$work/agent/lane/request/above.h"
printf '%s\nint ring_below(void)\n{\n    return 1;\n}\n' "$head" >"$work/agent/lane/transmit/below.c"
"$style" "$work" >"$work/out" || fail "an offence is seen where none is: $(cat "$work/out")"
echo "ok: what is right passes"

finds() { # file, pattern; the file's text from standard input
    cat >"$work/$1"
    if "$style" "$work" >"$work/out"; then fail "$2: not seen"; fi
    grep -qE "^$1.*$2" "$work/out" || fail "$2: not named: $(cat "$work/out")"
    rm "$work/$1"
    echo "ok: $2"
}
echo 'int x;' | finds base/a.c 'no SPDX line'
{ echo "$head"; seq 601 | sed 's|.*|/* . */|'; } | finds base/a.c 'at most 600'
{ echo "$head"; printf '/* %0100d */\n' 1; } | finds base/a.c 'over 100 columns'
{ echo "$head"; printf 'void f(char *t)\n{\n    strcpy(t, "");\n}\n'; } | finds base/a.c 'forbidden function'
{ echo "$head"; printf 'void f(void)\n{\n    ibv_fork_init();\n}\n'; } | finds agent/a.c "verbs' functions are called in fabric/verbs"
{ echo "$head"; printf 'void f(struct base_text *t)\n{\n    base_text_printf(t, ",\\"age_ms\\":%%d}", 1);\n}\n'; } | finds ctl/a.c 'JSON is written with base_json_'
{ echo "$head"; printf 'void f(struct base_text *t)\n{\n    base_text_append(\n        t, ",\\"worker\\":", 10);\n}\n'; } | finds agent/a.c 'JSON is written with base_json_'
{ echo "$head"; printf 'void f(void)\n{\n    printf("{\\"worker\\":%%d}", 1);\n}\n'; } | finds ctl/a.c 'JSON is written with base_json_'
{ echo "$head"; echo '#include "agent/lane.h"'; } | finds base/a.c 'base/ may not include agent/lane.h'
{ echo "$head"; echo '#include "fabric/fabric.h"'; } | finds ctl/a.c 'ctl/ may not include fabric/fabric.h'
{ echo "$head"; echo '#include <sqlite3.h>'; } | finds agent/a.c 'sqlite3.h has its home in metaserver/store/'
{ echo "$head"; printf 'void f(void)\n{\n'; seq 70 | sed 's|.*|    f();|'; echo '}'; } | finds base/a.c 'a function of 71 lines'
{ echo "$head"; echo 'int   x ;'; } | finds base/a.c 'not formatted'
echo 'target_link_libraries(x PRIVATE PkgConfig::VERBS)' | finds agent/CMakeLists.txt 'PkgConfig::VERBS is linked in fabric/CMakeLists.txt tests/bench/verbs/CMakeLists.txt alone'
{ echo "$head"; printf 'void f(void)\n{\n    ibv_fork_init();\n}\n'; } | finds tests/bench/a.c "verbs' functions are called in fabric/verbs"
{ echo "$head"; printf 'int f(const void *qp)\n{\n    return fab_qp_state(qp);\n}\n'; } | finds agent/lane/a.c 'a lane may not call fab_qp_state'
{ echo "$head"; printf 'void f(void)\n{\n    usleep(1);\n}\n'; } | finds agent/lane/a.c 'a lane may not call usleep'
{ echo "$head"; printf 'void f(struct fab *fab)\n{\n    fab->ops->submit(fab);\n}\n'; } | finds agent/lane/a.c 'a lane may not call submit'
{ echo "$head"; printf 'int f(void)\n{\n    return take_above();\n}\n'; } | finds agent/lane/transmit/a.c 'take_above is of a layer above'
{ echo "$head"; printf 'static int take(void)\n{\n    return 1;\n}\n'; } | finds metaserver/a.c 'take is one word'
{ echo "$head"; printf 'static const struct x *find(int x);\n'; } | finds base/a.c 'find is one word'
{ echo "$head"; printf 'static int take(void)\n{\n    return 1;\n}\n'; } | finds agent/a.c 'take is one word'
{ echo "$head"; printf 'static int take(void)\n{\n    return 1;\n}\n'; } | finds fabric/a.c 'take is one word'
{ echo "$head"; printf 'int take_one(void)\n{\n    return 1;\n}\n'; } | finds ctl/a.c 'take_one .* does not begin with ctl_'
{ echo "$head"; printf 'void kedge_take(void)\n{\n}\n'; } | finds metaserver/a.c 'kedge_take .* does not begin with meta_'
{ echo "$head"; printf 'void kedge_take(void)\n{\n}\n'; } | finds agent/a.c 'kedge_take is not in kedge.h'
{ echo "$head"; printf 'void take_one(void)\n{\n}\n'; } | finds fabric/a.c 'take_one .* does not begin with fab_'
{ echo "$head"; printf 'void take_one(void)\n{\n}\n'; } | finds base/a.c 'take_one .* does not begin with base_'
{ echo "$head"; printf 'void kedge_two(void)\n{\n}\n'; } | finds libclient/a.c 'kedge_two is not in kedge.h'
echo "$head" | finds metaserver/store/right.c 'metaserver/right.c has that name too'
