/* The tensors of models as parts to be written. */
#include "support/guard.h"
#include "support/parts.h"

#include "keys/adapter_told.h"
#include "keys/digest_keys.h"
#include "keys/listed.h"
#include "base/names.h"
#include "base/order.h"
#include "convert/named.h"
#include "quant/beside.h"
#include "os/io.h"
#include "set/aliases.h"
#include "support/edit.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/remote.h"
#include "safetensors_io.h"

#include <string.h>

/* ── Models ── */

static sft_code open_input(cli *c, cli_parts *p, const cli_input *input, sft_error *err) {
    sft_set *set;
    /* The paths of errors must outlive the inputs they come from. */
    p->path = sfti_arena_copy(&p->arena, input->path, strlen(input->path));
    if (!p->path) return sfti_fail_memory(err, strlen(input->path));
    bool model = cli_input_is_path(input) || input->kind == CLI_STDIN;
    if (!model && !input->err)
        return cli_fail_hint(err, SFT_NOT_FOUND, CLI_HINT_COMPONENT, "expected models "
                             "(*.safetensors, *.sft or an index) in this folder, found none");
    if (!model) *err = *input->err;
    if (!model) return err->code;
    cli_guard_watch(c);
    sft_code code = cli_open_model(c, input, &set, err);
    cli_guard_watched(c);
    if (!code && !c->import && c->set.shared == SFT_IMPORT_COPY) {
        sft_set *named;
        code = sfti_set_named(set, set, &c->alloc, &named, err);
        if (code) sft_set_close(set);
        else if (named) set = named, p->changed = true;
    }
    if (code) return code;
    if (c->import && c->imports && !c->set.list_branches && !cli_is_json(c))
        cli_say_import(c, p->path, c->import, !c->set.dry_run);
    else if (c->import && (!c->imports || (c->set.layout && !c->set.quantize)))
        cli_say_left(c, p->path, c->import, true);
    sft_set **sets = sfti_arena_grow(&p->arena, p->sets, p->set_count, 1, &p->set_capacity,
                                     sizeof(sft_set *));
    if (sets) p->sets = sets;
    const char **opened = sfti_arena_grow(&p->arena, p->opened, p->set_count, 1,
                                          &p->opened_capacity, sizeof *opened);
    if (opened) p->opened = opened;
    if (!sets || !opened) {
        sft_set_close(set);
        return sfti_fail_memory(err, p->set_count * sizeof *sets);
    }
    p->imported = p->imported || c->import;
    p->as_matched = p->as_matched || (c->import && c->as_matched);
    p->opened[p->set_count] = p->path;
    p->sets[p->set_count++] = set;
    return SFT_OK;
}

/* ── Tensors ── */

/* A remote file or a model in another format: its error does not say whose it is. */
typedef struct named_source {
    sft_source inner;
    const char *path;
    cli_parts *parts;
} named_source;

static sft_code named_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    named_source *named = ctx;
    sft_code code = sft_source_read(&named->inner, offset, into, len, got, err);
    if (code) atomic_store(&named->parts->unread, named->path);
    return code;
}

static void named_expect(void *ctx, const sft_run *runs, size_t count) {
    named_source *named = ctx;
    sft_source_expect(&named->inner, runs, count);
}

static uint32_t named_mode(void *ctx) {
    return sft_source_mode(&((const named_source *)ctx)->inner);
}

static const sft_source_vtable named_source_vtable = {
    sizeof(sft_source_vtable), named_read, NULL, named_expect, named_mode
};

static sft_code list_shards(const cli *c, cli_parts *p, const sft_set *set, sft_source **out,
                            sft_error *err) {
    size_t count = sft_set_shard_count(set);
    *out = sfti_arena_array(&p->arena, count, sizeof **out);
    if (!*out) return sfti_fail_memory(err, count * sizeof **out);
    for (size_t i = 0; i < count; i++) {
        const char *path = sft_set_shard_path(set, i);
        (*out)[i] = sft_file_source(sft_set_shard_at(set, i));
        if (!p->imported && !cli_is_remote(c, path)) continue;
        named_source *named = sfti_arena_take(&p->arena, sizeof *named);
        if (!named) return sfti_fail_memory(err, sizeof *named);
        *named = (named_source){ (*out)[i], path, p };
        (*out)[i] = (sft_source){ named, &named_source_vtable, named->inner.size, NULL, true };
    }
    return SFT_OK;
}

