/* ls --stats: what the values of tensors are like. Tests: tests/cli/ls. */
#include "commands/ls/ls.h"

#include "base/error.h"
#include "base/number.h"
#include "support/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_MOST 56
#define CELL_SIZE 32

typedef enum stats_column {
    COLUMN_MIN, COLUMN_MAX, COLUMN_MEAN, COLUMN_STD, COLUMN_ABS, COLUMN_ZEROS, COLUMN_NAN,
    COLUMN_INF, STATS_COLUMNS
} stats_column;

static const char *const column_heads[] = { "MIN", "MAX", "MEAN", "STD", "ABS MEAN", "ZEROS",
                                            "NAN", "INF" };

const char ls_stats_tsv_head[] = "\tvalues\tmin\tmax\tmean\tstd\tabs_mean\tzeros\tnan\tinf";
const char ls_stats_md_head[] = " Min | Max | Mean | Std | Abs mean | Zeros | NaN | Inf |";
const char ls_stats_md_rule[] = " ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

/* ── Reading ── */

sft_code ls_stats_read(ls_listing *l, uint32_t threads, sft_error *err) {
    sfti_arena work = { .alloc = l->c->alloc };
    size_t shards = sft_set_shard_count(l->set);
    sft_source *sources = sfti_arena_array(&work, shards, sizeof *sources);
    sft_part *parts = sfti_arena_array(&work, l->count, sizeof *parts);
    sft_statistics_options options = SFT_STATISTICS_OPTIONS_INIT;
    cli_progress progress;
    l->part = sfti_arena_array(&l->arena, l->total, sizeof *l->part);
    sft_code code = SFT_OK;
    if (!sources || !parts || !l->part) {
        code = sfti_fail_memory(err, l->count * sizeof *parts);
    } else {
        for (size_t s = 0; s < shards; s++)
            sources[s] = sft_file_source(sft_set_shard_at(l->set, s));
        /* parts in the order of their bytes, whatever the order of rows */
        size_t count = 0;
        memset(l->part, 0xFF, l->total * sizeof *l->part);
        for (size_t i = 0; i < l->count; i++) l->part[l->order[i]] = 0;
        for (size_t i = 0; i < l->total; i++) {
            if (l->part[i] == UINT32_MAX) continue;
            l->part[i] = (uint32_t)count;
            parts[count++] = sft_part_of(sft_set_tensor_at(l->set, i),
                                         &sources[sft_set_tensor_shard(l->set, i)]);
        }
        options.histogram = l->c->set.histogram != 0;
        options.alloc = &l->c->alloc;
        sft_job job = cli_progress_begin(&progress, l->c, l->path);
        job.threads = l->c->set.values ? 1 : threads; /* values are computed in their order */
        code = sft_statistics_new(parts, count, &options, &job, &l->stats, err);
        cli_progress_end(&progress);
    }
    sfti_arena_free(&work);
    return code;
}

/* The statistics of row i; SIZE_MAX: of all. */
static const sft_stats *stats_at(const ls_listing *l, size_t i) {
    return i == SIZE_MAX ? sft_statistics_all(l->stats)
                         : sft_statistics_at(l->stats, l->part[l->order[i]]);
}

/* ── Cells ── */

/* Whether the extremes are integers, and are in the bits. */
static bool has_bits(const ls_listing *l, size_t i, bool *is_signed) {
    if (i == SIZE_MAX) return false;
    sft_kind kind = sft_dtype_describe(ls_listed(l, i)->dtype)->kind;
    *is_signed = kind == SFT_KIND_INT;
    return kind != SFT_KIND_FLOAT && kind != SFT_KIND_COMPLEX;
}

static size_t bits_text(uint64_t bits, bool is_signed, char cell[CELL_SIZE]) {
    bool minus = is_signed && bits >> 63;
    int len = snprintf(cell, CELL_SIZE, "%s%" PRIu64, minus ? "-" : "", minus ? ~bits + 1 : bits);
    return (size_t)len;
}

static size_t cell_text(const ls_listing *l, size_t i, stats_column column, int digits,
                        char cell[CELL_SIZE]) {
    const sft_stats *stats = stats_at(l, i);
    const double numbers[] = { stats->min, stats->max, stats->mean, stats->std, stats->abs_mean };
    const uint64_t counts[] = { stats->zeros, stats->nan, stats->inf };
    bool is_signed;
    if (column >= COLUMN_ZEROS) return bits_text(counts[column - COLUMN_ZEROS], false, cell);
    if (column <= COLUMN_MAX && stats->values && has_bits(l, i, &is_signed))
        return bits_text(column == COLUMN_MIN ? stats->min_bits : stats->max_bits, is_signed,
                         cell);
    /* digits 0: as many as give the value back */
    double value = numbers[column];
    char text[SFTI_DOUBLE_SIZE];
    if (value != value) return (size_t)snprintf(cell, CELL_SIZE, "-");
    if (digits) return (size_t)snprintf(cell, CELL_SIZE, "%.*g", digits, value);
    size_t len = sfti_double_text(value, text);
    if (len >= CELL_SIZE) len = CELL_SIZE - 1;
    memcpy(cell, text, len);
    cell[len] = 0;
    return len;
}

