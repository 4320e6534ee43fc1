/* s3://BUCKET/KEY: Amazon S3, and servers that speak its language. Tests: test_remote_s3.c. */
#include "base/error.h"
#include "remote/http/text.h"
#include "remote/stores/bucket.h"
#include "remote/stores/credentials.h"

#include <string.h>

static sft_code s3_open(sft_remote *remote, sft_error *err) {
    sfti_aws aws;
    sfti_store *store = sfti_arena_take(&remote->arena, sizeof *store);
    if (!store) return sfti_fail_memory(err, sizeof *store);
    sft_code code = sfti_aws_read(remote, &aws, err);
    if (code) return code;
    *store = (sfti_store){ .scheme = &sfti_s3_scheme, .alloc = remote->alloc,
                           .addressing = aws.addressing,
                           .region = aws.region, .denied = SFT_HINT_REMOTE_CREDENTIALS };
    remote->state[SFTI_SCHEME_S3] = store;
    if (aws.endpoint && !sfti_store_at(remote, store, aws.endpoint))
        return sfti_fail_memory(err, strlen(aws.endpoint));
    if (remote->options.anonymous) return SFT_OK;
    store->keys = aws.keys;
    if (aws.problem) store->problem = aws.problem;
    if (!aws.other_keys) return SFT_OK;
    store->advice = SFTI_JOIN(&remote->arena, "the profile gets its keys by ", aws.other_keys,
                              ", which is not supported: see \"aws configure "
                              "export-credentials\"");
    return store->advice ? SFT_OK : sfti_fail_memory(err, 0);
}

const sfti_scheme sfti_s3_scheme = {
    .id = SFTI_SCHEME_S3,
    .name = "s3",
    .if_match = true,
    .open = s3_open,
    .resolve = sfti_object_resolve,
    .authorize = sfti_object_authorize,
    .learn = sfti_object_learn,
    .explain = sfti_object_explain,
    .list = sfti_store_list,
    .is_folder = sfti_object_is_folder,
};
