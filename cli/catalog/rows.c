/* Columns of a catalogue, collected model by model, written as JSON and as a table. Tests:
 * tests/cli/catalog. */
#include "catalog/catalog.h"

#include "base/calendar.h"
#include "catalog/places.h"
#include "os/os.h"
#include "os/path.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/models.h"
#include "support/only_tensors.h"
#include "support/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 256
#define WORD_BYTES 80
#define TAG_BYTES 64
#define ERROR_BYTES 512
#define ENTRY_BYTES 8    /* around the texts of an entry */
#define NUMBER_BYTES 110 /* all that are numbers, and the quotes around the texts of a row */
#define TAG_NUMBER_BYTES 5
#define PREVIEW_BYTES 60
#define DAY_NS (INT64_C(86400) * 1000000000)

void rows_begin(catalog_rows *rows, cli *c, const catalog_places *places) {
    memset(rows, 0, sizeof *rows);
    rows->c = c;
    rows->places = places;
    rows->arena.alloc = c->alloc;
    rows->newest = -1;
    for (size_t i = 0; i < ROWS_DICTS; i++) dict_begin(&rows->dicts[i], &rows->arena);
}

void rows_free(catalog_rows *rows) {
    for (size_t i = 0; i < ROWS_DICTS; i++) dict_free(&rows->dicts[i]);
    sfti_arena_free(&rows->arena);
}

/* ── Texts ── */

static bool keep_text(catalog_rows *rows, sft_span text, size_t most, sft_span *out) {
    char buffer[ERROR_BYTES];
    sft_span kept = text_cut(text, most, buffer);
    char *copy = kept.len ? sfti_arena_copy(&rows->arena, kept.data, kept.len) : NULL;
    *out = copy ? (sft_span){ copy, kept.len } : (sft_span){ "", 0 };
    return copy || !kept.len;
}

/* A new entry of a dictionary is on the account of the model that has it first. */
static bool put_entry(catalog_rows *rows, rows_dict which, sft_span text, sft_span label,
                      uint32_t *number) {
    catalog_dict *dict = &rows->dicts[which];
    size_t before = dict->count;
    bool ok = dict_put(dict, text, label, number);
    if (dict->count > before) rows->entry_bytes += text.len + label.len + ENTRY_BYTES;
    return ok;
}

static bool put_in(catalog_rows *rows, catalog_row *row, rows_dict which, sft_span text,
                   sft_span label) {
    char buffer[NAME_BYTES], other[NAME_BYTES];
    return put_entry(rows, which, text_cut(text, NAME_BYTES, buffer),
                     text_cut(label, NAME_BYTES, other), &row->in[which]);
}

/* "FP16" for "fp16". */
static sft_span precision_words(sft_span id, char buffer[CLI_TITLE_SIZE]) {
    bool has_digit = false;
    if (id.len >= CLI_TITLE_SIZE) return id;
    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];
        has_digit = has_digit || (c >= '0' && c <= '9');
        buffer[i] = cli_upper(c);
    }
    return has_digit ? (sft_span){ buffer, id.len } : id;
}

/* ── One row ── */

static bool take_place(catalog_rows *rows, catalog_row *row, const cli_model *model) {
    char text[CLI_REAL_SIZE];
    sft_span folder;
    const catalog_root *root = places_root(rows->places, model->path, &folder);
    sft_span label = root && rows->places->labels > 1 ? root->label : (sft_span){ "", 0 };
    bool slash = label.len && folder.len;
    if (label.len + slash + folder.len < sizeof text) {
        if (label.len) memcpy(text, label.data, label.len);
        if (slash) text[label.len] = '/';
        if (folder.len) memcpy(text + label.len + slash, folder.data, folder.len);
        for (size_t i = 0; i < folder.len; i++) /* the page's own are '/' */
            if (sfti_is_separator(folder.data[i])) text[label.len + slash + i] = '/';
        folder = (sft_span){ text, label.len + slash + folder.len };
    }
    if (!folder.len) folder = sft_span_cstr("."); /* written as "" */
    return dict_put(&rows->dicts[ROWS_FOLDER], folder, (sft_span){ "", 0 },
                    &row->in[ROWS_FOLDER])
        && keep_text(rows, cli_name_of(model->path), NAME_BYTES, &row->file);
}

