/* Textual inversion: a few vectors that stand for a word. */
#include "label/tensors/signatures.h"

#include <string.h>

#define EMBEDDING_TENSORS 16 /* more than that is something else */
#define EMBEDDING_VECTORS 4096

/* Which encoder of text a tensor is for. PLAIN: the only one; TOKEN: one of diffusers, which has a
 * file for each encoder. */
typedef enum embedding_slot {
    SLOT_NONE = -1, SLOT_PLAIN = 0, SLOT_TOKEN, SLOT_L, SLOT_G, SLOT_T5, SLOT_LLAMA, SLOT_GEMMA,
    SLOTS
} embedding_slot;

/* OneTrainer: emp_params. */
static const struct { const char *name; embedding_slot slot; } embedding_names[] = {
    { "emb_params", SLOT_PLAIN }, { "string_to_param.*", SLOT_PLAIN },
    { "*", SLOT_PLAIN },          { "emp_params", SLOT_PLAIN },
    { "learned_embeds", SLOT_TOKEN },
    { "clip_l", SLOT_L },         { "clip_g", SLOT_G },
    { "text_encoders_0", SLOT_L }, { "text_encoders_1", SLOT_G },
    { "t5", SLOT_T5 },            { "t5xxl", SLOT_T5 },
    { "llama", SLOT_LLAMA },      { "gemma", SLOT_GEMMA },
};

static const uint64_t embedding_widths[SLOTS] = { 0, 0, 768, 1280, 4096, 4096, 2304 };

/* Which encoders have vectors, as a row "embedding" says: by name, or the only one, or that of a
 * token, by its width. */
static uint32_t slots_of_row(const sfti_record_row *row, uint64_t *width) {
    static const struct { const char *name; embedding_slot slot; } names[] = {
        { "token", SLOT_TOKEN }, { "l", SLOT_L }, { "g", SLOT_G }, { "t5", SLOT_T5 },
        { "llama", SLOT_LLAMA }, { "gemma", SLOT_GEMMA },
    };
    sft_span rest = sfti_row_text(row), word;
    uint32_t slots = 0;
    *width = 0;
    while (sfti_next_said(&rest, &word)) {
        (void)sfti_parse_uint(word, width);
        for (size_t i = 0; i < SFTI_COUNT(names); i++)
            if (sfti_is(word, names[i].name)) slots |= 1u << (unsigned)names[i].slot;
    }
    return slots ? slots : 1u << SLOT_PLAIN;
}

static bool is_token(sft_span name) {
    return name.len > 2 && *name.data == '<' && name.data[name.len - 1] == '>';
}

static embedding_slot slot_of(sft_span name) {
    if (is_token(name)) return SLOT_TOKEN;
    if (sfti_ends(name, "_out")) name.len -= strlen("_out"); /* behind the encoder, OneTrainer */
    for (size_t i = 0; i < SFTI_COUNT(embedding_names); i++)
        if (sfti_is(name, embedding_names[i].name)) return embedding_names[i].slot;
    return SLOT_NONE;
}

/* Rows of vectors as wide as encoders of text have them; 0 if it is none. */
static uint64_t vectors_of(const sft_tensor *tensor, embedding_slot slot) {
    if (tensor->rank < 1 || tensor->rank > 2) return 0;
    if (sft_dtype_describe(tensor->dtype)->kind != SFT_KIND_FLOAT) return 0;
    uint64_t width = tensor->shape[tensor->rank - 1];
    uint64_t rows = tensor->rank == 2 ? tensor->shape[0] : 1;
    if (rows > EMBEDDING_VECTORS) return 0;
    if (embedding_widths[slot] == 0)
        return width == 768 || width == 1024 || width == 1280 ? rows : 0;
    return width == embedding_widths[slot] ? rows : 0;
}

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
        if (slots_of_row(row, &wide) != slots || (wide > 0 && wide != width)) continue;
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
    uint32_t slots = 0;
    uint64_t width = 0, vectors = 0;
    bool all_named = true;
    if (view->count == 0 || view->count > EMBEDDING_TENSORS) return false;
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        embedding_slot slot = slot_of(tensor->name);
        bool named = slot != SLOT_NONE; /* or a lone tensor called as the file is */
        if (!named && view->count == 1 && view->info->stem.len > 0
            && sft_span_equal(tensor->name, view->info->stem))
            slot = SLOT_PLAIN;
        uint64_t rows = slot == SLOT_NONE ? 0 : vectors_of(tensor, slot);
        if (rows == 0) return false;
        if (!named) all_named = false;
        if (embedding_widths[slot] == 0) {
            if (width && width != tensor->shape[tensor->rank - 1]) return false;
            width = tensor->shape[tensor->rank - 1];
        }
        slots |= 1u << (unsigned)slot;
        if (rows > vectors) vectors = rows;
    }
    view->info->vectors = vectors;
    tell_embedding(view, slots, width, all_named ? 100 : 70);
    return true;
}
