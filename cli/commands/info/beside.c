/* What info writes beside models: sidecars, pictures and workflows. */
#include "commands/info/beside.h"

#include "base/error.h"
#include "base/files.h"
#include "os/io.h"
#include "support/companions.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OLD_MOST ((uint64_t)64 << 20)
#define STEM_MOST 120
#define PICTURE_MOST ((uint64_t)64 << 20) /* of a server */

/* ── Sidecars ── */

char *cli_path_beside(const cli_model *model, sfti_arena *arena, const char *suffix) {
    sft_span path = sft_span_cstr(model->path);
    size_t more = strlen(suffix);
    sft_span name = cli_name_of(model->path);
    if (!model->is_pipeline && !model->is_dataset) path.len -= name.len - cli_stem_of(name).len;
    char *out = sfti_arena_take(arena, path.len + more + 1);
    if (!out) return NULL;
    memcpy(out, path.data, path.len);
    memcpy(out + path.len, suffix, more + 1);
    return out;
}

sft_code cli_sidecar_open(cli *c, const cli_model *model, sfti_arena *arena, const char *suffix,
                          cli_sidecar *out, sft_error *err) {
    int fd;
    *out = (cli_sidecar){ .object = { "", 0 }, .text = { .alloc = c->alloc } };
    out->path = cli_path_beside(model, arena, suffix);
    if (!out->path) return sfti_fail_memory(err, strlen(model->path));
    int error = cli_open_beside(out->path, &fd);
    out->exists = error != ENOENT;
    /* The writer refuses links, whatever they lead to. */
    if (error == ENOENT || error == EXDEV || error == ELOOP) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    sft_code code = cli_read_beside(c, fd, OLD_MOST, &out->text, err);
    sfti_os_close(fd);
    /* the text without a byte order mark and blanks before it, if it is a JSON object */
    sft_span found = code ? out->object : cli_read_text(&out->text);
    while (found.len > 0 && *found.data && strchr(" \t\r\n", *found.data))
        found = (sft_span){ found.data + 1, found.len - 1 };
    if (found.len > 0 && *found.data == '{' && cli_raw_check(found)) out->object = found;
    return code;
}

void cli_sidecar_close(cli_sidecar *sidecar) {
    sft_buffer_free(&sidecar->text);
}

/* ── Merging ── */

bool cli_keep_civitai(sft_span key, sft_span value) {
    if (cli_is(key, "id") || cli_is(key, "modelId")) return !cli_is(value, "\"\"");
    return !cli_is(key, "skeleton_file");
}

sft_code cli_merge_text(sft_span under, sft_span over, cli_raw_keep *keep,
                        sft_buffer *out, sft_error *err) {
    sft_sink sink = sft_sink_memory(out);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    cli_raw_merge(&w, under, over, keep);
    return sfti_json_done(&w);
}

/* ── Names ── */

const char *cli_picture_suffix(const char *media_type) {
    static const struct media_suffix { const char *type, *suffix; } rows[] = {
        { "image/png", "png" }, { "image/jpeg", "jpg" }, { "image/webp", "webp" },
        { "image/gif", "gif" }, { "image/avif", "avif" }, { "image/jxl", "jxl" },
        { "image/bmp", "bmp" }, { "video/mp4", "mp4" }, { "video/webm", "webm" },
    };
    for (size_t i = 0; media_type && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(media_type, rows[i].type) == 0) return rows[i].suffix;
    return NULL;
}

/* ── Files ── */

sft_code cli_write_beside(cli *c, const cli_model *model, const char *beside, const char *path,
                          sft_span bytes, bool replace, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    options.no_clobber = !replace;
    options.link = SFT_LINK_REFUSE;
    /* what all that it comes from, and what it replaces, may do; 0: by umask */
    options.mode = cli_output_mode_of_model(model);
    sfti_mode_common(&options.mode, cli_output_mode_of(beside));
    if (options.mode) sfti_mode_common(&options.mode, cli_output_mode_of(path));
    sft_code code = cli_write_bytes(c, path, options, bytes, err);
    if (code == SFT_IS_LINK) cli_hint(err, CLI_HINT_MOVE_AWAY);
    return code;
}

