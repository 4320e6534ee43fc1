/* The functions of safetensors_merge.h. Tests: test_merge_public.c, test_merge_models.py. */
#include "merge/work.h"

#include "base/error.h"
#include "base/glob.h"
#include "base/job.h"
#include "base/options.h"
#include "keys/digest_keys.h"
#include "safetensors_hash.h"
#include "safetensors_merge.h"

#include <string.h>

struct sft_merge {
    sft_allocator alloc;
    sfti_arena arena;
    sft_merge_options options;
    sfti_merge_recipe recipe;
    size_t named;   /* models of a recipe; 0: there is none */
    size_t count;   /* that were added */
    sft_set *sets[SFTI_MERGE_MODELS];
    sfti_merge_model models[SFTI_MERGE_MODELS];
    sfti_merge_origin origins[SFTI_MERGE_MODELS];
    sfti_merged *merged;
    sft_merge_told told;
    sft_part *parts;
    size_t blames;
};

static SFTI_OPTIONS_TAKE(take_merge, sft_merge_options, SFT_MERGE_OPTIONS_INIT, alloc)

/* ── Beginning ── */

static sft_code begin_method(sft_merge *m, sft_error *err) {
    sfti_merge_recipe *recipe = &m->recipe;
    const sft_merge_options *o = &m->options;
    sft_code code = SFT_OK;
    recipe->base = SIZE_MAX;
    recipe->weights_required = true;
    if (!o->method) return sfti_misuse(err, "expected a method or a recipe, found neither");
    recipe->method = sfti_merge_method_of(sft_span_cstr(o->method));
    if (!recipe->method) return sfti_merge_method_unknown(sft_span_cstr(o->method), err);
    if (o->base != SIZE_MAX && recipe->method->base == SFTI_BASE_NONE)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected no base for %s, found one",
                         recipe->method->name);
    if (o->param_count > 0 && !o->params)
        return sfti_misuse(err, "expected an array of parameters, found NULL");
    for (int patterns = 1; !code && patterns >= 0; patterns--)
        for (size_t i = 0; !code && i < o->param_count; i++) {
            const char *word = o->params[i];
            if (!word) return sfti_misuse(err, "expected a parameter, found NULL");
            const char *copy = sfti_arena_copy(&m->arena, word, strlen(word));
            code = copy ? sfti_merge_param_add(recipe, &m->arena, copy, patterns != 0, err)
                        : sfti_fail_memory(err, strlen(word));
        }
    return code;
}

sft_code sft_merge_new(const sft_merge_options *options, sft_merge **out, sft_error *err) {
    sft_merge_options own;
    sft_code code = take_merge(options, &own, err);
    if (!out) return sfti_misuse(err, "expected a place for the merge, found NULL");
    *out = NULL;
    if (code) return code;
    sft_allocator alloc = sfti_allocator(own.alloc);
    const sft_dtype_info *info = sft_dtype_describe((sft_dtype)own.dtype);
    if (own.dtype != SFT_DTYPE_COUNT && (!info || info->kind != SFT_KIND_FLOAT || info->bits < 16))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a dtype of F64, F32, F16 or BF16, found "
                         "another");
    if (own.recipe.len > 0 && (own.method || own.param_count > 0 || own.base != SIZE_MAX))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a recipe or a method, found both");
    sft_merge *m = sfti_take(&alloc, sizeof *m);
    if (!m) return sfti_fail_memory(err, sizeof *m);
    memset(m, 0, sizeof *m);
    m->alloc = m->arena.alloc = alloc;
    m->options = own;
    m->options.alloc = &m->alloc;
    m->blames = SIZE_MAX;
    m->recipe.settings.glob = sfti_glob_match;
    if (own.recipe.len > 0) {
        const char *text = sfti_arena_copy(&m->arena, own.recipe.data, own.recipe.len);
        code = text ? sfti_merge_recipe_read((sft_span){ text, own.recipe.len }, &m->arena,
                                             &m->recipe, err)
                    : sfti_fail_memory(err, own.recipe.len);
        m->named = m->recipe.count;
    } else {
        code = begin_method(m, err);
    }
    if (own.has_seed) m->recipe.seed = own.seed;
    if (own.ignore_missing) m->recipe.ignore_missing = true;
    if (info) m->recipe.dtype = sft_span_cstr(info->name);
    if (code) sft_merge_free(m);
    else *out = m;
    return code;
}