static void take_time(catalog_row *row, const char *path) {
    os_info info;
    if (sfti_os_info_path(path, true, &info) || info.kind != OS_FILE) return;
    int64_t day = info.mtime_ns >= 0 ? info.mtime_ns / DAY_NS : -1;
    if (day > row->modified) row->modified = day;
    if (row->flags & ROW_BROKEN) row->bytes = info.size;
}

/* Takes the time of its newest file. */
static void take_times(catalog_rows *rows, catalog_row *row, const cli_model *model) {
    size_t shards = model->set ? sft_set_shard_count(model->set) : 0;
    row->modified = -1;
    take_time(row, model->path);
    for (size_t i = 0; model->inputs && i < model->count; i++)
        take_time(row, model->inputs[i]->path);
    for (size_t i = 0; shards > 1 && !model->inputs && i < shards; i++)
        take_time(row, sft_set_shard_path(model->set, i));
    if (row->modified > rows->newest) rows->newest = row->modified;
}

static bool is_from_captions(const sft_node *word) {
    const sft_node *coverage = sft_node_get(word, "coverage");
    return coverage && coverage->type == SFT_NODE_NUMBER;
}

/* Those that somebody declared; without any, those found in captions. */
static bool take_words(catalog_rows *rows, catalog_row *row, const sft_node *root) {
    const sft_node *first = cli_first(root, "trigger_words"), *one = first;
    while (one && is_from_captions(one)) one = one->next;
    bool is_declared = one, ok = true;
    for (one = first; one; one = one->next) {
        if (is_declared && is_from_captions(one)) continue;
        if (row->word_count < ROW_WORDS)
            ok = ok && keep_text(rows, sft_node_text(one, "text"), WORD_BYTES,
                                 &row->words[row->word_count]);
        row->word_count++;
    }
    return ok;
}

static bool take_tags(catalog_rows *rows, catalog_row *row, const sft_node *root) {
    const sft_node *list = sft_node_find(root, "model.tags.value"), *one;
    size_t most = sft_node_count(list);
    char buffer[TAG_BYTES];
    if (most == 0) return true;
    if (most > ROW_TAGS) most = ROW_TAGS;
    row->tags = sfti_arena_array(&rows->arena, most, sizeof *row->tags);
    if (!row->tags) return false;
    for (one = list->first; one && row->tag_count < most; one = one->next) {
        uint32_t *tag = &row->tags[row->tag_count];
        if (!put_entry(rows, ROWS_TAG, text_cut(one->text, TAG_BYTES, buffer),
                       (sft_span){ "", 0 }, tag)) return false;
        row->tag_count += *tag != DICT_NONE;
    }
    return true;
}

/* Adapters by their type: "adapter:lora", "LoRA". */
static bool take_kind(catalog_rows *rows, catalog_row *row, const sft_node *root) {
    char id[64];
    sft_span kind = sft_node_text(root, "model.kind"), type = sft_node_text(root, "adapter.type");
    if (cli_is(kind, "adapter") && type.len && type.len < sizeof id - 8) {
        memcpy(id, "adapter:", 8);
        memcpy(id + 8, type.data, type.len);
        return put_in(rows, row, ROWS_KIND, (sft_span){ id, 8 + type.len }, cli_kind_words(type));
    }
    return put_in(rows, row, ROWS_KIND, kind,
                  cli_is(kind, "unknown") ? kind : cli_kind_words(kind));
}