void ls_stats_tsv(const ls_listing *l, size_t i) {
    char cell[CELL_SIZE];
    cli_printf(&l->c->out, "\t%" PRIu64, stats_at(l, i)->values);
    for (int k = 0; k < STATS_COLUMNS; k++) {
        size_t len = cell_text(l, i, (stats_column)k, 0, cell);
        cli_text(&l->c->out, "\t");
        if (cell[0] != '-' || len > 1) cli_put(&l->c->out, cell, len);
    }
}

void ls_stats_md(const ls_listing *l, size_t i) {
    char cell[CELL_SIZE];
    for (int k = 0; k < STATS_COLUMNS; k++) {
        (void)cell_text(l, i, (stats_column)k, 4, cell);
        cli_printf(&l->c->out, " %s |", cell);
    }
}

/* ── For people ── */

static uint64_t bin_count(const sft_histogram *histogram, size_t bin) {
    return histogram->negative[bin] + histogram->positive[bin];
}

/* The outer bins also hold what is smaller and what is larger. */
static void histogram_line(const ls_listing *l, size_t i) {
    cli_out *out = &l->c->out;
    const sft_histogram *histogram = stats_at(l, i)->histogram;
    size_t first = SFT_HISTOGRAM_BINS, last = 0;
    uint64_t most = 0;
    for (size_t k = 0; histogram && k < SFT_HISTOGRAM_BINS; k++) {
        uint64_t count = bin_count(histogram, k);
        if (count == 0) continue;
        if (first == SFT_HISTOGRAM_BINS) first = k;
        last = k;
        if (count > most) most = count;
    }
    if (most == 0) return;
    if (first == 0) cli_text(out, "  0 ");
    else cli_printf(out, "  2^%d ", (int)first - 64);
    for (size_t k = first; k <= last; k++) {
        double share = (double)bin_count(histogram, k) / (double)most;
        cli_text(out, cli_bar(share));
    }
    if (last == SFT_HISTOGRAM_BINS - 1) cli_text(out, " inf\n");
    else cli_printf(out, " 2^%d\n", (int)last - 63);
}

typedef struct stats_widths {
    size_t name, dtype, shape, column[STATS_COLUMNS];
} stats_widths;

static void measure_cells(const ls_listing *l, size_t i, stats_widths *w) {
    char cell[CELL_SIZE];
    for (int k = 0; k < STATS_COLUMNS; k++)
        ls_widen(&w->column[k], cell_text(l, i, (stats_column)k, 4, cell), CELL_SIZE);
}

static size_t stats_width(const stats_widths *w) {
    size_t total = w->name + 2 + w->dtype + (w->shape ? 2 + w->shape : 0);
    for (int k = 0; k < STATS_COLUMNS; k++) total += w->column[k] ? 2 + w->column[k] : 0;
    return total;
}

/* Names are cut first, then columns go. */
static void fit_stats(const ls_listing *l, stats_widths *w, size_t columns) {
    static const stats_column order[] = { COLUMN_ABS, COLUMN_INF,  COLUMN_NAN, COLUMN_ZEROS,
                                          COLUMN_STD, COLUMN_MEAN, COLUMN_MAX };
    const size_t least[] = { 32, 16, 8 };
    const sft_stats *all = stats_at(l, SIZE_MAX);
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        size_t total = stats_width(w);
        if (total > columns && w->name > least[i])
            w->name -= total - columns < w->name - least[i] ? total - columns : w->name - least[i];
        if (i == 0 && stats_width(w) > columns) w->column[COLUMN_ABS] = 0;
        if (i == 1 && stats_width(w) > columns) w->shape = 0;
        for (size_t k = 0; i == 1 && k < sizeof order / sizeof *order; k++) {
            /* a column that says something that must be seen stays */
            bool stays = (order[k] == COLUMN_NAN && all->nan)
                         || (order[k] == COLUMN_INF && all->inf);
            if (!stays && stats_width(w) > columns) w->column[order[k]] = 0;
        }
    }
}

