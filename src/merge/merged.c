/* The tensors of a merge, as a source that computes them. Tests: tests/merge. */
#include "merge/work.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/files.h"
#include "base/siphash.h"
#include "keys/adapter_told.h"
#include "keys/digest_keys.h"
#include "os/workers.h"
#include "safetensors_cast.h"
#include "safetensors_report.h"

#include <string.h>

/* Results of some chunks of a row. */
typedef struct merged_window {
    sfti_merged *of;
    size_t row;            /* of those that are computed */
    uint64_t first, count; /* elements */
    uint8_t *bytes;
    size_t size;
    sft_code code;
    sft_error err;
    size_t blames;
} merged_window;

/* The caller reads one window while a thread computes the next one into the other. The caller
 * touches neither that window nor what is below `now` from when the thread starts until it is
 * joined. */
struct sfti_merged {
    sft_allocator alloc;
    sfti_arena arena;
    sfti_merge_plan plan;
    sfti_merge_rows rows;
    uint32_t *streamed; /* rows that are computed, in the order of the source */
    size_t streamed_count;
    uint32_t *follows;  /* which of them is read after each, as announced */
    size_t announced;   /* the last one */
    sft_source source;
    sft_source **sources; /* of each model's shards: of tensors that are copied */
    size_t blames;
    merged_window windows[2];
    size_t at;          /* the one that is read */
    bool overlaps, running;
    os_thread thread;
    /* the tensor that is computed: */
    const sfti_merge_row *now;
    sfti_arena work;
    sfti_merge_op *op;
};

/* ── What is asked of a tensor ── */

static const double param_defaults[SFTI_MERGE_PARAMS] = {
    [SFTI_MERGE_WEIGHT] = 1, [SFTI_MERGE_DENSITY] = 1, [SFTI_MERGE_GAMMA] = 0.01,
    [SFTI_MERGE_EPSILON] = 0.15, [SFTI_MERGE_SCALE] = 1, [SFTI_MERGE_LAMBDA] = 1,
    [SFTI_MERGE_SELECT_TOPK] = 1, [SFTI_MERGE_FLATTEN] = 1, [SFTI_MERGE_NORMALIZE_WEIGHTS] = 1,
    [SFTI_MERGE_EPS] = 1e-8, [SFTI_MERGE_MAX_ITER] = 10, [SFTI_MERGE_TOL] = 1e-5,
    [SFTI_MERGE_ALPHA] = 1,
};

static sft_code refuse_absent(const sfti_merge_op *op, sfti_merge_param param, sft_error *err) {
    return sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, op->row->spec.name,
                            "expected the parameter %s of %s, found none",
                            sfti_merge_param_name(param), op->method->name);
}

static bool method_asks(const sfti_merge_op *op, sfti_merge_param param) {
    return (op->method->params >> param & 1) != 0;
}

/* Filters of what may be told of each model are for the tensor's name there: layers of slices have
 * other numbers. */
static sft_code resolve(sfti_merge_op *op, sft_error *err) {
    const sfti_merge_plan *plan = op->plan;
    const sfti_merge_row *row = op->row;
    char buffer[SFTI_MERGE_NAME];
    sft_span name;
    for (int p = 0; p < SFTI_MERGE_PARAMS; p++) {
        sfti_merge_param param = (sfti_merge_param)p;
        double plain = param_defaults[p];
        if (p == SFTI_MERGE_NORMALIZE) plain = op->method->normalize;
        if (p == SFTI_MERGE_RESCALE) plain = op->method->rescale;
        if (p >= SFTI_MERGE_EACH) {
            op->param[p] = plain;
            bool told = method_asks(op, param)
                     && sfti_merge_setting_find(plan->settings, param, SFTI_MERGE_ALL, row,
                                                row->spec.name, &op->param[p]);
            if (!told && param == SFTI_MERGE_T && method_asks(op, param))
                return refuse_absent(op, param, err);
            continue;
        }
        for (size_t e = 0; e < op->count; e++) {
            op->each[p][e] = plain;
            (void)sfti_merge_name_in(plan, row, op->model[e], row->spec.name, buffer, sizeof buffer,
                                     &name);
            bool told = method_asks(op, param)
                     && sfti_merge_setting_find(plan->settings, param, op->model[e], row, name,
                                                &op->each[p][e]);
            if (!told && param == SFTI_MERGE_WEIGHT && plan->weights_required
                && method_asks(op, param))
                return refuse_absent(op, param, err);
        }
    }
    double turns = op->param[SFTI_MERGE_MAX_ITER], sum = 0;
    for (size_t e = 0; e < op->count; e++) {
        double weight = op->each[SFTI_MERGE_WEIGHT][e];
        sum += weight < 0 ? -weight : weight;
    }
    if (!(sum - sum == 0)) /* divided by it, all would be 0 */
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected weights whose sum F64 can hold, found "
                                                "larger ones");
    if (!(turns >= 0 && turns <= 1000) || !(op->param[SFTI_MERGE_EPS] > 0)
        || !(op->param[SFTI_MERGE_TOL] > 0))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected max_iter of 0 to 1000, eps and tol above "
                         "0, found others");
    return SFT_OK;
}

