/* Rows of a table by the end of a name: of many rows few are compared. */
#include "label/tensors/signatures.h"

#include <string.h>

/* By the last two bytes. Most names of weights end alike: of those, by what stands before. */
static size_t place_of_end(sft_span name) {
    bool is_weight = name.len > 8 && memcmp(name.data + name.len - 7, ".weight", 7) == 0;
    if (is_weight) name.len -= 7;
    uint8_t last = (uint8_t)name.data[name.len - 1], before = (uint8_t)name.data[name.len - 2];
    return (is_weight ? 256u : 0u) + (last * 37u + before) % 256;
}

void sfti_suffixes_open(sfti_suffixes *suffixes, const sft_span *end, size_t stride, size_t count) {
    memset(suffixes->first, 0, sizeof suffixes->first);
    suffixes->end = end;
    suffixes->stride = stride;
    for (size_t i = count; i > 0; i--) { /* the first row is to be the first of its place */
        const void *row = (const char *)end + (i - 1) * stride;
        size_t place = place_of_end(*(const sft_span *)row);
        suffixes->next[i - 1] = suffixes->first[place];
        suffixes->first[place] = (uint8_t)i;
    }
}

size_t sfti_suffixes_find(const sfti_suffixes *suffixes, sft_span name) {
    if (name.len < 2) return 0;
    size_t row = suffixes->first[place_of_end(name)];
    for (; row; row = suffixes->next[row - 1]) {
        const void *at = (const char *)suffixes->end + (row - 1) * suffixes->stride;
        const sft_span end = *(const sft_span *)at;
        if (name.len < end.len) continue;
        const char *tail = name.data + (name.len - end.len); /* mostly its first letter decides */
        if (*tail == *end.data && memcmp(tail, end.data, end.len) == 0) break;
    }
    return row;
}
