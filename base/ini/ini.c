/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct reading {
    const char *path;
    FILE *file;
    base_ini_set set;
    void *user;
    struct base_errbuf *err;
    unsigned line, wrong_line;
    int status; /* the first error of a setting, which is in wrong_line */
};

static int refuse_line(struct reading *r, const char *what)
{
    if (r->status == 0) {
        r->status = base_err(r->err, -EINVAL, "%s:%u: %s", r->path, r->line, what);
        r->wrong_line = r->line;
    }
    return 0;
}

static int handle_entry(void *user, const char *section, const char *key, const char *value)
{
    struct reading *r = user;
    struct base_errbuf what = {.text = ""};
    if (r->set(r->user, section, key, value != NULL ? value : "", &what) != 0)
        return refuse_line(r, what.text);
    return 1;
}

/* The parser itself says nothing of a section before its first setting. What it does not take for
 * one is its own to refuse. */
static int begin_section(struct reading *r, const char *line)
{
    char section[BASE_INI_SECTION + 1];
    struct base_errbuf what = {.text = ""};
    const char *begin = line + strspn(line, " \t\r\n"), *end = strchr(begin, ']');
    if (begin[0] != '[' || end == NULL)
        return 0;
    snprintf(section, sizeof section, "%.*s", (int)(end - begin - 1), begin + 1);
    if (r->set(r->user, section, NULL, NULL, &what) == 0)
        return 0;
    refuse_line(r, what.text);
    return -EINVAL;
}

/* As fgets(), which does not tell a NUL that it has read from the line's end: how many bytes. */
static int fill_line(FILE *file, char *line, int bytes)
{
    int n = 0, c = 0;
    while (n < bytes - 1 && c != '\n' && (c = getc(file)) != EOF)
        line[n++] = (char)c;
    line[n] = '\0';
    return n;
}

/* What some editors begin a file of UTF-8 with, and which the parser would skip: it is for none of
 * both. */
static int skip_mark(char *line, int bytes)
{
    static const char MARK[] = "\xef\xbb\xbf";
    const int mark = (int)sizeof MARK - 1;
    if (bytes < mark || memcmp(line, MARK, (size_t)mark) != 0)
        return bytes;
    memmove(line, line + mark, (size_t)(bytes - mark) + 1);
    return bytes - mark;
}

/* For the parser: counts lines, and finds sections, lines that it would cut in two, and NULs, which
 * would have it take a file of zeros for an empty one. */
static char *read_line(char *line, int bytes, void *user)
{
    struct reading *r = user;
    int n = fill_line(r->file, line, bytes);
    if (n == 0)
        return NULL;
    if (r->line++ == 0)
        n = skip_mark(line, n);
    if (memchr(line, '\0', (size_t)n) != NULL) {
        refuse_line(r, "there is a NUL, as in no text: was the file damaged?");
        return NULL;
    }
    if (n == bytes - 1 && line[bytes - 2] != '\n' && !feof(r->file)) {
        struct base_errbuf what;
        base_err(&what, 0, "a line has at most %d bytes", BASE_INI_LINE);
        refuse_line(r, what.text);
        return NULL;
    }
    return begin_section(r, line) == 0 ? line : NULL;
}

int base_ini_read_file(FILE *file, const char *path, base_ini_set set, void *user,
                       struct base_errbuf *err)
{
    struct reading r = {.path = path, .file = file, .set = set, .user = user, .err = err};
    /* Lists of metaservers and of users are longer than the 200 bytes that are usual. */
    ini_use_stack = false;
    ini_max_line = ini_initial_alloc = BASE_INI_LINE + 3; /* newline, NUL, and one to tell */
    int line = ini_parse_stream(read_line, &r, handle_entry, &r);
    if (r.status == 0 && ferror(file))
        return base_err(err, -EIO,
                        "the configuration %s cannot be read: is it a file, and its disk whole?",
                        path);
    /* The parser goes on behind a line that it did not understand, and may find what is no error
     * by itself. */
    if (line != 0 && (r.status == 0 || (unsigned)line < r.wrong_line))
        return base_err(err, -EINVAL, "%s:%d: neither a [section] nor a key = value", path, line);
    return r.status;
}

int base_ini_read(const char *path, base_ini_set set, void *user, struct base_errbuf *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return base_err(err, -errno,
                        "the configuration %s cannot be read: %s (name one that uid %u may read)",
                        path, strerror(errno), (unsigned)geteuid());
    int status = base_ini_read_file(file, path, set, user, err);
    fclose(file);
    return status;
}
