#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts in place is what a user needs: both daemons, the tools, the library
# with a soname and our symbols alone, its header, pkg-config, man pages; and a worker builds and
# runs against that alone. The same under another prefix than the one that the build was
# configured with.
source "$(dirname "$0")/lib.sh"
build=$(cd "$bin/.." && pwd) source=$(cd "$(dirname "$0")/../.." && pwd)
for tool in pkg-config nm cc; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
start
root=$work/root
DESTDIR=$root cmake --install "$build" >"$work/install.log" ||
    fail "installing: $(tail -n 3 "$work/install.log")"
prefix=$root$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
for file in bin/rdmactl bin/kedge-perf sbin/kedge-agentd sbin/kedge-metad include/kedge{,_msg}.h \
    share/man/man1/rdmactl.1 share/man/man1/kedge-perf.1 share/man/man3/kedge.3 \
    share/man/man5/kedge-agent.conf.5 \
    share/doc/kedge/{openapi.yaml,README.md,CHANGELOG.md,LICENSE} \
    share/doc/kedge/docs/{operations.md,decisions/README.md} \
    share/doc/kedge/examples/kedge-{rules.yaml,dashboard.json} \
    share/man/man8/kedge-agentd.8 share/man/man8/kedge-metad.8 \
    share/bash-completion/completions/rdmactl share/zsh/site-functions/_rdmactl \
    share/fish/vendor_completions.d/rdmactl.fish; do
    [[ -s $prefix/$file ]] || fail "$file is not installed"
done
ok "programs, header, man pages, documents and completion are installed"

library=$(find "$prefix" -name 'libkedge.so.*.*' | head -n 1)
foreign=$(nm -D --defined-only "$library" |
    awk '$2 ~ /[TDBRV]/ && $3 !~ /^kedge_/ {print $3}' |
    grep -v -e '^_init$' -e '^_fini$' -e asan -e ubsan || true)
[[ -z $foreign ]] || fail "the library exports what is not ours: $foreign"
objdump -p "$library" | grep >/dev/null 'SONAME *libkedge.so.0' || fail "no soname"
ok "the library exports kedge_* alone, as $(objdump -p "$library" | awk '/SONAME/ {print $2}')"

other=$work/other
cmake --install "$build" --prefix "$other" >"$work/install.log" ||
    fail "installing in $other: $(tail -n 3 "$work/install.log")"
for daemon in kedge-agentd kedge-metad; do
    grep -q "^ExecStart=$other/sbin/$daemon " "$other/lib/systemd/system/$daemon.service" ||
        fail "$daemon.service starts $(grep ^ExecStart "$other/lib/systemd/system/$daemon.service")"
    command -v systemd-analyze >/dev/null || {
        skip "whether systemd takes $daemon.service: systemd-analyze is not installed"
        continue
    }
    out=$(systemd-analyze verify --man=no --recursive-errors=no \
        "$other/lib/systemd/system/$daemon.service" 2>&1) || fail "systemd-analyze verify: $out"
