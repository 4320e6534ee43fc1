/* The two kinds of writer: of a plan (writer.c), and of tensors that are added one by one
 * (writer_add.c). */
#ifndef SFTI_WRITER_H
#define SFTI_WRITER_H

#include "base/mem.h"
#include "base/names.h"
#include "format/plan.h"
#include "safetensors.h"

typedef struct sfti_added_tensor {
    sft_tensor tensor;
    uint64_t done; /* bytes it has */
} sfti_added_tensor;

/* What a writer without a plan has so far. */
typedef struct sfti_added {
    sfti_arena arena;
    sft_writer_options options; /* metadata are copies */
    uint64_t cap; /* N */
    uint64_t text; /* of it taken */
    uint64_t data; /* end of the last tensor */
    sfti_added_tensor *items;
    size_t count, most;
    sfti_names names;
    uint64_t seed[2];
} sfti_added;

struct sft_writer {
    sft_allocator alloc;
    size_t bytes;
    const sft_plan *plan; /* NULL: see added */
    sfti_added added;
    sft_sink sink;
    uint64_t next;     /* offset a forward sink stands at */
    sft_error failure; /* the first, code SFT_OK before */
    uint64_t done[];   /* of each tensor of the plan: bytes it has */
};

/* Write the header of what was added. */
sft_code sfti_writer_head(sft_writer *writer, sft_error *err);

#endif