void sft_merge_free(sft_merge *merge) {
    if (!merge) return;
    sft_allocator alloc = merge->alloc;
    sfti_merged_free(merge->merged);
    for (size_t i = 0; i < merge->count; i++) sft_set_close(merge->sets[i]);
    sfti_arena_free(&merge->arena);
    sfti_release(&alloc, merge, sizeof *merge);
}

size_t sft_merge_named(const sft_merge *merge) { return merge ? merge->named : 0; }

sft_span sft_merge_named_at(const sft_merge *merge, size_t i) {
    return i < sft_merge_named(merge) ? merge->recipe.models[i] : (sft_span){ "", 0 };
}

size_t sft_merge_blames(const sft_merge *merge) { return merge ? merge->blames : SIZE_MAX; }

/* ── Models ── */

static sft_code check_addition(sft_merge *m, const char *weight, sft_error *err) {
    size_t most = m->named ? m->named : SFTI_MERGE_MODELS;
    if (m->merged) return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a merge that is not planned "
                                    "yet, found one that is");
    if (m->count == most)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected at most %zu models, found more", most);
    if (weight && m->named)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected no weight beside a recipe, found one");
    return SFT_OK;
}

static sft_code open_model(sft_merge *m, size_t i, const sft_set *model, sft_error *err) {
    sft_code code = sfti_merge_model_lend(model, &m->alloc, &m->sets[i], err);
    return code ? code
                : sfti_merge_model_open(&m->sets[i], model, sft_set_shard_path(model, 0),
                                        m->options.files, &m->arena, &m->models[i], err);
}

sft_code sft_merge_add(sft_merge *m, const sft_set *model, const char *name, const char *weight,
                       sft_error *err) {
    if (!m || !model) return sfti_misuse(err, "expected a merge and a model, found NULL");
    size_t i = m->blames = m->count, settings = m->recipe.settings.count;
    const char *path = sft_set_shard_path(model, 0), *index = sft_set_index_path(model);
    sft_span names[SFTI_MERGE_MODELS], called;
    for (size_t k = 0; k < i; k++) names[k] = m->origins[k].name;
    sft_code code = check_addition(m, weight, err);
    if (!code && weight) {
        const char *copy = sfti_arena_copy(&m->arena, weight, strlen(weight));
        code = copy ? sfti_merge_weight_add(&m->recipe, &m->arena, (uint32_t)i, copy, err)
                    : sfti_fail_memory(err, strlen(weight));
    }
    if (!code)
        code = sfti_merge_name(name ? sft_span_cstr(name)
                                    : sfti_merge_called(index ? index : path ? path : "memory"),
                               names, i, &m->arena, &called, err);
    called.data = code ? NULL : sfti_arena_copy(&m->arena, called.data, called.len);
    if (!code && !called.data) code = sfti_fail_memory(err, called.len);
    if (!code) code = open_model(m, i, model, err);
    if (code) {
        m->recipe.settings.count = settings; /* the next model gets this number */
        return code;
    }
    m->count++;
    m->origins[i] = (sfti_merge_origin){ model, called, NULL, NULL, NULL };
    m->blames = SIZE_MAX;
    return SFT_OK;
}

/* As files of models and recipes call them. */
static bool dtype_called(sft_span name, sft_dtype *out) {
    static const struct { const char *name; sft_dtype dtype; } rows[] = {
        { "F64", SFT_F64 }, { "float64", SFT_F64 }, { "double", SFT_F64 }, { "F32", SFT_F32 },
        { "float32", SFT_F32 }, { "float", SFT_F32 }, { "F16", SFT_F16 }, { "float16", SFT_F16 },
        { "half", SFT_F16 }, { "BF16", SFT_BF16 }, { "bfloat16", SFT_BF16 },
    };
    (void)sfti_skip(&name, "torch.");
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        *out = rows[i].dtype;
        if (sfti_same_letters(name, rows[i].name)) return true;
    }
    return false;
}

