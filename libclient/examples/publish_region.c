/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes a region that holds a text under a name, by which workers of the same tenant find it,
 * or those of another one, and says so; ends when its standard input does.
 *
 *   publish_region NAME [TEXT [TENANT]] */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

enum { BYTES = 4096 };

static int serve_region(struct kedge_session *s, const char *name, const char *text,
                        const char *tenant)
{
    char ignored[256];
    struct kedge_mr *mr;
    uint32_t lkey;
    void *memory;
    int status = kedge_alloc(s, BYTES, &memory, &lkey);
    if (status != 0)
        return status;
    memset(memory, 0, BYTES);
    strncpy(memory, text, BYTES - 1);
    status = kedge_reg_mr(s, memory, BYTES, IBV_ACCESS_REMOTE_READ, &mr);
    if (status == 0)
        status = tenant != NULL ? kedge_publish_for(mr, name, tenant) : kedge_publish(mr, name);
    if (status != 0)
        return status;
    puts("published");
    fflush(stdout);
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0)
        ;
    return kedge_dereg_mr(mr); /* with its name */
}

int main(int argc, char **argv)
{
    struct kedge_session *s = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: publish_region NAME [TEXT [TENANT]]\n");
        return 2;
    }
    int status = kedge_open(NULL, &s);
    if (status == 0)
        status = serve_region(s, argv[1], argc > 2 ? argv[2] : "hello from the other side",
                              argc > 3 ? argv[3] : NULL);
    if (status != 0)
        fprintf(stderr, "publish_region: %s\n", kedge_last_error());
    kedge_close(s);
    return status == 0 ? 0 : 1;
}