static bool take_dicts(catalog_rows *rows, catalog_row *row, const sft_node *root) {
    char base[CLI_TITLE_SIZE], title[CLI_TITLE_SIZE], precision[CLI_TITLE_SIZE];
    sft_span none = { "", 0 };
    sft_span architecture = sft_node_text(root, "model.architecture");
    bool is_file = !sft_node_text(root, "model.base_model").len
                && sft_node_text(root, "model.base_checkpoint").len;
    /* What it was made for: its file is a checkpoint among many, where its architecture is known.
     * Without the mark of doubt. */
    bool by_file = is_file && architecture.len;
    sft_span words = by_file ? cli_id_words(SFTI_MODEL, architecture) : cli_base_words(root, base);
    if (!by_file && words.len && words.data[words.len - 1] == '?') words.len--;
    sft_span exact = sft_node_text(root, "model.precision");
    return take_kind(rows, row, root)
        && put_in(rows, row, ROWS_BASE, words, words)
        && put_in(rows, row, ROWS_ARCHITECTURE, architecture,
                  cli_id_words(SFTI_MODEL, architecture))
        && put_in(rows, row, ROWS_PRECISION, exact, precision_words(exact, precision))
        && put_in(rows, row, ROWS_LICENCE, sft_node_text(root, "model.license"), none)
        && put_in(rows, row, ROWS_AUTHOR, sft_node_text(root, "model.author"), none)
        && put_in(rows, row, ROWS_WHAT, cli_title(root, title), none);
}

static bool take_digests(catalog_rows *rows, catalog_row *row, const cli_model *model,
                         const sft_node *root) {
    static const char *const algos[2] = { "sha256", "autov3" };
    const sft_node *computed = sft_node_find(root, "hashes.computed");
    sft_span sha256 = { "", 0 }, content = sft_node_text(computed, "content");
    for (size_t i = 0; i < 2; i++) {
        sft_span digest = sft_node_text(computed, algos[i]);
        /* A recorded one whose size matches, or else that is said to be of the tensors. */
        bool sized = !digest.len && model->info
                  && sft_info_sized_hash(model->info, algos[i], &digest);
        const sft_node *one = digest.len || sized || i == 0 ? NULL
                                                            : cli_first(root, "hashes.recorded");
        while (one && !cli_is(sft_node_text(one, "algo"), algos[i])) one = one->next;
        if (one) digest = sft_node_text(one, "value");
        size_t len = digest.len < 12 ? digest.len : 12;
        if (len) memcpy(row->hash[i], digest.data, len);
        if (i == 0) sha256 = digest;
    }
    if (sha256.len) row->flags |= ROW_HASHED;
    if (!content.len || !cli_is_only_tensors(rows->c, model->set, model->import)) content = sha256;
    char key[2 * SFT_HASH_TEXT_SIZE] = "";
    bool known = content.len > 0 && content.len < SFT_HASH_TEXT_SIZE;
    if (known) memcpy(key, content.data, content.len);
    if (known && cli_digest_adapter_config(rows->c, model->path, key + content.len, NULL))
        key[0] = '\0';
    return put_in(rows, row, ROWS_WEIGHTS, sft_span_cstr(key), (sft_span){ "", 0 });
}

