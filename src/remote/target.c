#include "remote/remote.h"
#include "remote/http/text.h"

#include <string.h>

/* The schemes' words, before "://". */
static const struct {
    const char *word;
    sfti_scheme_id id;
} scheme_words[] = {
    { "https", SFTI_SCHEME_WEB }, { "http", SFTI_SCHEME_WEB }, { "hf", SFTI_SCHEME_HUB },
    { "s3", SFTI_SCHEME_S3 },     { "gs", SFTI_SCHEME_GS },
};

bool sfti_scheme_of(const char *text, sfti_scheme_id *out) {
    for (size_t i = 0; i < sizeof scheme_words / sizeof *scheme_words; i++) {
        size_t len = strlen(scheme_words[i].word);
        if (strcspn(text, ":") != len || strncmp(text + len, "://", 3)) continue;
        if (!sfti_text_is((sft_span){ text, len }, scheme_words[i].word)) continue;
        *out = scheme_words[i].id;
        return true;
    }
    return false;
}

sft_code sfti_remote_target_open(sft_remote *remote, const char *name, sfti_target *out,
                          sft_error *err) {
    sfti_scheme_id id;
    memset(out, 0, sizeof *out);
    out->remote = remote;
    out->arena.alloc = remote->alloc;
    if (!sfti_scheme_of(name, &id))
        return sfti_fail(err, SFT_REMOTE_URL, SFT_NO_OFFSET, "expected a URL, found another path");
    out->scheme = remote->schemes[id];
    out->name = sfti_arena_copy(&out->arena, name, strlen(name));
    if (!out->name) return sfti_fail_memory(err, strlen(name) + 1);
    return out->scheme->resolve(out, err);
}

void sfti_remote_target_free(sfti_target *target) {
    sfti_arena_free(&target->arena);
}

sft_code sfti_remote_check_process(const sft_remote *remote, sft_error *err) {
    if (remote->process == sfti_os_process()) return SFT_OK;
    return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                     "expected a file or a remote that this process opened, found its parent's: "
                     "open it again after fork");
}
