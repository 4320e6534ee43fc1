/* The result of a command that writes, as several files with an index. */
#include "base/files.h"
#include "os/io.h"
#include "support/cli.h"
#include "support/files.h"
#include "support/output.h"
#include "support/raw.h"
#include "support/remote.h"

#include <string.h>

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
    return cli_output_is_stream(c)
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
    if (strcmp(path, "-") == 0) return cli_output_no_time(err);
    if (cli_is_remote(c, path)) return cli_output_no_mtime(c, err);
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

sft_code cli_output_sources(const cli *c, const cli_parts *parts, cli_output *out,
                            sft_error *err) {
    int64_t youngest = INT64_MIN, time = 0;
    sft_code code = SFT_OK;
    if (!out->in_place) sfti_mode_common(&out->options.mode, parts_mode(parts));
    if (!c->set.keep_mtime) return SFT_OK;
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

/* Without some of the tensors a number of parameters would be wrong. */
static sft_code take_index_metadata(set_output *o, sft_error *err) {
    const sft_set *set = o->parts->sets[0];
    sft_span text = sft_set_index_metadata(set);
    sft_span parameters = { "total_parameters", 16 };
    o->options.index_metadata = text;
    if (o->parts->count == sft_set_tensor_count(set) || text.len == 0) return SFT_OK;
    sft_sink sink = sft_sink_memory(&o->kept);
    sfti_json_writer w;
    cli_raw member;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    for (cli_raw_begin(&member, text); cli_raw_next(&member);)
        if (!sft_span_equal(member.key, parameters)) cli_raw_write(&w, member.key, member.value);
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

/* What was, or would be, written. */
static sft_code say_shards(const set_output *o, sft_error *err) {
    cli_parts *p = o->parts;
    const char *folder = o->c->set.output;
    cli_written written = CLI_WRITTEN_INIT;
    cli_written_file *files = sfti_arena_array(&p->arena, o->shards, sizeof *files);
    if (!files) return sfti_fail_memory(err, o->shards * sizeof *files);
    for (uint32_t s = 0; s < o->shards; s++) {
        char *path = cli_output_shard(&p->arena, folder, o->options.stem, s, o->shards);
        if (!path) return sfti_fail_memory(err, strlen(folder));
        files[s] = cli_written_parts(path, p->parts, p->count, p->shard, s);
    }
    const char *index = p->set_count == 1 ? sft_set_index_path(p->sets[0]) : NULL;
    written.input = index || p->set_count != 1 ? index : sft_set_shard_path(p->sets[0], 0);
    written.output = folder;
    written.files = files;
    written.file_count = o->shards;
    written.is_set = o->shards > 1;
    cli_say_written(o->c, &written);
    return SFT_OK;
}

sft_code cli_output_set(cli *c, cli_parts *parts, uint32_t shards, sft_error *err) {
    set_output o = { .c = c, .parts = parts, .shards = shards, .kept = { .alloc = c->alloc } };
    cli_progress progress;
    if (!c->set.output) return cli_usage_error(err, "expected -o DIR, found none");
    const char *index = parts->set_count == 1 ? sft_set_index_path(parts->sets[0]) : NULL;
    o.options = (sft_save_set_options)SFT_SAVE_SET_OPTIONS_INIT;
    o.options.stem = c->set.stem ? c->set.stem : cli_index_stem(index, o.stem);
    o.options.no_sync = c->set.no_sync != 0;
    o.options.in_place_unsafe = c->set.in_place_unsafe != 0;
    o.options.mode = parts_mode(parts);
    o.plan = cli_parts_plan(c, parts);
    o.options.plan = &o.plan;
    sft_code code = cli_parts_drop_digests(c, parts, shards == 1, err);
    if (code) return code;
    if (c->set.dry_run) return parts->untold ? SFT_OK : say_shards(&o, err);
    if (parts->set_count == 1) code = take_index_metadata(&o, err);
    if (!code && c->set.keep_mtime) code = take_mtimes(&o, err);
    if (!code) {
        sft_job job = cli_progress_begin(&progress, c, c->set.output);
        code = sft_save_set(c->set.output, parts->parts, parts->shard, parts->count, shards, NULL,
                            parts->metadata_count, &o.options, &job, err);
        cli_progress_end(&progress);
    }
    if (!code && !parts->untold) code = say_shards(&o, err);
    sft_buffer_free(&o.kept);
    return code;
}
