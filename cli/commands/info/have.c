/* Which versions of CivitAI the files of a folder are. */
#include "commands/info/online.h"

#include "os/os.h"
#include "support/files.h"
#include "support/models.h"
#include "support/raw.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

#define HAVE_TRUST 60
#define HAVE_MOST 4096 /* files of a folder */

typedef struct have_file {
    struct have_file *next;
    char *path;
    uint64_t version_id, bytes; /* 0: not recorded */
    char sha256[SFT_HASH_TEXT_SIZE]; /* recorded or computed; empty: neither */
    bool is_hashed;
} have_file;

/* The folder that was looked into last. */
struct cli_have {
    sfti_arena arena;
    char *folder;
    have_file *files;
    size_t count;
    bool lost; /* for want of memory */
};

static int list_file(void *ctx, const char *name, os_kind kind) {
    struct cli_have *have = ctx;
    sft_span text = sft_span_cstr(name);
    bool is_model = cli_ends_with(text, ".safetensors") || cli_ends_with(text, ".sft");
    if (!is_model || kind == OS_DIR || *name == '.' || have->count == HAVE_MOST) return 0;
    have_file *file = sfti_arena_take(&have->arena, sizeof *file);
    char *path = cli_join_path(&have->arena, sft_span_cstr(have->folder), name);
    have->lost |= !file || !path;
    if (!file || !path) return 0;
    memset(file, 0, sizeof *file);
    have_file **at = &have->files; /* by name: of several files of a version the first is told */
    while (*at && strcmp((*at)->path, path) < 0) at = &(*at)->next;
    file->path = path;
    file->next = *at;
    *at = file;
    have->count++;
    return 0;
}

/* What sidecars record of a file, and its length. */
static void learn_file(cli *c, have_file *file) {
    cli_told label;
    os_info at;
    uint64_t trust = 0;
    sft_span sha256;
    if (!sfti_os_info_path(file->path, true, &at)) file->bytes = at.size;
    cli_told_open(c, file->path, &label);
    if (label.tree) {
        const sft_node *ids = sft_node_get(sft_tree_root(label.tree), "civitai");
        if (!sft_node_uint(ids, "trust", &trust) || trust < HAVE_TRUST
            || !sft_node_uint(ids, "version_id", &file->version_id))
            file->version_id = 0;
        if (sft_info_sized_hash(label.info, "sha256", &sha256)
            && sha256.len < sizeof file->sha256)
            memcpy(file->sha256, sha256.data, sha256.len);
    }
    cli_told_close(&label);
}

static struct cli_have *folder_of(cli_online *online, const cli_model *model) {
    struct cli_have *have = online->have;
    sft_span name = cli_name_of(model->path);
    size_t len = strlen(model->path) - name.len;
    if (have && strlen(have->folder) == len && memcmp(have->folder, model->path, len) == 0)
        return have;
    cli_have_free(online);
    have = sfti_take(&online->c->alloc, sizeof *have);
    if (!have) return NULL;
    memset(have, 0, sizeof *have);
    have->arena.alloc = online->c->alloc;
    online->have = have;
    have->folder = sfti_arena_copy(&have->arena, model->path, len);
    if (!have->folder) {
        cli_have_free(online);
        return NULL;
    }
    (void)sfti_os_list(len ? have->folder : ".", list_file, have);
    for (have_file *file = have->files; file; file = file->next) learn_file(online->c, file);
    return have;
}

void cli_have_free(cli_online *online) {
    if (!online->have) return;
    sfti_arena_free(&online->have->arena);
    sfti_release(&online->c->alloc, online->have, sizeof *online->have);
    online->have = NULL;
}

/* Its own digest, from the cache if it is there. */
static void hash_file(cli_online *online, have_file *file) {
    sft_hashes hashes = SFT_HASHES_INIT(SFT_HASH_BIT(SFT_HASH_SHA256));
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    options.cache = online->cache;
    file->is_hashed = true;
    if (sft_hash_path(file->path, SFT_HASH_BIT(SFT_HASH_SHA256), &options, &hashes, NULL, &err))
        return;
    const char *text = sft_hashes_get(&hashes, SFT_HASH_SHA256);
    if (text) memcpy(file->sha256, text, strlen(text) + 1);
}

static bool is_file_of(cli_online *online, have_file *file, sft_span version) {
    sft_span files, hashes, sha256, size;
    cli_raw one;
    if (!cli_raw_member(version, "files", &files)) return false;
    for (cli_raw_begin(&one, files); cli_raw_next(&one);) {
        if (!cli_raw_member(one.value, "hashes", &hashes)
            || !cli_raw_string(hashes, "SHA256", &sha256) || sha256.len != 64)
            continue;
        if (!*file->sha256 && !file->is_hashed && cli_raw_member(one.value, "sizeKB", &size)) {
            /* "15.25" KB of 1024 bytes: may the file be so long? */
            uint64_t whole = 0, found = file->bytes / 1024;
            size_t i = 0;
            for (; i < size.len && i < 15 && size.data[i] >= '0' && size.data[i] <= '9'; i++)
                whole = whole * 10 + (uint64_t)(size.data[i] - '0');
            if (i > 0 && found + 1 >= whole && found <= whole + 1) hash_file(online, file);
        }
        if (*file->sha256 && cli_same_letters(sft_span_cstr(file->sha256), sha256)) return true;
    }
    return false;
}

sft_span cli_have_version(cli_online *online, cli_model *model, uint64_t id, sft_span version) {
    sft_span none = { "", 0 };
    if (cli_is_remote(online->c, model->path)) return none;
    struct cli_have *have = folder_of(online, model);
    if (!have || have->lost) sfti_fail_memory(&model->err, sizeof *have);
    for (have_file *file = have ? have->files : NULL; file; file = file->next) {
        if (strcmp(file->path, model->path) == 0) continue;
        if (file->version_id != id && !is_file_of(online, file, version)) continue;
        size_t len = strlen(file->path);
        char *copy = sfti_arena_copy(&model->arena, file->path, len);
        if (!copy) sfti_fail_memory(&model->err, len);
        return copy ? (sft_span){ copy, len } : none;
    }
    return none;
}
