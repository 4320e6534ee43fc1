/* sft_records_open: records of a user's texts, read with those that come with the library. */
#include "label/records.h"

#include "base/error.h"
#include "safetensors_info.h"

struct sft_records {
    sfti_arena arena;
    const sfti_records *records;
};

const sfti_records *sfti_records_of(const sft_records *opened) {
    return opened->records;
}

/* Names and texts are the caller's: names are copied here, texts where they are read. */
static sft_code read_texts(sft_records *records, const sft_records_text *texts, size_t count,
                           sfti_records_faults *faults, sft_error *err) {
    sfti_records_text all[SFTI_RECORDS_TEXTS] = { sfti_records_built_in_text() };
    if (count >= SFTI_RECORDS_TEXTS)
        return sfti_misuse(err, "expected at most %d files of records, found %zu",
                           SFTI_RECORDS_TEXTS - 1, count);
    for (size_t i = 0; i < count; i++) {
        const char *name = sfti_arena_copy(&records->arena, texts[i].name, strlen(texts[i].name));
        if (!name) return sfti_fail_memory(err, strlen(texts[i].name));
        all[i + 1] = (sfti_records_text){ texts[i].text, name, 0 };
    }
    sft_code code = sfti_records_read_all(&records->arena, all, count + 1, faults,
                                          &records->records, err);
    for (size_t i = 0; faults && i < faults->count && i < faults->room; i++)
        faults->items[i].text -= faults->items[i].text > 0; /* that of the library is the first */
    return code;
}

sft_code sfti_records_open_all(const sft_records_text *texts, size_t count,
                               const sft_allocator *alloc, sfti_records_faults *faults,
                               sft_records **out, sft_error *err) {
    sft_allocator memory = sfti_allocator(alloc);
    *out = NULL;
    sft_records *records = sfti_take(&memory, sizeof *records);
    if (!records) return sfti_fail_memory(err, sizeof *records);
    *records = (sft_records){ .arena = { .alloc = memory } };
    if (faults) faults->count = 0;
    sft_code code = read_texts(records, texts, count, faults, err);
    if (code) sft_records_close(records);
    else *out = records;
    return code;
}

sft_code sft_records_open(const sft_records_text *texts, size_t count, const sft_allocator *alloc,
                          sft_records **out, sft_error *err) {
    return sfti_records_open_all(texts, count, alloc, NULL, out, err);
}

void sft_records_close(sft_records *records) {
    if (!records) return;
    sft_allocator memory = records->arena.alloc;
    sfti_arena_free(&records->arena);
    sfti_release(&memory, records, sizeof *records);
}
