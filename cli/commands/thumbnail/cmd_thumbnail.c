/* thumbnail: one picture of a model, for file managers. Tests: tests/cli/thumbnail,
 * tests/desktop. */
#include "base/sink.h"
#include "commands/commands.h"
#include "commands/thumbnail/thumbnail.h"
#include "os/io.h"
#include "safetensors_io.h"
#include "support/files.h"
#include "support/models.h"
#include "support/output.h"
#include "support/records.h"
#include "support/titles.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

typedef struct thumb_run {
    cli *c;
    const char *output;
    uint32_t size;
    bool done;
} thumb_run;

/* What stands in the corner: "LoRA" rather than "adapter". */
static sft_span kind_of(const sft_node *root) {
    sft_span type = sft_node_text(root, "adapter.type");
    sft_span kind = sft_node_text(root, "model.kind");
    if (type.len) return cli_kind_words(type);
    return kind.len && !cli_is(kind, "unknown") ? cli_kind_words(kind) : (sft_span){ "", 0 };
}

/* The first of the model's pictures that can be decoded, but for thumbnails of this command;
 * *source NULL: there is none, and *why the last one is not taken. */
static sft_code find_picture(cli *c, const cli_model *model, uint32_t size, thumb_image *image,
                             sft_span *source, const char **why) {
    *source = (sft_span){ NULL, 0 };
    *why = NULL;
    for (size_t i = 0; model->info && i < sft_info_preview_count(model->info); i++) {
        sft_preview preview;
        sft_buffer bytes = { .alloc = c->alloc };
        sft_code code = SFT_OK;
        int fd, error = 0;
        (void)sft_info_preview_at(model->info, i, &preview);
        sft_span picture = preview.data;
        if (preview.path.len) {
            char *path = sfti_arena_copy((sfti_arena *)&model->arena, preview.path.data,
                                         preview.path.len);
            if (!path) return SFT_OUT_OF_MEMORY;
            error = cli_open_beside(path, &fd);
            if (!error) code = cli_read_beside(c, fd, THUMB_BYTES_MOST, &bytes, NULL);
            if (!error) (void)sfti_os_close(fd);
            picture = (sft_span){ bytes.data, bytes.len };
        }
        bool ours = !error && !code && picture.len && thumb_is_ours(picture);
        if (ours) {
            sft_buffer_free(&bytes);
            continue;
        }
        if (error || code || !picture.len) *why = code == SFT_FILE_TOO_LARGE ? "it is too large"
                                                                             : "it cannot be read";
        else *why = thumb_decode(picture, size, &c->alloc, image);
        sft_buffer_free(&bytes);
        if (!*why) *source = preview.source;
        if (!*why || code == SFT_OUT_OF_MEMORY) return code == SFT_OUT_OF_MEMORY ? code : SFT_OK;
    }
    return SFT_OK;
}

/* Into an empty file that is there, as services make one and read it by their own descriptor: it
 * stays that file, and empty if this fails. limit: mode that it may have, 0 any. False: there is
 * none, or its mode cannot be set. */
static bool fill_empty(const char *path, sft_span bytes, uint32_t limit, int *error) {
    os_info info;
    uint32_t most = limit ? limit | 0700 : 0777;
    int fd;
    if (sfti_os_info_path(path, false, &info) || info.kind != OS_FILE || info.size > 0
        || sfti_os_open_no_link(path, true, &fd))
        return false;
    if ((info.mode & 0777 & ~most) && sfti_os_set_mode(fd, info.mode & most)) {
        (void)sfti_os_close(fd);
        return false;
    }
    *error = sfti_write_all(fd, bytes.data, bytes.len, 0);
    if (*error) (void)sfti_os_truncate(fd, 0);
    int closed = sfti_os_close(fd);
    if (!*error) *error = closed;
    return true;
}

/* mode: of what it is made of. */
static sft_code write_png(cli *c, const char *path, const thumb_image *image, uint32_t mode,
                          sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_buffer bytes = { .alloc = c->alloc };
    options.no_sync = true; /* it can be made again */
    options.no_clobber = !c->set.force;
    sft_code code = thumb_png(image, &c->alloc, &bytes, err);
    sft_span text = { bytes.data, bytes.len };
    int error = 0;
    sft_sink sink;
    options.alloc = &c->alloc;
    if (!code && c->set.force && fill_empty(path, text, mode, &error)) {
        if (error) code = sfti_io_fail(err, SFT_IO_WRITE, error, "write");
    } else if (!code && (code = sft_sink_path(path, &options, &sink, err)) == SFT_OK) {
        code = sft_sink_limit_mode(&sink, mode, err);
        if (code) sft_sink_abandon(&sink);
        else code = sfti_sink_fill(&sink, text, err);
    }
    sft_buffer_free(&bytes);
    return code;
}

