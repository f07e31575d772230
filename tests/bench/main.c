/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf: measures one thing and prints it. */
#include <errno.h>
#include <stdio.h>

#include "perf.h"

static int measure(const struct perf_options *o, struct perf_result *r, struct kedge_errbuf *err)
{
    if (o->direct)
        return perf_direct(o, r, err);
    return kedge_err(err, -ENOTSUP, "only --direct is there yet");
}

int main(int argc, char **argv)
{
    static struct perf_result result;
    struct perf_options options;
    struct kedge_errbuf err = {.text = ""};
    int status = perf_options_parse(argc, argv, &options, &err);
    if (status > 0)
        return 0;
    if (status < 0) {
        fprintf(stderr, "kedge-perf: %s\n", err.text);
        return 2;
    }
    status = measure(&options, &result, &err);
    if (status != 0) {
        fprintf(stderr, "kedge-perf: %s\n", err.text);
        return 1;
    }
    perf_report(&options, &result);
    return 0;
}
