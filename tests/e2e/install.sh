#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts in place is what a user needs: both daemons, the tools, the library with a soname and our
# symbols alone, its header, pkg-config, man pages; and a worker builds and runs against that alone.
source "$(dirname "$0")/lib.sh"
build=$(cd "$bin/.." && pwd) source=$(cd "$(dirname "$0")/../.." && pwd)
for tool in pkg-config nm cc; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
start
root=$work/root
DESTDIR=$root cmake --install "$build" >"$work/install.log" || fail "installing: $(tail -n 3 "$work/install.log")"
prefix=$root$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
for file in bin/rdmactl bin/kedge-perf sbin/kedge-agentd sbin/kedge-metad include/kedge.h \
    share/man/man1/rdmactl.1 share/man/man1/kedge-perf.1 share/man/man3/kedge.3 share/man/man5/kedge-agent.conf.5 \
    share/man/man8/kedge-agentd.8 share/man/man8/kedge-metad.8 share/bash-completion/completions/rdmactl; do
    [[ -s $prefix/$file ]] || fail "$file is not installed"
done
ok "programs, header, man pages and completion are installed"

library=$(find "$prefix" -name 'libkedge.so.*.*' | head -n 1)
foreign=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDBRV]/ && $3 !~ /^kedge_/ {print $3}' | grep -v -e '^_init$' -e '^_fini$' -e asan -e ubsan || true)
[[ -z $foreign ]] || fail "the library exports what is not ours: $foreign"
objdump -p "$library" | grep -q 'SONAME *libkedge.so.0' || fail "no soname"
ok "the library exports kedge_* alone, as $(objdump -p "$library" | awk '/SONAME/ {print $2}')"

export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kedge.pc)") PKG_CONFIG_SYSROOT_DIR=$root
read -ra flags <<<"$(pkg-config --cflags --libs kedge)"
if ! grep -q -a __asan_init "$library"; then
    cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -o "$work/worker" "$source/libclient/examples/read_region.c" "${flags[@]}" ||
        fail "the example does not build against what was installed"
    export_text b "through what was installed"
    out=$(LD_LIBRARY_PATH=$(dirname "$library") KEDGE_SOCKET=$work/a.sock timeout 60 "$work/worker" "$token") || fail "$out"
    [[ $(tail -n 1 <<<"$out") == "through what was installed" ]] || fail "read back: $out"
    ok "a worker builds with pkg-config and runs against it"
    exec 9>&-
else
    skip "a worker against what was installed (the library needs the sanitizer's)"
fi
stop
