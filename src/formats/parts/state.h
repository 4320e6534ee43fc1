/* What the readers of formats share: an import being opened, the items they add to it, and the
 * sources that items are read from.
 *
 * A reader turns a table of contents into items; everything else (aliases, limits, strides, names,
 * metadata, the report, saving) happens to items, in one place, whatever the format. Readers use
 * this header and one another's only where a format contains another (a zip contains pickles). Of
 * an import they use arena, options, name, err, format and input, and the calls below. */
#ifndef SFTI_IMPORT_STATE_H
#define SFTI_IMPORT_STATE_H

#include "base/checked.h"
#include "base/error.h"
#include "base/foreign.h"
#include "base/mem.h"
#include "base/names.h"
#include "os/os.h"
#include "safetensors_import.h"

/* Elements stored in blocks of a fixed size, each of which becomes `elements` values. */
typedef struct sfti_codec {
    const char *name;  /* "Q4_K": the note of the tensor */
    uint32_t elements; /* a block has; divides the last dimension */
    uint32_t stored;   /* bytes of a block */
    /* count blocks become count * elements values of F32. Thread-safe, does not allocate. */
    void (*unpack)(const uint8_t *in, float *out, size_t count);
} sfti_codec;

/* A tensor as a reader found it. Zeroed members have the usual meaning: packed, little-endian,
 * stored as it will be. What it points to lives in the import's arena. */
typedef struct sfti_item {
    sft_span name;          /* UTF-8 checked by sfti_import_add */
    sft_dtype dtype;        /* of the result; of a codec's ignored */
    uint32_t rank;
    const uint64_t *shape;
    const sft_source *source; /* of the import: its input and the functions below */
    uint64_t begin;           /* of the first element, in that source */
    /* Bytes of the source from `begin` on that the item may read, checked when it is added
     * against shape and strides; SFT_FOREIGN_SIZE if it needs more. */
    uint64_t stored;
    const uint64_t *strides; /* in elements, as many as dimensions; NULL: row-major */
    uint8_t swap;            /* bytes of what is stored big-endian: 2, 4 or 8; 0: nothing */
    bool conj, neg;          /* PyTorch's flags */
    bool opaque;             /* the format does not tell the dtype, only its width: dtype is an
                                unsigned one, and options.as must tell */
    const sfti_codec *codec; /* NULL: elements */
    sft_span factor;         /* of a codec's: the tensor by which its values are to be multiplied,
                                which is not done: they are refused; empty: none */
    /* Items that a source of the reader's own computes it from, up to NULL: the first is read when
     * it is read, the others were when it was opened. NULL: its bytes are stored. */
    const struct sfti_item *const *from;
    uint32_t storage;        /* items of one number (not 0) may overlap: aliases and views */
    uint32_t shard;
    uint64_t at;             /* byte of the container that describes it, for errors */
    const char *note;        /* NULL: derived from the above */
    bool dropped;            /* the core's: it is not a tensor of the result */
} sfti_item;

typedef struct sft_import sfti_import;

/* A source that lives as long as the import; named: another file, by the name that opened it. */
typedef struct sfti_held {
    struct sfti_held *next, *next_file;
    sft_source source;
    sft_span name;
} sfti_held;

/* Bytes whose checksum is recorded. */
typedef struct sfti_checksum {
    const sft_source *source;
    uint64_t begin, len;
    uint32_t crc;
    bool castagnoli; /* it is a CRC-32C */
} sfti_checksum;