/* file: how many files the models before it have. */
static sft_code list_set(const cli *c, cli_parts *p, const sft_set *set, size_t file,
                         sft_error *err) {
    size_t count = sft_set_tensor_count(set);
    sft_source *sources;
    sfti_arena work = { .alloc = p->arena.alloc };
    uint32_t *order = sfti_arena_array(&work, count, sizeof *order);
    if (!order) return sfti_fail_memory(err, count * sizeof *order);
    sft_code code = list_shards(c, p, set, &sources, err);
    if (!code) code = sft_set_order(set, SFT_ORDER_NATURAL, order, err);
    for (size_t i = 0; !code && i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, order[i]);
        size_t shard = sft_set_tensor_shard(set, order[i]);
        p->shard[p->count] = (uint32_t)shard;
        p->file[p->count] = (uint32_t)(file + shard);
        p->parts[p->count++] = sft_part_of(tensor, &sources[shard]);
    }
    sfti_arena_free(&work);
    return code;
}

static sft_code list_tensors(const cli *c, cli_parts *p, sft_error *err) {
    uint64_t count = 0, files = 0;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < p->set_count; i++) count += sft_set_tensor_count(p->sets[i]);
    for (size_t i = 0; i < p->set_count; i++) files += sft_set_shard_count(p->sets[i]);
    p->parts = sfti_arena_array(&p->lists, count, sizeof *p->parts);
    p->shard = sfti_arena_array(&p->lists, count, sizeof *p->shard);
    p->file = sfti_arena_array(&p->lists, count, sizeof *p->file);
    p->paths = sfti_arena_array(&p->arena, files, sizeof *p->paths);
    p->files = sfti_arena_array(&p->arena, files, sizeof *p->files);
    if (!p->parts || !p->shard || !p->file || !p->paths || !p->files)
        return sfti_fail_memory(err, count * sizeof *p->parts);
    for (size_t i = 0; !code && i < p->set_count; i++) {
        code = list_set(c, p, p->sets[i], p->path_count, err);
        for (size_t s = 0; s < sft_set_shard_count(p->sets[i]); s++) {
            p->files[p->path_count] = sft_set_shard_at(p->sets[i], s);
            p->paths[p->path_count++] = sft_set_shard_path(p->sets[i], s);
        }
    }
    return code;
}

/* ── Metadata ── */

sft_pair cli_parts_pair(const void *parts, size_t i) {
    const cli_parts *p = parts;
    if (p->pairs) return p->pairs[i];
    if (!p->picks) return sft_file_metadata_at(p->files[p->only], i);
    sft_pair pair = sft_file_metadata_at(p->files[p->picks[i].file], p->picks[i].pair);
    if (p->listed.data && sft_span_equal(pair.key, sft_span_cstr(SFTI_LISTED_KEY)))
        pair.value = p->listed;
    return pair;
}

static int compare_pick_keys(const void *parts, uint32_t a, uint32_t b) {
    return sfti_bytes_compare(cli_parts_pair(parts, a).key, cli_parts_pair(parts, b).key);
}

/* Keeps the first pick of each key. */
static sft_code settle_picks(cli_parts *p, sft_error *err) {
    size_t count = p->metadata_count;
    sfti_arena work = { .alloc = p->arena.alloc };
    uint32_t *order = sfti_arena_sorted(&work, count, compare_pick_keys, p);
    bool *again = sfti_arena_array(&work, count, sizeof *again);
    if (order && again) {
        memset(again, 0, count * sizeof *again);
        for (size_t i = 1, first = 0; i < count; i++) {
            sft_pair one = cli_parts_pair(p, order[first]), other = cli_parts_pair(p, order[i]);
            again[order[i]] = sft_span_equal(one.key, other.key);
            if (!again[order[i]]) first = i;
            else if (!sfti_digest_key_of(one.key) /* one that is dropped is no conflict */
                     && !(p->listed.data && sft_span_equal(one.key, sft_span_cstr(SFTI_LISTED_KEY)))
                     && !sft_span_equal(one.value, other.value)) {
                p->conflicts++;
                bool adapter = sft_span_equal(one.key, sft_span_cstr(SFTI_LORA_CONFIG_KEY));
                if (sfti_is_reading_key(one.key)
                    && !(adapter && sfti_adapter_told_alike(one.value, other.value)))
                    p->two = one.key;
            }
        }
        p->metadata_count = 0;
        for (size_t i = 0; i < count; i++)
            if (!again[i]) p->picks[p->metadata_count++] = p->picks[i];
    }
    bool fine = order && again;
    sfti_arena_free(&work);
    return fine ? SFT_OK : sfti_fail_memory(err, count * sizeof *order);
}

