/* Statistics of tensors, by several threads. Tests: test_stats.c. */
#include "base/announce.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/options.h"
#include "bytes/source.h"
#include "os/workers.h"
#include "stats/stats.h"

#include <string.h>

#define STATS_PIECE ((size_t)2 << 20)    /* bytes that a thread claims at once */
#define STATS_BUFFER ((size_t)256 << 10) /* bytes read at once: they stay in a core's cache */
#define STATS_THREADS 32

struct sft_statistics {
    sfti_arena arena;
    size_t count;
    sft_stats *stats; /* count, and one of all together */
};

/* The sums of a part with pieces that are claimed and not summed, or not yet claimed. */
typedef struct stats_open {
    size_t part;      /* SIZE_MAX: free */
    uint64_t pending; /* pieces that threads have claimed */
    bool claimed;     /* all its pieces are */
    sfti_sums sums;
} stats_open;

typedef struct stats_piece {
    stats_open *of;
    uint64_t first, count; /* elements */
} stats_piece;

/* What one thread needs. */
typedef struct stats_worker {
    sfti_bins bins;
    sfti_sums sums;
    sft_histogram histogram;
    uint8_t buffer[STATS_BUFFER];
} stats_worker;

typedef struct stats_run {
    const sft_part *parts;
    size_t count;
    sft_statistics *result;
    uint64_t total;
    bool histogram;
    size_t next; /* the first part with pieces to claim, and its first element */
    uint64_t element;
    stats_open *open; /* one more than there are threads: nothing else can be open */
    size_t open_count;
    sfti_sums all;
    stats_worker *workers;
} stats_run;

/* ── Claiming ── */

static uint64_t stats_elements(const sft_part *part) {
    uint64_t elements;
    sft_code code = sft_shape_size(part->spec.dtype, part->spec.shape, part->spec.rank,
                                   &elements, NULL, NULL);
    return code ? 0 : elements; /* never: stats_measure asked the same */
}

/* The histogram of result i, which is in its memory from the beginning. */
static sft_histogram *stats_histogram(const stats_run *run, size_t i) {
    return (sft_histogram *)(uintptr_t)run->result->stats[i].histogram;
}

static void stats_close(stats_run *run, stats_open *slot) {
    sft_dtype dtype = run->parts[slot->part].spec.dtype;
    sfti_sums_result(&slot->sums, dtype, &run->result->stats[slot->part]);
    sfti_sums_total(&run->all, &slot->sums, dtype);
    slot->part = SIZE_MAX;
}

/* The sums of the part to claim from; nothing of it is claimed while run->element is 0. */
static stats_open *stats_current(stats_run *run) {
    stats_open *slot = run->open;
    if (run->element > 0) {
        while (slot->part != run->next) slot++;
        return slot;
    }
    while (slot->part != SIZE_MAX) slot++;
    slot->part = run->next;
    slot->pending = 0;
    slot->claimed = false;
    sfti_sums_clear(&slot->sums, stats_histogram(run, run->next));
    return slot;
}

/* Whole groups of eight elements but at the end. */
static bool stats_claim(stats_run *run, stats_piece *piece) {
    while (run->next < run->count) {
        const sft_part *part = &run->parts[run->next];
        uint32_t bits = sft_dtype_describe(part->spec.dtype)->bits;
        uint64_t most = STATS_PIECE / bits * 8, left = stats_elements(part) - run->element;
        stats_open *slot = stats_current(run);
        *piece = (stats_piece){ slot, run->element, left < most ? left : most };
        slot->claimed = piece->count == left;
        run->element = slot->claimed ? 0 : run->element + piece->count;
        run->next += slot->claimed;
        slot->pending += left > 0;
        if (left > 0) return true;
        stats_close(run, slot);
    }
    return false;
}

/* ── Working ── */

/* Reads and sums the elements of a piece. */
static sft_code stats_sum(const stats_run *run, stats_worker *worker, const stats_piece *piece,
                          sft_error *err) {
    const sft_part *part = &run->parts[piece->of->part];
    uint32_t bits = sft_dtype_describe(part->spec.dtype)->bits;
    uint64_t most = STATS_BUFFER / bits * 8;
    sfti_sums_clear(&worker->sums, run->histogram ? &worker->histogram : NULL);
    for (uint64_t done = 0; done < piece->count; done += most) {
        uint64_t left = piece->count - done, count = left < most ? left : most;
        uint64_t at = part->begin + (piece->first + done) / 8 * bits;
        const uint8_t *bytes = worker->buffer;
        sft_code code = SFT_OK;
        if (part->source->base) bytes = (const uint8_t *)part->source->base + (size_t)at;
        else code = sfti_source_all(part->source, at, worker->buffer, (size_t)(count * bits / 8),
                                    err);
        if (code && err && err->tensor_len == SFT_NO_TENSOR)
            sfti_error_tensor(err, part->spec.name);
        if (code) return code;
        sfti_sums_elements(&worker->sums, &worker->bins, part->spec.dtype, bytes, (size_t)count);
    }
    sfti_sums_end(&worker->sums, &worker->bins, part->spec.dtype);
    return SFT_OK;
}

static bool stats_step(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    stats_run *run = workers->ctx;
    stats_worker *worker = &run->workers[thread];
    stats_piece piece;
    sfti_workers_lock(workers);
    bool more = !workers->error.code && stats_claim(run, &piece);
    sfti_workers_unlock(workers);
    if (!more) return false;
    err->code = stats_sum(run, worker, &piece, err);
    if (err->code) return true;
    uint64_t bits = sft_dtype_describe(run->parts[piece.of->part].spec.dtype)->bits;
    *done = piece.count * bits / 8;
    sfti_workers_lock(workers);
    sfti_sums_merge(&piece.of->sums, &worker->sums);
    piece.of->pending--;
    if (piece.of->claimed && piece.of->pending == 0) stats_close(run, piece.of);
    sfti_workers_unlock(workers);
    return true;
}

