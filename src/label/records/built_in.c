/* The records that come with the library: data/, which cmake/records.cmake makes one text. They are
 * read once a process, into memory of their own, so that nothing can fail. */
#include "label/records.h"

#include "os/os.h"

#include <stdatomic.h>

#define BUILT_IN_BYTES ((size_t)1 << 20)

/* Made by cmake/records.cmake. */
extern const unsigned char sfti_built_in_text[];
extern const size_t sfti_built_in_size, sfti_built_in_lines;

static bool is_read;
static _Atomic(const sfti_records *) built_in; /* NULL: not yet */
static _Alignas(16) char memory[BUILT_IN_BYTES];
static size_t memory_used;

static void *take_memory(void *ctx, void *block, size_t old_size, size_t size) {
    (void)ctx, (void)old_size;
    size_t whole = (size + 15) & ~(size_t)15;
    if (block || size > BUILT_IN_BYTES || whole > BUILT_IN_BYTES - memory_used) return NULL;
    memory_used += whole;
    return memory + (memory_used - whole);
}

sfti_records_text sfti_records_built_in_text(void) {
    return (sfti_records_text){ { (const char *)sfti_built_in_text, sfti_built_in_size }, "data",
                                sfti_built_in_lines };
}

static void read_built_in(void) {
    sfti_arena arena = { .alloc = { .resize = take_memory } };
    sfti_records_text text = sfti_records_built_in_text();
    const sfti_records *records;
    /* If data/ is wrong, which test_records.c tells, nothing is known. */
    if (sfti_records_read(&arena, &text, 1, &records, NULL)) {
        text.text.len = 0;
        memory_used = 0;
        (void)sfti_records_read(&arena, &text, 1, &records, NULL);
    }
    atomic_store_explicit(&built_in, records, memory_order_release);
}

const sfti_records *sfti_records_built_in(void) {
    const sfti_records *records = atomic_load_explicit(&built_in, memory_order_acquire);
    if (records) return records;
    sfti_os_once(&is_read, read_built_in);
    return atomic_load_explicit(&built_in, memory_order_acquire);
}