static bool take_facts(catalog_rows *rows, catalog_row *row, const cli_model *model) {
    const sft_node *root = sft_tree_root(model->tree);
    sft_span name = sft_node_text(root, "model.name"), date = sft_node_text(root, "model.date");
    if (!date.len) date = sft_node_text(root, "training.finished_at");
    if (date.len > 10) date.len = 10;
    if (!name.len) name = text_stem(cli_name_of(model->path));
    if (!cli_model_bytes(root, &row->bytes)) row->bytes = UINT64_MAX;
    if (!sft_node_uint(root, "model.parameters", &row->parameters)) row->parameters = UINT64_MAX;
    if (!sft_node_uint(root, "adapter.rank.max", &row->rank)) row->rank = UINT64_MAX;
    const sft_import_global *global = model->import ? sft_import_global_at(model->import, 0)
                                                    : NULL;
    const sft_node *mismatch = cli_first(root, "hashes.mismatches");
    while (mismatch && sft_node_text(mismatch, "known").len > 0) mismatch = mismatch->next;
    if (sft_node_count(sft_node_get(root, "conflicts"))) row->flags |= ROW_CONFLICTS;
    if (sft_node_text(root, "civitai.model_id").len) row->flags |= ROW_ON_CIVITAI;
    if (mismatch) row->flags |= ROW_DIFFERS;
    if (model->import) row->flags |= ROW_OTHER_FORMAT;
    if (sft_node_true(root, "model.favourite")) row->flags |= ROW_FAVOURITE;
    for (const sft_node *one = cli_first(root, "sidecars"); one; one = one->next)
        if (cli_is(sft_node_text(one, "kind"), "own.json")) row->flags |= ROW_NOTED;
    if (global && global->calls > 0) row->flags |= ROW_RUNS_CODE;
    return keep_text(rows, name, NAME_BYTES, &row->name)
        && keep_text(rows, sft_node_text(root, "model.rating"), WORD_BYTES, &row->rating)
        && keep_text(rows, date, NAME_BYTES, &row->date) && take_dicts(rows, row, root)
        && take_words(rows, row, root) && take_tags(rows, row, root)
        && take_digests(rows, row, model, root);
}

/* ── A model that could not be read ── */

static bool take_failure(catalog_rows *rows, catalog_row *row, const cli_model *model) {
    row->flags = ROW_BROKEN;
    row->bytes = row->parameters = row->rank = UINT64_MAX;
    for (size_t i = 0; i < ROWS_DICTS; i++)
        if (i != ROWS_FOLDER) row->in[i] = DICT_NONE;
    return keep_text(rows, text_stem(cli_name_of(model->path)), NAME_BYTES, &row->name)
        && keep_text(rows, sft_span_cstr(model->err.message), ERROR_BYTES, &row->error);
}

/* The first row that holds the code decides. */
static const struct fault_row {
    sft_code first, last;
    catalog_fault fault;
} fault_table[] = {
    { SFT_FOUND_GIT_LFS, SFT_FOUND_GIT_LFS, { "file", "LFS pointer" } },
    { SFT_FOUND_XET, SFT_FOUND_XET, { "file", "Xet pointer" } },
    { SFT_FOUND_HTML, SFT_FOUND_HTML, { "page", "web page" } },
    { SFT_FOUND_ZIP, SFT_FOUND_INDEX, { "file", "other format" } },
    { SFT_FOREIGN_KIND, SFT_FOREIGN_KIND, { "file", "other format" } },
    { SFT_HEADER_TOO_SMALL, SFT_HEADER_TOO_SMALL, { "cut", "cut short" } },
    { SFT_HEADER_TRUNCATED, SFT_HEADER_TRUNCATED, { "cut", "cut short" } },
    { SFT_DATA_TRUNCATED, SFT_DATA_TRUNCATED, { "cut", "cut short" } },
    { SFT_FOREIGN_TRUNCATED, SFT_FOREIGN_TRUNCATED, { "cut", "cut short" } },
    { SFT_HEADER_TOO_LARGE, SFT_HEADER_TOO_LARGE, { "warn", "not a model" } },
    { SFT_INDEX_SHARD_MISSING, SFT_INDEX_SHARD_MISSING, { "help", "incomplete" } },
    { SFT_INDEX_TYPE, SFT_INDEX_TENSOR_DUPLICATE, { "warn", "bad index" } },
    { SFT_MANIFEST_MISSING, SFT_DATASET_RECEIPT, { "warn", "bad dataset" } },
    { SFT_HEADER_UTF8, SFT_DATA_TRAILING, { "warn", "damaged" } },
    { SFT_FOREIGN_OBJECT, SFT_FOREIGN_OPAQUE, { "file", "unsupported" } },
    { SFT_FOREIGN_SYNTAX, SFT_FOREIGN_OPCODE, { "warn", "damaged" } },
    { SFT_ADDRESS_SPACE, SFT_FOREIGN_NESTING, { "file", "over a limit" } },
    { SFT_IO_NOT_FILE, SFT_IO_NOT_FILE, { "file", "not a file" } },
    { SFT_REMOTE_DENIED, SFT_REMOTE_DENIED, { "hidden", "no access" } },
    { SFT_REMOTE_OFFLINE, SFT_REMOTE_OFFLINE, { "help", "not fetched" } },
    { SFT_REMOTE_NETWORK, SFT_REMOTE_TRANSPORT, { "page", "server error" } },
    { SFT_EDIT_INTERRUPTED, SFT_EDIT_BUSY, { "warn", "half edited" } },
};

