/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/text.h"

/* Of version 2's hierarchy, which is number 0 and has no controllers' names. */
#define LINE_BEGIN "0::"

/* The path below the root, from its first slash, without one at its end. The caller frees it; NULL:
 * none is said, or the process' group is not below the root of its namespace. */
static char *path_of_group(const char *membership)
{
    FILE *file = fopen(membership, "re");
    char *line = NULL, *path = NULL;
    size_t capacity = 0;
    if (file == NULL)
        return NULL;
    while (path == NULL && getline(&line, &capacity, file) >= 0) {
        if (strncmp(line, LINE_BEGIN "/", strlen(LINE_BEGIN) + 1) != 0)
            continue;
        path = strdup(line + strlen(LINE_BEGIN));
        if (path == NULL)
            break;
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(path, "/") == 0)
            path[0] = '\0';
    }
    free(line);
    (void)fclose(file);
    if (path != NULL && strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'))
        path[0] = '\0'; /* the root's own bound holds all the same */
    return path;
}

static uint64_t max_of(const char *root, const char *path)
{
    char text[32];
    char *name;
    uint64_t bytes = UINT64_MAX;
    if (asprintf(&name, "%s%s/memory.max", root, path) < 0)
        return bytes;
    FILE *file = fopen(name, "re");
    free(name);
    if (file == NULL)
        return bytes;
    if (fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
        (void)base_parse_u64(text, 0, UINT64_MAX, &bytes); /* "max" is no number */
    }
    (void)fclose(file);
    return bytes;
}

uint64_t base_memory_group(const char *membership, const char *root)
{
    char *path = path_of_group(membership);
    uint64_t least = UINT64_MAX;
    while (path != NULL) {
        const uint64_t bytes = max_of(root, path);
        least = bytes < least ? bytes : least;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            break;
        *slash = '\0';
    }
    free(path);
    return least;
}

uint64_t base_memory_most(bool *of_group)
{
    struct sysinfo host;
    const uint64_t all = sysinfo(&host) == 0 ? (uint64_t)host.totalram * host.mem_unit : UINT64_MAX;
    const uint64_t group = base_memory_group("/proc/self/cgroup", "/sys/fs/cgroup");
    *of_group = group < all;
    return group < all ? group : all;
}