/* A model without the key would be read as another's says. A declaration of layers names them. */
static void find_untold(cli_parts *p) {
    const char *reads;
    for (size_t k = 0; (reads = sfti_reading_key_at(k)) != NULL; k++) {
        sft_span key = sft_span_cstr(reads), value;
        bool adapter = strcmp(reads, SFTI_LORA_CONFIG_KEY) == 0;
        size_t told = 0, untold = 0;
        if (strcmp(reads, SFTI_DECLARED_KEY) == 0) continue;
        for (size_t i = 0; i < p->set_count; i++) {
            bool tells = false;
            for (size_t s = 0; s < sft_set_shard_count(p->sets[i]); s++)
                tells |= sft_file_metadata_get(sft_set_shard_at(p->sets[i], s), key, &value);
            told += tells;
            untold += !tells && (adapter || sfti_declared_may(p->sets[i]));
        }
        if (told > 0 && untold > 0) p->two = key;
    }
}

typedef struct parts_alias {
    sft_pair pair;
    size_t set;
} parts_alias;

static sft_span name_of_alias(const void *ctx, uint32_t entry) {
    return ((const parts_alias *)ctx)[entry].pair.key;
}

static sft_code fail_alias(const cli_parts *p, const parts_alias *alias, size_t other,
                           sft_error *err) {
    return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, alias->pair.key,
                            "expected each name in one model, found that it is another name of "
                            "\"%.*s\" in %s and in use in %s", SFTI_CLIP(alias->pair.value, 100),
                            p->opened[alias->set], p->opened[other]);
}

/* Another name of a tensor is no name in another model. */
static sft_code check_names(const cli_parts *p, sfti_arena *arena, sft_error *err) {
    sfti_names names;
    size_t count = 0, most = 0;
    for (size_t f = 0; f < p->path_count; f++) most += sft_file_metadata_count(p->files[f]);
    parts_alias *all = sfti_arena_array(arena, (uint64_t)most + 1, sizeof *all);
    if (!all || !sfti_names_draw(&names, most, name_of_alias, all, arena))
        return sfti_fail_memory(err, most * sizeof *all);
    for (size_t i = 0; i < p->set_count; i++)
        for (size_t s = 0; s < sft_set_shard_count(p->sets[i]); s++) {
            const sft_file *file = sft_set_shard_at(p->sets[i], s);
            for (size_t m = 0; m < sft_file_metadata_count(file); m++) {
                all[count] = (parts_alias){ sft_file_metadata_at(file, m), i };
                if (!sfti_set_is_alias(p->sets[i], all[count].pair)) continue;
                uint32_t at = sfti_names_add(&names, all[count].pair.key, (uint32_t)count);
                if (all[at].set != i) return fail_alias(p, &all[at], i, err);
                count++;
            }
        }
    for (size_t i = 0; count > 0 && i < p->set_count; i++)
        for (size_t t = 0; t < sft_set_tensor_count(p->sets[i]); t++) {
            uint32_t at = sfti_names_find(&names, sft_set_tensor_at(p->sets[i], t)->name);
            if (at != SFTI_NO_NAME && all[at].set != i) return fail_alias(p, &all[at], i, err);
        }
    return SFT_OK;
}

/* torchao's lists of several files become one. */
static sft_code join_lists(cli_parts *p, sft_error *err) {
    size_t count = 0;
    sft_span *lists = sfti_arena_array(&p->arena, p->path_count, sizeof *lists);
    if (!lists) return sfti_fail_memory(err, p->path_count * sizeof *lists);
    for (size_t f = 0; f < p->path_count; f++)
        count += sft_file_metadata_get(p->files[f], sft_span_cstr(SFTI_LISTED_KEY), &lists[count]);
    if (count < 2 || sfti_lists_joined(lists, count, &p->arena, &p->listed)) return SFT_OK;
    return sfti_fail_memory(err, count * sizeof *lists);
}

static sft_code list_metadata(cli_parts *p, sft_error *err) {
    find_untold(p);
    uint64_t count = 0;
    size_t some = 0;
    for (size_t f = 0; f < p->path_count; f++) {
        size_t pairs = sft_file_metadata_count(p->files[f]);
        p->has_metadata = p->has_metadata || sft_file_has_metadata(p->files[f]);
        count += pairs;
        if (pairs == 0) continue;
        p->only = f;
        some++;
    }
    p->metadata_count = (size_t)count;
    if (some <= 1) return SFT_OK;
    if (count < UINT32_MAX) p->picks = sfti_arena_array(&p->lists, count, sizeof *p->picks);
    if (!p->picks) return sfti_fail_memory(err, count * sizeof *p->picks);
    size_t at = 0;
    for (size_t f = 0; f < p->path_count; f++)
        for (size_t i = 0; i < sft_file_metadata_count(p->files[f]); i++)
            p->picks[at++] = (cli_pick){ (uint32_t)f, (uint32_t)i };
    sft_code code = join_lists(p, err);
    return code ? code : settle_picks(p, err);
}

