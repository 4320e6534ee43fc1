/* The records that come with the library: data/, which cmake/records.cmake makes one text. They are
 * put together once a process, in memory of their own, so that nothing can fail. Tests:
 * test_records.c. */
#include "label/records/made.h"

#include "os/os.h"

#include <stdatomic.h>

#define BUILT_IN_BYTES ((size_t)1 << 20)

/* Made by cmake/records.cmake. */
extern const size_t sfti_built_in_size, sfti_built_in_lines;

static bool is_read;
static _Atomic(const sfti_records *) built_in; /* NULL: not yet */
static _Alignas(16) char memory[BUILT_IN_BYTES];
static uint32_t read_keys[SFTI_MADE_KEY_BITS / 32]; /* where they were not made */

/* All memory is there. */
static void *no_more(void *ctx, void *block, size_t old_size, size_t size) {
    (void)ctx, (void)block, (void)old_size, (void)size;
    return NULL;
}

sfti_records_text sfti_records_built_in_text(void) {
    return (sfti_records_text){ { (const char *)sfti_built_in_text, sfti_built_in_size }, "data",
                                sfti_built_in_lines };
}

/* As they were read when the library was built; room for them is always there. */
static const sfti_records *made_built_in(sfti_arena *arena, const sfti_records_text *text) {
    static const sft_span source = { "", 0 };
    const sfti_made *made = &sfti_made_records;
    const char *data = text->text.data;
    sfti_records *out = sfti_arena_take(arena, sizeof *out);
    sfti_records_text *texts = sfti_arena_take(arena, sizeof *texts);
    sfti_record *records = sfti_arena_array(arena, made->record_count, sizeof *records);
    if (!out || !texts || !records) return NULL;
    for (size_t i = 0; i < made->record_count; i++) {
        const sfti_made_record *one = &made->records[i];
        records[i] = (sfti_record){ one->id == UINT32_MAX ? NULL : made->ids + one->id,
                                    { data + one->label, one->label_len },
                                    one->parent ? &records[one->parent - 1] : NULL,
                                    (sfti_kin)one->kin, (sfti_record_type)one->type, 0,
                                    one->first, one->count };
    }
    *texts = *text;
    *out = (sfti_records){ .records = records, .rows = (void *)(uintptr_t)made->rows,
                           .record_count = made->record_count, .row_count = made->row_count,
                           .slots = made->slots, .slot_mask = made->slot_mask, .sources = &source,
                           .texts = texts, .text_count = 1 };
    memcpy(out->heads, made->heads, sizeof out->heads);
    memcpy(out->table_counts, made->table_counts, sizeof out->table_counts);
    for (size_t t = 0, at = 0; t < SFTI_TABLES; at += made->table_counts[t++])
        out->tables[t] = made->tables + at;
    return out;
}

static void read_built_in(void) {
    const sfti_arena whole = { .alloc = { .resize = no_more }, .at = memory,
                               .end = memory + BUILT_IN_BYTES };
    sfti_arena arena = whole;
    sfti_records_text text = sfti_records_built_in_text();
    const sfti_records *records = NULL;
    if (sfti_made_records.row_count > 0) {
        records = made_built_in(&arena, &text);
    } else if (sfti_records_read(&arena, &text, 1, &records, NULL)) {
        /* If data/ is wrong, which test_records.c tells, nothing is known. */
        text.text.len = 0;
        arena = whole;
        (void)sfti_records_read(&arena, &text, 1, &records, NULL);
    }
    if (sfti_made_records.row_count == 0) sfti_made_key_bits(records, read_keys);
    atomic_store_explicit(&built_in, records, memory_order_release);
}

bool sfti_records_may_have_key(sft_span key) {
    const sfti_made *made = &sfti_made_records;
    const uint32_t *keys = made->row_count > 0 ? made->keys : read_keys;
    const uint32_t bit = sfti_made_key_bit(key);
    if (made->row_count == 0) (void)sfti_records_built_in();
    return keys[bit / 32] >> bit % 32 & 1;
}

const sfti_records *sfti_records_built_in(void) {
    const sfti_records *records = atomic_load_explicit(&built_in, memory_order_acquire);
    if (records) return records;
    sfti_os_once(&is_read, read_built_in);
    return atomic_load_explicit(&built_in, memory_order_acquire);
}
