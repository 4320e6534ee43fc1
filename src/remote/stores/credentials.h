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

/* ── ini.c: its configuration files, which are sections of "key = value" lines, and lines of that
 * kind indented below a key without a value. As Python's configparser reads them: no comments
 * behind values, the last of equal keys counts. ── */

typedef struct sfti_ini {
    sft_span rest;
    sft_span section;    /* "profile NAME"; empty before the first */
    sft_span parent;     /* of an indented line the key above it; else empty */
    sft_span key, value; /* keys in any case */
    sft_span last;       /* private: the last key that was not indented */
} sfti_ini;

void sfti_ini_begin(sfti_ini *ini, sft_span text);
/* The next key and its value; false: no more. What is neither section, key nor comment is left
 * out. */
bool sfti_ini_next(sfti_ini *ini);

#endif
