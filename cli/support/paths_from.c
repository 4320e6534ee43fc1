/* --files-from: operands that stand in a list. Tests: tests/cli/general. */
#include "support/paths_from.h"

#include "support/files.h"
#include "support/remote.h"

#include <string.h>

#define LIST_BYTES ((uint64_t)64 << 20)
#define LIST_PATHS 100000
#define PATH_BYTES 32767

typedef struct path_list {
    sft_span text;
    char end;         /* of a path: '\n', or NUL if there is one */
    bool returns;     /* every line ends in CR LF */
    size_t at, number; /* number: of the line, or of the path */
} path_list;

static bool ends_in_returns(sft_span text) {
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '\n') continue;
        if (i == 0 || text.data[i - 1] != '\r') return false;
        lines++;
    }
    return lines > 0;
}

static bool next_path(path_list *list, sft_span *out) {
    while (list->at < list->text.len) {
        const char *from = list->text.data + list->at;
        size_t left = list->text.len - list->at;
        const char *end = memchr(from, list->end, left);
        *out = (sft_span){ from, end ? (size_t)(end - from) : left };
        list->at += out->len + 1;
        list->number++;
        if (list->returns && out->len > 0 && from[out->len - 1] == '\r') out->len--;
        if (out->len > 0 || list->end == '\0') return true;
    }
    return false;
}

/* Whether a command could take the path for anything else: standard input, a fact of `note`. */
static bool is_ambiguous(const char *path) {
    const char *equals = strchr(path, '=');
    return *path == '-' || (equals && !memchr(path, '/', (size_t)(equals - path)));
}

static char *keep_path(sfti_arena *arena, sft_span path) {
    char *kept = sfti_arena_copy(arena, path.data, path.len);
    if (!kept || !is_ambiguous(kept) || cli_is_url(kept)) return kept;
    return cli_join_path(arena, sft_span_cstr("."), kept);
}

static sft_code begin_list(path_list *list, const sft_buffer *bytes, sft_error *err) {
    *list = (path_list){ .text = cli_read_text(bytes), .end = '\n' };
    bool wide = list->text.len > 1 && (memcmp(list->text.data, "\xFF\xFE", 2) == 0
                                       || memcmp(list->text.data, "\xFE\xFF", 2) == 0);
    if (wide)
        return cli_usage_error(err, "expected paths in UTF-8, found UTF-16: in PowerShell, write "
                               "the list by Out-File -Encoding utf8");
    if (memchr(list->text.data, '\0', list->text.len)) list->end = '\0';
    list->returns = list->end == '\n' && ends_in_returns(list->text);
    return SFT_OK;
}

sft_code cli_paths_from(cli *c, char ***operands, size_t *count, sfti_arena *arena,
                        sft_error *err) {
    const char *path = c->set.files_from;
    sft_buffer bytes = { .alloc = c->alloc };
    path_list list = { .end = '\n' };
    sft_span one;
    size_t found = 0, before = c->set.files_at;
    if (cli_is_url(path)) return cli_usage_error(err, "expected a path for --files-from, found a "
                                                      "URL");
    sft_code code = cli_read_file(c, path, LIST_BYTES, &bytes, err);
    if (!code) code = begin_list(&list, &bytes, err);
    path_list again = list;
    while (!code && next_path(&list, &one)) {
        found++;
        if (one.len == 0)
            code = cli_usage_error(err, "path %zu: expected a path, found an empty one",
                                   list.number);
        else if (one.len > PATH_BYTES)
            code = cli_usage_error(err, "%s %zu: expected a path of at most %d bytes, found %zu",
                                   list.end ? "line" : "path", list.number, PATH_BYTES, one.len);
        else if (found > LIST_PATHS)
            code = sfti_fail(err, SFT_FILE_TOO_LARGE, "expected at most %d paths, found more",
                             LIST_PATHS);
    }
    if (!code && found == 0)
        code = cli_usage_error(err, "expected at least one path in the list, found none");
    char **all = code ? NULL : sfti_arena_array(arena, *count + found + 1, sizeof *all);
    if (all) memcpy(all, *operands, before * sizeof *all);
    bool ok = all != NULL;
    for (size_t i = before; ok && next_path(&again, &one); i++)
        ok = (all[i] = keep_path(arena, one)) != NULL;
    if (!code && !ok) code = sfti_fail_memory(err, bytes.len);
    if (!code) {
        memcpy(all + before + found, *operands + before, (*count - before) * sizeof *all);
        *operands = all;
        *count += found;
    }
    sft_buffer_free(&bytes);
    return code;
}