/* A tensor that is not in enough models, or of integers in some, is the reference's; so is an
 * alpha. */
static sft_code choose(sfti_merge_op *op, const sfti_merge_plan *plan, const sfti_merge_row *row,
                       sft_error *err) {
    uint32_t none = SFTI_MERGE_ALL;
    op->plan = plan;
    op->method = plan->method;
    op->row = row;
    op->count = 0;
    for (uint32_t m = 0; m < plan->count; m++)
        if (m != plan->base && row->of[m] != none) op->model[op->count++] = m;
    op->has_base = plan->base != SIZE_MAX && row->of[plan->base] != none;
    if (op->has_base) op->model[op->count] = (uint32_t)plan->base;
    bool lacks_base = plan->base != SIZE_MAX && !op->has_base;
    sft_code code = resolve(op, err);
    if (!lacks_base && op->count >= op->method->least && !row->is_mixed && !row->is_alpha)
        return code;
    op->method = sfti_merge_method_of(sft_span_cstr("passthrough"));
    op->has_base = false;
    op->count = 1;
    op->model[0] = row->from;
    op->each[SFTI_MERGE_SCALE][0] = 1;
    return code;
}

/* Whether nothing is to be computed. */
static bool is_copied(const sfti_merge_op *op) {
    uint32_t from = op->row->from;
    const sft_tensor *ref = sft_set_tensor_at(op->plan->models[from].set, op->row->tensor);
    double scale = op->each[SFTI_MERGE_SCALE][0];
    bool plain = op->method->kind == SFTI_MERGE_PASS && !(scale < 1 || scale > 1)
              && op->model[0] == from && op->row->spec.dtype == ref->dtype;
    return !sfti_merge_takes(ref->dtype) || op->row->elements == 0 || plain;
}

/* ── Beginning and end ── */

static uint32_t merged_mode(void *ctx) {
    const sfti_merge_plan *plan = &((const sfti_merged *)ctx)->plan;
    uint32_t mode = 0;
    for (size_t m = 0; m < plan->count; m++)
        sfti_mode_common(&mode, sft_set_output_mode(plan->models[m].set, NULL));
    return mode;
}

static sft_code merged_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err);

static void merged_expect(void *ctx, const sft_run *runs, size_t count);

static const sft_source_vtable merged_vtable = {
    sizeof(sft_source_vtable), merged_read, NULL, merged_expect, merged_mode
};

static sft_code place_rows(sfti_merged *merged, sft_error *err) {
    sfti_merge_op *op = sfti_arena_take(&merged->arena, sizeof *op);
    uint64_t at = 0, bytes = 0;
    if (!op) return sfti_fail_memory(err, sizeof *op);
    memset(op, 0, sizeof *op);
    for (size_t i = 0; i < merged->rows.count; i++) {
        sfti_merge_row *row = &merged->rows.rows[i];
        sft_code code = choose(op, &merged->plan, row, err);
        row->begin = at;
        if (!code)
            code = sft_shape_size(row->spec.dtype, row->spec.shape, row->spec.rank, NULL, &bytes,
                                  err);
        if (!code && is_copied(op)) row->begin = SFTI_MERGE_COPIED;
        else if (!code && !sfti_add(at, bytes, &at))
            code = sfti_fail(err, SFT_SIZE_OVERFLOW,
                             "expected tensors of at most 2^64 - 1 bytes, found more");
        if (code) return code;
        if (row->begin != SFTI_MERGE_COPIED)
            merged->streamed[merged->streamed_count++] = (uint32_t)i;
    }
    merged->source.size = at;
    return SFT_OK;
}

