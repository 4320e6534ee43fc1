/* A page about one model: its tensors and their statistics in columns.
 * Tests: tests/cli/catalog/model*, tests/page. */
#include "catalog/catalog.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "safetensors_io.h"
#include "safetensors_stats.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define SHAPE_TEXT ((SFTI_UINT_SIZE + 1) * (size_t)SFT_MAX_RANK)

typedef struct model_file {
    const sft_file *file;
    sft_span name;
} model_file;

typedef struct model_tensor {
    const sft_tensor *tensor;
    sft_span name; /* with the folder of a pipeline's component */
    size_t file;
} model_tensor;

typedef struct model_tensors {
    sfti_arena arena;
    model_file *files;
    model_tensor *items; /* file by file, in the order of offsets */
    size_t file_count, count;
} model_tensors;

/* ── The list ── */

/* With the folder of a component before it; the name itself of any other. */
static bool with_folder(sfti_arena *arena, sft_span folder, sft_span *name) {
    if (!folder.len) return true;
    name->data = sfti_arena_join(arena, folder, *name);
    name->len += folder.len;
    return name->data != NULL;
}

static bool list_set(model_tensors *all, const sft_set *set, const char *component) {
    size_t shards = sft_set_shard_count(set), count = sft_set_tensor_count(set);
    sft_span folder = { NULL, component ? strlen(component) + 1 : 0 };
    if (component) {
        folder.data = sfti_arena_join(&all->arena, sft_span_cstr(component), sft_span_cstr("/"));
        if (!folder.data) return false;
    }
    for (size_t s = 0; s < shards; s++) {
        const char *path = sft_set_shard_path(set, s);
        model_file *file = &all->files[all->file_count + s];
        *file = (model_file){ sft_set_shard_at(set, s), cli_name_of(path ? path : "-") };
        if (!with_folder(&all->arena, folder, &file->name)) return false;
    }
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        model_tensor *item = &all->items[all->count++];
        *item = (model_tensor){ tensor, tensor->name, all->file_count
                                                          + sft_set_tensor_shard(set, i) };
        if (!with_folder(&all->arena, folder, &item->name)) return false;
    }
    all->file_count += shards;
    return true;
}

/* Those of a model whose sets are open, and stay so; only: of it, or what it is shown by. */
static sft_code list_tensors(model_tensors *all, const cli_model *model, const sft_set *only,
                             const sft_allocator *alloc, sft_error *err) {
    size_t sets = only ? 1 : model->members ? model->count : 0;
    uint64_t files = 0, count = 0;
    *all = (model_tensors){ .arena.alloc = *alloc };
    for (size_t i = 0; i < sets; i++) {
        const sft_set *set = only ? only : model->members[i].set;
        sfti_total_add(&files, sft_set_shard_count(set));
        sfti_total_add(&count, sft_set_tensor_count(set));
    }
    all->files = sfti_arena_array(&all->arena, files, sizeof *all->files);
    all->items = sfti_arena_array(&all->arena, count, sizeof *all->items);
    bool ok = all->files && all->items;
    for (size_t i = 0; ok && i < sets; i++)
        ok = only ? list_set(all, only, NULL)
                  : list_set(all, model->members[i].set, model->members[i].name);
    return ok ? SFT_OK : sfti_fail_memory(err, (size_t)count * sizeof *all->items);
}

/* ── Names ── */

typedef struct shared_part {
    size_t bytes, units; /* of UTF-16 */
} shared_part;

/* Whole characters that the name and the one before begin with. */
static shared_part shared_at(const model_tensors *all, size_t i) {
    sft_span before = i ? all->items[i - 1].name : (sft_span){ "", 0 }, name = all->items[i].name;
    const uint8_t *at = (const uint8_t *)name.data, *end = at + name.len;
    size_t same = 0, most = before.len < name.len ? before.len : name.len;
    shared_part part = { 0, 0 };
    while (same < most && before.data[same] == name.data[same]) same++;
    while (part.bytes < same) {
        uint32_t code;
        size_t len = sfti_utf8_decode(at + part.bytes, end, &code);
        if (!len || len > same - part.bytes) break;
        part.bytes += len;
        part.units += code > 0xFFFF ? 2 : 1;
    }
    return part;
}

