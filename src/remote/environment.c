/* What all parts of a remote ask it for. */
#include "os/io.h"
#include "remote/remote.h"
#include "remote/http/text.h"

#include <string.h>

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