/* A pattern that fits no tensor is a slip. */
static sft_code check_patterns(const sfti_merged *merged, sft_error *err) {
    const sfti_merge_settings *all = merged->plan.settings;
    for (size_t i = 0; i < all->count; i++) {
        size_t k = 0;
        if (all->items[i].filter != SFTI_FILTER_GLOB || merged->plan.slice_count > 0) continue;
        while (k < merged->rows.count
               && !all->glob(all->items[i].text, merged->rows.rows[k].spec.name))
            k++;
        if (k == merged->rows.count)
            return sfti_fail(err, SFT_BAD_ARGUMENT, "expected tensors whose names fit \"%.*s\" "
                             "(parameter %s), found none", SFTI_CLIP(all->items[i].text, 100),
                             sfti_merge_param_name(all->items[i].param));
    }
    return SFT_OK;
}

sfti_merge_plan sfti_merge_plan_of(const sfti_merge_recipe *recipe, const sfti_merge_model *models,
                                   sft_dtype dtype, uint32_t threads, const sft_allocator *alloc) {
    return (sfti_merge_plan){
        .method = recipe->method, .models = models, .count = recipe->count, .base = recipe->base,
        .reference = recipe->reference, .dtype_of = recipe->dtype_of,
        .settings = &recipe->settings, .slices = recipe->slices,
        .slice_count = recipe->slice_count, .seed = recipe->seed, .dtype = dtype,
        .ignore_missing = recipe->ignore_missing, .weights_required = recipe->weights_required,
        .threads = threads, .alloc = alloc };
}

static sft_code take_sources(sfti_merged *merged, sft_error *err) {
    const sfti_merge_plan *plan = &merged->plan;
    merged->sources = sfti_arena_array(&merged->arena, plan->count, sizeof *merged->sources);
    if (!merged->sources) return sfti_fail_memory(err, plan->count * sizeof *merged->sources);
    for (size_t k = 0; k < plan->count; k++) {
        const sft_set *set = plan->models[k].set;
        size_t shards = sft_set_shard_count(set);
        sft_source *sources = sfti_arena_array(&merged->arena, shards, sizeof *sources);
        if (!sources) return sfti_fail_memory(err, shards * sizeof *sources);
        for (size_t s = 0; s < shards; s++) sources[s] = sft_file_source(sft_set_shard_at(set, s));
        merged->sources[k] = sources;
    }
    return SFT_OK;
}

/* Factors are of the alpha that the configuration beside them says. */
static sft_code check_configs(const sfti_merge_plan *plan, size_t *blame, sft_error *err) {
    sft_span first = { "", 0 };
    for (size_t i = 0; i < plan->count; i++) {
        const sft_set *set = plan->models[i].stored;
        for (size_t s = 0; s < sft_set_shard_count(set); s++) {
            const sft_file *file = sft_set_shard_at(set, s);
            sft_span config = { "", 0 };
            (void)sft_file_metadata_get(file, sft_span_cstr(SFTI_LORA_CONFIG_KEY), &config);
            if (i + s == 0) first = config;
            if (sfti_adapter_told_alike(first, config)) continue;
            *blame = i;
            return sfti_fail(err, SFT_BAD_ARGUMENT,
                             "expected one configuration of adapters (" SFTI_LORA_CONFIG_KEY
                             ") in all models, found different ones: factors of one would be read "
                             "with another's alpha");
        }
    }
    return SFT_OK;
}

sft_code sfti_merged_new(const sfti_merge_plan *plan, sfti_merged **out, size_t *blame,
                         sft_error *err) {
    sft_allocator own = sfti_allocator(plan->alloc);
    sfti_merged *merged = sfti_take(&own, sizeof *merged);
    if (!merged) return sfti_fail_memory(err, sizeof *merged);
    memset(merged, 0, sizeof *merged);
    merged->alloc = merged->arena.alloc = merged->work.alloc = own;
    merged->plan = *plan;
    merged->blames = *blame = SIZE_MAX;
    merged->source = (sft_source){ merged, &merged_vtable, 0, NULL, true };
    sft_code code = check_configs(plan, blame, err);
    if (!code) code = sfti_merge_models_alike(plan->models, plan->count, blame, err);
    if (!code)
        code = sfti_merge_rows_find(&merged->plan, &merged->arena, &merged->rows, blame, err);
    if (!code) code = sfti_merge_alphas_check(plan, &merged->rows, blame, err);
    merged->streamed = sfti_arena_array(&merged->arena, merged->rows.count,
                                        sizeof *merged->streamed);
    merged->follows = sfti_arena_array(&merged->arena, merged->rows.count,
                                       sizeof *merged->follows);
    if (!code && (!merged->streamed || !merged->follows))
        code = sfti_fail_memory(err, merged->rows.count * sizeof *merged->streamed);
    if (!code) code = take_sources(merged, err);
    if (!code) {
        *blame = SIZE_MAX;
        code = check_patterns(merged, err);
        if (!code) code = place_rows(merged, err);
    }
    sft_job job = SFT_JOB_INIT;
    job.threads = plan->threads;
    merged->overlaps = sfti_workers_count(&job, 2, 2) > 1;
    merged->announced = SIZE_MAX;
    for (size_t i = 0; i < 2; i++) merged->windows[i].of = merged;
    for (size_t i = 0; !code && i < merged->streamed_count; i++)
        merged->follows[i] = (uint32_t)i + 1;
    if (code) sfti_merged_free(merged);
    else *out = merged;
    return code;
}

