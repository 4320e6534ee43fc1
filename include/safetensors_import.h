/* Reading other formats of tensors: PyTorch checkpoints, NumPy arrays, GGUF, ONNX, Flax, Paddle
 * and TensorFlow. A table of contents is read and becomes tensors; the bytes stay where they are
 * until they are copied. Nothing that a file says is ever called, imported or evaluated: a pickle
 * becomes a tree of values, and what a loader would have called is counted and named.
 *
 *     sft_import *import;
 *     if (!sft_import_open("model.ckpt", NULL, &import, &err))
 *         code = sft_import_save(import, sink, NULL, NULL, &err);
 *     sft_import_close(import);
 *
 * docs/import.md has what is read of each format, and what is refused.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_IMPORT is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. An import is immutable once open; its sources may be read by
 * any number of threads. */
#ifndef SFT_SAFETENSORS_IMPORT_H
#define SFT_SAFETENSORS_IMPORT_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_codes.h"
#include "safetensors_set.h"
#include "safetensors_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_IMPORT 1

/* What a file is, told from its contents; names and extensions are not considered. @since 0.2 */
typedef enum sft_import_format {
    SFT_IMPORT_NONE = 0,         /* none of these, or safetensors */
    SFT_IMPORT_TORCH_ZIP = 1,    /* torch.save since 1.6 */
    SFT_IMPORT_TORCHSCRIPT = 2,  /* torch.jit.save */
    SFT_IMPORT_TORCH_LEGACY = 3, /* torch.save from 0.1.10 to 1.5 */
    SFT_IMPORT_TORCH_TAR = 4,    /* torch.save before */
    SFT_IMPORT_PICKLE = 5,       /* a pickle of arrays: Paddle, Detectron2 */
    SFT_IMPORT_NPY = 6,
    SFT_IMPORT_NPZ = 7,
    SFT_IMPORT_GGUF = 8,
    SFT_IMPORT_ONNX = 9,
    SFT_IMPORT_MSGPACK = 10,     /* Flax */
    SFT_IMPORT_TF_BUNDLE = 11,   /* a TensorFlow checkpoint's .index, or a SavedModel folder */
    SFT_IMPORT_TORCH_INDEX = 12  /* an index of PyTorch shards, or a folder with one */
} sft_import_format;

/* A row of the table of formats. Allocated by the library only. @since 0.2 */
typedef struct sft_import_format_info {
    sft_import_format format;
    const char *name;  /* "torch", in JSON and messages for programs */
    const char *title; /* "PyTorch checkpoint" */
    bool is_pickle;    /* its usual loader runs what the file says */
} sft_import_format_info;

/* The row of a format; NULL for SFT_IMPORT_NONE and values outside the enum. Static. @since 0.2 */
SFT_API const sft_import_format_info *sft_import_format_describe(sft_import_format format);

/* What to do with tensors that are stored once and have several names. @since 0.2 */
typedef enum sft_import_shared {
    SFT_IMPORT_ALIAS = 0,  /* the first name in file order gets the bytes; metadata tells the
                              others: { other name: first name }; copied if one of the two has
                              no dot, without which this would not be taken for a record */
    SFT_IMPORT_COPY = 1,   /* every name gets bytes */
    SFT_IMPORT_REFUSE = 2  /* SFT_FOREIGN_SHARED */
} sft_import_shared_mode;

/* What to do with tensors of PyTorch that are stored as integers with a scale (qint8 …), and
 * with sparse ones. @since 0.2 */
typedef enum sft_import_special {
    SFT_IMPORT_SPECIAL_REFUSE = 0, /* SFT_FOREIGN_OBJECT names the tensor */
    SFT_IMPORT_SPECIAL_PARTS = 1,  /* what they consist of: NAME.int_repr, NAME.scale,
                                      NAME.zero_point; NAME.indices, NAME.values, NAME.shape */
    SFT_IMPORT_SPECIAL_VALUES = 2  /* their values: (q - zero_point) * scale in F32; dense */
} sft_import_special;

/* Another dtype of the same width for the elements of a tensor: for formats that cannot tell BF16
 * from U16. Returns false to leave *dtype as it is. spec->name is what the result calls it.
 * @since 0.2 */
typedef bool (*sft_import_as_fn)(void *ctx, const sft_spec *spec, sft_dtype *dtype);

