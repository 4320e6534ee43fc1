/* An index.json as any bytes: the names it gives must stay below its folder, in natural
 * order, each once. The file lives in memory; where there is no memfd nothing is done. */
#if defined(__linux__)
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#endif
#include "fuzz.h"
#include "safetensors_index.h"
#include "safetensors_set.h"

#include <string.h>

#if defined(__linux__)
static bool leaves_folder(const char *name) {
    if (!*name || *name == '/' || strchr(name, '\\')) return true;
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t len = strcspn(at, "/");
        if (len == 2 && !memcmp(at, "..", 2)) return true;
    }
    return false;
}

static void walk_names(const sft_index *index) {
    const char *last = NULL;
    for (size_t i = 0; i < sft_index_shard_count(index); i++) {
        const char *name = sft_index_shard_at(index, i);
        FUZZ_CHECK(name && !leaves_folder(name));
        FUZZ_CHECK(!last || strcmp(last, name));
        last = name;
    }
    FUZZ_CHECK(!sft_index_shard_at(index, sft_index_shard_count(index)));
}

static void open_path(const char *path) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_error error = SFT_ERROR_INIT;
    options.max_shards = 100;
    sft_index *index;
    if (!sft_index_open(path, &options, &index, &error)) {
        walk_names(index);
        sft_index_close(index);
    } else {
        FUZZ_CHECK(!index && error.code && error.message[0]);
    }
    sft_set *set;
    sft_code code = sft_set_open(path, &options, &set, &error);
    FUZZ_CHECK(code || set);
    sft_set_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int fd = memfd_create("fuzz.safetensors.index.json", MFD_CLOEXEC);
    char path[64];
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size) open_path(path);
    close(fd);
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return data && size ? 0 : 0;
}
#endif
