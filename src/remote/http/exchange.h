/* One exchange: a request with its retries and redirects, until an answer that is wanted. */
#ifndef SFTI_REMOTE_EXCHANGE_H
#define SFTI_REMOTE_EXCHANGE_H

#include "remote/remote.h"

/* Who takes the answer that is wanted. */
typedef struct sfti_taker {
    void *ctx;
    /* *accepted: this answer is the one, rather than a failure; it is no redirect. Its body
     * begins, from the exchange's begin on, and may begin again after a failure. False: it is not
     * wanted. */
    bool (*head)(void *ctx, const sfti_answer *answer, bool *accepted);
    bool (*body)(void *ctx, const void *bytes, size_t len);
    /* The transport is done with it. SFT_REMOTE_NETWORK: incomplete, try again. */
    sft_code (*end)(void *ctx, sft_error *err);
} sfti_taker;

/* What becomes of a body. */
typedef enum sfti_body_use {
    SFTI_BODY_NONE = 0, /* no head yet */
    SFTI_BODY_TAKEN,
    SFTI_BODY_REDIRECT,
    SFTI_BODY_FAILURE
} sfti_body_use;

typedef struct sfti_exchange {
    sft_remote *remote;
    sfti_target *target;     /* NULL: nobody is asked for authorization */
    const char *url;         /* where the first request goes */
    const char *fresh_url;   /* not NULL: where to begin again, once, if url has expired */
    const char *accept;
    sft_span post;           /* JSON; data NULL: GET */
    uint64_t begin, end;     /* range to ask for; end 0: none. begin is moved by the taker */
    const sfti_answer *same; /* or NULL */
    uint64_t total_ms;       /* of all its requests; 0: none */
    bool same_host;
    bool (*go_on)(void *ctx); /* see sfti_fetch; or NULL */
    void *go_on_ctx;
    sfti_taker taker;
    sfti_answer *answer;     /* of the last hop */

    /* of the exchange; zero at first */
    sfti_arena arena;        /* of its URLs, and of what authorizes its requests */
    const char *at;          /* URL of this hop: in the end of the last one */
    const char *hops[8];     /* those before it since the beginning */
    unsigned hop_count;
    uint64_t began_ns;
    unsigned tries;          /* that failed one after the other */
    bool is_retry, restarted, explained_again;
    bool asked_before;       /* this hop's URL, before a wait: what signed it may have expired */
    sfti_headers secrets;    /* what all hops proved their rights with */
    /* of this hop */
    sfti_body_use use;
    uint64_t bytes;          /* of its body */
    sft_buffer failure;      /* beginning of a failure's body */
    bool local;              /* the scheme has found the file on this machine */
    bool authorized, no_memory;
} sfti_exchange;

/* Send one request to x->at and have its answer taken. */
sft_code sfti_exchange_hop(sfti_exchange *x, sft_error *err);
/* What is left of total_ms; UINT64_MAX: there is no limit. */
uint64_t sfti_exchange_left_ms(const sfti_exchange *x);
/* "HOST: ", or "" if that is the host of the target's URL. */
#define SFTI_HOST_SIZE 280
const char *sfti_exchange_host(const sfti_exchange *x, char out[SFTI_HOST_SIZE]);
/* All of it. The caller frees the arena in any case. */
sft_code sfti_exchange_run(sfti_exchange *x, sft_error *err);

/* Replace what an exchange proves its rights with, in headers and URLs of all its hops, wherever a
 * server repeats it in a text of len bytes; the length that is left. */
size_t sfti_redact(const sfti_exchange *x, char *text, size_t len);
/* A URL of the exchange to show: sfti_url_show, and if a server gave it, redacted. */
void sfti_exchange_show(const sfti_exchange *x, const char *url, bool given, char *out, size_t cap);

#endif
