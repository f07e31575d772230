#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each call that libkedge exports has a manual page of its own name, with the prototype of its
# header, and each example in them compiles. What daemons and kedge-perf say that they have, theirs
# describe.
set -euo pipefail
build=${1:?usage: $0 BUILD_DIRECTORY}
root=$(cd "$(dirname "$0")/../.." && pwd)
pages=$root/docs/man
work=$(mktemp -d /tmp/kedge-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
for tool in nm cc; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done

# The page of a call, over the links.
page_of() { # call
    local page=$pages/$1.3
    [[ -f $page ]] || fail "$1 has no manual page"
    ! grep -q '^\.so ' "$page" || page=$pages/$(sed -n 's|^\.so man3/||p' "$page")
    echo "$page"
}
calls=$(nm -D --defined-only "$build/lib/libkedge.so" | awk '$2 == "T" {print $3}')
[[ $(wc -w <<<"$calls") -ge 25 ]] || fail "libkedge exports only: $calls"
for call in $calls; do
    page=$(page_of "$call") || fail "$page"
    grep -qE "^\.Nm $call( ,)?$" "$page" || fail "$page does not name $call"
    prototype=$(sed -n "s/^\.Fn $call //p" "$page" | tr -d '"' | sed -n 1p)
    [[ -n $prototype ]] || fail "$page has no prototype of $call"
    # The header's, with nothing between parameters but blanks.
    header=$(cat "$root"/libclient/include/*.h | tr '\n' ' ' |
        grep -oE "\b$call\([^;{/]*\);" | sed -n 1p |
        sed -E "s/^$call\((.*)\);$/\1/; s/, */ /g; s/ +/ /g")
    [[ $prototype == "$header" ]] || fail "$call: the page says ($prototype), the header ($header)"
    for section in DESCRIPTION "RETURN VALUES" ERRORS; do
        grep -q "^\.Sh $section" "$page" || fail "$page has no $section"
    done
done
ok=$(wc -w <<<"$calls")
echo "ok: each of $ok calls has a page with the header's prototype"

# What an example may use without saying where it is from.
prelude='#include <assert.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <kedge_batch.h>
#include <kedge_msg.h>
#include <kedge_notify.h>
void work(struct kedge_session *s);
void example(struct kedge_session *s, struct kedge_vqp *q, struct kedge_remote remote,
    const char *token, void *buffer, uint32_t lkey, struct kedge_mr *a, struct kedge_mr *b);
void example(struct kedge_session *s, struct kedge_vqp *q, struct kedge_remote remote,
    const char *token, void *buffer, uint32_t lkey, struct kedge_mr *a, struct kedge_mr *b)
{
(void)s, (void)q, (void)remote, (void)token, (void)buffer, (void)lkey, (void)a, (void)b;
{'
examples=0
for page in "$pages"/kedge*.3; do
    ! grep -q '^\.so ' "$page" || continue
    {
        echo "$prelude"
        awk '/^\.Sh EXAMPLES/ {in_examples = 1} /^\.Sh / && !/EXAMPLES/ {in_examples = 0}
             in_examples && /^\.Ed/ {code = 0}
             code {print}
             in_examples && /^\.Bd -literal/ {code = 1}' "$page" |
            sed 's/\\e/\\/g; s/\\-/-/g'
        echo '}}'
    } >"$work/example.c"
    [[ $(wc -l <"$work/example.c") -gt 14 ]] || fail "$page has no example"
    cc -std=gnu11 -Wall -Wno-unused-variable -Werror -fsyntax-only \
        -I "$root/libclient/include" "$work/example.c" 2>"$work/out" ||
        fail "the example of $page does not compile: $(cat "$work/out")"
    examples=$((examples + 1))
done
echo "ok: the examples of $examples pages compile"

# Each setting of a daemon, by its --help, stands in the example that is installed, with its
# default, and in the manual.
check_settings() { # program example page
    local key default count=0
    while IFS='|' read -r key default; do
        grep -qE "^# $key =${default:+ ${default//./\\.}\$}" "$root/ops/$2" ||
            fail "ops/$2 has not: # $key =${default:+ $default}"
        grep -qE "^\.Ic .*\b$key\b|^\.It (Ic|Xo).*\b$key\b" "$pages/$3" ||
            fail "$3 does not name $key"
        count=$((count + 1))
    done < <("$build/bin/$1" --help | sed -nE 's/^  ([a-z_0-9]+) +=  ?(([^ ]|, )*) .*/\1|\2/p')
    ((count > 15)) || fail "$1 --help shows $count settings"
    echo "ok: $count settings of $1 are in the example, with their defaults, and in $3"
}
check_settings kedge-agentd kedge-agent.conf kedge-agent.conf.5
check_settings kedge-metad kedge-metad.conf kedge-metad.8

# Each test of kedge-perf, which it names to who names none, and each of its options, stands in its
# help and in its manual.
page=$pages/kedge-perf.1
"$build/bin/kedge-perf" 2>"$work/tests" && fail "kedge-perf without a test ends well"
"$build/bin/kedge-perf" --help >"$work/help"
tests=$(sed -n 's/^kedge-perf: name one test: //p' "$work/tests" | tr -d ,)
(($(wc -w <<<"$tests") > 20)) || fail "kedge-perf names no tests: $(cat "$work/tests")"
for test in $tests; do
    grep -qE "^\.Cm (attach .*\| )?$test( \||\$)" "$page" ||
        fail "the synopsis of kedge-perf(1) has not: $test"
    grep -qE "^\.It Cm (.* , Cm )?$test( |\$)" "$page" ||
        fail "kedge-perf(1) does not describe $test"
    grep -qE "^  (.*, )?$test( |,|\$)" "$work/help" || fail "kedge-perf --help has not: $test"
done
options=$(grep -oE '^  (--[a-z-]+(, )?)+' "$work/help" | tr -d ,)
(($(wc -w <<<"$options") > 25)) || fail "kedge-perf --help shows only: $options"
described=$(sed -n '/^\.Sh OPTIONS/,$p' "$page")
for option in $options --workers; do
    grep -qE "^\.It .*Fl Fl ${option#--}( |\$)" <<<"$described" ||
        fail "the options of kedge-perf(1) have not: $option"
done
for option in $(grep -oE 'Fl Fl [a-z-]+' "$page" | sed 's/^Fl Fl /--/' | sort -u); do
    grep -qE -- "$option([^a-z-]|\$)" "$work/help" || fail "kedge-perf --help has not: $option"
done
echo "ok: $(wc -w <<<"$tests") tests and $(wc -w <<<"$options") options are in kedge-perf(1)"
