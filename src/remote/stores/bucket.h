/* Object stores: what S3 and Google Cloud Storage have in common. */
#ifndef SFTI_REMOTE_BUCKET_H
#define SFTI_REMOTE_BUCKET_H

#include "remote/remote.h"
#include "remote/stores/sign.h"

/* A store, as the environment names it. Zeroed but for scheme and alloc, it is Amazon's, read
 * anonymously. */
typedef struct sfti_store {
    const sfti_scheme *scheme;
    sft_allocator alloc;
    const char *endpoint;   /* URL without a slash at its end; NULL: Amazon's, by region */
    const char *addressing; /* "path", "virtual" or NULL: path, but virtual at Amazon's */
    const char *region;     /* NULL: not known */
    sfti_sign_keys keys;    /* id NULL: none */
    const char *bearer;     /* the authorization header of an access token; NULL: none */
    sft_hint denied;        /* hint of a request that is denied */
    const char *advice;     /* the same, in the message; NULL: none */
    const char *problem;    /* why no request can be made; NULL: none */
    /* Learnt from answers, guarded by the remote's mutex: */
    int64_t skew_s; /* of the store's clock against this machine's */
    struct bucket_region *regions;
} sfti_store;

/* Take a URL of the environment as endpoint, or tell the problem with it. False: no memory. */
bool sfti_store_at(sft_remote *remote, sfti_store *store, const char *url);

/* The functions of sfti_scheme. */
sft_code sfti_object_resolve(sfti_target *target, sft_error *err);
sft_code sfti_object_authorize(sfti_target *target, const char *url, sfti_headers *headers,
                               sft_error *err);
bool sfti_object_learn(sfti_target *target, const char *url, const sfti_answer *answer);
bool sfti_object_explain(sfti_target *target, const char *url, const sfti_answer *answer,
                         bool *again, sft_error *err);
bool sfti_object_is_folder(const char *name);

/* Resolve to the first page of what lies directly in a folder: beneath "FOLDER/". */
sft_code sfti_folder_resolve(sfti_target *target, sft_error *err);
/* The text of keys before the entries of that folder: "FOLDER/"; "" for a whole bucket. */
sft_span sfti_folder_prefix(const sfti_target *target);
/* Go to the page that a token of the last one names. False: no memory. */
bool sfti_folder_continue(sfti_target *target, sft_span token);

/* listing.c; as sfti_scheme.list. SFT_NOT_FOUND: no key begins with the folder's. */
sft_code sfti_store_list(sft_remote *remote, const char *folder, sft_listed_fn each,
                         void *each_ctx, sft_error *err);

#endif
