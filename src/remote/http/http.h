/* Exchanges: retries, waits, redirects by hand, and what a range's answer means (docs/remote.md has
 * the table). */
#ifndef SFTI_REMOTE_HTTP_H
#define SFTI_REMOTE_HTTP_H

#include "remote/remote.h"

/* A request for a whole, small answer. */
typedef struct sfti_ask {
    const char *url;    /* NULL: target->url */
    const char *accept; /* NULL: any */
    sft_span body;      /* JSON to POST; data NULL: GET */
    uint64_t most;      /* bytes of the answer */
    uint64_t total_ms;  /* 0: none */
    bool same_host;     /* redirects to the same origin only */
    bool missing_ok;    /* 404 is an answer */
} sfti_ask;

/* Send it, with the target's authorization where that may go. SFT_OK: status 2xx (or 404 with
 * missing_ok). answer is filled in any case, and freed by the caller. */
sft_code sfti_http_ask(sfti_target *target, const sfti_ask *ask, sft_buffer *body,
                       sfti_answer *answer, sft_error *err);

/* A range on its way into memory. */
typedef struct sfti_fetch {
    const char *url;      /* asked for; NULL: target->url. Of other origins than the target's it is
                             asked without authorization */
    uint64_t begin, end;  /* end exclusive, at least begin + 1 */
    void *into;           /* end - begin bytes */
    const sfti_answer *same; /* what this must be a part of (sfti_answer_same), or NULL */
    const char *same_url; /* where that was found: elsewhere, whose ETags are others, only the total
                             is compared. NULL: anywhere */
    bool first;           /* the beginning of a file about which nothing is known: the range may
                             reach past its end, and a server without ranges is good enough */
    bool (*go_on)(void *ctx); /* asked between bytes, tries and waits: false ends it with
                                 SFT_CANCELLED. May be NULL */
    void *go_on_ctx;

    /* out */
    size_t got;           /* bytes in `into`; less than asked for only at the end of the file */
    uint64_t total;       /* of the file */
    bool no_ranges;       /* the server sends the whole file, whatever is asked: only with first or
                             options.whole */
    sfti_answer answer;   /* of the last hop; free it */
    char *final_url;      /* where it was found; freed with sfti_fetch_free */
} sfti_fetch;

/* Fetch it. SFT_REMOTE_RANGE, SFT_REMOTE_CHANGED, SFT_REMOTE_STATUS, ... A connection that is lost
 * goes on from the byte that was reached. If the scheme learnt that the file is on this machine,
 * target->local is set and got is 0. */
sft_code sfti_http_range(sfti_target *target, sfti_fetch *fetch, sft_error *err);
void sfti_fetch_free(sfti_fetch *fetch);

#endif