void sfti_merged_free(sfti_merged *merged) {
    if (!merged) return;
    sft_allocator own = merged->alloc;
    if (merged->running) sfti_os_thread_join(&merged->thread);
    for (size_t i = 0; i < 2; i++)
        sfti_release(&own, merged->windows[i].bytes, merged->windows[i].size);
    sfti_arena_free(&merged->work);
    sfti_arena_free(&merged->arena);
    sfti_release(&own, merged, sizeof *merged);
}

size_t sfti_merged_count(const sfti_merged *merged) { return merged->rows.count; }

const sfti_merge_row *sfti_merged_row(const sfti_merged *merged, size_t i) {
    return &merged->rows.rows[i];
}

size_t sfti_merged_computed(const sfti_merged *merged) { return merged->streamed_count; }

sft_part sfti_merged_part(const sfti_merged *merged, size_t i) {
    const sfti_merge_row *row = &merged->rows.rows[i];
    const sft_set *set = merged->plan.models[row->from].set;
    if (row->begin != SFTI_MERGE_COPIED)
        return (sft_part){ row->spec, &merged->source, row->begin };
    size_t shard = sft_set_tensor_shard(set, row->tensor);
    sft_part part = sft_part_of(sft_set_tensor_at(set, row->tensor),
                                &merged->sources[row->from][shard]);
    part.spec = row->spec; /* of another dtype only if it is empty; or fewer rows of it */
    return part;
}

const sfti_merge_notes *sfti_merged_notes(const sfti_merged *merged) {
    return &merged->rows.notes;
}

const sft_source *sfti_merged_source(sfti_merged *merged) { return &merged->source; }
size_t sfti_merged_blames(const sfti_merged *merged) { return merged->blames; }

/* ── Computing ── */

/* Whether the dtype has a finite number next to it. */
static bool dtype_holds(sft_dtype dtype, double value) {
    float single = (float)value;
    uint32_t word;
    uint8_t code[4], back[4];
    if (dtype != SFT_F32) sfti_merge_portable.to_odd(&value, 1, &single);
    memcpy(&word, &single, sizeof word);
    sfti_put_u32(&single, word);
    return !sft_cast(SFT_F32, &single, dtype, code, 1, NULL, NULL, NULL)
        && !sft_cast(dtype, code, SFT_F32, back, 1, NULL, NULL, NULL)
        && (sfti_get_u32(back) & 0x7f800000u) != 0x7f800000u;
}

static bool dtype_zero(sft_dtype dtype, double value) {
    float single = (float)value;
    uint8_t code[4], back[4];
    uint32_t word;
    if (dtype != SFT_F32) sfti_merge_portable.to_odd(&value, 1, &single);
    memcpy(&word, &single, sizeof word);
    sfti_put_u32(&single, word);
    return !sft_cast(SFT_F32, &single, dtype, code, 1, NULL, NULL, NULL)
        && !sft_cast(dtype, code, SFT_F32, back, 1, NULL, NULL, NULL)
        && (sfti_get_u32(back) << 1) == 0;
}

/* The greatest number that becomes 0, or 0: half of the least one, which is a power of two. */
static double dtype_tiny(sft_dtype dtype) {
    double tiny = 1;
    if (dtype == SFT_F64) return 0;
    while (tiny > 0 && !dtype_zero(dtype, tiny)) tiny /= 2;
    return tiny;
}

