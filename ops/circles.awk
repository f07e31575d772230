# Circles of a graph (Tarjan 1972): from lines "FROM TO" each circle of two nodes or more,
# as "COUNT NODE...".
function visit(v,    i, w) {
    number[v] = low[v] = ++counter
    stack[++depth] = v
    open[v] = 1
    for (i = 1; i <= degree[v]; i++) {
        w = next_of[v, i]
        if (!(w in number)) {
            visit(w)
            if (low[w] < low[v]) low[v] = low[w]
        } else if (open[w] && number[w] < low[v])
            low[v] = number[w]
    }
    if (low[v] == number[v])
        leave(v)
}
function leave(v,    w, line, count) {
    do {
        w = stack[depth--]
        open[w] = 0
        line = line " " w
        count++
    } while (w != v)
    if (count > 1)
        print count line
}
$1 != $2 && !(($1, $2) in seen) {
    seen[$1, $2] = 1
    nodes[$1] = 1
    next_of[$1, ++degree[$1]] = $2
}
END { for (v in nodes) if (!(v in number)) visit(v) }
