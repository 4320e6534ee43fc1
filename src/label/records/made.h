/* The records that come with the library as they were read when it was built, by
 * cmake/records_tables.c: without pointers, so that a program that asks for none pays nothing. */
#ifndef SFTI_RECORDS_MADE_H
#define SFTI_RECORDS_MADE_H

#include "label/records/read.h"

typedef struct sfti_made_record {
    uint32_t id;     /* in ids, with a NUL behind it; UINT32_MAX: it has none */
    uint32_t label;  /* in the text */
    uint16_t label_len;
    uint16_t parent; /* its index + 1, or 0 */
    uint16_t first, count;
    uint8_t type, kin;
} sfti_made_record;

/* Where the bit of a metadata key stands, up to its first ':', in whatever case. */
#define SFTI_MADE_KEY_BITS 16384
static inline uint32_t sfti_made_key_bit(sft_span key) {
    uint32_t hash = 0;
    for (size_t i = 0; i < key.len && key.data[i] != ':'; i++)
        hash = (hash ^ ((uint8_t)key.data[i] | 0x20u)) * 0x01000193u;
    return (hash ^ hash >> 15) % SFTI_MADE_KEY_BITS;
}

/* The bits of what rows "key" begin with, but for JSON pointers, which are of other texts. */
void sfti_made_key_bits(const sfti_records *records, uint32_t bits[SFTI_MADE_KEY_BITS / 32]);

/* keys: those bits; tables: one after another; all else as in
 * sfti_records. row_count 0: the library was built for another system than the one that built it,
 * and reads its text. */
typedef struct sfti_made {
    const sfti_made_record *records;
    const sfti_record_row *rows; /* their at is NULL */
    const char *ids;
    const uint32_t *slots;
    const uint16_t *tables;
    const uint32_t *keys;
    uint32_t slot_mask;
    uint16_t record_count, row_count;
    uint16_t heads[SFTI_ROW_LISTS], table_counts[SFTI_TABLES];
} sfti_made;

extern const sfti_made sfti_made_records;

#endif
