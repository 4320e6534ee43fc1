/* Textual inversion: a few vectors that stand for a word. */
#include "label/tensors/signatures.h"

#include <string.h>

#define EMBEDDING_TENSORS 16 /* more than that is something else */
#define EMBEDDING_VECTORS 4096

/* ── Encoders of text: rows "vectors", which are numbered as they are listed ── */

#define SLOTS 32u
#define NO_SLOT SLOTS

static unsigned slot_named(const sfti_records *records, sft_span word) {
    unsigned slot = 0;
    SFTI_EACH_ROW(row, records, SFTI_VECTORS, 0) {
        if (slot == SLOTS) break;
        if (sft_span_equal(sfti_row_word(row), word)) return slot;
        slot++;
    }
    return NO_SLOT;
}

/* Which encoders have vectors, as a row "embedding" says: by name, or the only one, or that of a
 * token, by its width. */
static uint32_t slots_of_row(const sfti_records *records, const sfti_record_row *row,
                             uint64_t *width) {
    sft_span rest = sfti_row_text(row), word;
    uint32_t slots = 0;
    *width = 0;
    while (sfti_next_said(&rest, &word)) {
        unsigned slot = slot_named(records, word);
        if (slot < SLOTS) slots |= 1u << slot;
        else (void)sfti_parse_uint(word, width);
    }
    unsigned lone = slot_named(records, sft_span_cstr("word"));
    return slots || lone == NO_SLOT ? slots : 1u << lone;
}

static bool is_token(sft_span name) {
    return name.len > 2 && *name.data == '<' && name.data[name.len - 1] == '>';
}

static unsigned slot_of(const sfti_records *records, sft_span name) {
    unsigned slot = 0;
    if (is_token(name)) return slot_named(records, sft_span_cstr("token"));
    if (sfti_ends(name, "_out")) name.len -= strlen("_out"); /* behind the encoder, OneTrainer */
    SFTI_EACH_ROW(row, records, SFTI_VECTORS, 0) {
        sft_span rest = sfti_row_text(row), word;
        if (slot == SLOTS) break;
        (void)(sfti_next_said(&rest, &word) && sfti_next_said(&rest, &word)); /* id, widths */
        while (sfti_next_said(&rest, &word))
            if (sft_span_equal(word, name)) return slot;
        slot++;
    }
    return NO_SLOT;
}

/* Rows of vectors as wide as encoders of text have them; 0 if it is none. */
static uint64_t vectors_of(const sfti_records *records, const sft_tensor *tensor, unsigned slot) {
    const sfti_record_row *row = sfti_rows(records, SFTI_VECTORS, 0);
    for (; row && slot > 0; slot--) row = sfti_rows_next(records, row);
    sft_span rest = sfti_row_text(row), widths = { "", 0 };
    if (tensor->rank < 1 || tensor->rank > 2) return 0;
    if (sft_dtype_describe(tensor->dtype)->kind != SFT_KIND_FLOAT) return 0;
    uint64_t width = tensor->shape[tensor->rank - 1];
    uint64_t rows = tensor->rank == 2 ? tensor->shape[0] : 1;
    if (!sfti_next_said(&rest, &widths) || !sfti_next_said(&rest, &widths)) return 0;
    return rows <= EMBEDDING_VECTORS && sfti_size_fits(widths, width) ? rows : 0;
}

/* ── Telling ── */

void sfti_add_token(sft_info *info, sft_span token, sft_span source) {
    size_t count = 0;
    for (const sfti_trigger *t = info->triggers.first; t && count < 64; t = t->next, count++)
        if (t->trust == 90 && sft_span_equal(t->text, token)) return;
    if (count < 64 && token.len > 0 && token.len <= 256)
        sfti_info_trigger(info, token, source, 90, -1);
}

static void tell_embedding(const sfti_view *view, uint32_t slots, uint64_t width, int trust) {
    sft_info *info = view->info;
    sfti_add_tensor_fact(info, SFT_FACT_KIND, "embedding", trust);
    SFTI_EACH_ROW(row, info->records, SFTI_EMBEDDING, 0) {
        uint64_t wide, most = 100;
        sft_span mark;
        if (slots_of_row(info->records, row, &wide) != slots) continue;
        if (wide > 0 && wide != width) continue;
        if (sfti_row_has(row, "trust", &mark)) (void)sfti_parse_uint(mark, &most);
        sfti_add_row_fact(info, SFT_FACT_ARCHITECTURE, sfti_row_record(info->records, row)->id,
                          most < (uint64_t)trust ? (int)most : trust, row);
    }
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        sfti_add_evidence(info, tensor);
        if (is_token(tensor->name))
            sfti_add_token(info, tensor->name, sft_span_cstr("tensors"));
    }
    if (info->stem.len > 0 && !sfti_generic_stem(info->stem))
        sfti_info_trigger(info, info->stem, sft_span_cstr("filename"), 85, -1);
}

bool sfti_info_embedding(const sfti_view *view) {
    const sfti_records *records = view->info->records;
    uint32_t slots = 0;
    uint64_t width = 0, vectors = 0;
    bool all_named = true;
    if (view->count == 0 || view->count > EMBEDDING_TENSORS) return false;
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        unsigned slot = slot_of(records, tensor->name);
        bool named = slot != NO_SLOT; /* or a lone tensor called as the file is */
        if (!named && view->count == 1 && view->info->stem.len > 0
            && sft_span_equal(tensor->name, view->info->stem))
            slot = slot_named(records, sft_span_cstr("word"));
        uint64_t rows = slot == NO_SLOT ? 0 : vectors_of(records, tensor, slot);
        if (rows == 0) return false;
        if (!named) all_named = false;
        /* that of several is not asked for */
        width = i == 0 || width == tensor->shape[tensor->rank - 1]
              ? tensor->shape[tensor->rank - 1] : 0;
        slots |= 1u << slot;
        if (rows > vectors) vectors = rows;
    }
    view->info->vectors = vectors;
    tell_embedding(view, slots, width, all_named ? 100 : 70);
    return true;
}