/* bytes: of the file, UINT64_MAX if unknown. */
static const catalog_fault *fault_of(const sft_error *err, uint64_t bytes) {
    static const catalog_fault empty = { "file", "empty" }, cut = { "cut", "cut short" },
                               denied = { "hidden", "no access" }, gone = { "help", "gone" },
                               unfilled = { "cut", "never filled" },
                               damaged = { "warn", "damaged" },
                               unknown = { "warn", "unreadable" };
    if (bytes == 0 && err->code < 300) return &empty;
    if (err->needed) return &cut;
    if (err->os_errno == EACCES || err->os_errno == EPERM) return &denied;
    if (err->os_errno == ENOENT && err->code != SFT_INDEX_SHARD_MISSING) return &gone;
    if (err->code == SFT_HEADER_TRUNCATED && bytes != SFT_SIZE_UNKNOWN && err->offset < bytes)
        return &damaged; /* its length is wrong */
    if (err->code == SFT_JSON_SYNTAX && err->hint == SFT_HINT_DOWNLOAD_AGAIN) return &unfilled;
    for (size_t i = 0; i < sizeof fault_table / sizeof *fault_table; i++)
        if (err->code >= fault_table[i].first && err->code <= fault_table[i].last)
            return &fault_table[i].fault;
    return &unknown;
}

/* ── All of it ── */

sft_code rows_add(catalog_rows *rows, const cli_model *model, const catalog_picture *pictures,
                  size_t count, sft_error *err) {
    bool broken = !model->tree || model->err.code;
    catalog_row *row = sfti_arena_take(&rows->arena, sizeof *row);
    catalog_row **all = sfti_arena_grow(&rows->arena, rows->rows, rows->count, 1,
                                        &rows->capacity, sizeof *all);
    if (all) rows->rows = all;
    if (!row || !all) return sfti_fail_memory(err, sizeof *row);
    memset(row, 0, sizeof *row);
    rows->entry_bytes = 0;
    if (!take_place(rows, row, model)
        || !(broken ? take_failure : take_facts)(rows, row, model))
        return sfti_fail_memory(err, sizeof *row);
    row->picture_count = (uint32_t)count;
    if (count > 0) row->preview = *pictures;
    const char *href = row->preview.href;
    if (href) row->preview.href = sfti_arena_copy(&rows->arena, href, strlen(href));
    if (href && !row->preview.href) return sfti_fail_memory(err, sizeof *row);
    take_times(rows, row, model);
    if (broken) row->fault = fault_of(&model->err, row->bytes);
    row->number = (uint32_t)rows->count;
    rows->rows[rows->count++] = row;
    return SFT_OK;
}

size_t rows_last_bytes(const catalog_rows *rows) {
    const catalog_row *row = rows->rows[rows->count - 1];
    const char *href = row->preview.href;
    size_t size = NUMBER_BYTES + row->name.len + row->file.len + row->date.len + row->error.len
                + rows->entry_bytes + TAG_NUMBER_BYTES * row->tag_count;
    for (size_t i = 0; i < ROW_WORDS; i++) size += row->words[i].len + 3;
    if (row->picture_count) size += PREVIEW_BYTES + (href ? strlen(href) : 0);
    return size;
}

/* ── The columns ── */

#define TABLE_ROWS 1000