static stats_widths measure_stats(const ls_listing *l) {
    stats_widths w = { 4, 5, 5, { 0 } };
    size_t columns = cli_columns(&l->c->out), name_most = columns ? columns : NAME_MOST;
    char shape[CLI_SHAPE_SIZE];
    for (int k = 0; k < STATS_COLUMNS; k++) w.column[k] = strlen(column_heads[k]);
    for (size_t i = 0; i < l->count; i++) {
        const sft_tensor *t = ls_listed(l, i);
        ls_widen(&w.name, cli_escaped_width(t->name), name_most);
        ls_widen(&w.dtype, strlen(sft_dtype_describe(t->dtype)->name), 16);
        ls_widen(&w.shape, cli_shape_text(t->shape, t->rank, shape), 32);
        measure_cells(l, i, &w);
    }
    measure_cells(l, SIZE_MAX, &w);
    if (columns) fit_stats(l, &w, columns);
    return w;
}

static void stats_cells(const ls_listing *l, const stats_widths *w, size_t i) {
    char cell[CELL_SIZE];
    for (int k = 0; k < STATS_COLUMNS; k++) {
        if (!w->column[k]) continue;
        (void)cell_text(l, i, (stats_column)k, 4, cell);
        cli_printf(&l->c->out, "%s%*s", k ? "  " : "", (int)w->column[k], cell);
    }
    cli_text(&l->c->out, "\n");
    histogram_line(l, i);
}

void ls_stats_table(const ls_listing *l) {
    cli_out *out = &l->c->out;
    stats_widths w = measure_stats(l);
    bool whole = !cli_columns(out);
    cli_style_on(out, CLI_DIM);
    cli_text(out, "NAME");
    ls_pad(out, 4, w.name);
    cli_printf(out, "%-*s  ", (int)w.dtype, "DTYPE");
    if (w.shape) cli_printf(out, "%-*s  ", (int)w.shape, "SHAPE");
    for (int k = 0; k < STATS_COLUMNS; k++)
        if (w.column[k]) cli_printf(out, "%s%*s", k ? "  " : "", (int)w.column[k], column_heads[k]);
    cli_style_off(out, CLI_DIM);
    cli_text(out, "\n");
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) {
        const sft_tensor *t = ls_listed(l, i);
        char shape[CLI_SHAPE_SIZE];
        size_t len = cli_shape_text(t->shape, t->rank, shape);
        size_t most = whole ? SIZE_MAX / 64 : w.name;
        ls_pad(out, cli_escaped_ends(out, t->name, most, w.name / 2), w.name);
        const char *dtype = sft_dtype_describe(t->dtype)->name;
        cli_text(out, dtype);
        ls_pad(out, strlen(dtype), w.dtype);
        most = whole ? SIZE_MAX / 64 : w.shape;
        if (w.shape) ls_pad(out, cli_escaped_cut(out, (sft_span){ shape, len }, most), w.shape);
        stats_cells(l, &w, i);
    }
    cli_text(out, "all");
    ls_pad(out, 3, w.name);
    ls_pad(out, 0, w.dtype);
    if (w.shape) ls_pad(out, 0, w.shape);
    stats_cells(l, &w, SIZE_MAX);
}

/* ── JSON ── */

static void put_number(sfti_json_writer *w, const char *key, double value) {
    if (value == value) sfti_json_put_double(w, key, value);
    else sfti_json_put_null(w, key);
}

static void put_extreme(const ls_listing *l, sfti_json_writer *w, size_t i, const char *key,
                        double value, uint64_t bits) {
    bool is_signed;
    char text[CELL_SIZE];
    if (value == value && has_bits(l, i, &is_signed)) {
        sfti_json_key(w, key);
        sfti_json_raw(w, (sft_span){ text, bits_text(bits, is_signed, text) });
    } else {
        put_number(w, key, value);
    }
}

void ls_stats_json(const ls_listing *l, sfti_json_writer *w, size_t i) {
    const sft_stats *stats = stats_at(l, i);
    sfti_json_put_open(w, "stats", '{');
    sfti_json_put_uint(w, "values", stats->values);
    sfti_json_put_uint(w, "zeros", stats->zeros);
    sfti_json_put_uint(w, "nan", stats->nan);
    sfti_json_put_uint(w, "inf", stats->inf);
    put_extreme(l, w, i, "min", stats->min, stats->min_bits);
    put_extreme(l, w, i, "max", stats->max, stats->max_bits);
    put_number(w, "mean", stats->mean);
    put_number(w, "std", stats->std);
    put_number(w, "abs_mean", stats->abs_mean);
    const sft_histogram *histogram = stats->histogram;
    if (histogram) sfti_json_put_open(w, "histogram", '[');
    for (size_t k = 0; histogram && k < SFT_HISTOGRAM_BINS; k++) {
        char power[CELL_SIZE];
        if (bin_count(histogram, k) == 0) continue;
        sfti_json_open(w, '[');
        int len = snprintf(power, sizeof power, "%d", (int)k - 64);
        sfti_json_raw(w, (sft_span){ power, (size_t)len });
        sfti_json_uint(w, histogram->negative[k]);
        sfti_json_uint(w, histogram->positive[k]);
        sfti_json_close(w, ']');
    }
    if (histogram) sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}