/* The chunk's results, as bytes of the result's dtype. */
static sft_code put_out(const sfti_merge_op *op, sfti_merge_work *work, uint8_t *out,
                        sft_error *err) {
    sft_dtype dtype = op->row->spec.dtype;
    const sfti_merge_loops *loops = sfti_merge_loops_best();
    uint64_t bytes = sft_dtype_describe(dtype)->bits / 8, done = 0, step = SFTI_MERGE_PIECE;
    while (done < work->count) {
        uint64_t n = work->count - done < step ? work->count - done : step;
        const double *from = work->out + done;
        uint8_t *to = out + done * bytes;
        uint64_t word = loops->greatest(from, (size_t)n);
        double most;
        memcpy(&most, &word, sizeof most);
        bool fine = most - most == 0;
        if (op->tiny > 0) loops->vanish(from, (size_t)n, op->tiny, work->losses);
        sft_code code = SFT_OK;
        for (uint64_t i = 0; dtype == SFT_F64 && i < n; i++) {
            memcpy(&word, &from[i], sizeof word);
            sfti_put_u64(to + 8 * i, word);
        }
        if (dtype == SFT_F32)
            for (uint64_t i = 0; i < n; i++) work->floats[i] = (float)from[i];
        else if (dtype != SFT_F64) loops->to_odd(from, (size_t)n, work->floats);
        for (uint64_t i = 0; dtype != SFT_F64 && !sfti_is_little() && i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &work->floats[i], sizeof bits);
            sfti_put_u32(&work->floats[i], bits);
        }
        if (dtype != SFT_F64 && !(fine && dtype_holds(dtype, most))) fine = false;
        if (fine && dtype != SFT_F64)
            code = sft_cast(SFT_F32, work->floats, dtype, to, n, NULL, NULL, err);
        if (!fine)
            code = sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, op->row->spec.name,
                                    "expected values that %s can hold, found larger ones in the "
                                    "result", sft_dtype_describe(dtype)->name);
        if (code) return code;
        done += n;
    }
    return SFT_OK;
}

static sft_code compute(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    uint64_t bytes = sft_dtype_describe(op->row->spec.dtype)->bits / 8;
    sft_code code = sfti_mix_is(op->method) ? sfti_mix_step(op, work, err)
                                            : sfti_sparse_step(op, work, err);
    if (code) return code;
    return put_out(op, work, op->bytes + (work->chunk - op->window_at) * op->chunk * bytes, err);
}

static const sfti_merge_row *streamed_row(const sfti_merged *merged, size_t i) {
    return &merged->rows.rows[merged->streamed[i]];
}

static size_t streamed_at(const sfti_merged *merged, uint64_t offset) {
    size_t from = 0, to = merged->streamed_count;
    while (to - from > 1) {
        size_t mid = from + (to - from) / 2;
        if (streamed_row(merged, mid)->begin <= offset) from = mid;
        else to = mid;
    }
    return from;
}

static void merged_expect(void *ctx, const sft_run *runs, size_t count) {
    sfti_merged *merged = ctx;
    for (size_t n = 0; n < count; n++)
        for (size_t i = streamed_at(merged, runs[n].offset); i < merged->streamed_count
             && streamed_row(merged, i)->begin < runs[n].offset + runs[n].len; i++) {
            if (merged->announced < merged->streamed_count)
                merged->follows[merged->announced] = (uint32_t)i;
            merged->announced = i;
        }
}

static sft_code begin_row(sfti_merged *merged, const sfti_merge_row *row, sft_error *err) {
    merged->now = NULL;
    sfti_arena_free(&merged->work);
    merged->work = (sfti_arena){ .alloc = merged->alloc };
    sfti_merge_op *op = merged->op = sfti_arena_take(&merged->work, sizeof *op);
    if (!op) return sfti_fail_memory(err, sizeof *op);
    memset(op, 0, sizeof *op);
    op->arena = &merged->work;
    sft_code code = choose(op, &merged->plan, row, err);
    for (size_t e = 0; !code && e < op->count; e++) {
        uint64_t key[2] = { merged->plan.seed, op->model[e] };
        op->seeds[e] = sfti_siphash(key, row->spec.name.data, row->spec.name.len);
    }
    if (!code)
        code = sfti_mix_is(op->method) ? sfti_mix_prepare(op, err) : sfti_sparse_prepare(op, err);
    op->tiny = dtype_tiny(row->spec.dtype);
    if (!code) merged->now = row;
    return code;
}

static sft_code window_room(merged_window *w, const sfti_merge_op *op, sft_error *err) {
    size_t size = (size_t)(op->window * op->chunk)
                * (sft_dtype_describe(op->row->spec.dtype)->bits / 8);
    if (w->size >= size) return SFT_OK;
    sfti_release(&w->of->alloc, w->bytes, w->size);
    w->bytes = sfti_take(&w->of->alloc, size);
    w->size = w->bytes ? size : 0;
    return w->bytes ? SFT_OK : sfti_fail_memory(err, size);
}