/* @since 0.2 */
typedef struct sft_import_options {
    size_t size;
    /* The branch whose tensors are imported, as sft_import_branch_at spells it: "model",
     * "optimizer.state". NULL: the whole, if all tensors are in one branch, else the model's. */
    const char *root;
    bool all;  /* every branch, under its whole path */
    bool skip; /* leave out tensors that cannot be carried, and list them, rather than fail */
    sft_import_shared_mode shared;
    sft_import_special quantised, sparse;
    /* What GGUF's and similar blocks are computed to: SFT_F16 (0 means that, too), SFT_BF16 or
     * SFT_F32. A value out of range is SFT_CAST_VALUE. */
    sft_dtype dequantised;
    sft_import_as_fn as; /* NULL: none; SFT_CAST_DTYPE if the widths differ */
    void *as_ctx;
    const char *strip_prefix; /* of names; those without it stay; NULL = none */
    const char *separator;    /* between the levels of nested names; NULL = "." */
    /* Limit of the bytes of all tensors, which strides, sparse tensors and compression can make
     * much larger than the file. 0 = 1 GiB or 8 times the input, whichever is more; blocks that
     * are dequantised count as at most their own bytes. */
    uint64_t max_output;
    bool scalars;  /* numbers of Python as tensors: F64 and I64, BOOL */
    const sft_allocator *alloc;
    const sft_files *files; /* as in sft_open_options, also for shards and external data.
                               @since 0.2 */
    const sft_wait *wait;   /* as in sft_open_options. @since 0.2 */
} sft_import_options;

#define SFT_IMPORT_OPTIONS_INIT                                                            \
    { sizeof(sft_import_options), NULL, false, false, SFT_IMPORT_ALIAS,                    \
      SFT_IMPORT_SPECIAL_REFUSE, SFT_IMPORT_SPECIAL_REFUSE, SFT_BOOL, NULL, NULL, NULL,    \
      NULL, 0, false, NULL, NULL, NULL }

typedef struct sft_import sft_import;

/* Tell what the file or folder at path is. SFT_OK and SFT_IMPORT_NONE if it is none of these.
 * files: NULL, or as in sft_open_options. Reads at most 64 KiB and, of a zip, its directory.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_recognise(const char *path, const sft_files *files,
                                                    sft_import_format *out, sft_error *err);

/* Read the table of contents of a file, or of a folder that holds one model (a SavedModel, an
 * index of PyTorch shards). Other files that it names (ONNX's external data, shards) are opened
 * beneath its folder only. SFT_FOREIGN_KIND: recognised, but not read. Cost: linear in the table;
 * no tensor is read. Memory: at most 256 MiB and six times the bytes of the file and of those it
 * names; a table that needs more is SFT_FOREIGN_TABLE. Reading tensors that are computed takes
 * buffers of 32 MiB besides. Close with sft_import_close. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_open(const char *path, const sft_import_options *options,
                                               sft_import **out, sft_error *err);
/* The same of one source of known size, which the import owns, and which is closed on failure,
 * too; other files are not found. It must be thread-safe if the import's parts are to be read by
 * several threads. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_open_source(sft_source source,
                                                      const sft_import_options *options,
                                                      sft_import **out, sft_error *err);
/* Close an import and its files. NULL is ignored. @since 0.2 */
SFT_API void sft_import_close(sft_import *import);

/* What the file is, as sft_import_recognise tells. @since 0.2 */
SFT_API sft_import_format sft_import_format_of(const sft_import *import);

/* ── Tensors ─────────────────────────────────────────────────────────────── */

/* Tensors, in the order of the file. @since 0.2 */
SFT_API size_t sft_import_tensor_count(const sft_import *import);
/* Tensor i, with the source from which its bytes, row-major and little-endian, can be read. It
 * lives as long as the import. Past the last: with source NULL. @since 0.2 */
SFT_API sft_part sft_import_part(const sft_import *import, size_t i);
/* What was done to the stored bytes of tensor i: "Q4_K", "strided", "big-endian", "deflated",
 * "opaque"; NULL if they are carried as they are, or past the last. @since 0.2 */
SFT_API const char *sft_import_note(const sft_import *import, size_t i);
/* Which of the shards tensor i is in, from 0; 0 of a single file. @since 0.2 */
SFT_API size_t sft_import_shard(const sft_import *import, size_t i);
SFT_API size_t sft_import_shard_count(const sft_import *import);
/* Metadata that sft_import_save writes: "format": "pt" of PyTorch's files, names of aliases,
 * scalars of a GGUF as "gguf.KEY". @since 0.2 */
SFT_API size_t sft_import_metadata_count(const sft_import *import);
SFT_API const sft_pair *sft_import_metadata(const sft_import *import);

/* ── What the report says ────────────────────────────────────────────────── */

/* A branch of the file's tree that holds tensors. Allocated by the library only. @since 0.2 */
typedef struct sft_import_branch {
    sft_span path; /* "model", "" for the whole */
    uint64_t tensors, bytes;
    bool chosen;
} sft_import_branch;
/* Branches, outer before inner; NULL past the last. @since 0.2 */
SFT_API size_t sft_import_branch_count(const sft_import *import);
SFT_API const sft_import_branch *sft_import_branch_at(const sft_import *import, size_t i);

/* A second name of a stored tensor. Never grows. @since 0.2 */
typedef struct sft_import_alias {
    sft_span name, of;
    bool copied;  /* it has bytes of its own in the result */
    bool partial; /* the two overlap, but are not the same */
} sft_import_alias;
SFT_API size_t sft_import_alias_count(const sft_import *import);
/* Zeroed past the last. @since 0.2 */
SFT_API sft_import_alias sft_import_alias_at(const sft_import *import, size_t i);

