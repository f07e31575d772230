/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a region that holds a text and prints its token; ends when its standard input does. For
 * each line there it prints the token again, which is another one when the host's address is.
 *
 *   export_region [TEXT] */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

enum { BYTES = 4096 };

static int serve_region(struct kedge_session *s, const char *text)
{
    char token[KEDGE_TOKEN_MAX], ignored[256];
    struct kedge_mr *mr;
    uint32_t lkey;
    void *memory;
    int status = kedge_alloc(s, BYTES, &memory, &lkey);
    if (status != 0)
        return status;
    memset(memory, 0, BYTES);
    strncpy(memory, text, BYTES - 1);
    status = kedge_reg_mr(s, memory, BYTES, IBV_ACCESS_REMOTE_READ, &mr);
    if (status != 0)
        return status;
    do {
        status = kedge_mr_export(mr, token, sizeof token);
        if (status != 0)
            return status;
        puts(token);
        fflush(stdout);
    } while (read(STDIN_FILENO, ignored, sizeof ignored) > 0);
    return kedge_dereg_mr(mr);
}

int main(int argc, char **argv)
{
    struct kedge_session *s = NULL;
    int status = kedge_open(NULL, &s);
    if (status == 0)
        status = serve_region(s, argc > 1 ? argv[1] : "hello from the other side");
    if (status != 0)
        fprintf(stderr, "export_region: %s\n", kedge_last_error());
    kedge_close(s);
    return status == 0 ? 0 : 1;
}
