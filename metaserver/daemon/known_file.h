/* SPDX-License-Identifier: Apache-2.0 */
/* The file store-known.json of data_dir, in which a metaserver remembers what it has known of a
 * store that it shares (metaserver/known.h). It is written by a thread of its own, since a disk may
 * take its time, and what is to be written is what was known last. The main thread's. */
#ifndef METASERVER_KNOWN_FILE_H
#define METASERVER_KNOWN_FILE_H

#include "metaserver/known.h"

struct meta_known_file;

/* What data_dir has of that store (its id): 0; -ENOENT: there is nothing; else -errno and a
 * sentence. What it has of another store is set aside, in a file of that store's own, and is read
 * again when this one begins on it; it is what is given if there is nothing else. */
int meta_known_file_read(const char *data_dir, const char *store, struct meta_known *out,
                         struct base_errbuf *err);

/* -errno and a sentence. */
int meta_known_file_new(const char *data_dir, struct meta_known_file **out,
                        struct base_errbuf *err);
/* Takes the text, which is a file's. */
void meta_known_file_write(struct meta_known_file *f, char *text);
/* Waits for what is being written, a few seconds at most. NULL is allowed. */
void meta_known_file_free(struct meta_known_file *f);

#endif
