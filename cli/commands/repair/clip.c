/* repair --clip. Tests: tests/cli/layout. */
#include "base/endian.h"
#include "commands/repair/repair.h"
#include "safetensors_cast.h"
#include "support/fresh.h"
#include "support/output.h"
#include "support/parts.h"

#include <string.h>

#define IDS_MOST 4096

static bool is_ids(const sft_part *part) {
    static const char end[] = "embeddings.position_ids";
    sft_span name = part->spec.name;
    size_t len = sizeof end - 1;
    bool shaped = part->spec.rank == 2 && part->spec.shape[0] == 1 && part->spec.shape[1] > 0
               && part->spec.shape[1] <= IDS_MOST;
    return shaped && name.len >= len && memcmp(name.data + name.len - len, end, len) == 0;
}

/* Counts the ids that differ, and names the first. */
static sft_code count_wrong(cli *c, const sft_part *part, const char *input, size_t *wrong,
                            sft_error *err) {
    static const double none = -1;
    size_t count = (size_t)part->spec.shape[1];
    size_t each = sft_dtype_describe(part->spec.dtype)->bits / 8;
    sfti_arena work = { .alloc = c->alloc };
    uint8_t *bytes = sfti_arena_array(&work, count * 8, 1);
    double *values = sfti_arena_array(&work, count, sizeof *values), first = none;
    size_t got = 0, at = 0;
    sft_code code = bytes && values ? SFT_OK : sfti_fail_memory(err, count * 16);
    if (!code && (each == 0 || each > 8))
        code = sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, part->spec.name,
                                "expected integers or floating-point numbers");
    for (size_t done = 0; !code && done < count * each; done += got) {
        code = sft_source_read(part->source, part->begin + done, bytes + done, count * each - done,
                               &got, err);
        if (!code && got == 0)
            code = sfti_fail(err, SFT_IO_SHRUNK, "expected a tensor, found the end");
    }
    if (!code) code = sft_cast(part->spec.dtype, bytes, SFT_F64, values, count, NULL, NULL, err);
    for (size_t i = 0; !code && i < count; i++) {
        uint64_t bits = sfti_get_u64(&values[i]);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (value >= (double)i && value <= (double)i) continue;
        if ((*wrong)++ == 0) first = value, at = i;
    }
    if (!code && *wrong > 0 && !cli_is_json(c)) {
        cli_path(&c->out, input, ": ");
        cli_escaped(&c->out, part->spec.name);
        cli_printf(&c->out, ": %zu of %zu ids differ, the first is %g for %zu\n", *wrong, count,
                   first, at);
    }
    sfti_arena_free(&work);
    return code;
}

static sft_code repair_ids(cli *c, cli_parts *parts, const char *input, sft_error *err) {
    size_t found = 0, changed = 0;
    cli_output out;
    parts->path = input;
    sft_code code = cli_output_agrees(c, err);
    if (!code) code = cli_parts_open_one(c, input, c->set.in_place != 0, parts, err);
    if (code) return code;
    size_t shards = sft_set_shard_count(parts->sets[0]);
    bool several = sft_set_index_path(parts->sets[0]) != NULL;
    bool *touched = sfti_arena_array(&parts->arena, shards, sizeof *touched);
    if (!touched) return sfti_fail_memory(err, shards);
    memset(touched, 0, shards);
    for (size_t i = 0; !code && i < parts->count; i++) {
        sft_part *part = &parts->parts[i];
        size_t wrong = 0;
        if (!is_ids(part)) continue;
        found++;
        code = count_wrong(c, part, parts->path, &wrong, err);
        if (code || (wrong == 0 && part->spec.dtype == SFT_I64)) continue;
        if (wrong == 0 && !cli_is_json(c)) {
            cli_path(&c->out, parts->path, ": ");
            cli_escaped(&c->out, part->spec.name);
            cli_printf(&c->out, ": right, but %s instead of I64\n",
                       sft_dtype_describe(part->spec.dtype)->name);
        }
        size_t count = (size_t)part->spec.shape[1];
        uint64_t *ids = sfti_arena_array(&parts->arena, count, sizeof *ids);
        sft_source *source = sfti_arena_take(&parts->arena, sizeof *source);
        if (!ids || !source) return sfti_fail_memory(err, count * sizeof *ids);
        for (size_t k = 0; k < count; k++) sfti_put_u64(&ids[k], k);
        *source = sft_source_memory(ids, count * sizeof *ids);
        part->spec.dtype = SFT_I64;
        part->source = source;
        part->begin = 0;
        touched[parts->shard[i]] = true;
        changed++;
    }
    if (!code && found == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected position ids of CLIP, found none");
    if (code) return code;
    if (changed == 0 && !c->set.copy) {
        cli_written written = { .input = parts->path, .output = parts->path,
                                .dtype = SFT_DTYPE_COUNT };
        cli_say_written(c, &written);
        return SFT_OK;
    }
    parts->changed = true;
    if (several && !c->set.output && c->set.in_place) { /* the shards that have them */
        cli_rewrite how = CLI_REWRITE_INIT;
        how.touched = touched;
        how.same_elements = true;
        return cli_rewrite_set(c, parts, &how, err);
    }
    code = cli_parts_tell(c, parts, err);
    if (code) return code;
    if (several && c->set.output && !cli_output_is_file(c)) {
        parts->path = c->set.output;
        return cli_output_set(c, parts, (uint32_t)shards, err);
    }
    code = cli_output_begin(&out, c, parts->path, CLI_TARGET_EITHER, err);
    if (!code) code = cli_output_sources(c, parts, &out, err);
    return code ? code : cli_output_parts(&out, c, parts, err);
}

void repair_clip(cli *c, const char *input) {
    sft_error err = SFT_ERROR_INIT;
    cli_parts parts = { .arena = { .alloc = c->alloc } };
    sft_code code = repair_ids(c, &parts, input, &err);
    if (code == SFT_TENSOR_NOT_FOUND || code == SFT_CAST_DTYPE) cli_refuse(c, parts.path, &err);
    else if (code) cli_fail_input(c, parts.path, &err);
    cli_parts_free(&parts);
}
