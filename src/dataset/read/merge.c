/* Headers of all shards as one list in the order of keys. Tests: test_dataset_merge.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/job.h"
#include "base/json.h"
#include "base/json_lex.h"
#include "base/order.h"
#include "dataset/read/merge.h"

#include <string.h>

/* Bytes of a run, but all runs together have about WINDOWS if none has less than WINDOW_LEAST. */
#define WINDOW (UINT64_C(1) << 16)
#define WINDOW_LEAST (UINT64_C(1) << 12)
#define WINDOWS (UINT64_C(1) << 28)
#define RUNS_MOST 64 /* runs of ascending keys in a shard; with more it is held in memory */

/* A run of a header's entries with ascending keys, read window by window; or a file in memory, in
 * the order of names. The source is opened for each window, so that thousands of shards need no
 * descriptors. */
typedef struct merge_run {
    uint32_t source;
    uint64_t begin, at, end; /* of the run; at: next byte of the file to read */
    uint64_t data; /* offset of the file's tensors */
    char *window;
    size_t cap, used, done; /* used, done: bytes in the window, and consumed */
    sft_file *file;          /* in memory */
    uint32_t *order;
    size_t next, count;
    sft_buffer key; /* decoded, if it has escapes */
    uint64_t shape[SFT_MAX_RANK];
    sfti_ds_row row;
} merge_run;

struct sfti_ds_merge {
    sft_allocator alloc;
    const sft_storage *storage;
    const sfti_ds_source *sources;
    size_t source_count;
    const sft_open_options *open;
    merge_run *runs;
    size_t run_count, run_cap;
    uint32_t *heap;
    size_t heap_count;
    uint32_t *group; /* runs whose rows have the current key */
    size_t group_count, group_next;
    uint64_t *passed; /* of each source: tensors so far */
    const sft_job *job;
    uint64_t read; /* bytes of headers */
};

/* ── One entry of a header's text ── */