typedef struct row_writer {
    const catalog_rows *rows;
    sfti_json_writer *w;
    const int64_t *copies; /* by digest: a number of models that are copies, or -1 */
    const uint32_t *first; /* by what a model is: the first row */
} row_writer;

static void put_number(sfti_json_writer *w, int64_t number) {
    if (number < 0) sfti_json_raw(w, (sft_span){ "-1", 2 });
    else sfti_json_uint(w, (uint64_t)number);
}

static void put_known(sfti_json_writer *w, uint64_t number) {
    if (number == UINT64_MAX) put_number(w, -1);
    else sfti_json_uint(w, number);
}

/* ── Columns ── */

/* In the order in which they are written. */
typedef enum row_column {
    COLUMN_NAME, COLUMN_FILE, COLUMN_WHAT, COLUMN_BYTES, COLUMN_RANK, COLUMN_PARAMETERS,
    COLUMN_DATE, COLUMN_MODIFIED, COLUMN_WORDS, COLUMN_WORD_COUNT, COLUMN_TAGS, COLUMN_HASH,
    COLUMN_COPIES, COLUMN_FLAGS, COLUMN_RATING, COLUMN_PREVIEW, COLUMN_PICTURE_COUNT
} row_column;

static const char *const columns[] = {
    "name", "file", "what", "bytes", "rank", "parameters", "date", "modified", "words",
    "word_count", "tags", "hash", "copies", "flags", "rating", "preview", "picture_count",
};

static void put_column(const row_writer *to, row_column column, const catalog_row *row) {
    sfti_json_writer *w = to->w;
    const catalog_dict *dicts = to->rows->dicts;
    uint32_t what = row->in[ROWS_WHAT], digest = row->in[ROWS_WEIGHTS];
    bool both = row->hash[0][0] && row->hash[1][0];
    char text[32];
    switch (column) {
    case COLUMN_NAME: sfti_json_span(w, row->name); break;
    case COLUMN_FILE: sfti_json_span(w, row->file); break;
    case COLUMN_WHAT: /* words that a row before has: the number of that row */
        if (what == DICT_NONE) sfti_json_cstr(w, "");
        else if (to->first[what] != row->number) sfti_json_uint(w, to->first[what]);
        else sfti_json_span(w, dicts[ROWS_WHAT].entries[what].text);
        break;
    case COLUMN_BYTES: put_known(w, row->bytes); break;
    case COLUMN_RANK: put_known(w, row->rank); break;
    case COLUMN_PARAMETERS: put_known(w, row->parameters); break;
    case COLUMN_DATE: sfti_json_span(w, row->date); break;
    case COLUMN_MODIFIED: put_number(w, row->modified); break;
    case COLUMN_WORDS:
        sfti_json_open(w, '[');
        for (size_t i = 0; i < row->word_count && i < ROW_WORDS; i++)
            sfti_json_span(w, row->words[i]);
        sfti_json_close(w, ']');
        break;
    case COLUMN_WORD_COUNT: sfti_json_uint(w, row->word_count); break;
    case COLUMN_TAGS:
        sfti_json_open(w, '[');
        for (size_t i = 0; i < row->tag_count; i++)
            put_number(w, dict_place(&dicts[ROWS_TAG], row->tags[i]));
        sfti_json_close(w, ']');
        break;
    case COLUMN_HASH:
        snprintf(text, sizeof text, "%s%s%s", row->hash[0], both ? " " : "", row->hash[1]);
        sfti_json_cstr(w, text);
        break;
    case COLUMN_COPIES: put_number(w, digest == DICT_NONE ? -1 : to->copies[digest]); break;
    case COLUMN_FLAGS: sfti_json_uint(w, row->flags); break;
    case COLUMN_RATING:
        if (row->rating.len) sfti_json_raw(w, row->rating);
        else put_number(w, -1);
        break;
    case COLUMN_PREVIEW:
        if (row->picture_count) picture_json(w, &row->preview);
        else sfti_json_uint(w, 0);
        break;
    case COLUMN_PICTURE_COUNT: sfti_json_uint(w, row->picture_count); break;
    }
}

