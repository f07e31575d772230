#!/usr/bin/env bash
# Checks a model in all its states with spin (Debian's package), as it is and with each error that
# it names (its lines "#define PLANT_... NUMBER"): the first must find nothing, each of the others
# something. The same program runs for all of them.
#
#   tests/model/check.sh MODEL.pml
#
# To see how a planted error comes to pass: spin -a MODEL.pml && cc -o pan pan.c && PLANT=1 ./pan &&
# PLANT=1 ./pan -r
set -euo pipefail
model=$(realpath "$1")
command -v spin >/dev/null || { echo "skip: there is no spin (Debian: spin)"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$(dirname "$model")"/*.pml .
spin -a "${model##*/}" >spin.out 2>&1 || { cat spin.out; exit 1; }
# Without -DSAFETY it would look for cycles too, which cost it twice the states.
"${CC:-cc}" -O1 -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c

# Prints pan's line of what it found; empty: nothing, in all states.
run_model() { # plant
    PLANT=$1 ./pan -m1000000 -w22 >out 2>&1 || true
    grep -q '^State-vector' out || { cat out >&2; return 1; }
    ! grep -Eq 'max search depth too small|search interrupted|out of memory' out ||
        { cat out >&2; return 1; }
    sed -n 's/^pan:[0-9]*: //p' out | head -n 1
}

failed=0
found=$(run_model 0)
states=$(awk '/states, stored/ {print $1}' out)
if [[ -n $found ]]; then
    echo "${model##*/}: $found"
    PLANT=0 ./pan -r | tail -n 60
    failed=1
else
    echo "${model##*/}: nothing found in $states states"
fi
plants=0
while read -r _ name number text; do
    plants=$((plants + 1))
    found=$(run_model "$number")
    if [[ -z $found ]]; then
        echo "NOT FOUND  $name ($text)"
        failed=1
    else
        echo "found      $name: ${found%% (at depth*}"
    fi
done < <(grep -E '^#define PLANT_' "$model")
((plants)) || { echo "the model names no error to plant"; failed=1; }
exit $failed
