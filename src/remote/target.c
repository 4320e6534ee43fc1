/* What schemes are made of: the environment, targets, the headers of a request.
 * Tests: test_remote_web.c. */
#include "os/io.h"
#include "remote/http/text.h"
#include "remote/remote.h"

#include <string.h>

/* ── The environment ── */

const char *sfti_remote_environment(const sft_remote *remote, const char *name) {
    const sft_remote_options *options = &remote->options;
    if (!options->environment) return NULL;
    const char *value = options->environment(options->environment_ctx, name);
    return value && *value ? value : NULL;
}

bool sfti_remote_environment_is(const sft_remote *remote, const char *name) {
    static const char *const words[] = { "1", "on", "yes", "true" };
    const char *value = sfti_remote_environment(remote, name);
    for (size_t i = 0; value && i < sizeof words / sizeof *words; i++)
        if (sfti_text_is(sft_span_cstr(value), words[i])) return true;
    return false;
}

sft_span sfti_remote_small_file(sfti_arena *arena, const char *path, size_t most) {
    sft_span none = { NULL, 0 };
    os_info info;
    size_t got = 0;
    int fd;
    if (sfti_os_open_read(path, &fd)) return none;
    char *text = NULL;
    if (!sfti_os_info_fd(fd, &info) && info.kind == OS_FILE && info.size <= most)
        text = sfti_arena_take(arena, (size_t)info.size + 1);
    int error = text ? sfti_read_all(fd, text, (size_t)info.size, 0, &got) : 0;
    (void)sfti_os_close(fd);
    if (!text || error) return none;
    text[got] = '\0';
    return (sft_span){ text, got };
}

/* ── Targets ── */

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
        return sfti_fail(err, SFT_REMOTE_URL, "expected a URL, found another path");
    out->scheme = remote->schemes[id];
    out->name = sfti_arena_copy(&out->arena, name, strlen(name));
    if (!out->name) return sfti_fail_memory(err, strlen(name) + 1);
    return out->scheme->resolve(out, err);
}

sft_code sfti_remote_check_process(const sft_remote *remote, sft_error *err) {
    if (remote->process == sfti_os_process()) return SFT_OK;
    return sfti_misuse(err, "expected a file or a remote that this process opened, found its "
                       "parent's: open it again after fork");
}

/* ── Headers ── */

bool sfti_headers_add(sfti_headers *headers, const char *name, const char *value) {
    sft_span text = sft_span_cstr(value);
    if (headers->count == SFTI_HEADERS_MOST || sfti_text_has_control(text)) return false;
    headers->at[headers->count++] = (sft_pair){ sft_span_cstr(name), text };
    return true;
}
