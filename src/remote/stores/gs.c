/* gs://BUCKET/OBJECT: Google Cloud Storage by its XML interface, which is S3's but for tokens. */
#include "base/error.h"
#include "remote/http/text.h"
#include "remote/stores/bucket.h"

#include <string.h>

#define GS_ENDPOINT "https://storage.googleapis.com"

/* A copy of a variable, or NULL; *failed: no memory. */
static const char *gs_variable(sft_remote *remote, const char *name, bool *failed) {
    const char *value = sfti_remote_environment(remote, name);
    const char *copy = value ? SFTI_JOIN(&remote->arena, value) : NULL;
    if (value && !copy) *failed = true;
    return copy;
}

static bool gs_take_keys(sft_remote *remote, sfti_store *store) {
    bool failed = false;
    const char *token = gs_variable(remote, "GOOGLE_OAUTH_ACCESS_TOKEN", &failed);
    sfti_sign_keys *keys = &store->keys;
    if (token) {
        store->bearer = SFTI_JOIN(&remote->arena, "Bearer ", token);
        return !failed && store->bearer;
    }
    keys->id = gs_variable(remote, "GS_ACCESS_KEY_ID", &failed);
    keys->secret = gs_variable(remote, "GS_SECRET_ACCESS_KEY", &failed);
    if (!keys->id != !keys->secret)
        store->problem = keys->id ? "GS_ACCESS_KEY_ID is set, GS_SECRET_ACCESS_KEY is not"
                                  : "GS_SECRET_ACCESS_KEY is set, GS_ACCESS_KEY_ID is not";
    return !failed;
}

static sft_code gs_open(sft_remote *remote, sft_error *err) {
    sfti_store *store = sfti_arena_take(&remote->arena, sizeof *store);
    if (!store) return sfti_fail_memory(err, sizeof *store);
    *store = (sfti_store){
        .scheme = &sfti_gs_scheme, .alloc = remote->alloc,
        .region = "auto", .denied = SFT_HINT_NONE,
        .advice = "it takes GOOGLE_OAUTH_ACCESS_TOKEN (\"gcloud auth print-access-token\"), or "
                  "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY"
    };
    remote->state[SFTI_SCHEME_GS] = store;
    /* "HOST:PORT" is http, as the client libraries of emulators have it. */
    bool failed = false;
    const char *host = gs_variable(remote, "STORAGE_EMULATOR_HOST", &failed);
    if (host && !strstr(host, "://")) host = SFTI_JOIN(&remote->arena, "http://", host);
    bool enough = !failed && sfti_store_at(remote, store, host ? host : GS_ENDPOINT)
               && (remote->options.anonymous || gs_take_keys(remote, store));
    return enough ? SFT_OK : sfti_fail_memory(err, 0);
}

const sfti_scheme sfti_gs_scheme = {
    .id = SFTI_SCHEME_GS,
    .name = "gs",
    .if_match = true,
    .open = gs_open,
    .resolve = sfti_object_resolve,
    .authorize = sfti_object_authorize,
    .learn = sfti_object_learn,
    .explain = sfti_object_explain,
    .list = sfti_store_list,
    .is_folder = sfti_object_is_folder,
};
