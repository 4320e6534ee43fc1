/* What the files of this folder share, and what edits take from it. */
#ifndef SFTI_FILE_H
#define SFTI_FILE_H

#include "bytes/source.h"
#include "format/format.h"
#include "safetensors_scan.h"

struct sft_file {
    sft_allocator alloc;
    sft_source source; /* a map's or memory's base is set; close NULL if the caller's */
    sfti_model model;
    sfti_arena arena;
    char *header; /* private copy, or NULL when the text lies in the caller's memory */
    size_t header_cap;
    sft_level level;
    bool complete; /* all data was there when the file was opened */
    bool writable; /* base is a private map */
};

/* Options with defaults filled in. */
typedef struct sfti_open {
    sft_open_options options; /* alloc is the one below: not to be copied */
    sft_allocator alloc;
    sfti_limits limits;
} sfti_open;

/* SFT_BAD_ARGUMENT for a size or an enum that makes no sense; SFT_IO_MAP if the path (or NULL) is
 * one that options.files claims, and is to be mapped. */
sft_code sfti_open_settle(const char *path, const sft_open_options *options, sfti_open *out,
                          sft_error *err);

/* Private memory of a header, or part of it. */
typedef struct sfti_header {
    char *data;
    size_t len, cap;
} sfti_header;

/* The 8 length bytes, framed, and the text behind them; in_place: only how long it is. Memory is
 * taken as bytes arrive where the source's size is unknown. On failure nothing is held, but for
 * SFT_HEADER_TRUNCATED: what was there. */
sft_code sfti_header_load(const sft_source *source, const sfti_open *how, bool in_place,
                          sfti_header *out, sft_error *err);

/* Whether the file of a path, as it was scanned, is in the middle of an edit
 * (sfti_file_edited). */
sft_code sfti_scan_check(const sft_scan *scan, const char *path, const os_info *info,
                         bool *foreign, sft_error *err);

/* What a scan could read of a file, as its entries say: tensors are neither whole nor apart
 * from one another for sure. */
const sfti_model *sfti_scan_model(const sft_scan *scan);

static inline uint64_t sfti_tensor_bytes(const sft_tensor *tensor) {
    return tensor->end - tensor->begin;
}

/* Whether a tensor is one of this file (or of another over the same memory), as all must be whose
 * bytes are read from it: those of another shard have offsets, too. O(1). */
bool sfti_file_holds(const sft_file *file, const sft_tensor *tensor);
sft_code sfti_tensor_foreign(const sft_tensor *tensor, sft_error *err);

sft_code sfti_view_bad_call(sft_error *err);
sft_code sfti_buffer_mismatch(const sft_tensor *tensor, uint64_t want, size_t len,
                              sft_error *err);

/* Exactly len bytes of the file. tensor: the one an error is about, or NULL. */
sft_code sfti_file_read(const sft_file *file, const sft_tensor *tensor, uint64_t offset,
                        void *into, size_t len, sft_error *err);

/* What sft_diagnose knows. head: the first bytes of the source, head_len of them. */
typedef struct sfti_evidence {
    const uint8_t *head;
    size_t head_len;
    uint64_t size;             /* or SFT_SIZE_UNKNOWN */
    const sft_source *source;  /* for bytes elsewhere */
} sfti_evidence;

#define SFTI_HEAD_BYTES 3072 /* of the 4 KiB that a diagnosis may read */

void sfti_diagnose(const sfti_evidence *evidence, sft_error *error);

/* ── Repairs: what sft_repair can correct. A scan asks this table before a hint offers a repair,
 *    and the repair works by it ── */

#define SFTI_FINDINGS_MANY 1000 /* a scan stops there: there may be more */

typedef struct sfti_repair_row {
    sft_code code;    /* of a finding, or SFT_OK: */
    const char *note; /* name of a note */
    const char *name, *done;
} sfti_repair_row;

/* NULL: cannot be repaired. */
const sfti_repair_row *sfti_repair_of_code(sft_code code);
const sfti_repair_row *sfti_repair_of_note(const char *note);
const sfti_repair_row *sfti_repair_of_finding(const sfti_model *model, const sft_error *found);

/* Whatever was found: a tensor is written only if dtype and shape agree with its offsets, and
 * its bytes are in a file of this size. */
sft_code sfti_repair_check(const sfti_model *model, uint64_t size, const sft_tensor *t,
                           sft_error *err);

/* Whether a repair corrects all findings of a scan. verdict: its error, or NULL. */
bool sfti_repairs_all(const sfti_model *model, const sft_error *verdict,
                      const sft_finding *findings, size_t count, uint64_t size);

/* ── Writers: of a plan (writer.c), and of tensors that are added one by one (writer_add.c) ── */

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