bool cli_write_file(cli *c, const cli_model *model, const char *beside, const char *path,
                    sft_span bytes) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code = cli_write_beside(c, model, beside, path, bytes, c->set.force != 0, &err);
    if (code) cli_complain(c, path, &err);
    return !code;
}

static bool write_preview(cli *c, const cli_model *model, const char *folder, size_t number,
                          const char *beside, const sft_preview *preview) {
    sfti_arena arena = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    const char *suffix = cli_picture_suffix(preview->media_type);
    sft_span base = cli_name_of(model->path);
    char stem[STEM_MOST + 1], name[STEM_MOST + 32];
    bool ok = false;
    if (!suffix) return false;
    const char *dot = NULL;
    for (size_t i = 0; i < base.len; i++)
        if (base.data[i] == '.') dot = base.data + i;
    if (dot) base.len = (size_t)(dot - base.data);
    cli_safe_name(base, STEM_MOST, stem);
    if (number > 1) snprintf(name, sizeof name, "%s.%zu.%s", stem, number, suffix);
    else snprintf(name, sizeof name, "%s.%s", stem, suffix);
    char *path = cli_join_path(&arena, sft_span_cstr(folder), name);
    if (path) {
        ok = cli_write_file(c, model, beside, path, preview->data);
    } else {
        sfti_fail_memory(&err, strlen(folder) + STEM_MOST);
        cli_complain(c, folder, &err);
    }
    sfti_arena_free(&arena);
    return ok;
}

/* A preview file next to the model exists already; it is copied only if none is embedded. */
static bool copy_preview(cli *c, const cli_model *model, const char *folder,
                         const sft_preview *preview) {
    sft_buffer bytes = { .alloc = c->alloc };
    sft_preview copy = *preview;
    char path[4096];
    bool ok = false;
    if (preview->path.len == 0 || preview->path.len >= sizeof path) return false;
    memcpy(path, preview->path.data, preview->path.len);
    path[preview->path.len] = 0;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (cli_is_remote(c, path)) {
        code = cli_remote_read(c, path, PICTURE_MOST, &bytes, &err);
    } else {
        int fd, error = cli_open_beside(path, &fd);
        code = error ? sfti_io_fail(&err, SFT_IO_OPEN, error, "open")
                     : cli_read_beside(c, fd, SFT_SIZE_UNKNOWN, &bytes, &err);
        if (!error) sfti_os_close(fd);
    }
    copy.data = (sft_span){ bytes.data, bytes.len };
    if (code) cli_complain(c, path, &err);
    else ok = write_preview(c, model, folder, 1, path, &copy);
    sft_buffer_free(&bytes);
    return ok;
}

size_t cli_export_previews(cli *c, const cli_model *model, const char *folder) {
    size_t count = sft_info_preview_count(model->info), embedded = 0, written = 0;
    sft_preview preview;
    for (size_t i = 0; i < count; i++) {
        if (!sft_info_preview_at(model->info, i, &preview) || preview.data.len == 0) continue;
        written += write_preview(c, model, folder, ++embedded, NULL, &preview);
    }
    for (size_t i = 0; i < count && embedded == 0 && written == 0; i++) {
        if (sft_info_preview_at(model->info, i, &preview))
            written += copy_preview(c, model, folder, &preview);
    }
    return written;
}

bool cli_export_workflow(cli *c, const cli_model *model, const char *path) {
    static const char *const keys[] = { "workflow", "prompt" };
    sft_error err = SFT_ERROR_INIT;
    sft_span text;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; model->set && i < sft_set_shard_count(model->set); i++)
            if (sft_file_metadata_get_cstr(sft_set_shard_at(model->set, i), keys[k], &text))
                return cli_write_file(c, model, NULL, path, text);
    sfti_fail(&err, SFT_NOT_FOUND, "expected a workflow or prompt in the metadata, found none");
    cli_refuse(c, model->path, &err);
    return false;
}