/* Each element counts once, though it may be computed again. */
static void add_losses(merged_window *w, const sfti_merge_op *op) {
    sfti_merge_row *row = &w->of->rows.rows[w->of->streamed[w->row]];
    if (row->counted != w->first) return;
    row->counted += w->count;
    for (size_t t = 0; t < op->threads; t++)
        for (size_t i = 0; i < SFTI_COUNT(row->losses); i++)
            row->losses[i] += op->works[t].losses[i];
}

/* From element `first` of the row on, or a little before it. */
static void compute_window(void *ctx) {
    merged_window *w = ctx;
    sfti_merged *merged = w->of;
    const sfti_merge_row *row = streamed_row(merged, w->row);
    sft_code code = merged->now == row ? SFT_OK : begin_row(merged, row, &w->err);
    sfti_merge_op *op = merged->op;
    if (!code) code = window_room(w, op, &w->err);
    if (!code) {
        uint64_t first = w->first / op->chunk, left = op->chunks - first;
        uint64_t count = left < op->window ? left : op->window;
        w->first = first * op->chunk;
        w->count = left == count ? row->elements - w->first : count * op->chunk;
        op->bytes = w->bytes;
        code = sfti_select_window(op, first, count, &w->err);
        for (size_t t = 0; t < op->threads; t++)
            memset(op->works[t].losses, 0, sizeof op->works[t].losses);
        if (!code) code = sfti_merge_pass(op, first, count, compute, false, &w->err);
        if (!code) add_losses(w, op);
    }
    for (size_t t = 0; code && op && op->works && t < op->threads; t++)
        if (op->works[t].blame != SFTI_MERGE_ALL) w->blames = op->works[t].blame;
    if (code) merged->now = NULL; /* what is known of the row is not complete */
    w->code = code;
}

static void set_window(merged_window *w, size_t row, uint64_t first) {
    w->row = row;
    w->first = first;
    w->count = 0;
    w->err = (sft_error)SFT_ERROR_INIT;
    w->blames = SIZE_MAX;
}

static bool has_element(const merged_window *w, size_t row, uint64_t element) {
    return w->row == row && element >= w->first && element - w->first < w->count;
}

/* What comes behind a window is begun. */
static void begin_next(sfti_merged *merged, const merged_window *w) {
    merged_window *other = &merged->windows[merged->at ^ 1];
    bool ends = w->first + w->count == streamed_row(merged, w->row)->elements;
    size_t next = ends ? merged->follows[w->row] : w->row;
    if (!merged->overlaps || next >= merged->streamed_count) return;
    set_window(other, next, ends ? 0 : w->first + w->count);
    merged->running = sfti_os_thread_start(&merged->thread, compute_window, other) == 0;
}

static sft_code take_window(sfti_merged *merged, size_t row, uint64_t element,
                            const merged_window **out, sft_error *err) {
    merged_window *w = &merged->windows[merged->at];
    if (!has_element(w, row, element)) {
        bool ready = merged->running;
        if (ready) {
            sfti_os_thread_join(&merged->thread);
            merged->running = false;
            merged->at ^= 1;
            w = &merged->windows[merged->at];
            ready = has_element(w, row, element) || (w->row == row && w->code);
        }
        if (!ready) {
            set_window(w, row, element);
            compute_window(w);
        }
        merged->blames = w->blames;
        if (w->code) {
            w->count = 0;
            return sfti_fail_as(err, w->code, &w->err);
        }
        begin_next(merged, w);
    }
    *out = w;
    return SFT_OK;
}

static sft_code merged_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    sfti_merged *merged = ctx;
    uint8_t *out = into;
    *got = 0;
    merged->blames = SIZE_MAX;
    while (len > 0 && offset < merged->source.size) {
        const merged_window *w = NULL;
        size_t at = streamed_at(merged, offset);
        const sfti_merge_row *row = streamed_row(merged, at);
        uint64_t bytes = sft_dtype_describe(row->spec.dtype)->bits / 8;
        sft_code code = take_window(merged, at, (offset - row->begin) / bytes, &w, err);
        if (code) return code;
        uint64_t begin = offset - row->begin - w->first * bytes;
        uint64_t left = w->count * bytes - begin;
        size_t n = left < len ? (size_t)left : len;
        memcpy(out, w->bytes + begin, n);
        out += n, offset += n, len -= n, *got += n;
    }
    return SFT_OK;
}
