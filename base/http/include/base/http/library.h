/* SPDX-License-Identifier: Apache-2.0 */
/* What the HTTP server owes to the library below it. Any thread. */
#ifndef BASE_HTTP_LIBRARY_H
#define BASE_HTTP_LIBRARY_H

/* The version of libmicrohttpd that runs; and what is to be said in the log of one: a sentence, or
 * NULL if it is the one that was tested. Both are constant. */
const char *http_library_version(void);
const char *http_library_warning(const char *version);

#endif
