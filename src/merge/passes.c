/* Passes over a tensor: chunks of its values in all models, by threads. Tests: test_merge.c. */
#include "merge/work.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "os/workers.h"
#include "safetensors_cast.h"

#include <string.h>

#define READ_RAW ((size_t)64 << 10)
#define MEMORY_MOST ((uint64_t)48 << 20)
#define MEMORY_FAIR ((uint64_t)24 << 20) /* that more threads may take */
#define WINDOW_ELEMENTS ((uint64_t)1 << 19)
#define WINDOW_SUMS ((uint64_t)1 << 17)

/* ── Values ── */

static sft_code refuse_nonfinite(const sft_tensor *tensor, uint64_t element, bool nan,
                             sft_error *err) {
    uint64_t bytes = sft_dtype_describe(tensor->dtype)->bits / 8;
    return sfti_fail_tensor(err, SFT_CAST_VALUE, tensor->offset + element * bytes, tensor->name,
                            "expected finite values, found %s at element %llu",
                            nan ? "NaN" : "an infinity", (unsigned long long)element);
}

/* F32 as in a file; the first that is not finite, or count. */
static uint64_t widen_32(float *from, uint64_t count, double *into) {
    if (!sfti_is_little())
        for (uint64_t i = 0; i < count; i++) {
            uint32_t word = sfti_get_u32(&from[i]);
            memcpy(&from[i], &word, sizeof word);
        }
    if (sfti_merge_loops_best()->widen(from, (size_t)count, into)) return count;
    uint64_t at = 0;
    while (at < count && into[at] - into[at] == 0) at++;
    return at;
}

static uint64_t widen_64(const uint8_t *from, uint64_t count, double *into) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = sfti_get_u64(from + 8 * i);
        memcpy(&into[i], &word, sizeof word);
        if (into[i] - into[i] != 0) return i;
    }
    return count;
}

sft_code sfti_merge_read(const sfti_merge_model *model, uint32_t number, uint64_t first,
                         uint64_t count, uint8_t *raw, float *floats, double *into,
                         sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(model->set, number);
    const sft_file *file = sft_set_shard_at(model->set, sft_set_tensor_shard(model->set, number));
    uint64_t bytes = sft_dtype_describe(tensor->dtype)->bits / 8, each = READ_RAW / bytes;
    sft_code code = SFT_OK;
    for (uint64_t done = 0, n = 0; !code && done < count; done += n) {
        const uint8_t *from = raw + done % each * bytes;
        uint64_t left = count - done < each ? count - done : each, good = 0;
        if (from == raw)
            code = sft_read_bytes(file, tensor->offset + (first + done) * bytes, raw,
                                  (size_t)(left * bytes), err);
        n = count - done < SFTI_MERGE_PIECE ? count - done : SFTI_MERGE_PIECE;
        if (!code && tensor->dtype == SFT_F64) good = widen_64(from, n, into + done);
        else if (!code && !(code = sft_cast(tensor->dtype, from, SFT_F32, floats, n, NULL, NULL,
                                            err)))
            good = widen_32(floats, n, into + done);
        if (!code && good < n)
            return refuse_nonfinite(tensor, first + done + good,
                                into[done + good] != into[done + good], err);
    }
    if (code && err) sfti_error_tensor(err, tensor->name);
    return code;
}

/* ── Threads ── */

typedef struct sfti_merge_run {
    sfti_workers workers;
    os_cond told; /* of what sfti_merge_pass_chain waits for */
    bool waits, failed;
    const sfti_merge_op *op;
    sfti_merge_step *step;
    uint64_t first, next, end;
    bool sums;
} sfti_merge_run;

static sft_code do_chunk(const sfti_merge_run *run, sfti_merge_work *w, uint64_t chunk,
                         sft_error *err) {
    const sfti_merge_op *op = run->op;
    size_t all = op->count + op->has_base;
    sft_code code = SFT_OK;
    w->chunk = chunk;
    w->first = chunk * op->chunk;
    w->count = op->row->elements - w->first < op->chunk ? op->row->elements - w->first : op->chunk;
    if (op->sampled && w->count == op->chunk) { /* not of the same columns of a matrix each time */
        w->first += chunk % (op->chunk / SFTI_MERGE_PIECE) * SFTI_MERGE_PIECE;
        w->count = SFTI_MERGE_PIECE;
    }
    w->sums = run->sums ? op->window_sums + (chunk - run->first) * op->sums : NULL;
    for (size_t i = 0; !code && i < all; i++) {
        code = sfti_merge_read(&op->plan->models[op->model[i]], op->row->of[op->model[i]],
                               w->first, w->count, w->raw, w->floats, w->x[i], err);
        if (code) w->blame = op->model[i];
    }
    return code ? code : run->step(op, w, err);
}

static bool take_chunk(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    sfti_merge_run *run = workers->ctx;
    sfti_workers_lock(workers);
    bool more = run->next < run->end && !workers->error.code;
    uint64_t chunk = run->next;
    run->next += more;
    sfti_workers_unlock(workers);
    if (!more) return false;
    run->op->works[thread].run = run;
    err->code = do_chunk(run, &run->op->works[thread], chunk, err);
    *done = 1;
    if (!err->code) return true;
    sfti_workers_lock(workers);
    run->failed = true;
    if (run->waits) sfti_os_cond_wake(&run->told);
    sfti_workers_unlock(workers);
    return true;
}

