/* The indexes of a folder. Tests: tests/cli/general/other-indexes, tests/cli/trash,
 * tests/cli/mv. */
#include "support/indexes.h"

#include "bytes/replaced.h"
#include "os/io.h"
#include "safetensors_set.h"
#include "support/files.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

#define OTHERS_MOST ((uint64_t)64 << 20)

typedef struct index_walk {
    const cli_indexes *look;
    sft_error *err;
    sft_code code;
} index_walk;

/* Whether a file begins as a JSON object does: most models are told apart without reading them. */
static int is_object(int fd, bool *is) {
    char text[16];
    size_t len = 0, i = 0;
    os_info info;
    *is = false;
    int error = sfti_os_info_fd(fd, &info);
    if (error || info.size > OTHERS_MOST) return error;
    error = sfti_read_all(fd, text, sizeof text, 0, &len);
    if (error) return error;
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) i = 3;
    while (i < len && memchr(" \t\r\n", text[i], 4)) i++;
    *is = i == len ? len == sizeof text : text[i] == '{';
    return 0;
}

static bool has_map(sft_span text) {
    static const char key[] = "\"weight_map\"";
    const size_t size = sizeof key - 1;
    for (const char *at; text.len >= size && (at = memchr(text.data, '"', text.len));) {
        size_t skipped = (size_t)(at - text.data);
        if (text.len - skipped >= size && memcmp(at, key, size) == 0) return true;
        text = (sft_span){ at + 1, text.len - skipped - 1 };
    }
    return false;
}

static sft_code tell_texts(const cli_indexes *look, const char *name, sft_span all,
                           sft_error *err) {
    sfti_arena arena = { .alloc = look->c->alloc };
    sfti_json json;
    sfti_json_type type;
    sft_code code = SFT_OK;
    sfti_json_begin(&json, all.data, all.len);
    do {
        type = sfti_json_next(&json);
        if (type != SFTI_JSON_STRING) continue;
        sft_span text = sfti_json_string(&json, &arena);
        if (!text.data || !look->each(look->ctx, name, text))
            code = sfti_fail_memory(err, json.text.len);
    } while (!code && type != SFTI_JSON_END && type != SFTI_JSON_ERROR);
    sfti_arena_free(&arena);
    return code || type != SFTI_JSON_ERROR ? code : sfti_json_fail(&json, 0, err);
}

static sft_code look_at_file(const cli_indexes *look, const char *path, const char *name,
                             bool is_called, sft_error *err) {
    sft_buffer bytes = { .alloc = look->c->alloc };
    sft_code code = SFT_OK;
    int fd, error = sfti_os_open_read(path, &fd);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open an index");
    bool reads = is_called;
    if (!reads) error = is_object(fd, &reads);
    if (error) code = sfti_io_fail(err, SFT_IO_READ, error, "read what may be an index");
    if (reads)
        code = cli_read_beside(look->c, fd, is_called ? SFT_MAX_INDEX_BYTES : OTHERS_MOST, &bytes,
                               err);
    (void)sfti_os_close(fd);
    sft_span text = cli_read_text(&bytes);
    if (!code && (is_called || has_map(text))) code = tell_texts(look, name, text, err);
    sft_buffer_free(&bytes);
    return code;
}

/* What had to step out of the way of a file that is there, or was to become one: on Windows it
 * stays listed as long as somebody has it open, as what network file systems make of a replaced
 * file does, under names of theirs. */
static bool is_replaced(const cli_indexes *look, const char *name, sfti_arena *arena) {
    sft_span of;
    os_info info;
    size_t kept = strncmp(name, ".nfs", 4) == 0 ? 4
                : strncmp(name, ".fuse_hidden", 12) == 0 ? 12 : 0;
    if (kept && strspn(name + kept, "0123456789abcdef") == strlen(name + kept)) return true;
    if (!sfti_old_name(sft_span_cstr(name), &of) && !sfti_temporary_name(sft_span_cstr(name), &of))
        return false;
    const char *as = sfti_arena_copy(arena, of.data, of.len);
    const char *path = as ? cli_join_path(arena, look->folder, as) : NULL;
    return path && sfti_os_info_path(path, false, &info) == 0;
}

static int look_at_entry(void *ctx, const char *name, os_kind kind) {
    index_walk *walk = ctx;
    const cli_indexes *look = walk->look;
    sfti_arena arena = { .alloc = look->c->alloc };
    sft_error err = SFT_ERROR_INIT;
    os_info info;
    bool is_called = sft_path_is_index(name) || cli_ends_with(sft_span_cstr(name), ".index.json");
    if (kind == OS_DIR || (look->by_name && !is_called)) return 0;
    const char *path = cli_join_path(&arena, look->folder, name);
    if (is_replaced(look, name, &arena)) {
        sfti_arena_free(&arena);
        return 0;
    }
    sft_code code = path ? SFT_OK : sfti_fail_memory(&err, strlen(name));
    int error = code ? 0 : sfti_os_info_path(path, true, &info);
    if (error == ENOENT && !sfti_os_info_path(path, false, &info) && info.kind != OS_LINK)
        error = EIO; /* it is there */
    if (error && error != ENOENT) code = sfti_io_fail(&err, SFT_IO_OPEN, error, "open an index");
    /* A pipe would be waited for. */
    if (!code && !error && info.kind == OS_FILE
        && (!look->counts || look->counts(look->ctx, path)))
        code = look_at_file(look, path, name, is_called, &err);
    if (code == SFT_NOT_FOUND && !sfti_os_info_path(path, false, &info))
        code = sfti_io_fail(&err, SFT_IO_OPEN, EIO, "open an index"); /* it is there */
    sfti_arena_free(&arena);
    bool unread = code == SFT_IO_OPEN || code == SFT_IO_READ; /* nobody knows what it names */
    if (code != SFT_OUT_OF_MEMORY && !(code && look->strict && (is_called || unread))) return 0;
    *walk->err = err;
    walk->code = code;
    return EIO;
}

sft_code cli_indexes_each(const cli_indexes *look, sft_error *err) {
    char folder[4096];
    sft_error own = SFT_ERROR_INIT;
    index_walk walk = { look, err ? err : &own, SFT_OK };
    if (look->folder.len >= sizeof folder)
        return sfti_io_fail(err, SFT_IO_OPEN, ENAMETOOLONG, "list the folder");
    memcpy(folder, look->folder.len ? look->folder.data : ".", look->folder.len);
    folder[look->folder.len] = '\0';
    int error = sfti_os_list(look->folder.len ? folder : ".", look_at_entry, &walk);
    if (walk.code || !error) return walk.code;
    return sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder");
}
