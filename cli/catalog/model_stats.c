/* Statistics of the tensors of a model, in columns. */
#include "catalog/model_page.h"

#include "base/error.h"
#include "catalog/text.h"
#include "safetensors_stats.h"
#include "support/cli.h"
#include "support/hash.h"

#include <stdio.h>

#define BATCH 4096 /* tensors whose histograms are in memory */

enum { MIN, MAX, MEAN, STD, ZEROS, NANS, INFS, HISTOGRAM, COLUMNS };

static const char *const column_names[COLUMNS] = { "min",   "max", "mean", "std",
                                                   "zeros", "nan", "inf",  "histogram" };

/* The columns as text, as they grow together. */
typedef struct stats_columns {
    sfti_json_writer w[COLUMNS];
    sft_sink sinks[COLUMNS];
    sft_buffer text[COLUMNS];
} stats_columns;

static uint64_t bin_of(const sft_histogram *h, size_t i) { return h->negative[i] + h->positive[i]; }

/* [exponent of the first bin that is not empty, counts up to the last one]. */
static void put_histogram(sfti_json_writer *w, const sft_histogram *h) {
    size_t first = 0, end = SFT_HISTOGRAM_BINS;
    char text[16];
    while (first < end && !bin_of(h, first)) first++;
    while (end > first && !bin_of(h, end - 1)) end--;
    sfti_json_open(w, '[');
    if (first < end) {
        int len = snprintf(text, sizeof text, "%d", (int)first - SFT_HISTOGRAM_BINS / 2);
        sfti_json_raw(w, (sft_span){ text, (size_t)len });
    }
    for (size_t i = first; i < end; i++) sfti_json_uint(w, bin_of(h, i));
    sfti_json_close(w, ']');
}

static uint64_t bytes_of(const model_tensors *all, size_t from, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = from; i < from + count; i++)
        bytes += all->items[i].tensor->end - all->items[i].tensor->begin;
    return bytes;
}

/* parts holds a batch. */
static sft_code read_batch(const model_tensors *all, size_t from, size_t count, sft_part *parts,
                           const sft_source *sources, const sft_job *job, stats_columns *columns,
                           sft_error *err) {
    sft_statistics_options options = SFT_STATISTICS_OPTIONS_INIT;
    sft_statistics *statistics = NULL;
    options.histogram = true;
    options.alloc = &all->arena.alloc;
    for (size_t i = 0; i < count; i++) {
        const model_tensor *item = &all->items[from + i];
        parts[i] = sft_part_of(item->tensor, &sources[item->file]);
    }
    sft_code code = sft_statistics_new(parts, count, &options, job, &statistics, err);
    for (size_t i = 0; !code && i < count; i++) {
        const sft_stats *stats = sft_statistics_at(statistics, i);
        const double values[] = { stats->min, stats->max, stats->mean, stats->std };
        for (size_t k = MIN; k <= STD; k++) {
            if (stats->values) catalog_double(&columns->w[k], values[k]);
            else sfti_json_null(&columns->w[k]);
        }
        sfti_json_uint(&columns->w[ZEROS], stats->zeros);
        sfti_json_uint(&columns->w[NANS], stats->nan);
        sfti_json_uint(&columns->w[INFS], stats->inf);
        put_histogram(&columns->w[HISTOGRAM], stats->histogram);
    }
    sft_statistics_free(statistics);
    return code;
}

sft_code model_stats_write(const model_tensors *all, cli *c, const char *path,
                           sfti_json_writer *w, sft_error *err) {
    sfti_arena work = { .alloc = c->alloc };
    size_t most = all->count < BATCH ? all->count : BATCH;
    sft_source *sources = sfti_arena_array(&work, all->file_count, sizeof *sources);
    sft_part *parts = sfti_arena_array(&work, most, sizeof *parts);
    stats_columns *columns = sfti_arena_take(&work, sizeof *columns);
    cli_progress progress;
    sft_job job = cli_progress_begin(&progress, c, path);
    sft_code code = SFT_OK;
    if (!sources || !parts || !columns) {
        code = sfti_fail_memory(err, most * sizeof *parts);
        goto done;
    }
    for (size_t k = 0; k < COLUMNS; k++) {
        columns->text[k] = (sft_buffer){ .alloc = c->alloc };
        columns->sinks[k] = sft_sink_memory(&columns->text[k]);
        sfti_json_write(&columns->w[k], &columns->sinks[k], 0, err);
        sfti_json_open(&columns->w[k], '[');
    }
    for (size_t i = 0; i < all->file_count; i++) sources[i] = sft_file_source(all->files[i].file);
    if (!cli_parse_threads(c, &job.threads)) code = err->code = SFT_BAD_ARGUMENT;
    progress.all = bytes_of(all, 0, all->count);
    for (size_t from = 0; !code && from < all->count; from += most) {
        size_t count = all->count - from < most ? all->count - from : most;
        code = read_batch(all, from, count, parts, sources, &job, columns, err);
        progress.before += bytes_of(all, from, count);
    }
    bool read = !code;
    if (read) sfti_json_put_open(w, "stats", '{');
    for (size_t k = 0; !code && k < COLUMNS; k++) {
        sfti_json_close(&columns->w[k], ']');
        code = sfti_json_done(&columns->w[k]);
        if (code) break;
        sfti_json_key(w, column_names[k]);
        sfti_json_raw(w, (sft_span){ columns->text[k].data, columns->text[k].len });
    }
    if (read) sfti_json_close(w, '}');
    if (!code) code = w->code;
    for (size_t k = 0; k < COLUMNS; k++) sft_buffer_free(&columns->text[k]);
done:
    cli_progress_end(&progress);
    sfti_arena_free(&work);
    return code;
}
