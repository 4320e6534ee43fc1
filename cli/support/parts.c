#include "support/parts.h"

#include "base/order.h"
#include "support/edit.h"

#include <inttypes.h>
#include <string.h>

/* ── Models ── */

static sft_code no_model(const cli_input *input, sft_error *err) {
    if (input->err) {
        *err = *input->err;
        return err->code;
    }
    if (input->kind == CLI_STDIN) {
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected a file, found standard input");
    }
    return sfti_fail(err, SFT_NOT_FOUND, SFT_NO_OFFSET,
                     "expected models (*.safetensors, *.sft or an index) in this folder, found "
                     "none");
}

static sft_code take_set(cli_parts *p, sft_set *set, sft_error *err) {
    if (p->set_count == p->set_room) {
        size_t room = 2 * p->set_room + 8;
        sft_set **sets = sfti_arena_array(&p->arena, room, sizeof *sets);
        if (!sets) {
            sft_set_close(set);
            return sfti_fail_memory(err, room * sizeof *sets);
        }
        if (p->set_count > 0) memcpy(sets, p->sets, p->set_count * sizeof *sets);
        p->sets = sets;
        p->set_room = room;
    }
    p->sets[p->set_count++] = set;
    return SFT_OK;
}

/* The paths of errors must outlive the inputs they come from. */
static const char *keep_path(cli_parts *p, const char *path) {
    size_t len = strlen(path) + 1;
    char *kept = sfti_arena_take(&p->arena, len);
    if (kept) memcpy(kept, path, len);
    return kept;
}

static sft_code open_input(cli *c, cli_parts *p, const cli_input *input, sft_error *err) {
    sft_set *set;
    p->path = keep_path(p, input->path);
    if (!p->path) return sfti_fail_memory(err, strlen(input->path));
    bool model = cli_input_is_path(input);
    if (!model) return no_model(input, err);
    sft_code code = cli_open_model(c, input, &set, err);
    return code ? code : take_set(p, set, err);
}

static sft_code open_operand(cli *c, cli_parts *p, const char *operand, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    p->path = operand;
    sft_code code = cli_inputs_expand(operand, false, &options, &p->inputs, err);
    for (size_t i = 0; !code && i < p->inputs.count; i++) {
        code = open_input(c, p, p->inputs.items[i], err);
    }
    cli_inputs_free(&p->inputs);
    memset(&p->inputs, 0, sizeof p->inputs);
    return code;
}

/* ── Tensors ── */

static sft_code list_shards(cli_parts *p, const sft_set *set, sft_source **out, sft_error *err) {
    size_t count = sft_set_shard_count(set);
    *out = sfti_arena_array(&p->arena, count, sizeof **out);
    if (!*out) return sfti_fail_memory(err, count * sizeof **out);
    for (size_t i = 0; i < count; i++) (*out)[i] = sft_file_source(sft_set_shard(set, i));
    return SFT_OK;
}

/* file: how many files the models before it have. */
static sft_code list_set(cli_parts *p, const sft_set *set, size_t file, sft_error *err) {
    size_t count = sft_set_count(set);
    sft_source *sources;
    uint32_t *order = sfti_arena_array(&p->arena, count, sizeof *order);
    if (!order) return sfti_fail_memory(err, count * sizeof *order);
    sft_code code = list_shards(p, set, &sources, err);
    if (!code) code = sft_set_order(set, SFT_ORDER_NATURAL, order, err);
    for (size_t i = 0; !code && i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor(set, order[i]);
        size_t shard = sft_set_tensor_shard(set, order[i]);
        p->shard[p->count] = (uint32_t)shard;
        p->file[p->count] = (uint32_t)(file + shard);
        p->parts[p->count++] = sft_part_of(tensor, &sources[shard]);
    }
    return code;
}

static sft_code list_tensors(cli_parts *p, sft_error *err) {
    uint64_t count = 0, files = 0;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < p->set_count; i++) count += sft_set_count(p->sets[i]);
    for (size_t i = 0; i < p->set_count; i++) files += sft_set_shard_count(p->sets[i]);
    p->parts = sfti_arena_array(&p->arena, count, sizeof *p->parts);
    p->shard = sfti_arena_array(&p->arena, count, sizeof *p->shard);
    p->file = sfti_arena_array(&p->arena, count, sizeof *p->file);
    p->paths = sfti_arena_array(&p->arena, files, sizeof *p->paths);
    if (!p->parts || !p->shard || !p->file || !p->paths)
        return sfti_fail_memory(err, count * sizeof *p->parts);
    for (size_t i = 0; !code && i < p->set_count; i++) {
        code = list_set(p, p->sets[i], p->path_count, err);
        for (size_t s = 0; s < sft_set_shard_count(p->sets[i]); s++)
            p->paths[p->path_count++] = sft_set_shard_path(p->sets[i], s);
    }
    return code;
}