/* What is known of the records' checksums (checked.c). */
typedef struct sfti_checks sfti_checks;

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
    sft_span name;      /* of its path, without the folder; empty: a source */
    bool is_claimed;    /* its path is not the system's, and may be a URL */
    sft_error *err;     /* the caller's, while it is opened; set by whatever fails */
    sft_import_format format;
    const sft_import_format_info *(*describe)(sft_import_format format);
    const sft_source *input;
    uint64_t input_bytes; /* of all files */
    sfti_held *held;
    sfti_held *files; /* of them, those that a name opened */
    uint32_t shard, shards;
    const char *const *more; /* paths of shards after the first, which the input is */
    size_t more_count;
    SFTI_IMPORT_LIST(sfti_item) items;
    SFTI_IMPORT_LIST(sft_import_left) left;
    SFTI_IMPORT_LIST(sft_import_global) globals;
    sfti_names global_names;
    uint64_t more_globals; /* that are not listed */
    SFTI_IMPORT_LIST(sft_import_branch) branches;
    SFTI_IMPORT_LIST(sft_import_alias) aliases;
    SFTI_IMPORT_LIST(sft_pair) metadata;
    SFTI_IMPORT_LIST(sfti_checksum) records;
    /* Once settled, one for each tensor of the result: */
    SFTI_IMPORT_LIST(sft_part) parts;
    uint32_t *item_of;
    sfti_checks *checks; /* NULL: no records */
    sfti_workspace work;
};

/* ── What readers call; im->err is set by whatever fails ── */

/* What is added from now on stands in that shard, from 0. */
void sfti_import_begin_shard(sfti_import *im, uint32_t shard);

/* Exactly len bytes of a source at offset, into the arena or the caller's memory. Short reads are
 * SFT_FOREIGN_TRUNCATED with the offset. */
sft_code sfti_import_read(sfti_import *im, const sft_source *source, uint64_t offset, void *into,
                          size_t len);
sft_code sfti_import_load(sfti_import *im, const sft_source *source, uint64_t offset, uint64_t len,
                          uint8_t **out);

/* Another file by a name that the file contains (ONNX, shards, a bundle's data), beneath the
 * folder of the import's path. A name that leaves it, an absolute one, or a link that leads out is
 * SFT_FOREIGN_PATH; nothing but regular files. The same name gives the same source again. */
sft_code sfti_import_file(sfti_import *im, sft_span name, const sft_source **out);
/* Bytes that a reader computed itself and keeps in the arena. */
sft_code sfti_import_memory(sfti_import *im, const void *bytes, size_t len,
                            const sft_source **out);
/* Pieces one after another. */
typedef struct sfti_piece {
    const sft_source *source;
    uint64_t begin, len;
} sfti_piece;
sft_code sfti_import_joined(sfti_import *im, const sfti_piece *pieces, size_t count,
                            const sft_source **out);
/* For tables of sources whose ctx begins with the source that they read: its mode. */
uint32_t sfti_mode_inner(void *ctx);
/* A source of the reader's own; the import closes it. */
sft_code sfti_import_own(sfti_import *im, const sft_source *made, const sft_source **out);
/* The CRC-32 of bytes [begin, begin + len) of a source must be this: else reading the last of them
 * for a tensor, or any of them out of order, is SFT_FOREIGN_CHECKSUM. castagnoli: their CRC-32C,
 * not masked. */
sft_code sfti_import_crc32(sfti_import *im, const sft_source *source, uint64_t begin,
                           uint64_t len, uint32_t crc32, bool castagnoli);

/* About that many tensors, and records with a checksum, will be added: their tables need not
 * grow. */
sft_code sfti_import_expect(sfti_import *im, uint64_t tensors);
/* Add a tensor. Copies the item, not what it points to. With options.skip, items that cannot be
 * carried are listed instead. SFT_FOREIGN_NAME for a name that is not UTF-8, empty or
 * "__metadata__". */
sft_code sfti_import_add(sfti_import *im, const sfti_item *item);
/* A tensor that is there but cannot be carried: fails with this code, or lists it (skip). */
sft_code sfti_import_refuse(sfti_import *im, sft_span name, uint64_t bytes, sft_code code,
                            uint64_t offset, const char *format, ...) SFTI_FORMAT(6, 7);
/* Something else to be told. text is copied. */
sft_code sfti_import_leave(sfti_import *im, sft_import_reason reason, sft_span path,
                           uint64_t count, uint64_t bytes, const char *text);