const char *cli_parts_blame(const cli_parts *parts, sft_code code, const char *input,
                            const char *otherwise) {
    const char *unread = atomic_load(&parts->unread);
    return unread ? unread : cli_is_remote_error(code) && input ? input : otherwise;
}

unsigned cli_parts_stale(const cli_parts *p, bool one_file) {
    bool same = one_file && p->path_count == 1 && !p->changed &&
                p->count == sft_file_tensor_count(p->files[0]) &&
                sfti_has_official_layout(p->files[0]);
    return same ? 0 : SFTI_DIGESTS_OF_DATA;
}

sft_code cli_parts_drop_digests(cli *c, cli_parts *p, bool one_file, sft_error *err) {
    unsigned stale = cli_parts_stale(p, one_file);
    size_t kept = 0;
    cli_pick *picks = p->picks;
    if (p->pairs || !stale) return SFT_OK;
    if (!picks) picks = sfti_arena_array(&p->lists, p->metadata_count, sizeof *picks);
    if (!picks) return sfti_fail_memory(err, p->metadata_count * sizeof *picks);
    for (size_t i = 0; i < p->metadata_count; i++) {
        unsigned digest = sfti_digest_key_of(cli_parts_pair(p, i).key) & stale;
        c->dropped |= digest;
        if (digest) continue;
        picks[kept++] = p->picks ? p->picks[i] : (cli_pick){ (uint32_t)p->only, (uint32_t)i };
    }
    p->picks = picks;
    p->metadata_count = kept;
    return SFT_OK;
}

sft_code cli_parts_record(cli *c, cli_parts *p, bool one_file, const sft_pair *more, size_t count,
                          sft_error *err) {
    size_t kept = 0;
    p->changed = true;
    sft_code code = cli_parts_drop_digests(c, p, one_file, err);
    sft_pair *pairs = sfti_arena_array(&p->arena, (uint64_t)p->metadata_count + count,
                                       sizeof *pairs);
    if (!code && !pairs) return sfti_fail_memory(err, p->metadata_count * sizeof *pairs);
    if (code) return code;
    for (size_t i = 0; i < p->metadata_count; i++) {
        sft_pair pair = cli_parts_pair(p, i);
        bool again = sfti_is_recipe_key(pair.key, false);
        for (size_t k = 0; k < count; k++) again = again || sft_span_equal(pair.key, more[k].key);
        if (!again) pairs[kept++] = pair;
    }
    memcpy(pairs + kept, more, count * sizeof *more);
    p->pairs = pairs;
    p->metadata_count = kept + count;
    p->has_metadata = true;
    return SFT_OK;
}

/* ── All together ── */

static sft_code open_operands(cli *c, const char *const *operands, size_t count, bool one_each,
                              cli_parts *out, sft_error *err) {
    sft_code code = SFT_OK;
    const cli_input *only;
    memset(out, 0, sizeof *out);
    out->arena.alloc = out->lists.alloc = c->alloc;
    c->imports_whole = true;
    cli_depth depth = c->no_imports ? CLI_ONE_LEVEL : (cli_depth)CLI_ELSE_OTHERS;
    if (c->enters_pipelines) depth = CLI_WITH_PARTS;
    if (c->joins_shards) depth = (cli_depth)(depth | CLI_JOIN_SHARDS);
    for (size_t i = 0; !code && i < count; i++) {
        out->path = operands[i];
        if (c->joined) {
            code = open_input(c, out, c->joined, err);
            continue;
        }
        code = cli_inputs_expand(operands[i], depth, NULL, &c->open, &out->inputs, err);
        if (!code && one_each) code = cli_inputs_one(&out->inputs, &only, err);
        for (size_t k = 0; !code && k < out->inputs.count; k++)
            code = open_input(c, out, out->inputs.items[k], err);
        cli_inputs_free(&out->inputs);
        memset(&out->inputs, 0, sizeof out->inputs);
    }
    if (code) return code;
    if (out->set_count > 1) out->path = NULL;
    code = list_tensors(c, out, err);
    return code ? code : list_metadata(out, err);
}

