/* What the readers of formats share: an import being opened, the items they add to it, and the
 * sources that items are read from.
 *
 * A reader turns a table of contents into items; everything else (aliases, limits, strides, names,
 * metadata, the report, saving) happens to items, in one place, whatever the format. Readers use
 * this header and one another's only where a format contains another (a zip contains pickles). */
#ifndef SFTI_IMPORT_H
#define SFTI_IMPORT_H

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
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
    const sft_source *source; /* of the import: sfti_import_input and the functions below */
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
    uint32_t storage;        /* items of one number (not 0) may overlap: aliases and views */
    uint32_t shard;
    uint64_t at;             /* byte of the container that describes it, for errors */
    const char *note;        /* NULL: derived from the above */
    bool dropped;            /* the core's: it is not a tensor of the result */
} sfti_item;

typedef struct sft_import sfti_import;

/* ── What readers call; im->err is set by whatever fails ── */

/* The file itself; SFT_FOREIGN_TRUNCATED beyond its end. */
const sft_source *sfti_import_input(const sfti_import *im);
sfti_arena *sfti_import_arena(sfti_import *im);
const sft_import_options *sfti_import_options(const sfti_import *im);
sft_error *sfti_import_error(sfti_import *im);

/* The name of the file, without its folder; empty: a source, which has none. */
sft_span sfti_import_name(const sfti_import *im);
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
/* A source of the reader's own; the import closes it. */
sft_code sfti_import_own(sfti_import *im, const sft_source *made, const sft_source **out);
/* When bytes [begin, begin + len) of a source are copied as a whole, their CRC-32 must be this,
 * else SFT_FOREIGN_CHECKSUM. */
sft_code sfti_import_crc32(sfti_import *im, const sft_source *source, uint64_t begin,
                           uint64_t len, uint32_t crc32);
/* The same with a CRC-32C, not masked. */
sft_code sfti_import_crc32c(sfti_import *im, const sft_source *source, uint64_t begin,
                            uint64_t len, uint32_t crc32c);

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
     * decides between the two (sfti_import_become). */
    bool (*is)(sfti_import *im, const uint8_t *head, size_t len);
    sft_code (*read)(sfti_import *im);
} sfti_format;

/* The reader found that it is another format of the same container. */
void sfti_import_become(sfti_import *im, sft_import_format format);

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

#endif
