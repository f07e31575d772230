/* SPDX-License-Identifier: Apache-2.0 */
/* main() of a fuzz target without libFuzzer: runs each file that is given, and every shorter form
 * of it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES (1 << 20)

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    uint8_t *data = malloc(MAX_BYTES);
    size_t size = data == NULL ? 0 : fread(data, 1, MAX_BYTES, file);
    fclose(file);
    for (size_t cut = 0; cut <= size; cut += 1 + size / 4096) {
        /* A copy of its exact size, so that a sanitizer sees a byte too many. */
        uint8_t *copy = malloc(cut + 1);
        if (copy == NULL)
            break;
        memcpy(copy, data, cut);
        uint8_t *exact = realloc(copy, cut > 0 ? cut : 1);
        LLVMFuzzerTestOneInput(exact != NULL ? exact : copy, cut);
        free(exact != NULL ? exact : copy);
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    return failed;
}
