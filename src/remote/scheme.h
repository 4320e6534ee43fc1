/* Schemes: how a name becomes requests, whose answers mean what. */
#ifndef SFTI_REMOTE_SCHEME_H
#define SFTI_REMOTE_SCHEME_H

#include "remote/http/answer.h"
#include "remote/http/url.h"
#include "safetensors_io.h"
#include "safetensors_remote.h"

#define SFTI_HEADERS_MOST 16

/* Headers of one request. Texts are not copied: they live as long as the exchange, as what is put
 * into the arena does. */
typedef struct sfti_headers {
    sfti_arena *arena;
    sft_pair at[SFTI_HEADERS_MOST];
    size_t count;
} sfti_headers;
/* name: static, in lower case. False: full, or the value has controls. */
bool sfti_headers_add(sfti_headers *headers, const char *name, const char *value);

typedef struct sfti_scheme sfti_scheme;

/* A name on its way to being read. */
typedef struct sfti_target {
    sft_remote *remote;
    const sfti_scheme *scheme;
    sfti_arena arena;
    const char *name;  /* of sft_remote_name */
    const char *url;   /* where its first request goes; may hold secrets */
    const char *local; /* the file on this machine that has its bytes: nothing is sent */
    uint64_t local_size;
    char sha256[65];   /* of the whole file, claimed; or empty */
    char commit[65];   /* of the repository; or empty */
    const char *known; /* X-Linked-Etag of a file whose bytes are at hand, or NULL: an answer that
                          has it ends the exchange as `local` does, and sets is_known */
    bool is_known;
    void *own;         /* the scheme's, of the arena. Ranges of one file are fetched by several
                          threads, each with a copy of the target that shares it: it is written
                          in resolve only, or with remote->mutex held */
} sfti_target;

typedef enum sfti_scheme_id {
    SFTI_SCHEME_WEB = 0, /* http, https; CivitAI's downloads too */
    SFTI_SCHEME_HUB,     /* hf */
    SFTI_SCHEME_S3,      /* s3 */
    SFTI_SCHEME_GS,      /* gs */
    SFTI_SCHEME_COUNT
} sfti_scheme_id;

struct sfti_scheme {
    sfti_scheme_id id;
    const char *name;   /* "hf", for people */
    bool if_match;      /* ranges after the first carry If-Match */
    /* Read the environment (sfti_remote_environment), once, when the remote is opened; state is
     * kept in remote->state[scheme]. May be NULL. */
    sft_code (*open)(sft_remote *remote, sft_error *err);
    void (*close)(sft_remote *remote);
    /* Fill url (or local) for the name. May send requests of its own. Required. */
    sft_code (*resolve)(sfti_target *target, sft_error *err);
    /* Add what proves who asks to a request, if its URL may have it: called for each hop. May be
     * NULL. */
    sft_code (*authorize)(sfti_target *target, const char *url, sfti_headers *headers,
                          sft_error *err);
    /* Look at the answer of a hop, redirects included, while others may do so for other targets.
     * True: go no further, target->local has been set. May be NULL. */
    bool (*learn)(sfti_target *target, const char *url, const sfti_answer *answer);
    /* Say what a status that is no success means, if this scheme knows more than its number: code,
     * message and hint; false: it does not. *again: something was learnt by which the same request
     * may now succeed (once for each target). May be NULL. */
    bool (*explain)(sfti_target *target, const char *url, const sfti_answer *answer, bool *again,
                    sft_error *err);
    /* As sft_files_vtable.list; folder is a name. NULL: no folders. */
    sft_code (*list)(sft_remote *remote, const char *folder, sft_listed_fn each, void *each_ctx,
                     sft_error *err);
    /* Whether a name is a folder's, without a request. NULL: never. */
    bool (*is_folder)(const char *name);
};

extern const sfti_scheme sfti_web_scheme, sfti_hub_scheme, sfti_s3_scheme, sfti_gs_scheme;

#endif
