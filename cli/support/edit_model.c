/* Which files an edit is of, and what an interrupted one left. */
#include "os/path.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

sft_edit_options cli_edit_options(const cli *c) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    options.safe = c->set.safe != 0;
    options.no_sync = c->set.no_sync != 0;
    options.keep_mtime = c->set.keep_mtime != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    options.force = c->set.force != 0 || c->set.output != NULL;
    options.no_recover = c->set.dry_run != 0 || c->set.output != NULL;
    options.link = c->set.follow || c->set.output ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
    options.open = &c->edit_open;
    return options;
}

/* ── Operands ── */

sft_code cli_edit_operand(cli *c, sfti_arena *arena, const char *operand, const char **path,
                          sft_error *err) {
    const cli_input *one;
    cli_inputs in;
    os_info info;
    *path = operand;
    if (strcmp(operand, "-") == 0)
        return cli_usage_error(err, "expected a file to be changed, found standard input");
    bool folder = cli_is_remote(c, operand)
                      ? cli_is_remote_folder(c, operand)
                      : sfti_os_info_path(operand, true, &info) == 0 && info.kind == OS_DIR;
    if (!folder) return SFT_OK;
    sft_code code = cli_inputs_expand(operand, CLI_ONE_LEVEL, NULL, &c->open, &in, err);
    if (!code) code = cli_inputs_one(&in, &one, err);
    if (!code) {
        *path = sfti_arena_copy(arena, one->path, strlen(one->path));
        if (!*path) code = sfti_fail_memory(err, strlen(one->path));
    }
    cli_inputs_free(&in);
    return code;
}

/* ── Shards of an index ── */

sft_code cli_edit_beneath(cli *c, sfti_arena *arena, const char *index, sft_error *err) {
    sft_span folder = { index, sfti_folder_len(index) };
    c->edit_open.beneath = cli_join_path(arena, folder, "");
    return c->edit_open.beneath ? SFT_OK : sfti_fail_memory(err, folder.len + 1);
}

/* A crash leaves one file without its name. To look for each of those that are not there would list
 * the folder as often: an index may name 100,000. */
#define MISSING_SOUGHT 16

sft_code cli_edit_each_named(cli *c, const char *index, cli_edit_fn each, void *ctx,
                             sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sfti_arena arena = { .alloc = c->alloc };
    sft_index *names = NULL;
    sft_code code = sft_index_open(index, &options, &names, err);
    size_t count = code ? 0 : sft_index_shard_count(names), missing = 0;
    os_info info;
    sft_span folder = sft_span_cstr(code ? "" : sft_index_folder(names));
    c->edit_open.beneath = folder.data;
    for (size_t i = 0; !code && i < count; i++) {
        const char *name = sft_index_shard_at(names, i);
        char *path = cli_join_path(&arena, folder, name);
        if (path && sfti_os_info_path(path, false, &info) && missing++ >= MISSING_SOUGHT) continue;
        code = path ? each(c, path, ctx, err) : sfti_fail_memory(err, strlen(name));
    }
    c->edit_open.beneath = NULL;
    sft_index_close(names);
    sfti_arena_free(&arena);
    return code;
}

/* ── Recovery ── */

static sft_code recover_file(cli *c, const char *path, void *ctx, sft_error *err) {
    sft_edit_options options = cli_edit_options(c);
    os_info info;
    (void)ctx;
    /* Opening it tells why; `meta recover` alone gives it back what a replacement has left. */
    if (sfti_os_info_path(path, false, &info) == ENOENT) return SFT_OK;
    /* A shard is never edited through a link. */
    options.link = c->edit_open.beneath ? SFT_LINK_REPLACE : SFT_LINK_FOLLOW;
    sft_code code = sft_edit_recover(path, &options, NULL, err);
    return code == SFT_NOT_FOUND ? SFT_OK : code; /* opening it reports that */
}

/* The message names the shard; it is escaped already. */
static sft_code recover_shard(cli *c, const char *path, void *ctx, sft_error *err) {
    char text[sizeof err->message / 2 + 1];
    size_t used, shown = sizeof text - 1, kept = sizeof err->message - shown - 3;
    sft_code code = recover_file(c, path, ctx, err);
    if (!code || !err) return code;
    size_t at = sfti_path_escape(sft_span_cstr(path), text, shown, &used);
    size_t len = cli_cut(sft_span_cstr(err->message), kept).len;
    memmove(err->message + at + 2, err->message, len);
    memcpy(err->message, text, at);
    memcpy(err->message + at, ": ", 2);
    err->message[at + 2 + len] = '\0';
    return code;
}

sft_code cli_edit_recover(cli *c, const char *path, sft_error *err) {
    if (c->set.dry_run || c->set.output) return SFT_OK;
    sft_code code = recover_file(c, path, NULL, err);
    if (code || !sft_path_is_index(path)) return code;
    return cli_edit_each_named(c, path, recover_shard, NULL, err);
}