sft_code cli_parts_open(cli *c, const char *const *operands, size_t count, cli_parts *out,
                        sft_error *err) {
    return open_operands(c, operands, count, false, out, err);
}

sft_code cli_parts_open_each(cli *c, const char *const *operands, size_t count, cli_parts *out,
                             sft_error *err) {
    return open_operands(c, operands, count, true, out, err);
}

sft_code cli_parts_open_one(cli *c, const char *operand, bool in_place, cli_parts *out,
                            sft_error *err) {
    memset(out, 0, sizeof *out);
    out->path = operand;
    sfti_arena arena = { .alloc = c->alloc };
    const char *path;
    sft_code code = SFT_OK;
    /* What cannot be found fails when it is opened. */
    if (in_place && !cli_edit_operand(c, &arena, operand, &path, NULL)) {
        code = cli_edit_recover(c, path, err);
        if (!code) code = cli_guard_lock(c, path, err);
    }
    sfti_arena_free(&arena);
    if (!code) code = cli_parts_open(c, &operand, 1, out, err);
    /* A file of another format is never replaced: it would no longer be what its name says. */
    if (!code && in_place && c->import)
        return cli_fail_hint(err, SFT_FOREIGN_KIND, SFT_HINT_USE_GGUF,
                             "expected a safetensors file to change, found another format: %s",
                             sft_import_format_describe(sft_import_format_of(c->import))->title);
    if (code || out->set_count == 1) return code;
    out->path = operand;
    return cli_not_one(out->set_count, err);
}

void cli_parts_drop(cli_parts *parts) {
    sfti_arena_free(&parts->lists);
    parts->parts = NULL;
    parts->shard = parts->file = NULL;
    parts->picks = NULL;
    parts->count = parts->metadata_count = 0;
}

void cli_parts_free(cli_parts *parts) {
    sfti_arena_free(&parts->lists);
    for (size_t i = 0; i < parts->set_count; i++) sft_set_close(parts->sets[i]);
    cli_inputs_free(&parts->inputs);
    sfti_arena_free(&parts->arena);
}

sft_code cli_parts_tell(cli *c, const cli_parts *parts, sft_error *err) {
    if (parts->two.data && sft_span_equal(parts->two, sft_span_cstr(SFTI_LORA_CONFIG_KEY)))
        return sfti_fail(err, SFT_BAD_ARGUMENT,
                         "expected one configuration of adapters (" SFTI_LORA_CONFIG_KEY "), found "
                         "different ones in the files: without its own, a module would be read "
                         "with another alpha; \"lora stack FILE -o OUT\" each of them first");
    if (parts->two.data)
        return sfti_fail(err, SFT_BAD_ARGUMENT,
                         "expected one declaration of quantised layers (%.*s), found different "
                         "ones in the files: without its own, a layer would be read wrong; "
                         "convert --dequantize the files first", SFTI_CLIP(parts->two, 40));
    sfti_arena arena = { .alloc = c->alloc };
    sft_code code = parts->set_count > 1 ? check_names(parts, &arena, err) : SFT_OK;
    sfti_arena_free(&arena);
    if (!code) cli_parts_note(c, parts);
    return code;
}

void cli_parts_note(cli *c, const cli_parts *parts) {
    if (parts->conflicts == 0) return;
    cli_printf(&c->err, "safetensors: note: %zu metadata value%s ignored: an earlier file has "
                        "another value for the key\n",
               parts->conflicts, parts->conflicts == 1 ? "" : "s");
}

bool cli_renumber(sfti_arena *arena, uint32_t *shard_of, size_t count, size_t shards,
                  uint32_t *used) {
    uint32_t *number = sfti_arena_array(arena, shards, sizeof *number);
    *used = 0;
    for (size_t s = 0; number && s < shards; s++) number[s] = UINT32_MAX;
    for (size_t i = 0; number && i < count; i++) number[shard_of[i]] = 0;
    for (size_t s = 0; number && s < shards; s++)
        if (number[s] == 0) number[s] = (*used)++;
    for (size_t i = 0; number && i < count; i++) shard_of[i] = number[shard_of[i]];
    return number != NULL;
}

/* ── Writing them ── */

sft_plan_options cli_parts_plan(const cli *c, const cli_parts *parts) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    plan.has_metadata = parts->has_metadata;
    plan.level = (sft_level)c->set.level;
    plan.alloc = &c->alloc;
    plan.pair_at = cli_parts_pair;
    plan.pair_ctx = parts;
    return plan;
}

uint64_t cli_spec_bytes(const sft_spec *spec) {
    uint64_t bytes = 0;
    return sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL) ? 0 : bytes;
}