uint64_t sfti_merge_pass_chain(const sfti_merge_work *work, uint64_t *before, uint64_t here) {
    sfti_merge_run *run = work->run;
    sfti_workers_lock(&run->workers);
    while (*before == SFTI_NOT_COUNTED && !run->failed)
        sfti_os_cond_wait(&run->told, &run->workers.mutex);
    uint64_t seen = *before;
    before[1] = seen + here;
    if (run->waits) sfti_os_cond_wake(&run->told);
    sfti_workers_unlock(&run->workers);
    return seen;
}

sft_code sfti_merge_pass(const sfti_merge_op *op, uint64_t first, uint64_t count,
                         sfti_merge_step *step, bool sums, sft_error *err) {
    sfti_merge_run run = { .op = op, .step = step, .first = first, .next = first,
                           .end = first + count, .sums = sums };
    run.workers.step = take_chunk;
    run.workers.ctx = &run;
    run.workers.total = count;
    size_t threads = op->threads < count ? op->threads : (size_t)count;
    run.waits = threads > 1 && sfti_os_cond_init(&run.told) == 0;
    sft_code code = sfti_workers_run(&run.workers, run.waits ? threads : 1, err);
    if (run.waits) sfti_os_cond_free(&run.told);
    return code;
}

sft_code sfti_merge_sum(sfti_merge_op *op, sfti_merge_step *step, size_t sums,
                        sfti_merge_before *before, double *out, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t k = 0; k < sums; k++) out[k] = 0;
    op->sums = sums;
    for (uint64_t at = 0; !code && at < op->chunks;) {
        uint64_t n = op->chunks - at < op->window ? op->chunks - at : op->window;
        if (before) code = before(op, at, n, err);
        if (!code) code = sfti_merge_pass(op, at, n, step, true, err);
        for (uint64_t i = 0; !code && i < n; i++)
            for (size_t k = 0; k < sums; k++) out[k] += op->window_sums[i * sums + k];
        at += n;
    }
    return code;
}

/* ── Memory ── */

static bool take_work(sfti_merge_op *op, sfti_merge_work *w, uint64_t histogram) {
    size_t all = op->count + op->has_base;
    *w = (sfti_merge_work){ .x = sfti_arena_array(op->arena, all, sizeof *w->x),
                            .blame = SFTI_MERGE_ALL };
    for (size_t i = 0; w->x && i < all; i++) {
        w->x[i] = sfti_arena_array(op->arena, op->chunk, sizeof(double));
        if (!w->x[i]) return false;
    }
    w->out = sfti_arena_array(op->arena, op->chunk, sizeof *w->out);
    w->raw = sfti_arena_array(op->arena, READ_RAW, 1);
    w->floats = sfti_arena_array(op->arena, SFTI_MERGE_PIECE, sizeof *w->floats);
    w->counts = sfti_arena_array(op->arena, histogram, sizeof *w->counts);
    w->keys = sfti_arena_array(op->arena, op->chunk, sizeof *w->keys);
    w->order = sfti_arena_array(op->arena, op->chunk, sizeof *w->order);
    w->spare = sfti_arena_array(op->arena, op->chunk, sizeof *w->spare);
    w->starts = sfti_arena_array(op->arena, 3 << SFTI_RANK_BITS, sizeof *w->starts);
    w->kept = sfti_arena_array(op->arena, op->chunk, 1);
    return w->x && w->out && w->raw && w->floats && w->counts && w->keys && w->order && w->spare
        && w->starts && w->kept;
}

sft_code sfti_merge_passes_begin(sfti_merge_op *op, uint64_t histogram, size_t sums,
                                 sft_error *err) {
    uint64_t all = op->count + op->has_base, elements = op->row->elements;
    uint64_t lines = op->line && op->line < SFTI_MERGE_CHUNK ? SFTI_MERGE_CHUNK / op->line : 1;
    op->chunk = op->line ? lines * op->line : SFTI_MERGE_CHUNK;
    op->chunks = elements / op->chunk + (elements % op->chunk > 0);
    uint64_t each = 0;
    bool fits = op->chunk < MEMORY_MOST
             && sfti_mul(op->chunk, 8 * (all + 1) + 13, &each) && each < MEMORY_MOST;
    each += histogram * 8 + 3 * READ_RAW;
    if (!fits || each > MEMORY_MOST) {
        sft_code code = sfti_fail_tensor(err, SFT_ADDRESS_SPACE, SFT_NO_OFFSET, op->row->spec.name,
                                         "expected lines of which those of all models fit into "
                                         "%llu MiB, found one of %llu elements",
                                         (unsigned long long)(MEMORY_MOST >> 20),
                                         (unsigned long long)op->chunk);
        sfti_hint(err, SFT_HINT_NONE);
        return code;
    }
    size_t most = (size_t)(MEMORY_FAIR / each);
    sft_job job = SFT_JOB_INIT;
    job.threads = op->plan->threads;
    op->threads = sfti_workers_count(&job, SFTI_WORKERS_MOST, op->chunks);
    if (op->threads > most) op->threads = most;
    if (op->threads == 0) op->threads = 1;
    op->window = WINDOW_ELEMENTS / op->chunk;
    if (op->window < op->threads) op->window = op->threads;
    if (sums > 0 && op->window > WINDOW_SUMS / sums) op->window = WINDOW_SUMS / sums;
    op->works = sfti_arena_array(op->arena, op->threads, sizeof *op->works);
    op->window_sums = sfti_arena_array(op->arena, op->window * sums, sizeof *op->window_sums);
    for (size_t t = 0; op->works && t < op->threads; t++) op->works[t].blame = SFTI_MERGE_ALL;
    bool fine = op->works && op->window_sums;
    for (size_t t = 0; fine && t < op->threads; t++) fine = take_work(op, &op->works[t], histogram);
    return fine ? SFT_OK : sfti_fail_memory(err, each * op->threads);
}
