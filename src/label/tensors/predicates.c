/* What clauses of rows "tensors" ask of the metadata. Tests: test_info_header.c. */
#include "label/cursor.h"
#include "label/tensors/signatures.h"

#include <string.h>

#define ASKED_MOST 65536

/* The values of a JSON text in the metadata, which is read once however often it is asked: digests
 * of each place and what is there, sorted. */
typedef struct sfti_asked_text {
    struct sfti_asked_text *next;
    const char *text;
    sfti_derived values;
    size_t room;
} sfti_asked_text;

static uint64_t asked_digest(sft_span pointer, sft_span value) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ pointer.len;
    for (size_t i = 0; i < pointer.len + value.len; i++) {
        char c = i < pointer.len ? pointer.data[i] : sfti_lower_case(value.data[i - pointer.len]);
        hash = (hash ^ (uint8_t)c) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static void note_value(sfti_cursor *at) {
    sfti_asked_text *asked = at->ctx;
    if (asked->values.count < asked->room && at->json->type >= SFTI_JSON_STRING)
        asked->values.digests[asked->values.count++] =
            asked_digest(sft_span_cstr(at->pointer), at->text);
}

static sfti_asked_text *asked_once(sft_info *info, sft_span text, sft_span key) {
    /* a row for each depth */
    static const char steps[] = "/*/*/*/*/*/*/*/*";
    sfti_row rows[SFTI_PREDICATE_STEPS];
    sfti_asked_text *asked = info->asked;
    while (asked && asked->text != text.data) asked = asked->next;
    if (asked) return asked;
    asked = sfti_info_take_zeroed(info, sizeof *asked);
    if (!asked) return NULL;
    asked->room = text.len / 2 < ASKED_MOST ? text.len / 2 : ASKED_MOST;
    asked->values.digests = sfti_info_take(info, asked->room * sizeof(uint64_t) + 1);
    if (!asked->values.digests) return NULL;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++)
        rows[i] = (sfti_row){ steps + 2 * i, note_value, 0, 0, NULL };
    if (!sfti_info_walk(info, text, key, SFTI_ROWS(rows), asked)) asked->values.count = 0;
    if (!sfti_derived_sort(&asked->values, &info->arena)) info->code = SFT_OUT_OF_MEMORY;
    asked->text = text.data;
    asked->next = info->asked;
    return info->asked = asked;
}

bool sfti_metadata_says(sft_info *info, const sfti_predicate *predicate) {
    char key[256];
    sft_span text;
    if (predicate->key.len >= sizeof key) return false;
    memcpy(key, predicate->key.data, predicate->key.len);
    key[predicate->key.len] = 0;
    if (!sfti_info_metadata(info, key, &text)) return false;
    if (predicate->pointer.len == 0) return sfti_same_text(sfti_trim(text), predicate->value);
    const sfti_asked_text *asked = asked_once(info, text, predicate->key);
    return asked
        && sfti_derived_has(&asked->values, asked_digest(predicate->pointer, predicate->value));
}
