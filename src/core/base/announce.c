/* Reads announced to sources that can fetch them together. */
#include "base/announce.h"

#include "base/options.h"
#include "safetensors_io.h"

bool sfti_source_expects(const sft_source *source) {
    return SFTI_CAN(source, sft_source_vtable, expect);
}

void sfti_announce_end(sfti_announcement *a) {
    if (a->count > 0) sft_source_expect(&a->source, a->runs, a->count);
    a->count = 0;
}

void sfti_announce(sfti_announcement *a, const sft_source *source, uint64_t begin, uint64_t len) {
    if (!sfti_source_expects(source) || begin >= source->size) return;
    if (len > source->size - begin) len = source->size - begin;
    if (len == 0) return;
    sft_run *last = &a->runs[a->count > 0 ? a->count - 1 : 0];
    /* Sources are passed by value: the context tells whether it is the same. */
    bool same = a->count > 0 && a->source.ctx == source->ctx && a->source.vtable == source->vtable;
    if (same && last->offset + last->len == begin) {
        last->len += len;
        return;
    }
    if (!same || a->count == SFTI_ANNOUNCE_RUNS) sfti_announce_end(a);
    a->source = *source;
    a->runs[a->count++] = (sft_run){ begin, len };
}

void sfti_announce_tensor(sfti_announcement *a, const sft_file *file, const sft_tensor *tensor) {
    sft_source source = sft_file_source(file);
    sfti_announce(a, &source, tensor->offset, tensor->end - tensor->begin);
}