/* Columns of numbers in dictionaries, whose entries are [id, label], or texts. */
static const struct dict_column {
    const char *name; /* of the dictionary */
    rows_dict which;
    bool has_labels, has_column;
} dict_columns[] = {
    { "kind", ROWS_KIND, true, true },
    { "base", ROWS_BASE, true, true },
    { "architecture", ROWS_ARCHITECTURE, true, true },
    { "precision", ROWS_PRECISION, true, true },
    { "folder", ROWS_FOLDER, false, true },
    { "tag", ROWS_TAG, false, false },
    { "licence", ROWS_LICENCE, false, true },
    { "author", ROWS_AUTHOR, false, true },
};
#define DICT_COLUMNS (sizeof dict_columns / sizeof *dict_columns)

/* ── Dictionaries ── */

static sft_span folder_text(sft_span text) {
    return text.len == 1 && *text.data == '.' ? (sft_span){ "", 0 } : text;
}

static void put_dict(const row_writer *to, const struct dict_column *column) {
    const catalog_dict *dict = &to->rows->dicts[column->which];
    sfti_json_put_open(to->w, column->name, '[');
    for (size_t i = 0; i < dict->count; i++) {
        const dict_entry *entry = &dict->entries[dict->order[i]];
        if (column->has_labels) sfti_json_open(to->w, '[');
        sfti_json_span(to->w, folder_text(entry->text));
        if (!column->has_labels) continue;
        sfti_json_span(to->w, entry->label);
        sfti_json_close(to->w, ']');
    }
    sfti_json_close(to->w, ']');
}

/* ── All ── */

static sft_code put_rows(const row_writer *to, const char *title, size_t block, sft_error *err) {
    const catalog_rows *rows = to->rows;
    sfti_json_writer *w = to->w;
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "format", 1);
    sfti_json_put_cstr(w, "title", title);
    sft_code code = catalog_put_id(w, rows->places, title, &rows->c->alloc, err);
    if (code) return code;
    char newest[48] = "";
    int64_t year;
    unsigned month, day;
    if (rows->newest >= 0) {
        sfti_date_of_days(rows->newest, &year, &month, &day);
        snprintf(newest, sizeof newest, "%04" PRId64 "-%02u-%02u", year, month, day);
    }
    sfti_json_put_cstr(w, "newest", newest);
    sfti_json_put_open(w, "roots", '[');
    for (size_t i = 0; i < rows->places->count; i++)
        sfti_json_cstr(w, rows->places->roots[i].given);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "takes", '[');
    for (size_t i = 0; rows->count == 0 && i < CLI_OTHER_FORMATS; i++)
        sfti_json_cstr(w, cli_other_formats[i]);
    sfti_json_close(w, ']');
    sfti_json_put_uint(w, "count", rows->count);
    sfti_json_put_uint(w, "block", block);
    sfti_json_put_open(w, "dict", '{');
    for (size_t i = 0; i < DICT_COLUMNS; i++) put_dict(to, &dict_columns[i]);
    sfti_json_close(w, '}');
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        sfti_json_put_open(w, columns[k], '[');
        for (size_t i = 0; i < rows->count; i++) put_column(to, (row_column)k, rows->rows[i]);
        sfti_json_close(w, ']');
    }
    for (size_t k = 0; k < DICT_COLUMNS; k++) {
        rows_dict which = dict_columns[k].which;
        if (!dict_columns[k].has_column) continue;
        sfti_json_put_open(w, dict_columns[k].name, '[');
        for (size_t i = 0; i < rows->count; i++)
            put_number(w, dict_place(&rows->dicts[which], rows->rows[i]->in[which]));
        sfti_json_close(w, ']');
    }
    char number[24];
    sfti_json_put_open(w, "error", '{');
    for (size_t i = 0; i < rows->count; i++) {
        if (!(rows->rows[i]->flags & ROW_BROKEN)) continue;
        snprintf(number, sizeof number, "%zu", i);
        sfti_json_put_text(w, number, rows->rows[i]->error);
    }
    sfti_json_close(w, '}');
    sfti_json_put_open(w, "fault", '{');
    for (size_t i = 0; i < rows->count; i++) {
        const catalog_fault *fault = rows->rows[i]->fault;
        if (!fault) continue;
        snprintf(number, sizeof number, "%zu", i);
        sfti_json_put_open(w, number, '[');
        sfti_json_cstr(w, fault->id);
        sfti_json_cstr(w, fault->label);
        sfti_json_close(w, ']');
    }
    sfti_json_close(w, '}');
    sfti_json_close(w, '}');
    return SFT_OK;
}

