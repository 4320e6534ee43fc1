/* Options of a dataset, from text. Tests: test_dataset_options.c. */
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "dataset/dataset.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define BATCH (1u << SFT_DATASET_BATCH)
#define KEYED (1u << SFT_DATASET_KV)
#define BOTH (BATCH | KEYED)
#define OVERRIDES_MOST 65536
#define NAME_MOST 32 /* of an option */

/* ── Values ── */

typedef struct option_reader {
    sft_dataset_options *out;
    sft_span name, value;
    sfti_ds_override *overrides;
    sft_error *err;
} option_reader;

typedef sft_code (*option_take)(option_reader *r);

static sft_code option_wrong(const option_reader *r, const char *expected) {
    return sfti_fail(r->err, SFT_OPTION_VALUE, "option %.*s: expected %s, found \"%.*s\"",
                     (int)r->name.len, r->name.data, expected, SFTI_CLIP(r->value, 100));
}

static char option_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool option_is(sft_span text, const char *word) {
    if (text.len != strlen(word)) return false;
    for (size_t i = 0; i < text.len; i++)
        if (option_lower(text.data[i]) != option_lower(word[i])) return false;
    return true;
}

/* The index of the value among the words. */
static sft_code option_word(option_reader *r, const char *const *words, unsigned count,
                            const char *expected, unsigned *out) {
    for (*out = 0; *out < count; ++*out)
        if (option_is(r->value, words[*out])) return SFT_OK;
    return option_wrong(r, expected);
}

static sft_code option_flag(option_reader *r, bool *out) {
    static const char *const words[] = { "false", "true" };
    unsigned word;
    sft_code code = option_word(r, words, 2, "true or false", &word);
    if (!code) *out = word == 1;
    return code;
}

