/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 4096 };

struct fab_placement fab_place(const cpu_set_t *allowed, const cpu_set_t *beside, uint64_t cpu,
                               uint32_t lane, uint32_t comp_vectors)
{
    struct fab_placement p = {.comp_vector = comp_vectors > 0 ? lane % comp_vectors : 0};
    CPU_ZERO(&p.cpus);
    if (cpu != FAB_ANY_CPU) {
        p.bound = true;
        CPU_SET(cpu, &p.cpus);
        p.beside = CPU_ISSET(cpu, beside) != 0;
        return p;
    }
    CPU_AND(&p.cpus, allowed, beside);
    p.beside = CPU_COUNT(&p.cpus) > 0;
    p.bound = p.beside && !CPU_EQUAL(&p.cpus, allowed);
    return p;
}

int fab_parse_cpus(const char *text, cpu_set_t *out)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const char *at = text; *at != '\0' && *at != '\n';) {
        char *end = NULL;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at)
            return -EINVAL;
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            if (end == at)
                return -EINVAL;
        }
        if (first > last || last >= CPU_SETSIZE || (*end != ',' && *end != '\n' && *end != '\0'))
            return -EINVAL;
        for (unsigned long i = first; i <= last; i++)
            CPU_SET(i, &cpus);
        at = end + (*end == ',');
    }
    *out = cpus;
    return 0;
}

void fab_cpus_of_node(int node, cpu_set_t *out)
{
    char path[64], text[LIST_BYTES] = "";
    CPU_ZERO(out);
    if (node < 0)
        return;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(text, sizeof text, file) == NULL || fab_parse_cpus(text, out) != 0)
        CPU_ZERO(out);
    (void)fclose(file);
}
