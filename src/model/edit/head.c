/* The new header of an edit. Tests: test_edit.c. */
#include "base/checked.h"
#include "keys/digest_keys.h"
#include "base/endian.h"
#include "edit/dropped.h"
#include "edit/edit.h"
#include "keys/renamed.h"

#include <string.h>

/* One making of the new text; all but the result is gone afterwards. */
typedef struct header_rewrite {
    sft_edit *edit;
    sfti_arena arena;  /* cuts and their texts */
    sfti_arena tables; /* what is asked for */
    sft_span old; /* the header's text */
    sfti_change *metadata_items, *name_items;
    sfti_changes metadata, names;
    sfti_cuts cuts;
    bool met_metadata;
    size_t end; /* behind the object's closing bracket */
} header_rewrite;

static sft_code rewrite_memory(sft_error *err) {
    return sfti_fail_memory(err, sizeof(sfti_change));
}

/* ── What was asked for, as tables ── */

static bool request_table(header_rewrite *h, const sfti_requests *requests, sfti_change **items,
                          sfti_changes *out) {
    size_t count = 0;
    *items = sfti_arena_array(&h->tables, requests->count, sizeof **items);
    if (!*items) return false;
    for (const sfti_request *request = requests->first; request; request = request->next)
        (*items)[count++] = (sfti_change){ request->key, request->value };
    return sfti_changes_begin(out, *items, count, h->edit->seed, &h->tables);
}

/* Old and new names of all tensors, and of aliases among the requests. */
static bool list_names(header_rewrite *h, sfti_renamed *out) {
    const sft_file *file = h->edit->file;
    size_t tensors = sft_file_tensor_count(file), aliases = 0;
    sft_pair *names = sfti_arena_array(&h->tables, tensors, sizeof *names);
    sft_pair *others = sfti_arena_array(&h->tables, h->names.count, sizeof *others);
    if (!names || !others) return false;
    for (size_t i = 0; i < tensors; i++) {
        sft_span name = sft_file_tensor_at(file, i)->name;
        uint32_t found = sfti_names_find(&h->names.names, name);
        names[i] = (sft_pair){ name, found == SFTI_NO_NAME ? name : h->name_items[found].value };
    }
    for (size_t i = 0; i < h->names.count; i++)
        if (!sft_file_find(file, h->name_items[i].key))
            others[aliases++] = (sft_pair){ h->name_items[i].key, h->name_items[i].value };
    return sfti_renamed_begin(out, names, tensors, others, aliases, &h->tables);
}

/* Metadata that name tensors follow their new names, unless a request is about them. */
static sft_code follow_names(header_rewrite *h, sft_error *err) {
    const sft_file *file = h->edit->file;
    size_t pairs = sft_file_metadata_count(file), count = h->metadata.count, sets = 0;
    sfti_renamed renamed;
    sft_pair now;
    if (pairs == 0) return SFT_OK;
    sfti_change *items = sfti_arena_array(&h->tables, (uint64_t)count + 2 * pairs, sizeof *items);
    sfti_change *set = sfti_arena_array(&h->tables, pairs, sizeof *set);
    if (!items || !set || !list_names(h, &renamed)) return rewrite_memory(err);
    if (count > 0) memcpy(items, h->metadata_items, count * sizeof *items);
    for (size_t i = 0; i < pairs; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        if (sfti_names_find(&h->metadata.names, pair.key) != SFTI_NO_NAME) continue;
        sft_code code = sfti_renamed_pair(&renamed, pair, &now, err);
        if (code) return code;
        bool moves = !sft_span_equal(pair.key, now.key);
        if (moves) items[count++] = (sfti_change){ pair.key, { NULL, 0 } };
        if (now.key.data && (moves || !sft_span_equal(pair.value, now.value)))
            set[sets++] = (sfti_change){ now.key, now.value };
    }
    if (sets > 0) memcpy(items + count, set, sets * sizeof *items);
    h->metadata_items = items;
    bool ok = sfti_changes_begin(&h->metadata, items, count + sets, h->edit->seed, &h->tables);
    return ok ? SFT_OK : rewrite_memory(err);
}