/* A global of Python without a meaning here, so often named and called. */
sft_code sfti_import_global(sfti_import *im, sft_span module, sft_span name, uint64_t named,
                            uint64_t calls);
sft_code sfti_import_branch(sfti_import *im, sft_span path, uint64_t tensors, uint64_t bytes,
                            bool chosen);
/* A pair of the result's metadata; the first value of a key counts. Both are copied. */
sft_code sfti_import_meta(sfti_import *im, const char *key, sft_span value);

/* ── Formats ── */

/* One row a format, in the order in which they are tried. head: the first bytes, up to 64. */
typedef struct sfti_format {
    sft_import_format_info info;
    /* Whether it is this. May read further; a failed read means no. NULL: another row's function
     * decides between the two, and sets im->format. */
    bool (*is)(sfti_import *im, const uint8_t *head, size_t len);
    sft_code (*read)(sfti_import *im);
} sfti_format;

bool sfti_is_zip(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_zip(sfti_import *im); /* PyTorch, TorchScript or npz, by its entries */
bool sfti_is_torch_legacy(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_torch_legacy(sfti_import *im);
bool sfti_is_torch_tar(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_torch_tar(sfti_import *im);
bool sfti_is_pickle(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_pickle(sfti_import *im);
bool sfti_is_npy(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_npy(sfti_import *im);
bool sfti_is_gguf(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_gguf(sfti_import *im);
bool sfti_is_onnx(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_onnx(sfti_import *im);
bool sfti_is_msgpack(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_msgpack(sfti_import *im);
bool sfti_is_tf_bundle(sfti_import *im, const uint8_t *head, size_t len);
sft_code sfti_read_tf_bundle(sfti_import *im);

/* ── What the parts call of one another ── */

/* After input_bytes grew: what a file says takes at most as much memory as its bytes six times, and
 * SFTI_MEMORY_BASE; more is SFT_FOREIGN_TABLE. Not counted: the workspace. */
void sfti_import_allow(sfti_import *im);
#define SFTI_MEMORY_BASE ((uint64_t)256 << 20)
#define SFTI_MEMORY_TIMES 6

/* Room for one more in a list of the import; NULL: SFT_OUT_OF_MEMORY, told. */
void *sfti_list_more(sfti_import *im, void *list, size_t each);

/* After the reader: names, aliases, limits; items become parts. */
sft_code sfti_import_settle(sfti_import *im);

/* Parts whose items begin in a record with a checksum get sources that compare it, whether they are
 * read as a whole, out of order or through a view. Such sources are thread-safe. */
sft_code sfti_checks_begin(sfti_import *im);
void sfti_checks_end(sfti_import *im);
/* The record of part i, unless it has none or that was compared and is right. */
const sfti_checksum *sfti_checks_left(const sfti_import *im, size_t i);
/* Reads that record and compares it. */
sft_code sfti_checks_compare(const sfti_import *im, size_t i, sft_error *err);

/* Bytes from the item's beginning to the end of its last element; false: more than 2^64. */
bool sfti_item_reach(const sfti_item *item, uint64_t *out);
/* The name of item `entry`, for a table of names (names.h); ctx: the items. */
sft_span sfti_item_name(const void *ctx, uint32_t entry);
/* Sources of items that are not carried as they are stored. */
sft_code sfti_view_source(sfti_import *im, const sfti_item *item, const sft_source **out);
sft_code sfti_codec_source(sfti_import *im, const sfti_item *item, sft_dtype to,
                           const sft_source **out);

/* Open a path, by the options. */
sft_code sfti_import_path(sfti_import *im, const char *path, const char *beneath,
                          sft_source *out);
/* Permission bits common to all files that were opened (sft_source_mode). */
uint32_t sfti_import_mode(const sft_import *im);
/* sfti_foreign.files. */
size_t sfti_import_files(const sft_import *im, sft_span *names);
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
