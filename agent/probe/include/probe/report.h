/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a probe: checks with a sentence and numbers each, the devices that there are, and a
 * verdict. One thread. */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"
#include "fabric/devices.h"

enum {
    PROBE_FORMAT = 1, /* of the JSON: grows when a field changes its meaning or goes */
    PROBE_CHECKS = 96,
    PROBE_NUMBERS = 24, /* of one check */
    PROBE_FOUND = 512,
    PROBE_ADVICE = 320,
};

/* The check whose warning is a condition of the verdict. */
#define PROBE_MEMLOCK "locked memory"

enum probe_result { PROBE_OK, PROBE_WARNING, PROBE_FAILED, PROBE_SKIPPED };

/* What cannot be had when a check has failed. */
enum probe_need {
    PROBE_FOR_NOTHING = 0,
    PROBE_FOR_RC = 1 << 0, /* anything: DC needs what RC needs, handshakes and the rest */
    PROBE_FOR_DC = 1 << 1,
    PROBE_FOR_PEER = 1 << 2, /* anything with the other node */
};

struct probe_number {
    const char *name; /* a literal; its unit last */
    uint64_t value;
};

struct probe_check {
    const char *name; /* a literal: "rc.read" */
    enum probe_need need;
    enum probe_result result;
    char found[PROBE_FOUND];   /* a sentence */
    char advice[PROBE_ADVICE]; /* what to do; "" if nothing is */
    struct probe_number number[PROBE_NUMBERS];
    unsigned numbers;
};

struct probe_report {
    char provider[32];
    char device[256]; /* that was opened: its name, or its directory */
    bool by_proc;     /* as struct fab_provider has it */
    uint8_t gid[16];
    uint8_t port;
    uint32_t transports; /* of enum fab_transport; 0: none was opened */
    char no_dc[256];     /* why there is no DC */
    bool stuck;          /* a call into the device did not come back */
    struct fab_devices devices;
    struct probe_check check[PROBE_CHECKS];
    unsigned checks;
};

struct probe_verdict {
    bool usable, dc;
    char sentence[1024];
};

void probe_report_fini(struct probe_report *r);

/* The next check, skipped until one of those below says more. Valid as long as the report. */
struct probe_check *probe_begin(struct probe_report *r, const char *name, enum probe_need need);
void probe_ok(struct probe_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void probe_skip(struct probe_check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void probe_warn(struct probe_check *c, const char *advice, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void probe_fail(struct probe_check *c, const char *advice, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void probe_advise(struct probe_check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Dropped beyond PROBE_NUMBERS; a value above INT64_MAX becomes that. */
void probe_number(struct probe_check *c, const char *name, uint64_t value);
/* The check of that name, or NULL. */
const struct probe_check *probe_find(const struct probe_report *r, const char *name);

enum { PROBE_DURATION = 24 };
/* "2.13 us". Returns out. */
const char *probe_duration(uint64_t ns, char out[PROBE_DURATION]);
/* "64 KiB", rounded up. Returns out. */
const char *probe_size(uint64_t bytes, char out[PROBE_DURATION]);

void probe_judge(const struct probe_report *r, struct probe_verdict *out);

void probe_print_text(const struct probe_report *r, FILE *out);
/* One object; errors stick in the text. */
void probe_print_json(const struct probe_report *r, struct base_text *out);

#endif
