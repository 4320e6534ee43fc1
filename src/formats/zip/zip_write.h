/* Writing a zip archive of tensors: entries are stored, in order, all of known size. */
#ifndef SFTI_ZIP_WRITE_H
#define SFTI_ZIP_WRITE_H

#include "base/mem.h"
#include "base/names.h"
#include "formats/parts/state.h"

/* Two layouts, to the byte those of the libraries that read them. */
typedef enum sfti_zip_layout {
    SFTI_ZIP_NUMPY, /* sizes of 64 bits in every local header */
    SFTI_ZIP_TORCH  /* data at multiples of 64, checksums behind them */
} sfti_zip_layout;

/* An entry of head's bytes and then the tensor's, if there is one. */
typedef struct sfti_zip_member {
    sft_span name;
    sft_span head;
    const sft_part *part; /* NULL: head is all */
    uint64_t bytes;       /* of the part */
    /* The writer's: */
    uint64_t size, at;
    uint32_t crc32;
    bool described; /* checksum and sizes follow the data */
} sfti_zip_member;

/* Write and finish the sink; abandon it on failure. Ticks the job with the bytes of tensors. */
sft_code sfti_zip_write(sfti_zip_member *members, size_t count, sfti_zip_layout layout,
                        sft_sink sink, const sft_allocator *alloc, const sft_job *job,
                        sft_error *err);

/* ── What both exports do first ── */

typedef struct sfti_export {
    sfti_arena arena;
    sft_export_options options;
    sft_job job;
    sfti_names names; /* of the parts */
    sfti_zip_member *members;
    size_t count;
    sft_error *err;
} sfti_export;

/* Options, room for `more` members besides one for each part; parts are checked: names in UTF-8,
 * each only once. */
sft_code sfti_export_begin(sfti_export *x, const sft_part *parts, size_t count, size_t more,
                           const sft_export_options *options, const sft_job *job, sft_error *err);
/* A member of that name, which is copied; SFT_FOREIGN_NAME if an archive cannot hold it. */
sft_code sfti_export_add(sfti_export *x, const char *folder, sft_span name, const char *suffix,
                         sft_span head, const sft_part *part);
/* Fail about a part whose dtype the other library does not have. */
sft_code sfti_export_refuse(sfti_export *x, const sft_part *part, const char *library);
/* Write what was added if code is SFT_OK, else abandon the sink; frees all. */
sft_code sfti_export_end(sfti_export *x, sft_code code, sfti_zip_layout layout, sft_sink sink);

#endif
