/* Signatures of requests to object stores: AWS Signature Version 4, for requests without a body. */
#ifndef SFTI_REMOTE_SIGN_H
#define SFTI_REMOTE_SIGN_H

#include "remote/scheme.h"

typedef struct sfti_sign_keys {
    const char *id, *secret;
    const char *session; /* the token of temporary keys, or NULL */
} sfti_sign_keys;

typedef struct sfti_sign_request {
    sfti_sign_keys keys;
    const char *region, *service;
    const char *method;
    const char *url; /* its path and query are signed as they are decoded, in the order of names */
    uint64_t now_s;  /* since 1970 */
} sfti_sign_request;

/* Add x-amz-content-sha256 (UNSIGNED-PAYLOAD), x-amz-date, x-amz-security-token if there is a
 * session, and authorization, which signs them and the host. Other headers may be sent besides.
 * A function of the request alone. SFT_BAD_ARGUMENT: keys with controls in them. */
sft_code sfti_sign(const sfti_sign_request *request, sfti_headers *headers, sft_error *err);

#endif