/* ── Metadata ── */

static int compare_part_keys(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    return sfti_bytes_compare(pairs[a].key, pairs[b].key);
}

/* Of each key the first pair. */
static sft_code settle_metadata(cli_parts *p, size_t count, sft_error *err) {
    sft_pair *all = p->metadata;
    sfti_arena work = { .alloc = p->arena.alloc };
    uint32_t *order = sfti_arena_array(&work, 2 * (uint64_t)count, sizeof *order);
    if (!order) return sfti_fail_memory(err, count * sizeof *order);
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + count, count, compare_part_keys, all);
    const sft_pair *first = count > 0 ? &all[order[0]] : NULL;
    for (size_t i = 1; i < count; i++) {
        sft_pair *pair = &all[order[i]];
        bool again = sft_span_equal(first->key, pair->key);
        if (!again) first = pair;
        else p->conflicts += !sft_span_equal(first->value, pair->value);
        if (again) pair->key.data = NULL; /* keys in files have data, the empty one too */
    }
    sfti_arena_free(&work);
    for (size_t i = 0; i < count; i++)
        if (all[i].key.data) all[p->metadata_count++] = all[i];
    return SFT_OK;
}

/* Counts, or with metadata puts, the pairs of one file. */
static void list_file(cli_parts *p, const sft_file *file, size_t *count) {
    size_t pairs = sft_file_metadata_count(file);
    p->has_metadata = p->has_metadata || sft_file_has_metadata(file);
    for (size_t i = 0; p->metadata && i < pairs; i++) {
        p->metadata[*count + i] = sft_file_metadata_at(file, i);
    }
    *count += pairs;
}

static void list_files(cli_parts *p, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < p->set_count; i++) {
        size_t shards = sft_set_shard_count(p->sets[i]);
        for (size_t s = 0; s < shards; s++) list_file(p, sft_set_shard(p->sets[i], s), count);
    }
}

static sft_code list_metadata(cli_parts *p, sft_error *err) {
    size_t count;
    list_files(p, &count);
    p->metadata = sfti_arena_array(&p->metadata_arena, count, sizeof *p->metadata);
    if (!p->metadata) return sfti_fail_memory(err, count * sizeof *p->metadata);
    list_files(p, &count);
    return settle_metadata(p, count, err);
}

/* ── All together ── */

sft_code cli_parts_open(cli *c, char **operands, size_t count, cli_parts *out, sft_error *err) {
    sft_code code = SFT_OK;
    memset(out, 0, sizeof *out);
    out->arena.alloc = out->metadata_arena.alloc = c->alloc;
    for (size_t i = 0; !code && i < count; i++) code = open_operand(c, out, operands[i], err);
    if (code) return code;
    if (out->set_count > 1) out->path = NULL;
    code = list_tensors(out, err);
    return code ? code : list_metadata(out, err);
}

/* What cannot be found fails when it is opened. */
static sft_code mend_operand(cli *c, const char *operand, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    const char *path;
    sft_code code = cli_edit_operand(c, &arena, operand, &path, NULL);
    if (!code) code = cli_edit_mend(c, path, err);
    else code = SFT_OK;
    sfti_arena_free(&arena);
    return code;
}

sft_code cli_parts_open_one(cli *c, char **operands, bool in_place, cli_parts *out,
                            sft_error *err) {
    memset(out, 0, sizeof *out);
    out->path = operands[0];
    sft_code code = in_place ? mend_operand(c, operands[0], err) : SFT_OK;
    if (!code) code = cli_parts_open(c, operands, 1, out, err);
    if (code || out->set_count == 1) return code;
    out->path = operands[0];
    return cli_not_one(out->set_count, err);
}

void cli_parts_drop_metadata(cli_parts *parts) {
    sfti_arena_free(&parts->metadata_arena);
    parts->metadata = NULL;
    parts->metadata_count = 0;
}

void cli_parts_free(cli_parts *parts) {
    cli_parts_drop_metadata(parts);
    for (size_t i = 0; i < parts->set_count; i++) sft_set_close(parts->sets[i]);
    cli_inputs_free(&parts->inputs);
    sfti_arena_free(&parts->arena);
}

uint64_t cli_spec_bytes(const sft_spec *spec) {
    uint64_t bytes = 0;
    return sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL) ? 0 : bytes;
}

void cli_parts_tell(cli *c, const cli_parts *parts) {
    if (parts->conflicts == 0) return;
    cli_printf(&c->err, "safetensors: note: %zu metadata value%s ignored: an earlier file has "
                        "another value for the key\n",
               parts->conflicts, parts->conflicts == 1 ? "" : "s");
}
