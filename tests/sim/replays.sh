#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A violation is shrunk by itself, and the command that is printed with it shows it again: with the
# settings, of which the usual ones are not printed, and no more faults than it needs.
#
#   replays.sh KEDGE-SIM
set -u
sim=$1
fail() { echo "FAIL: $*" >&2; exit 1; }
rule() {
    sed -n 's/.*VIOLATION: //p' | sed 's/^[^:]*: //; s/0x[0-9a-f]*//g; s/[0-9]*//g' | tail -n 1
}
plant=withdrawn-before-the-lease

found=$("$sim" --seeds 2 --plant "$plant" --nodes 3 --workers 3 --rate 2) &&
    fail "the planted bug is not found"
command=$(echo "$found" | grep '^kedge-sim --seed ') || fail "no command is printed: $found"
[ "$(echo "$command" | wc -l)" = 1 ] || fail "more than the first violation is shrunk: $found"
for setting in "--only " "--plant $plant" "--nodes 3" "--workers 3" "--rate 2"; do
    case $command in *"$setting"*) ;; *) fail "$setting is not printed: $command" ;; esac
done
case $command in *--seconds* | *--metaservers* | *--calm*) fail "usual settings: $command" ;; esac
# shellcheck disable=SC2086
again=$("$sim" ${command#kedge-sim }) && fail "it shows nothing: $command"
[ "$(echo "$again" | rule)" = "$(echo "$found" | sed -n 1p | rule)" ] ||
    fail "it shows another rule: $(echo "$again" | rule)"

json=$("$sim" --seeds 1 --plant "$plant" --nodes 3 --workers 3 --rate 2 --json)
echo "$json" | grep -q '"faults_needed":\[[0-9,]*\],"replay":"kedge-sim --seed [^"]*--nodes 3' ||
    fail "the object says not what it needs: $json"