/* Why something is not imported. @since 0.2 */
typedef enum sft_import_reason {
    SFT_IMPORT_LEFT_BRANCH = 0, /* tensors of another branch than the chosen one */
    SFT_IMPORT_LEFT_SKIPPED,    /* a tensor that cannot be carried (options.skip) */
    SFT_IMPORT_LEFT_VALUE,      /* not a tensor: numbers, texts, objects */
    SFT_IMPORT_LEFT_RECORD,     /* bytes of the container that nothing refers to */
    SFT_IMPORT_LEFT_NOTE        /* nothing is missing, but worth to be told: text says what */
} sft_import_reason;
/* Something that is in the file and not in the result. Allocated by the library only.
 * @since 0.2 */
typedef struct sft_import_left {
    sft_import_reason reason;
    sft_span path;     /* may be empty */
    const char *text;  /* what it is: "3 numbers", "complex128 has no dtype here" */
    uint64_t count;    /* tensors of a branch, values, records: at least 1 */
    uint64_t bytes;    /* 0: not known */
} sft_import_left;
/* NULL past the last. @since 0.2 */
SFT_API size_t sft_import_left_count(const sft_import *import);
SFT_API const sft_import_left *sft_import_left_at(const sft_import *import, size_t i);

/* A global of Python that a pickle names and that is not one of those known to build tensors and
 * plain values. Nothing of it was imported or called. Allocated by the library only. @since 0.2 */
typedef struct sft_import_global {
    sft_span module, name;
    uint64_t named; /* how often the file refers to it */
    uint64_t calls; /* how often a pickle loader would have called it */
} sft_import_global;
/* Those with calls first, by file order. NULL past the last. @since 0.2 */
SFT_API size_t sft_import_global_count(const sft_import *import);
SFT_API const sft_import_global *sft_import_global_at(const sft_import *import, size_t i);

/* Fill an empty tree with the whole report (docs/json.md, "import"); path is shown as given. The
 * tree does not refer to the import. sft_import_json writes it as the other sft_…_json do.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_tree(const sft_import *import, const char *path,
                                               sft_tree *tree, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_import_json(const sft_import *import, const char *path,
                                               sft_sink *sink, sft_error *err);

/* ── Taking them ─────────────────────────────────────────────────────────── */

/* Write all tensors as one file, with the import's metadata; plan may be NULL. The sink is
 * finished, or abandoned on failure. Bytes that are carried as they are are copied within the
 * system where it can. Records with a checksum are compared with it while they are copied
 * (SFT_FOREIGN_CHECKSUM). Ticks the job with bytes. Memory: the plan and 40 MiB.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_save(const sft_import *import, sft_sink sink,
                                               const sft_plan_options *plan, const sft_job *job,
                                               sft_error *err);

/* Read the records of the container that tensors are in and compare them with their checksums, as
 * sft_import_save does on its way: SFT_FOREIGN_CHECKSUM. Ticks the job with bytes. Formats without
 * checksums have nothing to compare. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_verify(const sft_import *import, const sft_job *job,
                                                 sft_error *err);

/* The file that sft_import_save would write, as a set of one: whatever reads models reads imports
 * so. Its bytes are computed when they are read. The set owns the import, which is closed with it,
 * and on failure, too; the import may be asked until then. path is for display and may be
 * NULL. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_import_set(sft_import *import, const char *path, sft_set **out,
                                              sft_error *err);
/* Both in one: open the file at path by alloc and files of options, which may be NULL, as such a
 * set. For sft_hash_options.open_other. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_import_open_set(const char *path,
                                                   const sft_open_options *options, sft_set **out,
                                                   sft_error *err);

/* ── The other way ───────────────────────────────────────────────────────── */

/* @since 0.2 */
typedef struct sft_export_options {
    size_t size;
    /* For npz: write BF16 and 8-bit floats, which NumPy does not have, as bytes without a type (V2
     * and V1), as it saves arrays of ml_dtypes. */
    bool opaque;
    const sft_allocator *alloc;
} sft_export_options;

#define SFT_EXPORT_OPTIONS_INIT { sizeof(sft_export_options), false, NULL }

/* Write tensors as NumPy's archive of arrays, as numpy.savez does, byte for byte; or as PyTorch's
 * state dict, which torch.load reads with weights_only and mmap. The same tensors give the same
 * bytes, except that a sink that is not seekable gets checksums of large arrays behind them. The
 * sink is finished, or abandoned on failure. SFT_CAST_DTYPE names a tensor whose dtype the other
 * library does not have (BF16 and 8-bit floats for NumPy; F4 and F6 for both), SFT_FOREIGN_NAME one
 * whose name an archive cannot hold, or of NumPy's one that unpacks outside of a folder or that
 * numpy.load takes for another; SFT_TENSOR_DUPLICATE. Ticks the job with the bytes of tensors.
 * Memory: 2 MiB and, for each tensor, what the directory says of it. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_export_npz(const sft_part *parts, size_t count,
                                              const sft_export_options *options, sft_sink sink,
                                              const sft_job *job, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_export_pt(const sft_part *parts, size_t count,
                                             const sft_export_options *options, sft_sink sink,
                                             const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
