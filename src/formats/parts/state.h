/* An import, as the core's files see it. Readers see import.h only. */
#ifndef SFTI_IMPORT_STATE_H
#define SFTI_IMPORT_STATE_H

#include "base/foreign.h"
#include "base/names.h"
#include "formats/parts/import.h"
#include "os/os.h"

/* A source that lives as long as the import; named: another file, by the name that opened it. */
typedef struct sfti_held {
    struct sfti_held *next, *next_file;
    sft_source source;
    sft_span name;
} sfti_held;

/* Bytes whose checksum is recorded. */
typedef struct sfti_record {
    const sft_source *source;
    uint64_t begin, len;
    uint32_t crc;
    bool castagnoli; /* it is a CRC-32C */
} sfti_record;

/* More different globals than these are only counted. */
#define SFTI_MOST_GLOBALS 4096

/* An array in the import's arena. */
#define SFTI_IMPORT_LIST(type) struct { type *at; size_t count, cap; }

/* Buffers of computed tensors: allocated with the first of them, used by one thread at a time. */
typedef struct sfti_workspace {
    os_mutex mutex;
    bool has_mutex;
    uint8_t *in, *out;      /* SFTI_WORK_BYTES each */
    const void *of;         /* whose bytes [begin, begin + len) `out` holds, or NULL */
    uint64_t begin;
    size_t len;
} sfti_workspace;
#define SFTI_WORK_BYTES ((size_t)16 << 20)

/* The caller's allocator, which counts while an import is opened: the values of a pickle, its stack
 * and what else is built on the way, not only what stays. */
typedef struct sfti_budget {
    sft_allocator own;
    uint64_t used, most; /* most 0: nothing is counted any more */
    bool is_full;        /* more was asked for, and refused */
} sfti_budget;

struct sft_import {
    sfti_foreign foreign; /* the first member: what others may ask */
    sfti_arena arena;
    sft_allocator alloc; /* by the budget */
    sfti_budget budget;
    sft_import_options options;
    const char *folder; /* of its path, with a slash, or ""; NULL: a source, which has none */
    sft_span name;      /* of its path, without the folder */
    bool is_claimed;    /* its path is not the system's, and may be a URL */
    sft_error *err;     /* the caller's, while it is opened */
    sft_import_format format;
    const sft_source *input;
    uint64_t input_bytes; /* of all files */
    sfti_held *held;
    sfti_held *files; /* of them, those that a name opened */
    uint32_t shard, shards;
    SFTI_IMPORT_LIST(sfti_item) items;
    SFTI_IMPORT_LIST(sft_import_left) left;
    SFTI_IMPORT_LIST(sft_import_global) globals;
    sfti_names global_names;
    uint64_t more_globals; /* that are not listed */
    SFTI_IMPORT_LIST(sft_import_branch) branches;
    SFTI_IMPORT_LIST(sft_import_alias) aliases;
    SFTI_IMPORT_LIST(sft_pair) metadata;
    SFTI_IMPORT_LIST(sfti_record) records;
    /* Once settled, one for each tensor of the result: */
    SFTI_IMPORT_LIST(sft_part) parts;
    uint32_t *item_of;
    sfti_workspace work;
};

/* After input_bytes grew: what a file says takes at most as much memory as its bytes six times, and
 * SFTI_MEMORY_BASE; more is SFT_FOREIGN_TABLE. Not counted: the workspace. */
void sfti_import_allow(sfti_import *im);
#define SFTI_MEMORY_BASE ((uint64_t)256 << 20)
#define SFTI_MEMORY_TIMES 6

/* Room for one more in a list of the import; NULL: SFT_OUT_OF_MEMORY, told. */
void *sfti_list_more(sfti_import *im, void *list, size_t each);

/* After the reader: names, aliases, limits; items become parts. */
sft_code sfti_import_settle(sfti_import *im);

/* Sources of items that are not carried as they are stored. */
sft_code sfti_view_source(sfti_import *im, const sfti_item *item, const sft_source **out);
sft_code sfti_codec_source(sfti_import *im, const sfti_item *item, sft_dtype to,
                           const sft_source **out);

/* Open a path, by the options. */
sft_code sfti_import_path(sfti_import *im, const char *path, const char *beneath,
                          sft_source *out);
/* Permission bits common to all files that were opened (sft_source_mode). */
uint32_t sfti_import_mode(const sft_import *im);
/* These files will be opened next (sfti_import_file). */
void sfti_import_announce(sfti_import *im, const sft_span *names, size_t count);

/* The workspace for one computation; SFT_OUT_OF_MEMORY. */
sft_code sfti_work_begin(sfti_import *im, sft_error *err);
void sfti_work_end(sfti_import *im);
/* Exactly len bytes, SFT_FOREIGN_TRUNCATED if there are fewer; of any source. */
sft_code sfti_import_exact(const sft_source *source, uint64_t offset, void *into, size_t len,
                           sft_error *err);

/* The index of PyTorch shards in im's input; each shard is read by its own format's reader, which
 * read (of open.c) calls. */
sft_code sfti_read_torch_index(sfti_import *im, sft_code (*read)(sfti_import *im));

#endif
