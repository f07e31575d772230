# SPDX-License-Identifier: Apache-2.0
# Plants bugs (plants/) in a copy of a source, each behind a number that a program chooses when it
# runs.
#
#   awk -v file=agent/lane/lane.c -f plant.awk plants.list agent/lane/lane.c   the copy
#   awk -v table=1 -f plant.awk plants.list                          their names, as a C source
#
# In the list, which is all files of plants/ one behind the other, a bug has a name and is said in
# a sentence (`what`). Of each `file` the line `line` (without its indentation) becomes `with`,
# where PLANTED says whether this bug is the one that is switched on, and counts as once in effect
# each time that it does: it stands last among conditions. A bug may change several lines;
# `workers` says how many a node has it takes, if not as many as usual, `rate` how many turns they
# take in a second, `clocks` by how many millionths clocks are off, and `slack` how many
# milliseconds devices take to see a doorbell: each of the last two alone may be the bug. `shared`
# is said of one that takes three metaservers of one store, `hybrid` of one that takes agents with
# both transports, `messages` of one that takes workers that send some, `liar` of
# one that takes an agent that lies, `lanes` says how many lanes
# an agent has, `long` is said of one that takes many seeds to find: `--planted` has it with
# `--long` only. `seed` is one that found it, and is tried first; the others are when it finds it
# no more. `sees` is a part of what the violation
# has to say that finds it: each bug has one, or up to three of which any will do, since a rule
# that is broken by something else would find any bug.
#
# A line that is to be replaced stands in its file once, or this fails: no bug is lost when the code
# changes.
function fail(text) { print "plant.awk: " text > "/dev/stderr"; failed = 1; exit 1 }
function rest(line) { sub(/^[a-z]+: */, "", line); return line }
BEGIN {
    if (table)
        print "#include \"plants.h\"\n\nint kedge_planted;\n" \
            "static uint64_t in_effect;\nuint64_t *kedge_plant_count = &in_effect;\n\n" \
            "int kedge_plant_takes_effect(void)\n{\n    ++*kedge_plant_count;\n" \
            "    return 1;\n}\n\n" \
            "const struct play_plant PLAY_PLANTS[] = {"
    else
        print "extern int kedge_planted;\nint kedge_plant_takes_effect(void);\n#line 1 \"" file "\""
}
FILENAME == ARGV[1] {
    if ($1 == "name:") { count++; name[count] = rest($0) }
    if ($1 == "what:") what[count] = rest($0)
    if ($1 == "workers:") workers[count] = rest($0)
    if ($1 == "rate:") rate[count] = rest($0)
    if ($1 == "sees:") {
        more = count in sees ? sees[count] ", " : ""
        sees[count] = more "\"" rest($0) "\""
    }
    if ($1 == "clocks:") clocks[count] = rest($0)
    if ($1 == "shared:") shared[count] = rest($0)
    if ($1 == "hybrid:") hybrid[count] = rest($0)
    if ($1 == "messages:") messages[count] = rest($0)
    if ($1 == "liar:") liar[count] = rest($0)
    if ($1 == "lanes:") lanes[count] = rest($0)
    if ($1 == "slack:") slack[count] = rest($0)
    if ($1 == "long:") takes_long[count] = 1
    if ($1 == "seed:") seed[count] = rest($0)
    if ($1 == "file:") { of = rest($0); changes[count]++ }
    if ($1 == "line:") line = rest($0)
    if ($1 == "with:" && of == file) {
        if (line in text) fail(file ": two bugs in one line: " line)
        text[line] = rest($0)
        gsub(/PLANTED/, "(kedge_planted == " count " \\&\\& kedge_plant_takes_effect())",
             text[line])
    }
    next
}
{
    bare = $0
    sub(/^ +/, "", bare)
    if (bare in text) { seen[bare]++; print text[bare] } else print
}
END {
    if (failed) exit 1
    for (i = 1; table && i <= count; i++) {
        if (!(i in sees)) fail(name[i] ": nothing says what sees it (sees)")
        printf "    {\"%s\", \"%s\", %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, {%s}},\n",
            name[i], what[i], workers[i], rate[i], clocks[i], slack[i], shared[i], hybrid[i],
            messages[i], liar[i], lanes[i], changes[i], seed[i], takes_long[i], sees[i]
    }
    if (table) print "    {0},\n};"
    for (line in text)
        if (seen[line] != 1) fail(file ": stands there " seen[line] + 0 " times: " line)
}
