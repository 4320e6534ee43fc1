/* Where the result of a command that writes goes, and whether it may go there; as several files
 * with an index; what is printed of it. Tests: tests/cli/split, tests/cli/merge. */
#include "support/guard.h"
#include "support/output.h"

#include "base/checked.h"
#include "base/files.h"
#include "keys/digest_keys.h"
#include "os/io.h"
#include "os/path.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/cli.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/raw.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ── What stands there ── */

/* Whether a file can be created at the path, as far as can be told before it is. */
static sft_code check_place(const char *path, sft_error *err) {
    if (!path[sfti_folder_len(path)])
        return cli_usage_hint(err, CLI_HINT_ONE_FILE, "expected the path of a file, found \"%s\"",
                              path);
    return cli_check_above(path, "create a file in that folder", err);
}

/* Whether what is there may be replaced; *there says whether there is anything, *mode what a
 * file has. */
static sft_code check_target(const cli *c, const char *path, bool in_place, bool *there,
                             uint32_t *mode, sft_error *err) {
    os_info info;
    int error = sfti_os_info_path(path, false, &info);
    *there = error != ENOENT;
    bool asks = c->set.dry_run && !c->folder_unmade;
    if (error == ENOENT && !in_place) return asks ? check_place(path, err) : SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (info.kind == OS_DIR)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a folder");
    if (info.kind != OS_FILE && info.kind != OS_LINK)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a pipe, device or socket");
    if (!in_place && !c->set.force) return sfti_fail(err, SFT_EXISTS, "already exists");
    if (cli_check_dataset(path, err)) return SFT_BAD_ARGUMENT;
    if (info.kind == OS_LINK && !c->set.follow) {
        char real[CLI_REAL_SIZE];
        error = sfti_os_real_path(path, real, sizeof real);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
        sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link to %s", real);
        /* Downloads of the Hugging Face hub are links into blobs/, whose files are named by their
         * digest: changing one makes its name a lie. */
        if (cli_is(sfti_path_name(sfti_path_above(sft_span_cstr(real))), "blobs"))
            sfti_hint(err, SFT_HINT_HUB_CACHE);
        return SFT_IS_LINK;
    }
    if (info.kind == OS_LINK) error = sfti_os_info_path(path, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
    if (info.kind == OS_FILE) *mode = info.mode & 0777;
    bool shared = info.kind == OS_FILE && info.links > 1;
    if (!shared || c->set.force) return SFT_OK;
    return cli_fail_hint(err, SFT_HARD_LINKS, CLI_HINT_ONE_NAME,
                         "expected a file with one name, found %u hard links",
                         (unsigned)info.links);
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

/* Fails for --keep-mtime of standard input, and of a URL, whose server tells no time. */
static sft_code check_time(const cli *c, const char *path, sft_error *err) {
    bool remote = cli_is_remote(c, path);
    if (!c->set.keep_mtime || (!remote && strcmp(path, "-") != 0)) return SFT_OK;
    return cli_usage_error(err, "expected files for --keep-mtime, found %s",
                           remote ? "a URL" : "standard input");
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

sft_code cli_output_is_folder(const cli *c, sft_error *err) {
    sft_code code = cli_output_no_stream(c, err);
    if (code || !cli_output_is_file(c)) return code;
    return cli_usage_error(err, "expected the name of a folder for -o, found that of a file; "
                           "\"%s/\" names a folder", c->set.output);
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

bool cli_output_copies(const cli *c, const char *input) {
    return c->set.output && (c->set.copy || cli_is_remote(c, input));
}

sft_code cli_output_agrees(const cli *c, sft_error *err) {
    if (c->set.keep_mtime && cli_output_is_stream(c))
        return cli_usage_error(err, "expected -o - or --keep-mtime, found both");
    if (!c->set.in_place || !c->set.output) return SFT_OK;
    return cli_usage_error(err, "expected -o OUT or --in-place, found both");
}

/* Refuses a name of another format for a file that is written in safetensors. */
static sft_code check_name(const char *path, sft_error *err) {
    sft_span name = sft_span_cstr(path);
    size_t other = cli_other_format(name);
    const char *ending = other < CLI_OTHER_FORMATS ? cli_other_formats[other]
                       : cli_ends_with(name, ".npy") ? ".npy" : NULL;
    if (!ending) return SFT_OK;
    return cli_usage_error(err, "expected a name that ends in .safetensors for -o, found "
                           "one that ends in %s", ending);
}

sft_code cli_output_begin(cli_output *out, cli *c, const char *input, cli_target target,
                          sft_error *err) {
    bool there;
    uint32_t old_mode = 0;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    *out = (cli_output){ .in_place = !c->set.output, .c = c, .input = input };
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
    if (!out->in_place && target != CLI_TARGET_OTHER) code = check_name(out->path, err);
    if (code) return code;
    code = check_target(c, out->path, out->in_place, &there, &old_mode, err);
    if (!code && there && !out->in_place) code = cli_guard_lock(c, out->path, err);
    if (code) return code;
    options.no_sync = c->set.no_sync != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    options.no_clobber = !there;
    options.link = c->set.follow ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
    if (!out->in_place) options.mode = old_mode;
    os_info info = { .kind = OS_OTHER };
    int error = 0;
    if (input && (strcmp(input, "-") == 0 || cli_is_remote(c, input)))
        code = check_time(c, input, err);
    else if (input)
        error = sfti_os_info_path(input, true, &info);
    if (error) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (code) out->blame = input;
    if (!code && info.kind == OS_FILE) {
        uint32_t mode = info.mode & 0777 ? info.mode & 0777 : 0600;
        if (!out->in_place) sfti_mode_common(&options.mode, mode);
        options.has_mtime = c->set.keep_mtime != 0;
        options.mtime_ns = info.mtime_ns;
    }
    out->options = options;
    return code;
}

sft_code cli_output_sink(const cli_output *out, sft_sink *sink, sft_error *err) {
    if (out->stream) return sft_sink_callback(write_stream, NULL, out->options.alloc, sink, err);
    sft_code code = sft_sink_path(out->path, &out->options, sink, err);
    if (code == SFT_BAD_ARGUMENT && cli_ends_with(sft_span_cstr(out->path), "/"))
        cli_hint(err, CLI_HINT_ONE_FILE);
    if (code) return code;
    code = sft_sink_limit_mode(sink, out->c->read_mode, err);
    if (code) sft_sink_abandon(sink);
    return code;
}

bool cli_output_failed(sft_code code) {
    bool reads = code == SFT_IO_READ || code == SFT_IO_SHRUNK || code == SFT_IO_MAP
              || cli_is_remote_error(code);
    return code == SFT_EXISTS || code == SFT_IS_LINK
        || (sft_code_describe(code)->cls == SFT_CLASS_IO && !reads);
}

/* A dry run refuses what a plan refuses, such as two tensors of one name. */
static sft_code try_parts(const cli_parts *parts, const sft_plan_options *options,
                          sft_error *err) {
    sfti_arena work = { .alloc = parts->arena.alloc };
    sft_plan *plan = NULL;
    sft_code code = SFT_OK;
    sft_spec *specs = sfti_arena_array(&work, parts->count, sizeof *specs);
    if (!specs) code = sfti_fail_memory(err, parts->count * sizeof *specs);
    for (size_t i = 0; !code && i < parts->count; i++) specs[i] = parts->parts[i].spec;
    if (!code)
        code = sft_plan_new(specs, parts->count, NULL, parts->metadata_count, options, &plan, err);
    sft_plan_free(plan);
    sfti_arena_free(&work);
    return code;
}

sft_code cli_output_parts(const cli_output *out, cli *c, cli_parts *parts, sft_error *err) {
    cli_progress progress;
    sft_sink sink;
    sft_code code = cli_parts_drop_digests(c, parts, true, err);
    sft_plan_options options = cli_parts_plan(c, parts);
    if (!code && c->set.dry_run) code = try_parts(parts, &options, err);
    if (!code && !c->set.dry_run) {
        code = cli_output_sink(out, &sink, err);
        if (code) return code;
        sft_job job = cli_progress_begin(&progress, c, out->path);
        progress.holds = parts->holds;
        progress.ctx = parts->ctx;
        parts->sink = &sink;
        code = sft_save_parts(parts->parts, parts->count, NULL, parts->metadata_count, &options,
                              sink, &job, err);
        cli_progress_end(&progress);
    }
    if (code || parts->untold) return code;
    cli_say_parts(c, parts, out->path,
                  (cli_written){ .input = out->input, .dtype = SFT_DTYPE_COUNT });
    return SFT_OK;
}

cli_written_file cli_written_parts(const char *path, const sft_part *parts, size_t count,
                                   const uint32_t *shard_of, uint32_t shard) {
    cli_written_file file = { path, 0, 0 };
    for (size_t i = 0; i < count; i++) {
        if (shard_of && shard_of[i] != shard) continue;
        file.tensors++;
        file.bytes += cli_spec_bytes(&parts[i].spec);
    }
    return file;
}

void cli_say_parts(cli *c, const cli_parts *parts, const char *output, cli_written written) {
    cli_written_file file = cli_written_parts(output, parts->parts, parts->count, NULL, 0);
    written.output = output;
    written.files = &file;
    written.file_count = 1;
    cli_say_written(c, &written);
}

static cli_written_file sum_files(const cli_written *w) {
    cli_written_file sum = { w->output, 0, 0 };
    for (size_t i = 0; i < w->file_count; i++) {
        sum.tensors += w->files[i].tensors;
        sum.bytes += w->files[i].bytes;
    }
    return sum;
}

/* ── A line ── */

static void say_size(cli *c, const cli_written_file *file) {
    char buffer[CLI_NUMBER_SIZE];
    cli_printf(&c->out, "%zu tensor%s, %s\n", file->tensors, file->tensors == 1 ? "" : "s",
               cli_size_text(file->bytes, buffer));
}

static void say_human(cli *c, const cli_written *w) {
    cli_written_file sum = sum_files(w);
    bool dry = c->set.dry_run != 0, converts = w->dtype < SFT_DTYPE_COUNT;
    if (dry && w->is_set && !converts) {
        for (size_t i = 0; i < w->file_count; i++) {
            const cli_written_file *file = &w->files[i];
            bool gone = w->fresh && file->tensors == 0;
            cli_path(&c->out, file->path, ": %s, ",
                     gone       ? "would be removed"
                     : w->fresh ? "would be rewritten under a new name"
                                : "would be written");
            if (gone) cli_text(&c->out, "no tensors left\n");
            else say_size(c, file);
        }
        return;
    }
    if (w->file_count == 0) {
        cli_path(&c->out, w->output, ": nothing to change%s\n",
                 c->set.output ? ", not written (--copy writes it all the same)" : "");
        return;
    }
    cli_path(&c->out, w->output, ": %s%s, %s", dry ? "would be " : "",
             w->fresh ? "updated" : c->set.output ? "written" : "updated (file rewritten)",
             w->fresh && dry ? "with " : "");
    if (w->fresh) {
        size_t kept = 0;
        for (size_t i = 0; i < w->file_count; i++) kept += w->files[i].tensors > 0;
        size_t gone = w->file_count - kept;
        if (kept > 0) cli_printf(&c->out, "%zu file%s rewritten, ", kept, kept == 1 ? "" : "s");
        if (gone > 0 && kept > 0) cli_printf(&c->out, "%zu removed, ", gone);
        if (kept == 0) cli_printf(&c->out, "%zu file%s removed\n", gone, gone == 1 ? "" : "s");
        if (kept == 0) return;
    }
    if (w->is_set && !w->fresh)
        cli_printf(&c->out, "%zu file%s and an index, ", w->file_count,
                   w->file_count == 1 ? "" : "s");
    if (!converts) {
        say_size(c, &sum);
        return;
    }
    char before[CLI_NUMBER_SIZE], after[CLI_NUMBER_SIZE];
    cli_printf(&c->out, "%" PRIu64 " of %zu tensor%s cast to %s, %s instead of %s\n", w->cast,
               sum.tensors, sum.tensors == 1 ? "" : "s",
               sft_dtype_describe((sft_dtype)w->dtype)->name, cli_size_text(sum.bytes, after),
               cli_size_text(w->bytes_before, before));
}

/* ── Digests of what was ── */

void cli_put_dropped(const cli *c, sfti_json_writer *w) {
    const char *key;
    unsigned bit;
    sfti_json_put_open(w, "dropped", '[');
    for (size_t i = 0; (key = sfti_digest_key_at(i, &bit)) != NULL; i++)
        if (c->dropped & bit) sfti_json_cstr(w, key);
    sfti_json_close(w, ']');
}

void cli_say_dropped(cli *c, const char *path) {
    const char *key, *comma = "";
    unsigned bit;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: note: ");
    cli_path(&c->err, path, c->set.dry_run ? ": would leave out " : ": left out ");
    for (size_t i = 0; (key = sfti_digest_key_at(i, &bit)) != NULL; i++) {
        if (!(c->dropped & bit)) continue;
        cli_printf(&c->err, "%s%s", comma, key);
        comma = ", ";
    }
    cli_text(&c->err, ", recorded before the change\n");
    cli_flush(&c->err);
}

void cli_say_written(cli *c, const cli_written *written) {
    cli_object object;
    if (written->file_count > 0) c->changed++;
    else c->unchanged++, c->beside = (cli_beside){ .left = NULL };
    cli_say_beside(c);
    if (!cli_is_json(c)) {
        say_human(c, written);
        if (c->dropped) cli_say_dropped(c, written->output);
        c->dropped = 0;
        return;
    }
    cli_written_file sum = sum_files(written);
    sfti_json_writer *w = cli_object_begin(&object, c, written->input);
    sfti_json_put_cstr(w, "output", written->output);
    sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
    sfti_json_put_uint(w, "tensors", sum.tensors);
    sfti_json_put_uint(w, "bytes", sum.bytes);
    sfti_json_put_open(w, "files", '[');
    for (size_t i = 0; i < written->file_count; i++) {
        if (written->fresh && written->files[i].tensors == 0) continue;
        sfti_json_open(w, '{');
        sfti_json_path(w, written->files[i].path);
        sfti_json_put_uint(w, "tensors", written->files[i].tensors);
        sfti_json_put_uint(w, "bytes", written->files[i].bytes);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    if (written->fresh) sfti_json_put_open(w, "removed", '[');
    for (size_t i = 0; written->fresh && i < written->file_count; i++)
        if (written->files[i].tensors == 0) sfti_json_cstr(w, written->files[i].path);
    if (written->fresh) sfti_json_close(w, ']');
    if (written->dtype < SFT_DTYPE_COUNT) {
        sfti_json_put_cstr(w, "dtype", sft_dtype_describe((sft_dtype)written->dtype)->name);
        sfti_json_put_uint(w, "cast", written->cast);
        sfti_json_put_uint(w, "bytes_before", written->bytes_before);
    }
    if (c->dropped) cli_put_dropped(c, w);
    if (written->more) written->more(written->ctx, w);
    cli_object_end(&object);
    c->dropped = 0;
}

/* ── A model in several files ── */

/* A model being written as several files. */
typedef struct set_output {
    cli *c;
    cli_parts *parts;
    uint32_t shards;
    sft_save_set_options options;
    sft_plan_options plan;
    sft_buffer kept; /* of the index's metadata */
    char stem[CLI_STEM_SIZE];
} set_output;

bool cli_output_is_file(const cli *c) {
    sft_span out = sft_span_cstr(c->set.output ? c->set.output : "");
    const char *dot = out.len > 1 ? strrchr(out.data + 1, '.') : NULL;
    return cli_output_is_stream(c) || cli_other_format(out) < CLI_OTHER_FORMATS
        || (dot && (strcmp(dot, ".safetensors") == 0 || strcmp(dot, ".sft") == 0));
}

const char *cli_index_stem(const char *index, char buffer[CLI_STEM_SIZE]) {
    const char *name = index ? cli_name_of(index).data : NULL;
    const char *end = name ? strstr(name, ".safetensors.index") : NULL;
    if (!end || end == name || end - name >= CLI_STEM_SIZE) return NULL;
    memcpy(buffer, name, (size_t)(end - name));
    buffer[end - name] = '\0';
    return buffer;
}

/* ── What stays of the index and of the files ── */

sft_code cli_output_mtime(const cli *c, const char *path, int64_t *out, sft_error *err) {
    os_info info;
    if (!c->set.keep_mtime) return SFT_OK;
    sft_code code = check_time(c, path, err);
    if (code) return code;
    int error = sfti_os_info_path(path, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    *out = info.mtime_ns;
    return SFT_OK;
}

static uint32_t parts_mode(const cli_parts *parts) {
    uint32_t mode = 0;
    for (size_t i = 0; i < parts->set_count; i++)
        sfti_mode_common(&mode, sft_set_output_mode(parts->sets[i], NULL));
    return mode;
}

sft_code cli_output_sources(cli *c, const cli_parts *parts, cli_output *out, sft_error *err) {
    int64_t youngest = INT64_MIN, time = 0;
    sft_code code = SFT_OK;
    if (!out->in_place) sfti_mode_common(&out->options.mode, parts_mode(parts));
    if (!out->in_place && !parts->configured)
        code = cli_check_adapter_config(c, parts->opened, parts->set_count,
                                        out->stream ? NULL : out->path, err);
    if (!code && !out->in_place && !out->stream && !c->set.dequantize && !c->set.quantize)
        code = cli_check_quantiser(c, parts, out->path, err);
    if (code || !c->set.keep_mtime) return code;
    for (size_t i = 0; !code && i < parts->path_count; i++) {
        code = cli_output_mtime(c, parts->paths[i], &time, err);
        if (time > youngest) youngest = time;
    }
    out->options.has_mtime = parts->path_count > 0;
    out->options.mtime_ns = youngest;
    return code;
}

/* Each file gets the time of the youngest that something in it comes from. */
static sft_code take_mtimes(set_output *o, sft_error *err) {
    cli_parts *p = o->parts;
    const char *index = p->set_count == 1 ? sft_set_index_path(p->sets[0]) : NULL;
    int64_t *times = sfti_arena_array(&p->arena, (uint64_t)o->shards + 1, sizeof *times);
    int64_t *files = sfti_arena_array(&p->arena, p->path_count, sizeof *files);
    sft_code code = SFT_OK;
    if (!times || !files) return sfti_fail_memory(err, p->path_count * sizeof *files);
    for (size_t i = 0; !code && i < p->path_count; i++)
        code = cli_output_mtime(o->c, p->paths[i], &files[i], err);
    for (size_t s = 0; s <= o->shards; s++) times[s] = INT64_MIN;
    for (size_t i = 0; !code && i < p->count; i++) {
        int64_t time = files[p->file[i]];
        if (time > times[p->shard[i]]) times[p->shard[i]] = time;
        if (time > times[o->shards]) times[o->shards] = time;
    }
    for (size_t s = 0; !code && s < o->shards; s++)
        if (times[s] == INT64_MIN) times[s] = p->path_count > 0 ? files[0] : 0;
    if (!code && index) code = cli_output_mtime(o->c, index, &times[o->shards], err);
    o->options.mtimes_ns = times;
    return code;
}

/* Without some of the tensors, or of their rows, a number of parameters would be wrong. */
static sft_code take_index_metadata(set_output *o, sft_error *err) {
    const sft_set *set = o->parts->sets[0];
    sft_span text = sft_set_index_metadata(set);
    uint64_t all = 0, elements;
    for (size_t i = 0; i < o->parts->count; i++) {
        const sft_spec *spec = &o->parts->parts[i].spec;
        if (!sft_shape_size(spec->dtype, spec->shape, spec->rank, &elements, NULL, NULL))
            sfti_total_add(&all, elements);
    }
    o->options.index_metadata = text;
    if (text.len == 0
        || (o->parts->count == sft_set_tensor_count(set) && all == sft_set_parameters(set)))
        return SFT_OK;
    sft_sink sink = sft_sink_memory(&o->kept);
    sfti_json_writer w;
    cli_raw member;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    for (cli_raw_begin(&member, text); cli_raw_next(&member);)
        if (!cli_raw_is_key(member.key, sft_span_cstr("total_parameters")))
            cli_raw_write(&w, member.key, member.value);
    sfti_json_close(&w, '}');
    sft_code code = sfti_json_done(&w);
    o->options.index_metadata = (sft_span){ o->kept.data, o->kept.len };
    return code;
}

/* ── Writing ── */

char *cli_output_shard(sfti_arena *arena, const char *folder, const char *stem, uint32_t shard,
                       uint32_t count) {
    char name[CLI_STEM_SIZE + 64];
    size_t len = sft_shard_name(stem, shard, count, name, sizeof name);
    return len < sizeof name ? cli_join_path(arena, sft_span_cstr(folder), name) : NULL;
}

sft_code cli_say_shards(cli *c, cli_parts *p, uint32_t shards, const char *stem,
                        cli_written written, sft_error *err) {
    const char *folder = c->set.output;
    cli_written_file *files = sfti_arena_array(&p->arena, shards, sizeof *files);
    if (!files) return sfti_fail_memory(err, shards * sizeof *files);
    for (uint32_t s = 0; s < shards; s++) {
        char *path = cli_output_shard(&p->arena, folder, stem, s, shards);
        if (!path) return sfti_fail_memory(err, strlen(folder));
        files[s] = cli_written_parts(path, p->parts, p->count, p->shard, s);
    }
    written.output = folder;
    written.files = files;
    written.file_count = shards;
    written.is_set = shards > 1;
    cli_say_written(c, &written);
    return SFT_OK;
}

sft_code cli_output_set(cli *c, cli_parts *parts, uint32_t shards, sft_error *err) {
    set_output o = { .c = c, .parts = parts, .shards = shards, .kept = { .alloc = c->alloc } };
    cli_progress progress;
    if (!c->set.output) return cli_usage_error(err, "expected -o DIR, found none");
    sft_code code = SFT_OK;
    if (!parts->configured)
        code = cli_check_adapter_config(c, parts->opened, parts->set_count, NULL, err);
    if (!code) code = cli_check_quantiser(c, parts, NULL, err);
    if (code) return code;
    const char *index = parts->set_count == 1 ? sft_set_index_path(parts->sets[0]) : NULL;
    o.options = (sft_save_set_options)SFT_SAVE_SET_OPTIONS_INIT;
    o.options.stem = c->set.stem ? c->set.stem : cli_index_stem(index, o.stem);
    o.options.no_sync = c->set.no_sync != 0;
    o.options.in_place_unsafe = c->set.in_place_unsafe != 0;
    o.options.mode = parts_mode(parts);
    o.plan = cli_parts_plan(c, parts);
    o.options.plan = &o.plan;
    code = cli_parts_drop_digests(c, parts, shards == 1, err);
    bool writes = !c->set.dry_run;
    if (!code && !writes) code = cli_check_folder(c, c->set.output, err);
    if (!code && writes && parts->set_count == 1) code = take_index_metadata(&o, err);
    if (!code && writes && c->set.keep_mtime) code = take_mtimes(&o, err);
    if (!code && writes) {
        sft_job job = cli_progress_begin(&progress, c, c->set.output);
        progress.holds = parts->holds;
        progress.ctx = parts->ctx;
        code = sft_save_set(c->set.output, parts->parts, parts->shard, parts->count, shards, NULL,
                            parts->metadata_count, &o.options, &job, err);
        cli_progress_end(&progress);
    }
    cli_written written = CLI_WRITTEN_INIT;
    written.input = index || parts->set_count != 1 ? index
                                                   : sft_set_shard_path(parts->sets[0], 0);
    if (!code && !parts->untold)
        code = cli_say_shards(c, parts, shards, o.options.stem, written, err);
    sft_buffer_free(&o.kept);
    return code;
}