/* ── Beginning ── */

/* Also refuses what cannot be read. */
static sft_code stats_measure(stats_run *run, sft_error *err) {
    for (size_t i = 0; i < run->count; i++) {
        const sft_part *part = &run->parts[i];
        uint64_t bytes;
        sft_code code = sft_shape_size(part->spec.dtype, part->spec.shape, part->spec.rank, NULL,
                                       &bytes, err);
        if (code) return code;
        if (!part->source || part->source->size == SFT_SIZE_UNKNOWN)
            return sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, part->spec.name,
                                    "expected a source that can be read at any offset, found %s",
                                    part->source ? "one that can only be read forward" : "none");
        code = sfti_source_is_memory(part->source) ? SFT_BUFFER_SIZE : SFT_IO_SHRUNK;
        if (part->source->size < bytes || part->source->size - bytes < part->begin)
            return sfti_fail_tensor(err, code, part->begin, part->spec.name,
                                    "expected %llu bytes of the tensor, found fewer",
                                    (unsigned long long)bytes);
        run->total += bytes;
    }
    return SFT_OK;
}

static sft_code stats_run_all(stats_run *run, const sft_job *job, const sft_allocator *alloc,
                              sft_error *err) {
    sft_code code = stats_measure(run, err);
    if (code) return code;
    sfti_arena work = { .alloc = *alloc };
    size_t threads = sfti_workers_count(job, STATS_THREADS, run->total / STATS_PIECE + 1);
    run->open_count = threads + 1;
    run->open = sfti_arena_array(&work, run->open_count, sizeof *run->open);
    run->workers = sfti_arena_array(&work, threads, sizeof *run->workers);
    if (!run->open || !run->workers) code = sfti_fail_memory(err, threads * sizeof *run->workers);
    sft_statistics *result = run->result;
    uint64_t count = (uint64_t)run->count + 1;
    sft_histogram *histograms = NULL;
    result->count = run->count;
    result->stats = sfti_arena_array(&result->arena, count, sizeof *result->stats);
    if (!code && !result->stats) code = sfti_fail_memory(err, count * sizeof *result->stats);
    if (run->histogram) {
        histograms = sfti_arena_array(&result->arena, count, sizeof *histograms);
        if (!code && !histograms) code = sfti_fail_memory(err, count * sizeof *histograms);
    }
    if (!code) {
        memset(result->stats, 0, (size_t)count * sizeof *result->stats);
        for (size_t i = 0; histograms && i < count; i++)
            result->stats[i].histogram = &histograms[i];
        sfti_sums_clear(&run->all, stats_histogram(run, run->count));
        for (size_t i = 0; i < run->open_count; i++) run->open[i].part = SIZE_MAX;
        sfti_announcement all = { .count = 0 };
        for (size_t i = 0; i < run->count; i++) { /* in the order in which pieces are claimed */
            const sft_part *part = &run->parts[i];
            uint64_t bits = sft_dtype_describe(part->spec.dtype)->bits;
            uint64_t elements = stats_elements(part);
            sfti_announce(&all, part->source, part->begin,
                          elements / 8 * bits + elements % 8 * bits / 8);
        }
        sfti_announce_end(&all);
        for (size_t i = 0; i < threads; i++)
            memset(&run->workers[i].bins, 0, sizeof run->workers[i].bins);
        sfti_workers workers = { .step = stats_step, .ctx = run, .job = job,
                                 .total = run->total };
        code = sfti_workers_run(&workers, threads, err);
        sfti_sums_result(&run->all, SFT_F64, &run->result->stats[run->count]);
    }
    sfti_arena_free(&work);
    return code;
}

static SFTI_OPTIONS_TAKE(statistics_take, sft_statistics_options, SFT_STATISTICS_OPTIONS_INIT,
                         alloc)

sft_code sft_statistics_new(const sft_part *parts, size_t count,
                            const sft_statistics_options *options, const sft_job *job,
                            sft_statistics **out, sft_error *err) {
    sft_statistics_options own;
    sft_job own_job;
    *out = NULL;
    sft_code code = statistics_take(options, &own, err);
    if (!code) code = sfti_take_job(job, &own_job, err);
    if (code) return code;
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_statistics *result = sfti_take(&alloc, sizeof *result);
    if (!result) return sfti_fail_memory(err, sizeof *result);
    memset(result, 0, sizeof *result);
    result->arena.alloc = alloc;
    stats_run *run = sfti_take(&alloc, sizeof *run);
    if (run) {
        memset(run, 0, sizeof *run);
        run->parts = parts;
        run->count = count;
        run->result = result;
        run->histogram = own.histogram;
        code = stats_run_all(run, &own_job, &alloc, err);
    } else {
        code = sfti_fail_memory(err, sizeof *run);
    }
    sfti_release(&alloc, run, sizeof *run);
    if (code) sft_statistics_free(result);
    else *out = result;
    return code;
}

void sft_statistics_free(sft_statistics *statistics) {
    if (!statistics) return;
    sft_allocator alloc = statistics->arena.alloc;
    sfti_arena_free(&statistics->arena);
    sfti_release(&alloc, statistics, sizeof *statistics);
}

const sft_stats *sft_statistics_at(const sft_statistics *statistics, size_t i) {
    return i < statistics->count ? &statistics->stats[i] : NULL;
}

const sft_stats *sft_statistics_all(const sft_statistics *statistics) {
    return &statistics->stats[statistics->count];
}
