/* Keys, region and endpoint for S3, from where the AWS command has them: the environment, and the
 * files ~/.aws/credentials and ~/.aws/config. Instance metadata, single sign-on, roles and
 * processes that make keys are not asked. */
#ifndef SFTI_REMOTE_CREDENTIALS_H
#define SFTI_REMOTE_CREDENTIALS_H

#include "remote/remote.h"
#include "remote/stores/sign.h"

typedef struct sfti_aws {
    sfti_sign_keys keys;    /* id NULL: none */
    const char *region;     /* NULL if it is not told, and so are the others */
    const char *endpoint;   /* URL */
    const char *addressing; /* "path", "virtual" or "auto" */
    const char *profile;    /* "default", or AWS_PROFILE's */
    const char *other_keys; /* the setting by which this profile gets keys in a way that is not
                               supported: "sso_session" */
    const char *problem;    /* why no request can be made, in a sentence */
} sfti_aws;

/* Texts are of the remote's arena. SFT_OUT_OF_MEMORY alone; what is wrong with the settings is
 * out->problem, for it matters to who opens an s3:// URL only. */
sft_code sfti_aws_read(sft_remote *remote, sfti_aws *out, sft_error *err);

#endif
