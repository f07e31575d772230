/* SPDX-License-Identifier: Apache-2.0 */
/* One publication, and what each metaserver has of it. Private to publications.c, which says what
 * is wanted, and publication_calls.c, which asks metaservers for it. Control thread. */
#ifndef CONTROL_PUBLICATION_CALLS_H
#define CONTROL_PUBLICATION_CALLS_H

#include <jansson.h>

#include "base/digest.h"
#include "publications.h"

/* What a metaserver may have of it. */
enum publication_has {
    PUBLICATION_NOTHING,
    PUBLICATION_OTHER, /* the name, for another region of before */
    PUBLICATION_THIS,
};

/* At one metaserver. */
struct publication_at {
    struct publication *of;
    enum publication_has has;
    bool again;           /* THIS: it has not said so, or may have forgotten */
    bool asking;          /* a call is out */
    bool doubted;         /* it may have forgotten since that call has begun */
    bool puts;            /* which PUTs it */
    bool returned;        /* which is counted with what this metaserver says to have */
    bool absent;          /* it has said since that it has it not (any more) */
    bool settled;         /* nobody waits for it: it has done as it was asked, or does not answer */
    bool unknowing;       /* it knows no names at all */
    uint32_t put_for;     /* publication->life when that was put */
    uint32_t incarnation; /* the node's, then: another one's names are nobody's */
    uint64_t uncertain_ns; /* a PUT that had no answer may come into force until then */
    uint64_t next_ns, backoff_ms;
    /* Of the grant that it may have, so that no other one is taken back; "": not known. */
    char digest[BASE_DIGEST_NAME];
    uint64_t refused_ns; /* since when another one has it; 0: none has */
    uint64_t settles_ns; /* it does not know yet who has it, and no other decides until then */
};

struct publication {
    struct publication *next;
    struct agent *agent;
    struct publications_account *account; /* NULL: no worker has had it, metaservers say that */
    struct agent_session *session;        /* whose region it is; NULL: it is taken back */
    uint32_t serial;                      /* of that session's worker, then too */
    uint32_t life;                        /* grows with each region that has it */
    uint32_t place;                       /* of the region's lease in its session's memory */
    struct lane_lease lease;
    struct lane_grant grant;
    uint16_t pool;
    bool decided;     /* the first metaserver has said yes */
    bool established; /* its worker has heard so */
    uint64_t end_ns;  /* not established: its worker waits no longer */
    int status;       /* not decided: why not yet, of -errno */
    char why[PUBLICATIONS_WHY];
    char tenant[AGENT_NAME], reader[AGENT_NAME]; /* "": its own */
    char name[SCHEMA_NAME_MAX + 1];
    struct publication_at at[AGENT_METASERVERS];
};

/* ---- publication_calls.c */

/* Begins what is to be asked and may be now. */
void agent_publication_calls_begin(struct agent *a);
/* Whether something is still to be asked of a metaserver that can be, or is; with `answers`: of one
 * that has not settled it. */
bool agent_publication_is_wanting(const struct publication *p, bool answers);
/* Whether no metaserver has anything of it, and none is asked. */
bool agent_publication_is_gone(const struct publication *p);
/* Not decided: whether there is anybody who may decide it. */
bool agent_publication_has_judge(const struct publication *p);
/* Former lives' names are nobody's. */
void agent_publication_forget_former(struct publication *p);

/* Of the grant that the region's metaservers are to have. False: there is none. */
bool agent_publication_digest(const struct publication *p, char out[BASE_DIGEST_NAME]);
/* The member "digest". False: it has none. */
bool agent_publication_read_digest(const json_t *object, char out[BASE_DIGEST_NAME]);

/* ---- publication_list.c */

/* Whether that metaserver takes digests of grants. */
bool agent_publications_know_digests(const struct agent *a, uint32_t metaserver);
/* It may show names that are nobody's any more: it is asked. */
void agent_publications_list(struct agent *a, uint32_t metaserver);
bool agent_publications_are_listed(const struct agent *a);
/* Begins what is to be asked and may be now. */
void agent_publications_list_begin(struct agent *a);

/* ---- publications.c */

/* NULL: there is none. */
struct publication *agent_publication_find(const struct agent *a, const char *tenant,
                                           const char *reader, const char *name);
/* Nobody's. t: NULL: a metaserver says that it has it. 0 or -ENOMEM. */
int agent_publication_add(struct agent *a, const char *tenant, const char *reader, const char *name,
                          struct publications_account *t, struct publication **out);

/* Something has changed: begins what follows, tells who waits, and frees what is gone. */
void agent_publications_turn(struct agent *a);
/* Not established: it is refused for good. */
void agent_publication_refuse(struct publication *p, int status, const char *why);
/* Established, and another one has the name: it is given up. */
void agent_publication_lose(struct publication *p, const char *why);
/* Looked at again then, at the latest. */
void agent_publications_note_due(struct agent *a, uint64_t due_ns);

#endif