/* Commas and white space between entries. */
static const char *merge_gap(const char *at, const char *end) {
    while (at < end && (*at == ',' || *at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* "key":{…} in the window; NULL when it does not end there. *key is as spelled. */
static const char *merge_entry(merge_run *run, sft_span *key, bool *escaped) {
    static const sft_span dtype = { "dtype", 5 }, shape = { "shape", 5 },
                          offsets = { "data_offsets", 12 };
    const char *end = run->window + run->used;
    sfti_lex lex = { 0 };
    lex.at = merge_gap(run->window + run->done, end);
    lex.end = end;
    if (lex.at == end || *lex.at != '"' || !sfti_lex_string(&lex, key, escaped)) return NULL;
    sfti_lex_space(&lex);
    if (lex.at == end || *lex.at != ':') return NULL;
    lex.at++;
    sfti_lex_space(&lex);

    /* The entry's value at `at`; NULL when it does not end before `end`. */
    sfti_json json;
    sfti_ds_row *row = &run->row;
    char word[SFTI_JSON_WORD], value[SFTI_JSON_WORD];
    bool good = true;
    sfti_json_begin(&json, lex.at, (size_t)(end - lex.at));
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return NULL;
    while (good && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_word(&json, word);
        sfti_json_type type = sfti_json_next(&json);
        if (sft_span_equal(key, dtype)) {
            good = type == SFTI_JSON_STRING &&
                   sft_dtype_parse(sfti_json_word(&json, value), &row->dtype);
        } else if (sft_span_equal(key, shape)) {
            row->rank = 0;
            row->shape = run->shape;
            while (type == SFTI_JSON_ARRAY && sfti_json_next(&json) == SFTI_JSON_UINT &&
                   row->rank < SFT_MAX_RANK)
                run->shape[row->rank++] = json.value;
            good = type == SFTI_JSON_ARRAY && json.type == SFTI_JSON_ARRAY_END;
        } else if (sft_span_equal(key, offsets)) {
            good = type == SFTI_JSON_ARRAY && sfti_json_next(&json) == SFTI_JSON_UINT &&
                   sfti_add(run->data, json.value, &row->begin) &&
                   sfti_json_next(&json) == SFTI_JSON_UINT &&
                   sfti_add(run->data, json.value, &row->end) &&
                   sfti_json_next(&json) == SFTI_JSON_ARRAY_END;
        } else {
            sfti_json_skip(&json);
        }
    }
    return good && json.type == SFTI_JSON_OBJECT_END ? json.at : NULL;
}

/* ── The window ── */

static sft_code merge_changed(const sfti_ds_merge *m, const merge_run *run, sft_error *err) {
    return sfti_fail_byte(err, SFT_DATASET_SHARD, run->at, "%s changed while it was read",
                          m->sources[run->source].name);
}

/* Reads more of the run after what is left of the window, which doubles when it is full. */
static sft_code merge_fill(sfti_ds_merge *m, merge_run *run, sft_error *err) {
    sft_source source;
    memmove(run->window, run->window + run->done, run->used - run->done);
    run->used -= run->done;
    run->done = 0;
    if (run->used == run->cap) {
        size_t more = run->cap * 2;
        char *grown = m->alloc.resize(m->alloc.ctx, run->window, run->cap, more);
        if (!grown) return sfti_fail_memory(err, more);
        run->window = grown;
        run->cap = more;
    }
    uint64_t left = run->end - run->at;
    size_t room = run->cap - run->used, want = left < room ? (size_t)left : room;
    sft_code code = sfti_call(m->storage, open, m->sources[run->source].stored, &source, err);
    if (code) return code;
    while (!code && want) {
        size_t got = 0;
        code = sft_source_read(&source, run->at, run->window + run->used, want, &got, err);
        if (!code && got == 0) code = merge_changed(m, run, err);
        run->at += got;
        run->used += got;
        want -= got < want ? got : want;
    }
    sft_source_close(&source);
    return code;
}

/* ── Runs ── */

static sft_code run_text_next(sfti_ds_merge *m, merge_run *run, bool *more, sft_error *err) {
    sft_span key;
    bool escaped = false;
    const char *past = NULL;
    for (*more = false; !*more;) {
        const char *end = run->window + run->used;
        bool all = run->at == run->end;
        if (all && merge_gap(run->window + run->done, end) == end) return SFT_OK;
        past = merge_entry(run, &key, &escaped);
        *more = past != NULL;
        if (*more) break;
        sft_code code = all ? merge_changed(m, run, err) : merge_fill(m, run, err);
        if (code) return code;
    }
    run->done = (size_t)(past - run->window);
    run->row.key = key;
    if (!escaped) return SFT_OK;
    run->key.len = 0;
    if (!sfti_buffer_reserve(&run->key, key.len + 1)) return sfti_fail_memory(err, key.len);
    run->key.len = sfti_json_decode(key, run->key.data);
    run->row.key = (sft_span){ run->key.data, run->key.len };
    return SFT_OK;
}

static void run_file_next(merge_run *run, bool *more) {
    *more = run->next < run->count;
    if (!*more) return;
    const sft_tensor *t = sft_file_tensor_at(run->file, run->order[run->next++]);
    run->row.key = t->name;
    run->row.dtype = t->dtype;
    run->row.rank = t->rank;
    run->row.shape = t->shape;
    run->row.begin = t->offset;
    run->row.end = t->offset + (t->end - t->begin);
}

static merge_run *run_new(sfti_ds_merge *m, uint32_t source, uint64_t data) {
    merge_run *all =
        sfti_grow(&m->alloc, m->runs, m->run_count, 1, &m->run_cap, sizeof *all);
    if (!all) return NULL;
    m->runs = all;
    merge_run *run = &all[m->run_count++];
    memset(run, 0, sizeof *run);
    run->source = source;
    run->data = data;
    run->key.alloc = m->alloc;
    run->row.source = source;
    return run;
}

/* A run from one byte of the file to another. */
static sft_code run_text(sfti_ds_merge *m, uint32_t source, uint64_t data, uint64_t begin,
                         uint64_t end, sft_error *err) {
    merge_run *run = run_new(m, source, data);
    if (!run) return sfti_fail_memory(err, sizeof *run);
    run->begin = begin;
    run->end = end;
    uint64_t window = WINDOWS / m->source_count;
    if (window > WINDOW) window = WINDOW;
    if (window < WINDOW_LEAST) window = WINDOW_LEAST;
    run->cap = (size_t)(end - begin < window ? end - begin : window);
    run->window = sfti_take(&m->alloc, run->cap);
    return run->window ? SFT_OK : sfti_fail_memory(err, run->cap);
}

/* Takes the file. */
static sft_code run_file(sfti_ds_merge *m, uint32_t source, sft_file *file, sft_error *err) {
    merge_run *run = run_new(m, source, sft_file_data_offset(file));
    if (!run) {
        sft_close(file);
        return sfti_fail_memory(err, sizeof *run);
    }
    run->file = file;
    run->count = sft_file_tensor_count(file);
    run->order = sfti_take(&m->alloc, run->count * sizeof *run->order + 1);
    if (!run->order) return sfti_fail_memory(err, run->count * sizeof *run->order);
    return sft_file_order(file, SFT_ORDER_NAME, run->order, err);
}

/* ── Looking at a shard before ── */

typedef struct merge_layout {
    uint64_t begin[RUNS_MOST + 1]; /* bytes of the header's text */
    size_t runs;
    bool streams;
} merge_layout;

/* A tensor's key in the header: the i-th tensor in file order, or the shard does not stream. */
static void layout_key(const sft_file *file, const sfti_json *json, size_t i, sft_span *last,
                     merge_layout *look) {
    const sft_tensor *t = sft_file_tensor_at(file, i);
    if (!t || (!json->escaped && !sft_span_equal(json->text, t->name))) {
        look->streams = false;
        return;
    }
    if (i == 0 || sfti_bytes_compare(*last, t->name) >= 0) {
        if (look->runs == RUNS_MOST) look->streams = false;
        else look->begin[look->runs++] = json->start;
    }
    *last = t->name;
}

/* By where the names stand in the text; false: some do not stand there as they are. */
static bool layout_names(const sft_file *file, sft_span mark, merge_layout *look) {
    const sft_span text = sft_file_header(file);
    const uintptr_t begin = (uintptr_t)text.data;
    uintptr_t last = (uintptr_t)mark.data;
    sft_span before = { NULL, 0 };
    size_t end = text.len;
    look->runs = 0;
    look->streams = true;
    if (last < begin || last - begin >= text.len) return false;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_span name = sft_file_tensor_at(file, i)->name;
        const uintptr_t at = (uintptr_t)name.data;
        if (at <= last || at - begin >= text.len) return false;
        if (i == 0 || sfti_bytes_compare(before, name) >= 0) {
            if (look->runs == RUNS_MOST) return false;
            look->begin[look->runs++] = at - begin - 1; /* the quote */
        }
        last = at;
        before = name;
    }
    while (end && text.data[end - 1] != '}') end--;
    look->begin[look->runs] = end - 1;
    return end > 0;
}

/* Finds the runs of ascending keys. Only our own headers can be read in windows: metadata first,
 * then the entries in the order of their data. */
static void layout_runs(const sft_file *file, merge_layout *look) {
    sft_span text = sft_file_header(file), last = { NULL, 0 }, mark;
    sfti_json json;
    size_t i = 0;
    look->streams = sft_file_metadata_get_cstr(file, SFTI_DATASET_MARK, &mark);
    if (!look->streams || layout_names(file, mark, look)) return;
    look->runs = 0;
    sfti_json_begin(&json, text.data, text.len);
    sfti_json_next(&json);
    while (look->streams && sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool metadata = sft_span_equal(json.text, sft_span_cstr("__metadata__"));
        if (!metadata) layout_key(file, &json, i++, &last, look);
        else if (i) look->streams = false;
        sfti_json_next(&json);
        sfti_json_skip(&json);
    }
    if (look->streams) look->begin[look->runs] = json.start;
    look->streams = look->streams && i == sft_file_tensor_count(file);
}

static sft_code merge_shard(sfti_ds_merge *m, uint32_t source, sft_error *err) {
    sft_file *file = NULL;
    merge_layout look = { .runs = 0 };
    sft_code code =
        sfti_ds_open_shard(m->storage, m->sources[source].stored, m->open, &file, err);
    if (code) return code;
    uint64_t data = sft_file_data_offset(file);
    m->read += data;
    code = sfti_job_tick(m->job, m->read, SFT_SIZE_UNKNOWN, err);
    if (!code) layout_runs(file, &look);
    if (!code && !look.streams) return run_file(m, source, file, err);
    sft_close(file);
    for (size_t i = 0; !code && i < look.runs; i++)
        code = run_text(m, source, data, 8 + look.begin[i], 8 + look.begin[i + 1], err);
    return code;
}

/* ── Heap: least key, then least name, first ── */

static bool merge_before(const sfti_ds_merge *m, uint32_t a, uint32_t b) {
    const merge_run *x = &m->runs[a], *y = &m->runs[b];
    int order = sfti_bytes_compare(x->row.key, y->row.key);
    if (order) return order < 0;
    order = strcmp(m->sources[x->source].name, m->sources[y->source].name);
    return order ? order < 0 : a < b;
}

static uint32_t heap_pop(sfti_ds_merge *m) {
    uint32_t top = m->heap[0], last = m->heap[--m->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->heap_count) break;
        if (child + 1 < m->heap_count && merge_before(m, m->heap[child + 1], m->heap[child]))
            child++;
        if (!merge_before(m, m->heap[child], last)) break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

/* ── Merging ── */

static void heap_push(sfti_ds_merge *m, uint32_t number) {
    size_t at = m->heap_count++;
    for (; at && merge_before(m, number, m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = number;
}

/* The next row of a run; false: there is none. */
static sft_code merge_advance(sfti_ds_merge *m, uint32_t number, bool *more, sft_error *err) {
    merge_run *run = &m->runs[number];
    if (!run->file) return run_text_next(m, run, more, err);
    run_file_next(run, more);
    return SFT_OK;
}

/* The rows of the least key, which are popped, but for that of the group before, alone again. */
static void merge_gather(sfti_ds_merge *m, bool same) {
    uint32_t winner = 0;
    m->group_count = same;
    m->group_next = 0;
    if (!same)
        do m->group[m->group_count++] = heap_pop(m);
        while (m->heap_count && sft_span_equal(m->runs[m->heap[0]].row.key,
                                               m->runs[m->group[0]].row.key));
    for (size_t i = 0; i < m->group_count; i++)
        if (m->runs[m->group[i]].source > winner) winner = m->runs[m->group[i]].source;
    for (size_t i = 0; i < m->group_count; i++) {
        const uint32_t source = m->runs[m->group[i]].source;
        sfti_ds_row *row = &m->runs[m->group[i]].row;
        row->number = m->passed[source]++;
        row->deleted = sfti_ds_mask_has(m->sources[source].mask, row->number);
        row->shadowed = source < winner && !row->deleted;
        row->winner = winner;
    }
}

uint32_t sfti_ds_merge_after(const sfti_ds_merge *m, const sfti_ds_row *row) {
    uint32_t next = UINT32_MAX;
    for (size_t i = 0; i < m->group_count; i++) {
        const uint32_t source = m->runs[m->group[i]].source;
        if (source > row->source && source < next) next = source;
    }
    return next;
}

sft_code sfti_ds_merge_next(sfti_ds_merge *m, const sfti_ds_row **row, sft_error *err) {
    *row = NULL;
    if (m->group_next == m->group_count) {
        size_t count = m->group_count;
        bool more = false, same = false;
        m->group_count = m->group_next = 0;
        for (size_t i = 0; i < count; i++) {
            const uint32_t number = m->group[i];
            sft_code code = merge_advance(m, number, &more, err);
            if (code) return code;
            same = count == 1 && more && /* mostly, of a run that is longer than the others */
                   (!m->heap_count || sfti_bytes_compare(m->runs[number].row.key,
                                                         m->runs[m->heap[0]].row.key) < 0);
            if (more && !same) heap_push(m, number);
        }
        if (!same && m->heap_count == 0) return SFT_OK;
        merge_gather(m, same);
    }
    *row = &m->runs[m->group[m->group_next++]].row;
    return SFT_OK;
}

static sft_code merge_begin(sfti_ds_merge *m, sft_error *err) {
    size_t bytes = 2 * m->run_count * sizeof *m->heap + 1;
    m->heap = sfti_take(&m->alloc, bytes);
    if (!m->heap) return sfti_fail_memory(err, bytes);
    m->group = m->heap + m->run_count;
    m->passed = sfti_take(&m->alloc, (m->source_count + 1) * sizeof *m->passed);
    if (!m->passed) return sfti_fail_memory(err, m->source_count * sizeof *m->passed);
    return sfti_ds_merge_rewind(m, err);
}

sft_code sfti_ds_merge_rewind(sfti_ds_merge *m, sft_error *err) {
    m->heap_count = m->group_count = m->group_next = 0;
    memset(m->passed, 0, (m->source_count + 1) * sizeof *m->passed);
    for (size_t i = 0; i < m->run_count; i++) {
        merge_run *run = &m->runs[i];
        run->at = run->begin;
        run->used = run->done = run->next = 0;
        bool more = false;
        sft_code code = merge_advance(m, (uint32_t)i, &more, err);
        if (code) return code;
        if (more) heap_push(m, (uint32_t)i);
    }
    return SFT_OK;
}

sft_code sfti_ds_merge_open(const sft_storage *storage, const sfti_ds_source *sources,
                            size_t count, const sft_open_options *open,
                            const sft_allocator *alloc, const sft_job *job, sfti_ds_merge **out,
                            sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    *out = NULL;
    if (count > UINT32_MAX / 2)
        return sfti_fail(err, SFT_DATASET_SHARD, "expected fewer shards");
    sfti_ds_merge *m = sfti_take(&own, sizeof *m);
    if (!m) return sfti_fail_memory(err, sizeof *m);
    *m = (sfti_ds_merge){ .alloc = own, .storage = storage, .sources = sources,
                          .source_count = count, .open = open, .job = job };
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++)
        code = merge_shard(m, (uint32_t)i, err);
    if (!code) code = merge_begin(m, err);
    m->job = NULL;
    if (!code) *out = m;
    else sfti_ds_merge_close(m);
    return code;
}

void sfti_ds_merge_close(sfti_ds_merge *m) {
    if (!m) return;
    sft_allocator alloc = m->alloc;
    for (size_t i = 0; i < m->run_count; i++) {
        merge_run *run = &m->runs[i];
        sfti_release(&alloc, run->window, run->cap);
        sfti_release(&alloc, run->order, run->count * sizeof *run->order + 1);
        sft_buffer_free(&run->key);
        sft_close(run->file);
    }
    sfti_release(&alloc, m->runs, m->run_cap * sizeof *m->runs);
    sfti_release(&alloc, m->heap, 2 * m->run_count * sizeof *m->heap + 1);
    sfti_release(&alloc, m->passed, (m->source_count + 1) * sizeof *m->passed);
    sfti_release(&alloc, m, sizeof *m);
}
