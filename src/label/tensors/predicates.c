/* What clauses of rows "tensors" ask of the metadata. Tests: test_info_tensors.c. */
#include "label/cursor.h"
#include "label/tensors/signatures.h"

#include <string.h>

typedef struct asked_value { sft_span wanted; bool found; } asked_value;

static void compare_value(sfti_cursor *at, const sfti_row *row) {
    asked_value *asked = at->ctx;
    (void)row;
    asked->found = asked->found || sfti_same_text(at->text, asked->wanted);
}

bool sfti_metadata_says(sft_info *info, const sfti_predicate *predicate) {
    char key[256], pointer[256];
    sft_span text;
    if (predicate->key.len >= sizeof key || predicate->pointer.len >= sizeof pointer) return false;
    memcpy(key, predicate->key.data, predicate->key.len);
    key[predicate->key.len] = 0;
    if (!sfti_info_metadata(info, key, &text)) return false;
    if (predicate->pointer.len == 0) return sfti_same_text(sfti_trim(text), predicate->value);
    memcpy(pointer, predicate->pointer.data, predicate->pointer.len);
    pointer[predicate->pointer.len] = 0;
    const sfti_row row = { pointer, compare_value, 0, 0, NULL };
    asked_value asked = { predicate->value, false };
    return sfti_info_walk(info, text, predicate->key, &row, 1, &asked) && asked.found;
}