/* ── Dictionaries ── */

/* A text that stands for the shape: a comma before each dimension, or one for a scalar. */
static sft_span shape_key(const sft_tensor *tensor, char buffer[SHAPE_TEXT + 1]) {
    size_t len = 0;
    buffer[len++] = ',';
    for (uint32_t d = 0; d < tensor->rank && d < SFT_MAX_RANK; d++) {
        if (d > 0) buffer[len++] = ',';
        len += sfti_uint_text(tensor->shape[d], 0, buffer + len);
    }
    return (sft_span){ buffer, len };
}

static sft_span dtype_key(const sft_tensor *tensor, char buffer[SHAPE_TEXT + 1]) {
    (void)buffer;
    return sft_span_cstr(sft_dtype_describe(tensor->dtype)->name);
}

/* A dictionary and the column that uses it; `skip` bytes of each key are not of its text. */
static bool put_coded(const model_tensors *all, sfti_json_writer *w, const char *keys,
                      const char *column, size_t skip,
                      sft_span (*key)(const sft_tensor *, char *)) {
    char buffer[SHAPE_TEXT + 1];
    sfti_arena arena = { .alloc = all->arena.alloc };
    catalog_dict dict;
    bool ok = true;
    dict_begin(&dict, &arena);
    sfti_json_put_open(w, column, '[');
    for (size_t i = 0; ok && i < all->count; i++) {
        uint32_t number = 0;
        ok = dict_put(&dict, key(all->items[i].tensor, buffer), (sft_span){ "", 0 }, &number);
        sfti_json_uint(w, number);
    }
    sfti_json_close(w, ']');
    sfti_json_put_open(w, keys, '[');
    for (size_t i = 0; i < dict.count; i++) {
        sft_span text = dict.entries[i].text;
        sfti_json_span(w, (sft_span){ text.data + skip, text.len - skip });
    }
    sfti_json_close(w, ']');
    dict_free(&dict);
    sfti_arena_free(&arena);
    return ok;
}

/* ── Columns ── */

