/* Columns of a catalogue, collected model by model. Tests: tests/cli/catalog. */
#include "catalog/catalog.h"

#include "os/os.h"
#include "os/path.h"
#include "support/files.h"
#include "support/models.h"
#include "support/words.h"

#include <errno.h>
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
    sft_span words = by_file ? cli_architecture_words(architecture) : cli_base_words(root, base);
    if (!by_file && words.len && words.data[words.len - 1] == '?') words.len--;
    sft_span exact = sft_node_text(root, "model.precision");
    return take_kind(rows, row, root)
        && put_in(rows, row, ROWS_BASE, words, words)
        && put_in(rows, row, ROWS_ARCHITECTURE, architecture,
                  cli_architecture_words(architecture))
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
    return put_in(rows, row, ROWS_WEIGHTS, content.len ? content : sha256, (sft_span){ "", 0 });
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
    if (global && global->calls > 0) row->flags |= ROW_RUNS_CODE;
    return keep_text(rows, name, NAME_BYTES, &row->name)
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