done
# Every link between the installed files leads to one of them.
links=0
check_links() { # prefix
    local document link target
    while IFS=: read -r document link; do
        link=${link#](} link=${link%)}
        [[ ! $link =~ ^([a-z]+:|#) ]] || continue
        target=$(dirname "$document")/${link%%#*}
        [[ -s $target && $(readlink -f "$target") == "$(readlink -f "$1")"/* ]] ||
            fail "$document has a link to $link, which is not installed"
        links=$((links + 1))
    done < <(grep -rHoE --include='*.md' '\]\([^) ]+\)' "$1")
    ((links > 0)) || fail "no link was looked at"
}
check_links "$prefix"
check_links "$other"
for document in README.md CHANGELOG.md docs/operations.md; do
    diff <(sed -E 's/\]\([^) ]+\)/]()/g' "$source/$document") \
        <(sed -E 's/\]\([^) ]+\)/]()/g' "$other/share/doc/kedge/$document") >/dev/null ||
        fail "$document was installed otherwise than it is, but for its links"
done
ok "$links links in installed documents lead to what is installed"

left=$(grep -rlI "$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")/" \
    "$other/lib" || true)
[[ -z $left ]] || fail "these name the prefix of the build: $left"
ok "under another prefix, units and pkg-config name that"
foreign=$(nm -g --defined-only "$(find "$other" -name libkedge.a)" |
    awk '$2 ~ /[TDBRVC]/ && $3 !~ /^kedge_/ {print $3}')
[[ -z $foreign ]] || fail "libkedge.a has names that are not ours: $foreign"
diff <(nm -g --defined-only "$(find "$other" -name libkedge.a)" |
        awk '$2 == "T" {print $3}' | sort) \
    <(nm -D --defined-only "$library" | awk '$2 == "T" && /kedge_/ {print $3}' | sort) ||
    fail "libkedge.a and libkedge.so have different interfaces"
ok "libkedge.a has the same interface, and no other name"

if ! grep -q -a __asan_init "$library"; then
    loaded=$(env -u LD_LIBRARY_PATH ldd "$other/bin/kedge-perf" |
        awk '$1 == "libkedge.so.0" {print $3}')
    [[ $(readlink -f "$loaded") == "$(readlink -f "$other")"/* ]] ||
        fail "the installed kedge-perf loads $loaded"
    env -u LD_LIBRARY_PATH "$other/bin/kedge-perf" --help >/dev/null ||
        fail "kedge-perf does not run under another prefix"
    ok "kedge-perf finds libkedge there by itself"
fi

PKG_CONFIG_PATH=$(dirname "$(find "$other" -name kedge.pc)")
export PKG_CONFIG_PATH
examples=$other/share/doc/kedge/examples
if ! grep -q -a __asan_init "$library"; then
    read -ra flags <<<"$(pkg-config --cflags --libs kedge)"
    cc -std=c11 -Wall -Wextra -Werror -o "$work/worker" "$examples/read_region.c" "${flags[@]}" ||
        fail "the installed example does not build against what was installed"
    read -ra flags <<<"$(pkg-config --cflags --libs --static kedge |
        sed 's/-lkedge/-l:libkedge.a/')"
    cc -std=c11 -Wall -Wextra -Werror -o "$work/worker-static" \
        "$examples/read_region.c" "${flags[@]}" ||
        fail "the installed example does not build with libkedge.a"
    ldd "$work/worker-static" >"$work/needed" || fail "ldd does not say what it needs"
    lacks "$work/needed" libkedge || fail "what links libkedge.a needs libkedge.so"
    sed -n '/^```c$/,/^```$/{/^```/!p}' "$source/README.md" >"$work/readme.c"
    read -ra flags <<<"$(pkg-config --cflags --libs kedge)"
    cc -std=c11 -Wall -Wextra -Werror -o "$work/readme" "$work/readme.c" "${flags[@]}" ||
        fail "the program of README.md does not build"
    export_text b "through what was installed"
    for worker in worker worker-static; do
        out=$(LD_LIBRARY_PATH=$(dirname "$(find "$other" -name libkedge.so)") \
            KEDGE_SOCKET=$work/a.sock timeout 60 "$work/$worker" "$token") || fail "$worker: $out"
        [[ $(tail -n 1 <<<"$out") == "through what was installed" ]] ||
            fail "$worker read back: $out"
    done
    readme() {
        out=$(LD_LIBRARY_PATH=$(dirname "$(find "$other" -name libkedge.so)") \
            KEDGE_SOCKET=$work/a.sock timeout 60 "$work/readme" "$@" 2>&1)
    }
    readme "$token" || fail "the program of README.md: $out"
    [[ $out == "through what was installed" ]] || fail "the program of README.md prints: $out"
    ok "README.md's program builds and reads"
    code=0
    readme || code=$?
    [[ $code == 2 && $out == "usage: $work/readme TOKEN" ]] ||
        fail "without an argument the program of README.md ends with $code: $out"
    exec 9>&-
    wait "${worker_pids[-1]}" || fail "the exporter ended with $?"
    code=0
    readme "$token" || code=$?
    [[ $code == 1 && $out == *": "*"region"* ]] ||
        fail "of a region that is gone the program of README.md says ($code): $out"
    ok "and says what is wrong: $out"
    ok "a worker builds with pkg-config, shared and static, and runs against it"
else
    skip "a worker against what was installed (the library needs the sanitizer's)"
fi
stop