static sft_span option_trim(sft_span text) {
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t')) text.data++, text.len--;
    while (text.len && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static sft_code option_batch_size(option_reader *r) {
    if (!sfti_text_uint(r->value, &r->out->batch_size) || r->out->batch_size == 0 ||
        r->out->batch_size > INT64_MAX)
        return option_wrong(r, "a number of rows from 1 on");
    return SFT_OK;
}

static sft_code option_name_col(option_reader *r) {
    r->out->name_col = r->value;
    return SFT_OK;
}

static sft_code option_separator(option_reader *r) {
    r->out->separator = r->value;
    return SFT_OK;
}

/* Names in a JSON list. `names` has one more element than the value has commas. */
static sft_code columns_listed(option_reader *r, sft_span *names, size_t *count) {
    sfti_json json;
    sfti_json_begin(&json, r->value.data, r->value.len);
    sfti_json_next(&json);
    while (sfti_json_next(&json) == SFTI_JSON_STRING) {
        names[*count] = sfti_json_string(&json, &r->out->arena);
        if (!names[(*count)++].data) return sfti_fail_memory(r->err, json.text.len);
    }
    if (json.type != SFTI_JSON_ARRAY_END || sfti_json_next(&json) != SFTI_JSON_END) *count = 0;
    return SFT_OK;
}

static sft_code option_columns(option_reader *r) {
    size_t most = 1, count = 0;
    for (size_t i = 0; i < r->value.len; i++) most += r->value.data[i] == ',';
    sft_span *names = sfti_arena_array(&r->out->arena, most, sizeof *names);
    if (!names) return sfti_fail_memory(r->err, most * sizeof *names);
    sft_span value = option_trim(r->value);
    sft_code code = SFT_OK;
    if (value.len && value.data[0] == '[')
        code = columns_listed(r, names, &count);
    else
        for (const char *at = r->value.data, *end = at + r->value.len; at;) {
            const char *comma = memchr(at, ',', (size_t)(end - at));
            sft_span one = option_trim((sft_span){ at, (size_t)((comma ? comma : end) - at) });
            if (one.len) names[count++] = one;
            at = comma ? comma + 1 : NULL;
        }
    if (code) return code;
    if (count == 0)
        return option_wrong(r, "names of columns separated by commas, or a JSON list");
    r->out->columns = names;
    r->out->column_count = count;
    return SFT_OK;
}

static sft_code option_duplicates(option_reader *r) {
    static const char *const words[] = { "fail", "lastWin" };
    unsigned word;
    sft_code code = option_word(r, words, 2, "fail or lastWin", &word);
    r->out->last_win = word == 1;
    return code;
}

static sft_code option_single(option_reader *r) { return option_flag(r, &r->out->single); }

static sft_code option_index(option_reader *r) { return option_flag(r, &r->out->index); }

static sft_code option_shard_size(option_reader *r) {
    uint64_t mib = 0;
    if (!sfti_text_uint(r->value, &mib) || mib < 50 || mib > 1000)
        return option_wrong(r, "MiB from 50 to 1000");
    r->out->shard_bytes = mib * MIB;
    return SFT_OK;
}

static sft_code option_tail(option_reader *r) {
    static const char *const words[] = { "write", "drop", "pad" };
    unsigned word;
    sft_code code = option_word(r, words, 3, "write, drop or pad", &word);
    if (!code) r->out->tail = (sfti_tail)word;
    return code;
}

static sft_code option_rounding(option_reader *r) {
    static const char *const words[] = { "nearest", "truncate" };
    unsigned word;
    sft_code code = option_word(r, words, 2, "nearest or truncate", &word);
    r->out->truncate = word == 1;
    return code;
}

static sft_code option_keep_old(option_reader *r) {
    r->out->keep_versions = sft_span_equal(r->value, sft_span_cstr("all"));
    if (r->out->keep_versions || sfti_text_uint(r->value, &r->out->keep_old_s)) return SFT_OK;
    return option_wrong(r, "all or seconds");
}

/* "<stream>:<number>" */
static sft_code option_batch_id(option_reader *r) {
    size_t colon = r->value.len;
    while (colon > 0 && r->value.data[colon - 1] != ':') colon--;
    sft_span number = { r->value.data + colon, r->value.len - colon };
    if (colon < 2 || !sfti_text_uint(number, &r->out->batch))
        return option_wrong(r, "the name of a stream and the number of its batch, such as "
                               "clicks:41");
    r->out->stream = (sft_span){ r->value.data, colon - 1 };
    return SFT_OK;
}

static sft_code option_manifest(option_reader *r) {
    static const char *const words[] = { "whole", "segments" };
    unsigned word;
    sft_code code = option_word(r, words, 2, "whole or segments", &word);
    if (!code) r->out->form = word ? SFT_FORM_SEGMENTS : SFT_FORM_WHOLE;
    return code;
}

static sft_code option_merge(option_reader *r) { return option_flag(r, &r->out->merges); }

static sft_code option_compat(option_reader *r) {
    r->out->upstream = option_is(r->value, "upstream");
    return r->out->upstream ? SFT_OK : option_wrong(r, "upstream");
}

/* ── dtype and shapes: one value, or a JSON object of them ── */

static sfti_ds_override *override_of(option_reader *r, sft_span column) {
    sft_dataset_options *o = r->out;
    for (size_t i = 0; i < o->override_count; i++)
        if (!r->overrides[i].column.data == !column.data &&
            sft_span_equal(r->overrides[i].column, column))
            return &r->overrides[i];
    sfti_ds_override *override = &r->overrides[o->override_count++];
    memset(override, 0, sizeof *override);
    override->column = column;
    return override;
}

/* Overrides of both options share one array; an option comes only once. */
static sft_code overrides_room(option_reader *r, size_t more) {
    size_t count = r->out->override_count + more;
    if (count > OVERRIDES_MOST) return option_wrong(r, "fewer columns");
    sfti_ds_override *all = sfti_arena_array(&r->out->arena, count, sizeof *all);
    if (!all) return sfti_fail_memory(r->err, count * sizeof *all);
    if (r->out->override_count)
        memcpy(all, r->out->overrides, r->out->override_count * sizeof *all);
    r->overrides = all;
    r->out->overrides = all;
    return SFT_OK;
}

static bool option_dtype_name(sft_span text, sft_dtype *out) {
    for (int i = 0; i < SFT_DTYPE_COUNT; i++)
        if (option_is(text, sft_dtype_describe((sft_dtype)i)->name)) {
            *out = (sft_dtype)i;
            return true;
        }
    return false;
}

static sft_code override_dtype(option_reader *r, sfti_json *json, sfti_ds_override *override) {
    sft_span name = json->type == SFTI_JSON_STRING ? sfti_json_string(json, &r->out->arena)
                                                   : json->text;
    override->has_dtype = true;
    if (!name.data) return sfti_fail_memory(r->err, json->text.len);
    if (json->type != SFTI_JSON_STRING || !option_dtype_name(name, &override->dtype))
        return option_wrong(r, "names of dtypes, as {\"column\": \"F32\"}");
    return SFT_OK;
}

static sft_code override_shape(option_reader *r, sfti_json *json, sfti_ds_override *override) {
    uint64_t dims[SFT_MAX_RANK];
    uint32_t rank = 0;
    bool array = json->type == SFTI_JSON_ARRAY;
    while (array && sfti_json_next(json) == SFTI_JSON_UINT && rank < SFT_MAX_RANK - 1)
        dims[rank++] = json->value;
    if (!array || json->type != SFTI_JSON_ARRAY_END)
        return option_wrong(r, "shapes per sample, as {\"column\": [3, 224, 224]}");
    uint64_t *shape = sfti_arena_array(&r->out->arena, rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(r->err, rank * sizeof *shape);
    memcpy(shape, dims, rank * sizeof *shape);
    override->has_shape = true;
    override->rank = rank;
    override->shape = shape;
    return SFT_OK;
}

typedef sft_code (*override_take_fn)(option_reader *r, sfti_json *json, sfti_ds_override *override);

static size_t overrides_count(sft_span text) {
    sfti_json json;
    size_t count = 0;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return 0;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        count++;
        sfti_json_next(&json);
        sfti_json_skip(&json);
    }
    return count;
}

static sft_code overrides_take(option_reader *r, override_take_fn take, const char *expected) {
    sfti_json json;
    sft_code code = overrides_room(r, overrides_count(r->value));
    if (code) return code;
    sfti_json_begin(&json, r->value.data, r->value.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return option_wrong(r, expected);
    while (!code && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span column = sfti_json_string(&json, &r->out->arena);
        if (!column.data) return sfti_fail_memory(r->err, json.text.len);
        sfti_json_next(&json);
        code = take(r, &json, override_of(r, column));
    }
    if (code) return code;
    if (json.type != SFTI_JSON_OBJECT_END || sfti_json_next(&json) != SFTI_JSON_END)
        return option_wrong(r, expected);
    return SFT_OK;
}

static sft_code option_dtype(option_reader *r) {
    sft_dtype dtype;
    sft_span none = { NULL, 0 };
    sft_span value = option_trim(r->value);
    if (value.len && value.data[0] == '{')
        return overrides_take(r, override_dtype, "a dtype, or a JSON object of column and dtype");
    if (!option_dtype_name(value, &dtype))
        return option_wrong(r, "a dtype (F32, BF16, I64, …), or {\"column\": \"F32\"}");
    sft_code code = overrides_room(r, 1);
    if (code) return code;
    sfti_ds_override *override = override_of(r, none);
    override->has_dtype = true;
    override->dtype = dtype;
    return SFT_OK;
}

static sft_code option_shapes(option_reader *r) {
    return overrides_take(r, override_shape, "a JSON object of column and shape per sample");
}

/* ── The table ── */

typedef struct option_row {
    sft_dataset_option shown;
    option_take take;
} option_row;

static const option_row option_table[] = {
    { { "batch_size", "a number of rows from 1 on", NULL,
        "selects batch mode: each file holds this many rows, with one tensor per column", BATCH },
      option_batch_size },
    { { "name_col", "a column of strings", NULL,
        "selects KV mode: each row becomes one tensor per column, named by its value in this "
        "column", KEYED },
      option_name_col },
    { { "dtype", "one of the 22 names, or {\"column\": name}", NULL,
        "the dtype that values are converted to; by default each column keeps its type", BOTH },
      option_dtype },
    { { "columns", "names separated by commas, or a JSON list", NULL,
        "the columns to write; by default all (in KV mode all but name_col)", BOTH },
      option_columns },
    { { "shapes", "{\"column\": [dims]}", NULL,
        "the shape of each row of an array column; by default arrays are flat", BOTH },
      option_shapes },
    { { "duplicatesStrategy", "fail, lastWin", "fail",
        "what happens if two rows have the same name, in any partition", KEYED },
      option_duplicates },
    { { "generate_index", "true, false", "false",
        "whether _tensor_index.parquet, with the location of each tensor, is also written", BOTH },
      option_index },
    { { "target_shard_size_mb", "MiB from 50 to 1000", "300",
        "a file ends with the row that brings it to this size", KEYED },
      option_shard_size },
    { { "kv_separator", "any text", "__",
        "the text between name and column in the name of a tensor", KEYED },
      option_separator },
    { { "tail_strategy", "write, drop, pad", "write",
        "what happens to a partition's last rows if they do not fill a batch", BATCH },
      option_tail },
    { { "rounding", "nearest, truncate", "nearest",
        "how floats are rounded; the Scala connector truncates", BOTH },
      option_rounding },
    { { "keep_old", "all, seconds", "all",
        "all: the replaced version is kept until gc removes it; a number: only its files are "
        "kept, for that many seconds",
        BOTH },
      option_keep_old },
    { { "manifest", "whole, segments", "whole",
        "whole: the manifest lists all shards; segments: it lists segments, so that an "
        "append need not rewrite the whole list. Appends keep the form",
        BOTH },
      option_manifest },
    { { "batch_id", "STREAM:NUMBER", NULL,
        "the number of a batch in a stream; if the dataset already has it or a later one, the "
        "commit adds nothing",
        BOTH },
      option_batch_id },
    { { "single_writer", "true, false", "false",
        "true guarantees that nobody else commits meanwhile, which some storages cannot check",
        BOTH },
      option_single },
    { { "merge_schema", "true, false", "false",
        "true lets an append omit columns of the dataset and add new ones; the missing values "
        "are null",
        BATCH },
      option_merge },
    { { "compat", "upstream", NULL,
        "upstream refuses what the official package or the Scala connector cannot read", BOTH },
      option_compat },
};
#define OPTION_COUNT (sizeof option_table / sizeof *option_table)

const sft_dataset_option *sft_dataset_option_at(size_t i) {
    return i < OPTION_COUNT ? &option_table[i].shown : NULL;
}

static size_t option_find(sft_span name) {
    size_t i = 0;
    while (i < OPTION_COUNT && !option_is(name, option_table[i].shown.name)) i++;
    return i;
}

/* The edit distance (insert, remove, replace) between two words, ignoring case. */
static size_t option_distance(sft_span a, const char *word) {
    size_t row[NAME_MOST + 1];
    size_t len = strlen(word);
    for (size_t j = 0; j <= len; j++) row[j] = j;
    for (size_t i = 0; i < a.len; i++) {
        size_t corner = row[0]++;
        for (size_t j = 0; j < len; j++) {
            size_t same = corner + (option_lower(a.data[i]) != option_lower(word[j]));
            corner = row[j + 1];
            size_t edit = (corner < row[j] ? corner : row[j]) + 1;
            row[j + 1] = same < edit ? same : edit;
        }
    }
    return row[len];
}

static sft_code option_unknown(sft_span name, sft_error *err) {
    const char *nearest = NULL;
    size_t best = 4;
    for (size_t i = 0; i < OPTION_COUNT && name.len <= NAME_MOST; i++) {
        size_t far = option_distance(name, option_table[i].shown.name);
        if (far < best) best = far, nearest = option_table[i].shown.name;
    }
    if (nearest)
        return sfti_fail(err, SFT_OPTION_UNKNOWN,
                         "there is no option \"%.*s\"; did you mean \"%s\"?", SFTI_CLIP(name, 100),
                         nearest);
    return sfti_fail(err, SFT_OPTION_UNKNOWN, "there is no option \"%.*s\"", SFTI_CLIP(name, 100));
}

/* ── All of them ── */

static sft_code options_take(sft_dataset_options *o, const sft_pair *pairs, size_t count,
                             sft_error *err) {
    bool seen[OPTION_COUNT] = { false };
    for (size_t i = 0; i < count; i++) {
        option_reader r = { o, pairs[i].key, pairs[i].value, NULL, err };
        size_t at = option_find(pairs[i].key);
        if (at == OPTION_COUNT) return option_unknown(pairs[i].key, err);
        if (seen[at]) return option_wrong(&r, "the option once (case does not matter)");
        seen[at] = true;
        r.value.data = sfti_arena_copy(&o->arena, r.value.data, r.value.len);
        if (!r.value.data) return sfti_fail_memory(err, r.value.len);
        if (sfti_utf8_check(r.value.data, r.value.len) != r.value.len)
            return option_wrong(&r, "UTF-8");
        /* Options of the other mode are ignored: calls written for the connector contain them. */
        if (!(option_table[at].shown.modes & 1u << o->mode)) continue;
        sft_code code = option_table[at].take(&r);
        if (code) return code;
    }
    return SFT_OK;
}

static sft_code options_mode(sft_dataset_options *o, const sft_pair *pairs, size_t count,
                             sft_error *err) {
    bool batch = false, keyed = false;
    for (size_t i = 0; i < count; i++) {
        batch = batch || (option_is(pairs[i].key, "batch_size") && pairs[i].value.len);
        keyed = keyed || (option_is(pairs[i].key, "name_col") && pairs[i].value.len);
    }
    if (batch == keyed)
        return sfti_fail(err, SFT_OPTION_VALUE,
                         "expected one of the options batch_size and name_col, found %s",
                         batch ? "both" : "neither");
    o->mode = batch ? SFT_DATASET_BATCH : SFT_DATASET_KV;
    return SFT_OK;
}

/* compat=upstream: the connector lists the folder, so that it reads what is kept of old versions,
 * and knows no segments. */
static sft_code options_upstream(sft_dataset_options *o, const sft_pair *pairs, size_t count,
                                 sft_error *err) {
    for (size_t i = 0; i < count; i++) {
        option_reader r = { o, pairs[i].key, pairs[i].value, NULL, err };
        if (option_is(pairs[i].key, "keep_old") && (o->keep_versions || o->keep_old_s))
            return option_wrong(&r, "0 with the option compat, whose readers read all files");
        if (option_is(pairs[i].key, "manifest") && o->form == SFT_FORM_SEGMENTS)
            return option_wrong(&r, "whole with the option compat");
        if (option_is(pairs[i].key, "merge_schema") && o->merges)
            return option_wrong(&r, "false with the option compat, whose readers know no nulls");
    }
    o->keep_versions = false;
    o->form = SFT_FORM_WHOLE;
    return SFT_OK;
}

sft_code sft_dataset_options_new(const sft_pair *pairs, size_t count,
                                 const sft_allocator *alloc, sft_dataset_options **out,
                                 sft_error *err) {
    if (!out)
        return sfti_misuse(err, "expected a place for the options, found NULL");
    *out = NULL;
    sft_allocator own = sfti_allocator(alloc);
    sft_dataset_options *o = sfti_take(&own, sizeof *o);
    if (!o) return sfti_fail_memory(err, sizeof *o);
    memset(o, 0, sizeof *o);
    o->alloc = own;
    o->arena.alloc = own;
    o->separator = sft_span_cstr("__");
    o->keep_versions = true;
    o->shard_bytes = 300 * MIB;
    sft_code code = options_mode(o, pairs, count, err);
    /* An unknown name is reported before a missing one. */
    for (size_t i = 0; i < count; i++)
        if (option_find(pairs[i].key) == OPTION_COUNT) code = option_unknown(pairs[i].key, err);
    if (!code) code = options_take(o, pairs, count, err);
    if (!code && o->upstream) code = options_upstream(o, pairs, count, err);
    if (!code) *out = o;
    else sft_dataset_options_free(o);
    return code;
}

void sft_dataset_options_free(sft_dataset_options *options) {
    if (!options) return;
    sft_allocator alloc = options->alloc;
    sfti_arena_free(&options->arena);
    sfti_release(&alloc, options, sizeof *options);
}

sft_dataset_mode sft_dataset_options_mode(const sft_dataset_options *options) {
    return options->mode;
}

bool sft_dataset_options_indexed(const sft_dataset_options *options) { return options->index; }