static void tell(const thumb_run *run, const cli_model *model, const thumb_image *image,
                 sft_span source, const char *why) {
    cli *c = run->c;
    if (cli_is_json(c)) {
        cli_object object;
        sfti_json_writer *w = cli_object_begin(&object, c, model->path);
        sfti_json_put_cstr(w, "output", run->output);
        sfti_json_put_uint(w, "width", image->width);
        sfti_json_put_uint(w, "height", image->height);
        if (source.data) sfti_json_put_text(w, "picture", source);
        else sfti_json_put_null(w, "picture");
        if (why) sfti_json_put_cstr(w, "why", why);
        else sfti_json_put_null(w, "why");
        cli_object_end(&object);
        return;
    }
    cli_path(&c->out, run->output, ": written, %" PRIu32 " x %" PRIu32 ", ", image->width,
             image->height);
    if (source.data) cli_fill(&c->out, "of %\n", source);
    else if (why)
        cli_fill(&c->out, "a card; its picture was not used: %\n", sft_span_cstr(why));
    else cli_text(&c->out, "a card: it has no picture\n");
}

static void each_model(void *ctx, cli_model *model) {
    thumb_run *run = ctx;
    cli *c = run->c;
    thumb_image image = { .pixels = NULL };
    sft_error err = SFT_ERROR_INIT;
    sft_span source;
    const char *why;
    char words[CLI_TITLE_SIZE];
    if (!model->tree || model->err.code) {
        cli_fail_model(c, model);
        return;
    }
    if (run->done) return;
    run->done = true;
    const sft_node *root = sft_tree_root(model->tree);
    sft_code code = find_picture(c, model, run->size, &image, &source, &why);
    if (!code && source.data) {
        thumb_badge(&image, kind_of(root));
    } else if (!code && thumb_image_begin(&image, run->size, run->size, &c->alloc)) {
        sft_span name = sft_node_text(root, "model.name");
        thumb_card(&image, name.len ? name : cli_name_of(model->path), cli_base_words(root, words),
                   kind_of(root));
    } else {
        code = SFT_OUT_OF_MEMORY;
    }
    if (code) (void)sfti_fail_memory(&err, (uint64_t)run->size * run->size * 4);
    else code = write_png(c, run->output, &image, cli_output_mode_of_model(model), &err);
    if (code) cli_fail_input(c, code == SFT_OUT_OF_MEMORY ? model->path : run->output, &err);
    else tell(run, model, &image, source, why);
    thumb_image_free(&image, &c->alloc);
}

static void run_thumbnail(cli *c, char **operands, size_t count) {
    thumb_run run = { .c = c, .output = operands[1], .size = 256 };
    sft_error err = SFT_ERROR_INIT;
    uint64_t size = run.size;
    size_t models;
    os_info info;
    sft_code code = SFT_OK;
    (void)count;
    if (c->set.side && (!cli_parse_number(c->set.side, THUMB_MOST, &size) || size < THUMB_LEAST))
        code = cli_usage_error(&err, "expected pixels from %d to %d after --size, found \"%s\"",
                               THUMB_LEAST, THUMB_MOST, c->set.side);
    if (!code && !sfti_os_info_path(operands[0], true, &info) && info.kind == OS_DIR)
        code = cli_usage_error(&err, "expected a model in a file, found the folder \"%s\"",
                               operands[0]);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    run.size = (uint32_t)size;
    c->set.output = run.output; /* what cannot be written is no input */
    cli_each_model(c, operands, 1, &models, NULL, each_model, &run);
}

const cli_command cli_thumbnail_command = {
    "thumbnail", "IN OUT", "a picture of a model, for file managers",
    "Writes a PNG whose longer side has at most --size pixels: of the first picture of the model "
    "that can be decoded (one in its metadata, or one beside it that has its name, but none that "
    "this command wrote), with its kind in a corner; else a card with its name, its base model and "
    "its kind. Pictures are decoded by gdk-pixbuf, if the system has it (--version tells), and not "
    "at all if they have more than 64 MiB or 40 million pixels. File managers call this by the "
    ".thumbnailer file that is installed; those that lock thumbnailers up see no files beside the "
    "model.",
    CLI_EXAMPLES(
        { "safetensors thumbnail -s 512 neon.safetensors neon.png", "its own picture, or a card" }),
    { CLI_OPTIONS(
        CLI_TAKES('s', "size", "PIXELS", side, "of the longer side (16 to 2048; default: 256)"),
        CLI_ON(0, "force", force, "replace OUT")),
      cli_json_options, cli_reading_options, cli_records_options, cli_common_options },
    { "the picture is written", NULL, "the model could not be read or OUT not written, or a usage "
      "error" },
    2, 2, run_thumbnail, CLI_URLS_NONE,
};
