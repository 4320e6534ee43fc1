/* A set of the one file that a plan describes, all data zeros that nobody holds; and labels
 * as JSON, read back by the library's own reader. */
#ifndef SFT_FUZZ_PLANNED_H
#define SFT_FUZZ_PLANNED_H

#include "base/json.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "safetensors_info.h"

#include <string.h>

static inline sft_code read_planned(void *ctx, uint64_t offset, void *into, size_t len,
                                    size_t *got, sft_error *err) {
    sft_span head = sft_plan_head(ctx);
    size_t from = offset < head.len ? (size_t)offset : head.len;
    (void)err;
    memset(into, 0, len);
    memcpy(into, head.data + from, head.len - from < len ? head.len - from : len);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable planned_source_vtable = {
    sizeof(sft_source_vtable), read_planned, NULL, NULL, NULL
};

/* The plan must outlive the set. */
static inline sft_set *open_planned(sft_plan *plan) {
    sft_source source = { plan, &planned_source_vtable, sft_plan_total(plan), NULL, false };
    sft_set *set = NULL;
    sft_file *file = NULL;
    FUZZ_CHECK(!sft_open_source(source, NULL, &file, NULL));
    FUZZ_CHECK(!sft_set_from_file(file, "x.safetensors", &set, NULL));
    return set;
}

static inline void check_label(const sft_info *info, bool full) {
    sft_buffer out = { NULL, 0, 0, { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&out);
    FUZZ_CHECK(!sft_info_json(info, "x", full, &sink, NULL));
    FUZZ_CHECK(sfti_utf8_check(out.data, out.len) == out.len);
    sfti_json json;
    sfti_json_begin(&json, out.data, out.len);
    while (sfti_json_next(&json) != SFTI_JSON_END) FUZZ_CHECK(json.type != SFTI_JSON_ERROR);
    sft_buffer_free(&out);
}

#endif
