/* Keys of producers: records "keys" of data/keys become rows over a cursor, once a process, in
 * memory of their own. Tests: test_keys.c. */
#include "label/cursor.h"
#include "label/records.h"

#include <string.h>

#define KEY_ROWS 640
#define KEY_BYTES ((size_t)16 << 10) /* of patterns and words, each with a NUL */

static sfti_row pool[KEY_ROWS];
static char bytes[KEY_BYTES];
static size_t pool_used, bytes_used;

/* "" where there is no room, which test_keys.c tells. */
static const char *keep(sft_span text) {
    char *copy = bytes + bytes_used;
    if (text.len >= KEY_BYTES - bytes_used) return "";
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    bytes_used += text.len + 1;
    return copy;
}

/* What a word means for a take that reads facts, training or one of some things; -1: nothing. */
static int field_of(const sfti_key_take *take, sft_span word) {
    int from = 0;
    if (!take->names) return -1;
    if (*take->names > ' ') {
        int number = sfti_number_among(take->names, word);
        return number >= 0 && take->places ? (int)take->places[number] : number;
    }
    if (strcmp(take->names, SFTI_TAKES_FACT) == 0)
        for (int i = 0; i < SFT_FACT_COUNT; i++)
            if (sfti_is(word, sft_fact_name((sft_fact)i))) return i;
    if (strcmp(take->names, SFTI_TAKES_TRAINING) != 0) return -1;
    if (sfti_skip(&word, "base.")) from = TRAIN_BASE_FILE;
    if (sfti_skip(&word, "vae.")) from = TRAIN_VAE_FILE;
    for (int i = from; i < TRAIN_KEYS; i++)
        if (sfti_is(word, sfti_training_slots[i].name)) return i;
    return -1;
}

static const sfti_key_take *take_named(const sfti_keys *keys, const sfti_key_takes *common,
                                       sft_span name) {
    for (size_t i = 0; i < keys->own_count; i++)
        if (sfti_is(name, keys->own[i].name)) return &keys->own[i];
    for (size_t i = 0; i < keys->shared_count; i++)
        if (sfti_is(name, keys->shared[i].name)) return &keys->shared[i];
    for (size_t i = 0; common && i < common->count; i++)
        if (sfti_is(name, common->at[i].name)) return &common->at[i];
    return NULL;
}

/* PATTERN TAKE [WHAT] [TRUST] [WORD] */
static bool row_of_key(const sfti_keys *keys, const sfti_key_takes *common,
                       const sfti_record_row *from, sfti_row *row) {
    sft_span rest = sfti_row_text(from), word;
    bool told = false;
    if (!sfti_next_said(&rest, &word)) return false;
    *row = (sfti_row){ .pattern = keep(word) };
    const sfti_key_take *take = sfti_next_said(&rest, &word) ? take_named(keys, common, word)
                                                            : NULL;
    if (!take) return false;
    row->take = take->take;
    while (sfti_next_said(&rest, &word)) {
        uint64_t number;
        int field = told ? -1 : field_of(take, word);
        if (field >= 0) row->field = field;
        else if (sfti_parse_uint(word, &number)) row->trust = (int)(number & 0xFF);
        else row->word = keep(word);
        told = told || field >= 0;
    }
    return true;
}

void sfti_keys_read(const sfti_keys *keys, const sfti_key_takes *common) {
    const sfti_records *records = sfti_records_built_in();
    const sfti_record *of = sfti_record_find(records, SFTI_KEYS, sft_span_cstr(keys->id));
    keys->made->rows = pool + pool_used;
    keys->made->row_count = 0;
    for (const sfti_record_row *row = NULL;
         of && pool_used < KEY_ROWS && (row = sfti_record_row_of(records, of, SFTI_KEY, row));)
        if (row_of_key(keys, common, row, &pool[pool_used])) {
            pool_used++;
            keys->made->row_count++;
        }
}