/* The columns of ModelPage but `stats`, into the object that is open. */
static sft_code put_tensors(const model_tensors *all, sfti_json_writer *w, sft_error *err) {
    sfti_json_put_uint(w, "count", all->count);
    sfti_json_put_open(w, "shared", '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_uint(w, shared_at(all, i).units);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "rest", '[');
    for (size_t i = 0; i < all->count; i++) {
        sft_span name = all->items[i].name;
        size_t skip = shared_at(all, i).bytes;
        sfti_json_span(w, (sft_span){ name.data + skip, name.len - skip });
    }
    sfti_json_close(w, ']');
    if (!put_coded(all, w, "dtypes", "dtype", 0, dtype_key)
        || !put_coded(all, w, "shapes", "shape", 1, shape_key))
        return sfti_fail_memory(err, all->count);
    sfti_json_put_open(w, "bytes", '[');
    for (size_t i = 0; i < all->count; i++)
        sfti_json_uint(w, all->items[i].tensor->end - all->items[i].tensor->begin);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "offset", '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_uint(w, all->items[i].tensor->offset);
    sfti_json_close(w, ']');
    if (all->file_count < 2) return w->code;
    sfti_json_put_open(w, "files", '[');
    for (size_t i = 0; i < all->file_count; i++) sfti_json_span(w, all->files[i].name);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "shard", '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_uint(w, all->items[i].file);
    sfti_json_close(w, ']');
    return w->code;
}

/* ── Statistics ── */

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

/* Reads all data in one pass, and writes the member `stats` of ModelPage into the object that is
 * open. path is what the progress names. Memory: 2 KiB for each of 4,096 tensors at a time, and
 * the text of the columns. */
static sft_code put_stats(const model_tensors *all, cli *c, const char *path, sfti_json_writer *w,
                          sft_error *err) {
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
    if (c->set.values) job.threads = 1; /* values are computed in their order */
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

/* ── Facts ── */

#define VALUE_MOST ((size_t)1 << 20) /* bytes of a metadata value */

typedef struct model_page {
    catalog_run *run;
    char title[CLI_TITLE_SIZE];
    size_t models;       /* that the path names */
    sfti_arena arena;    /* of what follows, and of the facts */
    catalog_picture *pictures;
    size_t picture_count;
    sft_code code;       /* the first failure, with err */
    sft_error *err;
} model_page;

/* ── Facts ── */

/* Members of the result object that a page has no use for, or has in another form. */
static const char *const without[] = { "path", "ok", "complete", "previews" };

static sft_node_keep keep_known(void *ctx, const sft_node *node) {
    (void)ctx;
    if (node->type == SFT_NODE_NULL) return SFT_NODE_DROP;
    if (node->type != SFT_NODE_LIST && node->type != SFT_NODE_OBJECT) return SFT_NODE_ALL;
    return node->first ? SFT_NODE_SOME : SFT_NODE_DROP;
}

/* The pairs of all shards: in a tree they would take many times the memory of the header. Of keys
 * that are there again the first value counts. */
static sft_code put_page_metadata(const sft_set *set, sfti_json_writer *w, sfti_arena *arena,
                                  sft_error *err) {
    size_t shards = sft_set_shard_count(set);
    catalog_dict seen;
    bool has_empty = false, is_cut = false;
    char *buffer = NULL;
    sft_code code = SFT_OK;
    dict_begin(&seen, arena);
    sfti_json_put_open(w, "metadata", '{');
    for (size_t s = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        for (size_t i = 0; !code && i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            uint32_t number;
            bool again = shards > 1 && pair.key.len == 0 && has_empty;
            has_empty = has_empty || pair.key.len == 0;
            if (shards > 1 && pair.key.len > 0) {
                if (!dict_put(&seen, pair.key, (sft_span){ "", 0 }, &number))
                    code = sfti_fail_memory(err, pair.key.len);
                else
                    again = seen.entries[number].uses > 1;
            }
            if (code || again) continue;
            if (pair.value.len > VALUE_MOST) {
                if (!buffer) buffer = sfti_arena_take(arena, VALUE_MOST);
                if (!buffer) code = sfti_fail_memory(err, VALUE_MOST);
                if (code) break;
                pair.value = text_cut(pair.value, VALUE_MOST, buffer);
                is_cut = true;
            }
            sfti_json_key_span(w, pair.key);
            sfti_json_span(w, pair.value);
        }
    }
    dict_free(&seen);
    if (code) return code;
    sfti_json_close(w, '}');
    if (!is_cut) return SFT_OK;
    sfti_json_put_open(w, "cut", '[');
    sfti_json_cstr(w, "metadata");
    sfti_json_close(w, ']');
    return SFT_OK;
}

/* Info of page/types.d.ts. */
static sft_code put_info(model_page *page, const cli_model *model, sfti_json_writer *w) {
    sfti_arena *arena = &page->arena;
    sft_buffer text = { .alloc = page->run->c->alloc };
    sft_span path;
    sft_code code = catalog_path(&page->run->places, model->path, arena, &path, page->err);
    if (code) return code;
    sfti_json_put_open(w, "info", '{');
    sfti_json_put_text(w, "path", path);
    const sft_node *one = sft_tree_root(model->tree)->first;
    for (; !code && one; one = one->next) {
        bool kept = keep_known(NULL, one) != SFT_NODE_DROP;
        for (size_t i = 0; i < sizeof without / sizeof *without; i++)
            kept = kept && !cli_is(one->key, without[i]);
        if (!kept) continue;
        sft_sink sink = sft_sink_memory(&text);
        code = sft_node_json(one, keep_known, NULL, &sink, 0, NULL, page->err);
        if (code) break;
        sfti_json_key_span(w, one->key);
        sfti_json_raw(w, (sft_span){ text.data, text.len });
    }
    if (!code && model->set) code = put_page_metadata(model->set, w, arena, page->err);
    if (page->picture_count > 0 && !code) {
        sfti_json_put_open(w, "pictures", '[');
        for (size_t i = 0; i < page->picture_count; i++) picture_json(w, &page->pictures[i]);
        sfti_json_close(w, ']');
    }
    sfti_json_close(w, '}');
    sft_buffer_free(&text);
    return code;
}

/* ── The page ── */

static sft_code write_model(model_page *page, const cli_model *model) {
    html_page *html = &page->run->page;
    cli *c = page->run->c;
    const sft_allocator *alloc = &c->alloc;
    char cut[CLI_TITLE_SIZE];
    model_tensors tensors = { .count = 0 };
    cli_inputs inputs = { .count = 0 };
    const cli_input *input;
    sft_set *values = NULL;
    page->arena.alloc = *alloc;
    page->run->pictures.page = html;
    sft_span title = text_stem(cli_name_of(model->path));
    if (c->set.title) title = sft_span_cstr(c->set.title);
    else (void)sft_info_fact(model->info, SFT_FACT_NAME, &title, NULL, NULL);
    title = text_cut(title, sizeof page->title - 1, cut);
    memcpy(page->title, title.data, title.len);
    page->title[title.len] = 0;
    html_begin(html, HTML_MODEL, page->run->sink, page->title, alloc, page->err);
    sft_code code = SFT_OK;
    if (c->set.values)
        code = cli_open_operand(c, c->set.model, &inputs, &input, &values, page->err);
    if (!code) code = list_tensors(&tensors, model, values ? values : model->set, alloc, page->err);
    if (!code)
        code = pictures_of(&page->run->pictures, model, &page->arena, &page->pictures,
                           &page->picture_count, page->err);
    if (!code) {
        sfti_json_writer *w = html_block_begin(html, "model");
        sfti_json_open(w, '{');
        sfti_json_put_uint(w, "format", 1);
        sfti_json_put_cstr(w, "title", page->title);
        code = catalog_put_id(w, &page->run->places, page->title, alloc, page->err);
        if (!code) code = put_info(page, model, w);
        if (!code) code = put_tensors(&tensors, w, page->err);
        if (!code && c->set.deep) code = put_stats(&tensors, c, model->path, w, page->err);
        if (!code) code = model_norms_write(model, c, w, page->err);
        sfti_json_close(w, '}');
    }
    if (!code) {
        html_block_end(html);
        html_markup(html, "<noscript><p>This page needs JavaScript.</p></noscript>\n");
        code = html_end(html);
    }
    sfti_arena_free(&tensors.arena);
    sfti_arena_free(&page->arena);
    sft_set_close(values);
    cli_inputs_free(&inputs);
    return code;
}

static void take_model(void *ctx, cli_model *model) {
    model_page *page = ctx;
    if (page->code) return;
    bool is_empty = model->input->kind == CLI_EMPTY && !model->is_dataset;
    if (page->models != 1 || is_empty) {
        page->code = cli_not_one(is_empty ? 0 : page->models, page->err);
    } else if (model->is_dataset) {
        page->code = sfti_misuse(page->err, "expected a model, found a dataset");
    } else if (model->err.code || !model->info) {
        *page->err = model->input->err ? *model->input->err : model->err;
        page->code = page->err->code;
    } else {
        page->code = sft_sink_limit_mode(&page->run->sink, cli_output_mode_of_model(model),
                                         page->err);
        if (!page->code) page->code = write_model(page, model);
    }
}

sft_code catalog_write_model(catalog_run *run, const char *path, sft_error *err) {
    model_page *page = sfti_take(&run->c->alloc, sizeof *page);
    char *operand = (char *)path;
    if (!page) return sfti_fail_memory(err, sizeof *page);
    memset(page, 0, sizeof *page);
    page->run = run;
    page->err = err;
    run->c->set.recursive = 0;
    cli_each_model(run->c, &operand, 1, &page->models, NULL, take_model, page);
    sft_code code = page->code;
    if (!code && run->page.at == 0)
        code = sfti_fail(err, SFT_CANCELLED, "cancelled");
    sfti_release(&run->c->alloc, page, sizeof *page);
    return code;
}