/* Digests that the requests make wrong are removed, too, unless a request is about them. */
static bool drop_stale(header_rewrite *h) {
    const sft_file *file = h->edit->file;
    unsigned stale = h->edit->put_count > 0 ? SFTI_DIGESTS_OF_DATA : 0;
    size_t count = h->metadata.count, most = count;
    for (size_t i = 0; i < h->names.count; i++)
        if (!sft_span_equal(h->name_items[i].key, h->name_items[i].value))
            stale |= SFTI_DIGESTS_OF_NAMES;
    for (size_t i = 0; i < count; i++) {
        const sfti_change *item = &h->metadata_items[i];
        sft_span there;
        if (!sfti_is_training_key(item->key)) continue;
        bool has = sft_file_metadata_get(file, item->key, &there);
        bool changes = item->value.data ? !has || !sft_span_equal(there, item->value) : has;
        if (changes) stale |= SFTI_DIGESTS_OF_NAMES;
    }
    h->edit->dropped = 0;
    if (!stale) return true;
    size_t pairs = sft_file_metadata_count(file);
    for (size_t i = 0; i < pairs; i++)
        most += (sfti_digest_key_of(sft_file_metadata_at(file, i).key) & stale) != 0;
    if (most == count) return true;
    sfti_change *items = sfti_arena_array(&h->tables, most, sizeof *items);
    if (!items) return false;
    if (count > 0) memcpy(items, h->metadata_items, count * sizeof *items);
    for (size_t i = 0; i < pairs; i++) {
        sft_span key = sft_file_metadata_at(file, i).key;
        unsigned digest = sfti_digest_key_of(key) & stale;
        if (!digest || sfti_names_find(&h->metadata.names, key) != SFTI_NO_NAME) continue;
        items[count++] = (sfti_change){ key, { NULL, 0 } };
        h->edit->dropped |= digest;
    }
    h->metadata_items = items;
    return sfti_changes_begin(&h->metadata, items, count, h->edit->seed, &h->tables);
}

unsigned sfti_edit_dropped(const sft_edit *edit) { return edit->dropped; }

static sft_span requested_name(const void *ctx, uint32_t entry) {
    return ((const sfti_change *)ctx)[entry].value;
}

/* No two new names are equal, and none is that of a tensor which keeps it. */
static sft_code check_collisions(header_rewrite *h, sft_error *err) {
    const sfti_changes *names = &h->names;
    sfti_arena work = { .alloc = h->edit->alloc };
    sft_code code = SFT_OK;
    sfti_names table;
    if (!sfti_names_begin(&table, names->count, h->edit->seed, requested_name, names->items, &work))
        return rewrite_memory(err);
    for (uint32_t i = 0; i < names->count && !code; i++) {
        sft_span to = names->items[i].value;
        bool twice = sfti_names_put(&table, to, sfti_names_hash(to, h->edit->seed), i) != i;
        sft_span value;
        bool alias = sft_file_find(h->edit->file, names->items[i].key) == NULL;
        bool kept = (sft_file_find(h->edit->file, to) != NULL
                     || (alias && sft_file_metadata_get(h->edit->file, to, &value)))
                 && sfti_names_find(&names->names, to) == SFTI_NO_NAME;
        if (twice || kept)
            code = sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, to,
                                    "expected a free name, found that two tensors would have "
                                    "this one");
    }
    sfti_arena_free(&work);
    return code;
}

/* ── The text ── */

static sft_code head_cuts(header_rewrite *h, sft_error *err) {
    static const sft_span metadata = { "__metadata__", 12 };
    sfti_json json;
    sft_code code = SFT_OK;
    sfti_json_begin(&json, h->old.data, h->old.len);
    sfti_json_next(&json);
    size_t open = json.start + 1;
    while (!code && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span name = sfti_json_string(&json, &h->arena);
        if (!name.data) return rewrite_memory(err);
        if (sft_span_equal(name, metadata)) {
            h->met_metadata = true;
            code = sfti_splice_value(&json, &h->metadata, &h->cuts, err);
            if (h->names.count == 0) break; /* tensors stay */
            continue;
        }
        uint32_t found = sfti_names_find(&h->names.names, name);
        size_t end = (size_t)(json.at - json.begin);
        if (found != SFTI_NO_NAME &&
            !sfti_cuts_put(&h->cuts, json.start, end, h->names.items[found].value))
            return rewrite_memory(err);
        (void)sfti_json_skip(&json);
    }
    if (!code && json.type == SFTI_JSON_ERROR) return sfti_json_fail(&json, 8, err);
    if (code) return code;
    for (h->end = h->old.len; h->old.data[h->end - 1] != '}';) h->end--;
    if (h->met_metadata || !sfti_changes_set(&h->metadata)) return SFT_OK;
    bool alone = sft_file_tensor_count(h->edit->file) == 0;
    return sfti_splice_first("\"__metadata__\":{", &h->metadata, open, alone, &h->cuts, err);
}

/* ── Its place ── */

static uint64_t grown_with(const sft_edit *edit, uint64_t more, uint64_t spare) {
    uint64_t out = 0;
    bool fits = sfti_add(more, spare, &out) && sfti_align_up(out, sfti_edit_block(edit), &out);
    return fits ? out : UINT64_MAX;
}