static sft_code settle_merge(sft_merge *m, sft_error *err) {
    sfti_merge_recipe *recipe = &m->recipe;
    if (m->named) {
        if (m->count == m->named) return SFT_OK;
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected the %zu models of the recipe, found %zu",
                         m->named, m->count);
    }
    if (m->options.base != SIZE_MAX && m->options.base >= m->count)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a base among %zu models, found model %zu",
                         m->count, m->options.base);
    sft_code code = SFT_OK;
    if (recipe->count == 0) /* else an attempt that failed has it */
        code = sfti_merge_weight_add(recipe, &m->arena, SFTI_MERGE_ALL, "1", err);
    if (code) return code;
    recipe->count = m->count;
    recipe->base = m->options.base;
    for (size_t i = 0; i < m->count; i++) recipe->models[i] = m->origins[i].name;
    return sfti_merge_recipe_settle(recipe, err);
}

static sft_code take_merged_parts(sft_merge *m, sft_error *err) {
    size_t count = sfti_merged_count(m->merged);
    m->parts = sfti_arena_array(&m->arena, count, sizeof *m->parts);
    if (!m->parts) return sfti_fail_memory(err, count * sizeof *m->parts);
    for (size_t i = 0; i < count; i++) m->parts[i] = sfti_merged_part(m->merged, i);
    m->told.computed = sfti_merged_computed(m->merged);
    m->told.copied = count - m->told.computed;
    return SFT_OK;
}

sft_code sft_merge_plan(sft_merge *m, sft_error *err) {
    if (!m) return sfti_misuse(err, "expected a merge, found NULL");
    if (m->parts) return SFT_OK;
    m->blames = SIZE_MAX;
    sft_code code = m->merged ? SFT_OK : settle_merge(m, err);
    const sfti_merge_recipe *recipe = &m->recipe;
    for (size_t i = 0; !code && !m->merged && i < m->count; i++) {
        if (i == recipe->reference) continue;
        m->blames = i;
        if (!m->sets[i]) /* closed by an attempt that failed */
            code = open_model(m, i, m->origins[i].stored, err);
        if (!code)
            code = sfti_merge_model_rename(&m->sets[i], m->models[recipe->reference].set,
                                           &m->arena, &m->models[i], err);
        if (!code) m->blames = SIZE_MAX;
    }
    if (code) return code;
    sft_dtype dtype = (sft_dtype)m->options.dtype;
    if (recipe->dtype.len > 0 && m->options.dtype == SFT_DTYPE_COUNT
        && !dtype_called(recipe->dtype, &dtype))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a dtype of F64, F32, F16 or BF16, found "
                         "\"%.*s\"", SFTI_CLIP(recipe->dtype, 40));
    const sfti_merge_plan plan = sfti_merge_plan_of(recipe, m->models, dtype, m->options.threads,
                                                    &m->alloc);
    if (!m->merged) code = sfti_merged_new(&plan, &m->merged, &m->blames, err);
    if (code) return code;
    const sfti_merge_notes *n = sfti_merged_notes(m->merged);
    m->told = (sft_merge_told){ .renamed = n->renamed, .cut = n->cut, .missing = n->missing,
                                .left_out = n->extra, .unlike = n->unlike };
    return take_merged_parts(m, err);
}

const sft_merge_told *sft_merge_notes(const sft_merge *merge) {
    return merge && merge->parts ? &merge->told : NULL;
}

sft_part sft_merge_part(sft_merge *m, size_t i) {
    bool there = m && m->parts && i < sfti_merged_count(m->merged);
    return there ? m->parts[i] : (sft_part){ { { NULL, 0 }, SFT_BOOL, 0, NULL }, NULL, 0 };
}

