/* Where the result of a command that writes goes, and whether it may go there. */
#include "support/output.h"

#include "base/files.h"
#include "os/io.h"
#include "os/path.h"
#include "support/cli.h"
#include "support/hints.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ── What stands there ── */

static sft_code refuse_link(const char *path, sft_error *err) {
    char real[CLI_REAL_SIZE];
    int error = sfti_os_real_path(path, real, sizeof real);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
    sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link to %s", real);
    /* Downloads of the Hugging Face hub are links into blobs/, whose files are named by their
     * digest: changing one makes its name a lie. */
    if (cli_is(sfti_path_name(sfti_path_above(sft_span_cstr(real))), "blobs"))
        sfti_hint(err, SFT_HINT_HUB_CACHE);
    return SFT_IS_LINK;
}

/* Whether what is there may be replaced; *there says whether there is anything, *mode what a
 * file has. */
static sft_code check_target(const cli *c, const char *path, bool in_place, bool *there,
                             uint32_t *mode, sft_error *err) {
    os_info info;
    int error = sfti_os_info_path(path, false, &info);
    *there = error != ENOENT;
    if (error == ENOENT && !in_place) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (info.kind == OS_DIR) {
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a folder");
    }
    if (info.kind != OS_FILE && info.kind != OS_LINK) {
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a pipe, device or socket");
    }
    if (!in_place && !c->set.force)
        return sfti_fail(err, SFT_EXISTS, "already exists");
    if (info.kind == OS_LINK && !c->set.follow) return refuse_link(path, err);
    if (info.kind == OS_LINK) error = sfti_os_info_path(path, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
    if (info.kind == OS_FILE) *mode = info.mode & 0777;
    bool shared = info.kind == OS_FILE && info.links > 1;
    if (!shared || c->set.force) return SFT_OK;
    sfti_fail(err, SFT_HARD_LINKS, "expected a file with one name, found %u hard links",
              (unsigned)info.links);
    cli_hint(err, CLI_HINT_ONE_NAME);
    return SFT_HARD_LINKS;
}

/* ── Mode and time ── */

uint32_t cli_output_mode_of(const char *path) {
    os_info info;
    if (!path || sfti_os_info_path(path, true, &info) || info.kind != OS_FILE) return 0;
    return info.mode & 0777 ? info.mode & 0777 : 0600;
}

uint32_t cli_output_mode_of_model(const cli_model *model) {
    char manifest[4096];
    uint32_t mode = model->info ? sft_info_output_mode(model->info) : 0;
    if (model->set) sfti_mode_common(&mode, sft_set_output_mode(model->set, NULL));
    sfti_mode_common(&mode, cli_output_mode_of(model->input->path));
    for (size_t i = 0; model->inputs && i < model->count; i++)
        sfti_mode_common(&mode, cli_output_mode_of(model->inputs[i]->path));
    int len = snprintf(manifest, sizeof manifest, "%s/dataset_manifest.json", model->path);
    if (model->is_dataset && len > 0 && (size_t)len < sizeof manifest)
        sfti_mode_common(&mode, cli_output_mode_of(manifest));
    return mode;
}

static sft_code take_input_facts(const cli *c, const char *input, bool in_place,
                                 sft_path_options *options, sft_error *err) {
    os_info info;
    bool is_stdin = input && strcmp(input, "-") == 0;
    if (is_stdin && c->set.keep_mtime) return cli_output_no_time(err);
    if (input && cli_is_remote(c, input)) return cli_output_no_mtime(c, err);
    if (!input || is_stdin) return SFT_OK;
    int error = sfti_os_info_path(input, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (info.kind != OS_FILE) return SFT_OK;
    if (!in_place) sfti_mode_common(&options->mode, info.mode & 0777 ? info.mode & 0777 : 0600);
    options->has_mtime = c->set.keep_mtime != 0;
    options->mtime_ns = info.mtime_ns;
    return SFT_OK;
}

/* ── Standard output ── */

bool cli_output_is_stream(const cli *c) {
    return c->set.output && strcmp(c->set.output, "-") == 0;
}

sft_code cli_output_no_stream(const cli *c, sft_error *err) {
    if (!cli_output_is_stream(c)) return SFT_OK;
    return cli_usage_hint(err, CLI_HINT_DASH_FILE,
                          "expected a path for -o, found - (standard output)");
}

/* Forward from where the descriptor is: behind what the shell has put there. */
static sft_code write_stream(void *ctx, const void *bytes, size_t len, sft_error *err) {
    (void)ctx;
    for (const char *at = bytes; len > 0;) {
        size_t put = 0;
        int error = sfti_os_write(1, at, len, &put);
        if (!error && put == 0) error = EIO;
        if (error) return sfti_io_fail(err, SFT_IO_WRITE, error, "write");
        at += put;
        len -= put;
    }
    return SFT_OK;
}

/* ── A file ── */

sft_code cli_output_no_time(sft_error *err) {
    return cli_usage_error(err, "expected files for --keep-mtime, found standard input");
}

sft_code cli_output_no_mtime(const cli *c, sft_error *err) {
    if (!c->set.keep_mtime) return SFT_OK;
    return cli_usage_error(err, "expected files for --keep-mtime, found a URL");
}

bool cli_output_copies(const cli *c, const char *input) {
    return c->set.output && (c->set.copy || cli_is_remote(c, input));
}

sft_code cli_output_agrees(const cli *c, sft_error *err) {
    if (c->set.keep_mtime && cli_output_is_stream(c))
        return cli_usage_error(err, "expected -o - or --keep-mtime, found both");
    if (!c->set.in_place || !c->set.output) return SFT_OK;
    return cli_usage_error(err, "expected -o OUT or --in-place, found both");
}

sft_code cli_output_begin(cli_output *out, cli *c, const char *input, cli_target target,
                          sft_error *err) {
    bool there;
    uint32_t old_mode = 0;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    out->in_place = !c->set.output;
    out->stream = false;
    out->c = c;
    out->input = input;
    out->path = out->blame = out->in_place ? input : c->set.output;
    sft_code code = cli_output_agrees(c, err);
    if (code) return code;
    bool asked = c->set.in_place || target == CLI_TARGET_EDIT;
    if (!out->path || (out->in_place && !asked))
        return cli_usage_error(err, "expected -o OUT%s, found none",
                               target == CLI_TARGET_EITHER ? " or --in-place" : "");
    options.alloc = &c->alloc;
    if (cli_output_is_stream(c)) {
        out->stream = true;
        out->options = options;
        if (c->set.terminal || c->set.dry_run || !sfti_os_is_terminal(1)) return SFT_OK;
        return cli_usage_hint(err, CLI_HINT_REDIRECT,
                              "expected a file or a pipe for binary output, found a terminal");
    }
    if (out->in_place && strcmp(out->path, "-") == 0)
        return cli_usage_error(err, "expected a file to be changed, found standard input");
    code = check_target(c, out->path, out->in_place, &there, &old_mode, err);
    if (code) return code;
    options.no_sync = c->set.no_sync != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    options.no_clobber = !there;
    options.link = c->set.follow ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
    if (!out->in_place) options.mode = old_mode;
    code = take_input_facts(c, input, out->in_place, &options, err);
    if (code) out->blame = input;
    out->options = options;
    return code;
}

sft_code cli_output_sink(const cli_output *out, sft_sink *sink, sft_error *err) {
    if (out->stream) return sft_sink_callback(write_stream, NULL, out->options.alloc, sink, err);
    sft_code code = sft_sink_path(out->path, &out->options, sink, err);
    if (!code) code = sft_sink_limit_mode(sink, out->c->read_mode, err);
    return code;
}

sft_code cli_output_parts(const cli_output *out, cli *c, cli_parts *parts, sft_error *err) {
    cli_progress progress;
    sft_sink sink;
    sft_code code = cli_parts_drop_digests(c, parts, true, err);
    sft_plan_options options = cli_parts_plan(c, parts);
    if (!code && !c->set.dry_run) {
        code = cli_output_sink(out, &sink, err);
        if (code) return code;
        sft_job job = cli_progress_begin(&progress, c, out->path);
        code = sft_save_parts(parts->parts, parts->count, NULL, parts->metadata_count, &options,
                              sink, &job, err);
        cli_progress_end(&progress);
    }
    if (code || parts->untold) return code;
    cli_written written = CLI_WRITTEN_INIT;
    cli_written_file file = cli_written_parts(out->path, parts->parts, parts->count, NULL, 0);
    written.input = out->input;
    written.output = out->path;
    written.files = &file;
    written.file_count = 1;
    cli_say_written(c, &written);
    return SFT_OK;
}