/* ── Without scripts ── */

static void put_cell(html_page *page, sft_span text) {
    html_markup(page, "<td><bdi>");
    html_text(page, text);
    html_markup(page, "</bdi>");
}

static void put_table_row(const catalog_rows *rows, html_page *page, const catalog_row *row) {
    const dict_entry *bases = rows->dicts[ROWS_BASE].entries;
    uint32_t base = row->in[ROWS_BASE];
    sft_span folder = rows->dicts[ROWS_FOLDER].entries[row->in[ROWS_FOLDER]].text;
    html_markup(page, "<tr>");
    put_cell(page, row->name);
    html_markup(page, "<td><bdi>");
    html_text(page, folder_text(folder));
    if (folder_text(folder).len) html_markup(page, "/");
    html_text(page, row->file);
    html_markup(page, "</bdi>");
    put_cell(page, base == DICT_NONE ? (sft_span){ "", 0 } : bases[base].text);
    html_markup(page, "<td>");
    if (row->fault) html_text(page, sft_span_cstr(row->fault->label));
    for (size_t i = 0; i < row->word_count && i < ROW_WORDS; i++) {
        html_markup(page, i ? ", <bdi>" : "<bdi>");
        html_text(page, row->words[i]);
        html_markup(page, "</bdi>");
    }
    html_markup(page, "\n");
}

sft_code rows_write(catalog_rows *rows, html_page *page, const char *title, size_t block,
                    sft_error *err) {
    const catalog_dict *weights = &rows->dicts[ROWS_WEIGHTS], *words = &rows->dicts[ROWS_WHAT];
    int64_t *copies = sfti_arena_array(&rows->arena, weights->count, sizeof *copies), next = 0;
    uint32_t *first = sfti_arena_array(&rows->arena, words->count, sizeof *first);
    row_writer to = { .rows = rows, .copies = copies, .first = first };
    for (int i = 0; i < ROWS_DICTS; i++)
        if (!dict_sort(&rows->dicts[i], i == ROWS_FOLDER))
            return sfti_fail_memory(err, rows->count);
    if (!copies || !first) return sfti_fail_memory(err, rows->count);
    /* Copies are numbered in the order of the first of them. */
    for (size_t i = 0; i < weights->count; i++)
        copies[i] = weights->entries[i].uses > 1 ? next++ : -1;
    for (size_t i = rows->count; i-- > 0;) {
        uint32_t number = rows->rows[i]->in[ROWS_WHAT];
        if (number != DICT_NONE) first[number] = rows->rows[i]->number;
    }
    char text[96];
    size_t count = rows->count < TABLE_ROWS ? rows->count : TABLE_ROWS;
    html_markup(page, "<noscript>\n<table>\n<caption>");
    snprintf(text, sizeof text, "%zu of %zu models; the rest of this page needs JavaScript", count,
             rows->count);
    html_markup(page, text);
    html_markup(page, "</caption>\n<tr><th>Name<th>File<th>Base model<th>Trigger words\n");
    for (size_t i = 0; i < count; i++) put_table_row(rows, page, rows->rows[i]);
    html_markup(page, "</table>\n</noscript>\n");
    to.w = html_block_begin(page, "rows");
    sft_code code = put_rows(&to, title, block, err);
    html_block_end(page);
    return code ? code : page->code;
}