/* ── Saving ── */

typedef struct merge_watch {
    sft_merge *merge;
    sft_job job;
    const sft_sink *sink;
    sfti_arena arena;
    sfti_merge_hashing hashing; /* if it is started */
    sfti_merge_record records[2]; /* as it was begun, and as it ends */
    sft_error changed;
    size_t blames;
} merge_watch;

/* What still holds of the metadata of the model that gives names, and the recipe. */
static sft_code merged_pairs(sft_merge *m, const sfti_merge_record *record, sfti_arena *work,
                             sft_pair **out, size_t *count, sft_error *err) {
    const sft_set *set = m->models[m->recipe.reference].set;
    const sft_file *file = sft_set_shard_at(set, 0);
    size_t room = sft_file_metadata_count(file) + SFTI_MERGE_PAIRS;
    sft_pair *pairs = sfti_arena_array(work, room, sizeof *pairs);
    if (!pairs) return sfti_fail_memory(err, room * sizeof *pairs);
    *count = 0;
    for (size_t i = 0; i < room - SFTI_MERGE_PAIRS; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        bool again = sfti_digest_key_of(pair.key) != 0 || sfti_is_recipe_key(pair.key, false);
        if (!again) pairs[(*count)++] = pair;
    }
    for (size_t k = 0; k < SFTI_MERGE_PAIRS; k++) pairs[(*count)++] = record->pairs[k];
    *out = pairs;
    return SFT_OK;
}

static sft_code end_header(merge_watch *w, sft_error *err) {
    sft_merge *m = w->merge;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_pair *pairs = NULL;
    size_t count = 0;
    plan.alloc = &m->alloc;
    sft_code code = sfti_merge_hash_end(&w->hashing, &m->recipe, &w->blames, err);
    if (!code)
        code = sfti_merge_record_make(&m->recipe, m->origins, &w->arena, &w->records[1], err);
    if (!code) code = merged_pairs(m, &w->records[1], &w->arena, &pairs, &count, err);
    if (code) return code;
    return sfti_merge_record_put(&w->records[0], &w->records[1], m->parts,
                                 sfti_merged_count(m->merged), pairs, count, &plan, w->sink,
                                 &w->arena, err);
}

static bool watch_models(void *ctx, uint64_t done, uint64_t total) {
    merge_watch *w = ctx;
    if (sfti_merge_models_check(w->merge->models, w->merge->count, &w->blames, &w->changed))
        return false;
    if (done == total && w->hashing.started
        && (end_header(w, &w->changed)
            || sfti_merge_models_check(w->merge->models, w->merge->count, &w->blames,
                                       &w->changed)))
        return false;
    return sfti_job_tick(&w->job, done, total, NULL) == SFT_OK;
}

sft_code sft_merge_save(sft_merge *m, sft_sink sink, const sft_job *job, sft_error *err) {
    merge_watch watch = { .merge = m, .changed = SFT_ERROR_INIT, .blames = SIZE_MAX,
                          .sink = &sink };
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_pair *pairs = NULL;
    size_t count = 0;
    watch.arena.alloc = sfti_allocator(m ? &m->alloc : NULL);
    sft_code code = sfti_take_job(job, &watch.job, err);
    if (!code) code = sft_merge_plan(m, err);
    for (size_t i = 0; !code && i < m->count; i++)
        m->origins[i].content = m->origins[i].sha256 = m->origins[i].autov1 = NULL;
    if (!code && (!sink.seekable
                  || !sfti_merge_hash_meanwhile(&watch.hashing, m->models, m->origins, &m->recipe,
                                                &m->arena, &watch.job)))
        code = sfti_merge_hash(m->models, m->origins, &m->recipe, false, &m->arena, &watch.job,
                               &m->blames, err);
    if (!code)
        code = sfti_merge_record_make(&m->recipe, m->origins, &watch.arena, &watch.records[0],
                                      err);
    if (!code) code = merged_pairs(m, &watch.records[0], &watch.arena, &pairs, &count, err);
    if (code) {
        sft_sink_abandon(&sink);
    } else {
        sft_job own = watch.job;
        own.tick = watch_models;
        own.ctx = &watch;
        plan.alloc = &m->alloc;
        code = sft_save_parts(m->parts, sfti_merged_count(m->merged), pairs, count, &plan, sink,
                              &own, err);
        m->blames = sfti_merged_blames(m->merged);
        if (code == SFT_CANCELLED && watch.changed.code) {
            code = sfti_fail_as(err, watch.changed.code, &watch.changed);
            m->blames = watch.blames;
        }
    }
    sfti_merge_hash_stop(&watch.hashing);
    for (size_t i = 0; i < 2; i++) sfti_merge_record_free(&watch.records[i]);
    sfti_arena_free(&watch.arena);
    return code;
}