static sft_code head_make(header_rewrite *h, sfti_new_head *head, sft_error *err) {
    sft_edit *edit = h->edit;
    const char *old = h->old.data;
    uint64_t text = sfti_cuts_length(&h->cuts, h->end), len;
    uint64_t most = edit->limits.max_header_bytes;
    if (most > SFTI_MOST_HEADER) most = SFTI_MOST_HEADER;
    if (text > h->old.len) {
        /* With spare spaces, or without them where the header would be too long. */
        uint64_t spare = edit->options.spare ? edit->options.spare : SFTI_EDIT_SPARE;
        head->grown = grown_with(edit, text - h->old.len, spare);
        if (!sfti_add(h->old.len, head->grown, &len) || len > most)
            head->grown = grown_with(edit, text - h->old.len, 0);
    }
    if (!sfti_add(h->old.len, head->grown, &len) || len > most) {
        return sfti_fail(err, SFT_HEADER_TOO_LARGE,
                         "expected a header of at most %llu bytes, found %llu and whole blocks",
                         (unsigned long long)most, (unsigned long long)text);
    }
    head->len = head->cap = (size_t)len + SFTI_PREFIX;
    head->data = sfti_take(&edit->alloc, head->cap);
    if (!head->data) return sfti_fail_memory(err, head->cap);
    head->spare = len - text;
    sfti_put_u64(head->data, len);
    char *at = head->data + SFTI_PREFIX;
    sfti_cuts_apply(&h->cuts, (sft_span){ old, h->end }, at);
    memset(at + text, ' ', (size_t)(len - text));
    if (head->grown > 0) return SFT_OK;
    /* The old padding stays where it stood; what the object gave up has become spaces. */
    size_t tail = text > h->end ? (size_t)text : h->end, begin = 0, end = h->old.len;
    if (tail < end) memcpy(at + tail, old + tail, end - tail);
    while (begin < end && at[begin] == old[begin]) begin++;
    while (end > begin && at[end - 1] == old[end - 1]) end--;
    head->first = begin + SFTI_PREFIX;
    head->last = end + SFTI_PREFIX;
    return SFT_OK;
}

sft_code sfti_edit_head(sft_edit *edit, sfti_new_head *out, sft_error *err) {
    header_rewrite h = { .edit = edit, .old = sft_file_header(edit->file) };
    memset(out, 0, sizeof *out);
    if (edit->patches_of != edit->put_count) { /* some were put since */
        sft_code code = sfti_edit_patches(edit, err);
        if (code) return code;
    }
    h.arena.alloc = h.tables.alloc = edit->alloc;
    h.cuts.arena = &h.arena;
    bool ok = request_table(&h, &edit->metadata, &h.metadata_items, &h.metadata) &&
              request_table(&h, &edit->names, &h.name_items, &h.names);
    sft_code code = ok ? SFT_OK : rewrite_memory(err);
    if (h.names.count > 0) {
        if (!code) code = check_collisions(&h, err);
        if (!code) code = follow_names(&h, err);
    }
    if (!code && !drop_stale(&h)) code = rewrite_memory(err);
    if (!code && !(sfti_changes_spell(h.metadata_items, h.metadata.count, &h.arena) &&
                   sfti_changes_spell(h.name_items, h.names.count, &h.arena)))
        code = rewrite_memory(err);
    if (!code) code = head_cuts(&h, err);
    sfti_arena_free(&h.tables);
    if (!code) code = head_make(&h, out, err);
    sfti_arena_free(&h.arena); /* the check takes as much again */
    if (!code && (out->grown > 0 || out->first < out->last)) {
        /* Nothing is written that would not be read. */
        sft_span text = { out->data + SFTI_PREFIX, out->len - SFTI_PREFIX };
        sfti_arena arena = { .alloc = edit->alloc };
        uint64_t size;
        sfti_model model;
        if (!sfti_add(edit->info.size, out->grown, &size)) size = SFT_SIZE_UNKNOWN;
        code = sfti_model_read(text, size, &edit->limits, edit->seed, NULL, &arena, &model, err);
        sfti_arena_free(&arena);
    }
    if (code) sfti_edit_head_free(edit, out);
    return code;
}

void sfti_edit_head_free(sft_edit *edit, sfti_new_head *head) {
    sfti_release(&edit->alloc, head->data, head->cap);
    memset(head, 0, sizeof *head);
}

void sfti_edit_tell(const sft_edit *edit, const sfti_new_head *head, sft_edit_method method,
                    sft_edit_report *out) {
    if (!out) return;
    out->method = method;
    out->header_before = sft_file_header(edit->file).len;
    out->header_after = head->len - SFTI_PREFIX;
    out->spare = head->spare;
    out->file_after = edit->info.size + head->grown;
}
