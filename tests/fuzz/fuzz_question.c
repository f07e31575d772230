/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver asks of an agent: what is believed ends its texts, and its id is one that can
 * stand in a URL. */
#include <string.h>

#include "control/question.h"
#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
    BASE_ASSERT(memchr(text, '\0', size) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_question q;
    struct base_errbuf why = {.text = ""};
    const char *line = (const char *)data;
    (void)agent_line_is_question(line, size);
    const int status = agent_question_decode(line, size, &q, &why);
    BASE_ASSERT(status == 0 || why.text[0] != '\0');
    BASE_ASSERT(status != 0 || q.id[0] != '\0');
    check_text(q.id, sizeof q.id);
    BASE_ASSERT(q.id[strspn(q.id, "0123456789abcdef")] == '\0');
    check_text(q.item, sizeof q.item);
    check_text(q.worker, sizeof q.worker);
    check_text(q.cursor, sizeof q.cursor);
    check_text(q.tenant, sizeof q.tenant);
    check_text(q.limit, sizeof q.limit);
    return 0;
}
