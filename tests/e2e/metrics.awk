# SPDX-License-Identifier: Apache-2.0
# Holds a text of metrics (Prometheus' exposition format 0.0.4) to the format and to Prometheus'
# conventions of names and units. Prints each offence with its line; exits 1 if there is one. The
# variable `prefix` is what names begin with.
function offence(what) { printf "%d: %s: %s\n", FNR, $0, what; offences++ }
# The family of a sample's name: histograms have three series.
function family(name,    base) {
    if (name in type) return name
    base = name
    if (sub(/_(bucket|sum|count)$/, "", base) && type[base] == "histogram") return base
    return ""
}
function check_name(name, kind,    words, n, i) {
    if (name !~ /^[a-z][a-z0-9_]*$/ || name ~ /__|_$/)
        offence("a name is words of a-z and 0-9 with one _ between them")
    if (index(name, prefix) != 1) offence("the name does not begin with " prefix)
    if ((kind == "counter") != (name ~ /_total$/))
        offence("counters, and they alone, end in _total")
    if (kind != "histogram" && name ~ /_(bucket|sum|count)$/)
        offence("this ending is a histogram's")
    n = split(name, words, "_")
    for (i = 1; i <= n; i++) {
        if (words[i] ~ /^(ns|us|ms|s|sec|msec|usec|nsec|(nano|micro|milli)seconds?)$/ ||
            words[i] ~ /^(minutes?|hours?|days?|second)$/)
            offence("time is in seconds, and says so")
        if (words[i] ~ /^(b|kb|mb|gb|kib|mib|gib|(kilo|mega|giga|kibi|mebi|gibi)bytes?)$/ ||
            words[i] ~ /^(pages?|bits?|byte)$/)
            offence("sizes are in bytes, and say so")
        if (words[i] ~ /^(percent|percentage|pct)$/) offence("shares are ratios")
        if (words[i] ~ /^(gauge|counter|histogram|summary)$/)
            offence("a name does not say its type")
        if (words[i] ~ /^(seconds|bytes|ratio)$/ && i < n && !(i == n - 1 && words[n] == "total"))
            offence("the unit stands at the end, before _total")
    }
}
# Takes labels off `rest`, which begins behind the brace; sorts them into `labels`, and le apart.
function read_labels(    name, value, i, sorted, n, seen) {
    n = 0
    while (match(rest, /^[a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\["\\n])*"/)) {
        name = value = substr(rest, 1, RLENGTH)
        rest = substr(rest, RLENGTH + 1)
        sub(/=.*/, "", name)
        sub(/^[^=]*=/, "", value)
        if (name ~ /^__/) offence("labels that begin with __ are Prometheus' own")
        if (name in seen) offence("the label " name " is there twice")
        if (name == "le" && !is_bucket) offence("le is of histograms' buckets")
        seen[name]
        if (name == "le") le = value
        else sorted[++n] = name "=" value
        if (rest !~ /^,/) break
        rest = substr(rest, 2)
    }
    for (i = 2; i <= n; i++)
        for (value = i; value > 1 && sorted[value] < sorted[value - 1]; value--) {
            name = sorted[value]; sorted[value] = sorted[value - 1]; sorted[value - 1] = name
        }
    for (i = 1; i <= n; i++) labels = labels sorted[i] ","
    return sub(/^\}/, "", rest)
}
/^# HELP / {
    if ($3 in help) offence("HELP is there twice")
    help[$3]
    if (NF < 4) offence("HELP says nothing")
    current = $3
    next
}
/^# TYPE / {
    if ($3 in type) offence("TYPE is there twice")
    if (!($3 in help) || current != $3) offence("HELP does not stand before it")
    if ($4 !~ /^(counter|gauge|histogram)$/ || NF != 4) offence("there is no such type")
    type[$3] = $4
    check_name($3, $4)
    next
}
/^#/ || /^$/ { offence("neither HELP nor TYPE nor a sample"); next }
{
    samples++
    rest = $0
    labels = le = ""
    if (!match(rest, /^[a-zA-Z_:][a-zA-Z0-9_:]*/)) { offence("no name"); next }
    name = substr(rest, 1, RLENGTH)
    rest = substr(rest, RLENGTH + 1)
    of = family(name)
    is_bucket = type[of] == "histogram" && name == of "_bucket"
    if (of == "") { offence("no TYPE stands before it"); next }
    if (of != current) offence("it stands among samples of " current)
    if (rest ~ /^\{/) {
        rest = substr(rest, 2)
        if (!read_labels()) { offence("malformed labels"); next }
    }
    if (rest !~ /^ ([-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|[+-]Inf|NaN)$/) {
        offence("malformed value")
        next
    }
    value = substr(rest, 2)
    if ((name, labels, le) in known) offence("the sample is there twice")
    known[name, labels, le]
    if (type[of] != "gauge" && (value ~ /^-/ || value == "NaN"))
        offence("what is counted is never negative")
    if (is_bucket) {
        if (le == "") offence("a bucket without le")
        if (bucket[of, labels] != "" && value + 0 < bucket[of, labels] + 0)
            offence("buckets hold those below")
        bucket[of, labels] = value
        if (le == "\"+Inf\"") all[of, labels] = value
    } else if (type[of] == "histogram" && name == of "_count" && all[of, labels] != value)
        offence("_count is not what the bucket +Inf holds")
}
END {
    for (name in help) if (!(name in type)) { printf "%s has no TYPE\n", name; offences++ }
    if (samples == 0) { print "there are no samples"; offences++ }
    exit offences > 0
}