/* ── Mixtures ── */

static sft_code open_lent(const sft_set *const *sets, size_t count, sfti_arena *arena,
                          sft_set **lent, sfti_merge_model *models, size_t *who, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        *who = i;
        code = sfti_merge_model_lend(sets[i], &arena->alloc, &lent[i], err);
        if (!code)
            code = sfti_merge_model_open(&lent[i], sets[i], sft_set_shard_path(sets[i], 0), NULL,
                                         arena, &models[i], err);
        if (!code && i > 0)
            code = sfti_merge_model_rename(&lent[i], models[0].set, arena, &models[i], err);
    }
    return code;
}

struct sft_mixture {
    sft_allocator alloc;
    sfti_mixture found;
};

sft_code sft_mixture_new(const sft_set *result, const sft_set *const *models, size_t count,
                         const sft_job *job, const sft_allocator *given, sft_mixture **out,
                         size_t *blames, sft_error *err) {
    sfti_merge_model all[SFTI_MERGE_MODELS];
    const sft_set *sets[SFTI_MERGE_MODELS];
    sft_set *lent[SFTI_MERGE_MODELS] = { NULL };
    sfti_arena arena = { .alloc = sfti_allocator(given) };
    size_t who = SIZE_MAX;
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!out) return sfti_misuse(err, "expected a place for the mixture, found NULL");
    *out = NULL;
    if (blames) *blames = SIZE_MAX;
    if (code) return code;
    if (!result || !models || count == 0 || count >= SFTI_MERGE_MODELS)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a result and 1 to %d models, found %zu",
                         SFTI_MERGE_MODELS - 1, count);
    for (size_t i = 0; i <= count; i++) {
        sets[i] = i == 0 ? result : models[i - 1];
        if (!sets[i]) return sfti_misuse(err, "expected a model, found NULL");
    }
    sft_mixture *m = sfti_take(&arena.alloc, sizeof *m);
    if (!m) return sfti_fail_memory(err, sizeof *m);
    *m = (sft_mixture){ .alloc = arena.alloc, .found.arena.alloc = arena.alloc };
    code = open_lent(sets, count + 1, &arena, lent, all, &who, err);
    if (!code)
        code = sfti_mixture_new(&all[0], all + 1, count, &own, &arena.alloc, &m->found, &who, err);
    if (blames) *blames = who;
    for (size_t i = 0; i <= count; i++) sft_set_close(lent[i]);
    sfti_arena_free(&arena);
    if (code) sft_mixture_free(m);
    else *out = m;
    return code;
}

void sft_mixture_free(sft_mixture *mixture) {
    if (!mixture) return;
    sft_allocator alloc = mixture->alloc;
    sfti_mixture_free(&mixture->found);
    sfti_release(&alloc, mixture, sizeof *mixture);
}

size_t sft_mixture_count(const sft_mixture *mixture) { return mixture ? mixture->found.count : 0; }

const sft_mixture_block *sft_mixture_at(const sft_mixture *mixture, size_t i) {
    return i < sft_mixture_count(mixture) ? &mixture->found.blocks[i] : NULL;
}

size_t sft_mixture_left_out(const sft_mixture *mixture) {
    return mixture ? mixture->found.left_out : 0;
}
