/* A conversion from file to file: what happens to each tensor, and the stream of cast bytes
 * that the writer copies from. */
#ifndef SFTI_CONVERSION_H
#define SFTI_CONVERSION_H

#include "base/error.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "os/os.h"
#include "quant/quant.h"

#define SFTI_CONVERT_ACTIONS 9

/* What happens to one tensor of the set. The cast bytes of all tensors form one source, in which
 * this tensor has [begin, begin of the next row). */
typedef struct sfti_converted {
    uint64_t begin;
    uint8_t action; /* sft_convert_action */
    bool overruled;
    uint64_t counted; /* elements, from the first on, of which `lost` tells */
    sfti_losses lost;
} sfti_converted;

/* The tensor whose cast bytes are being read. */
typedef struct sfti_convert_now {
    const sft_tensor *tensor; /* NULL: none yet */
    const sft_file *file;
    const sfti_quant *quant;  /* NULL: its elements are cast */
    sfti_converted *row;
    uint64_t begin;           /* of its bytes in the source */
    uint64_t elements, bytes; /* once cast */
} sfti_convert_now;

/* Cast bytes of that tensor, begun at a multiple of 8 elements. */
typedef struct sfti_convert_slot {
    sft_conversion *of;
    uint64_t first;      /* element */
    uint64_t count;      /* elements */
    size_t bytes;        /* of `out`, once cast */
    uint8_t *in, *out;   /* buffers */
    sft_error err;       /* code SFT_OK: `out` is filled */
    sfti_losses lost;
    os_thread thread;
    bool running;
} sfti_convert_slot;

/* Two batches of slots in turn: one is read from while threads fill the other. */
typedef struct sfti_cast_workers {
    size_t workers;            /* 0: the calling thread does all casts */
    sfti_convert_slot *slots;  /* 2 * workers */
    uint8_t *buffers;
    size_t buffers_size;
    bool open;                 /* for the tensor of `now` */
    uint64_t at;               /* the byte of it that is read next */
    uint64_t next;             /* the first element without a slot */
    size_t count[2];           /* slots in use */
    size_t batch, slot, used;  /* where byte `at` is */
} sfti_cast_workers;

/* Metadata pair `pair` of a shard. */
typedef struct sfti_convert_pick {
    uint32_t shard, pair;
    const sft_span *value; /* another one, or NULL */
} sfti_convert_pick;

struct sft_conversion {
    sfti_arena arena;
    sft_allocator alloc;
    const sft_set *set;
    uint32_t mode; /* sft_set_output_mode */
    sft_dtype to;
    sft_convert_options options;
    const bool *computed; /* sfti_conversion_new */
    size_t count;
    sfti_converted *rows;   /* of the set's tensors, and where the last one ends */
    sfti_declared declared;
    sfti_quant **quants;    /* of the set's tensors; NULL without dequantize */
    sfti_quant_search search; /* of the set's tensors */
    sfti_dequant dequant;
    sft_source source;      /* of all cast bytes */
    sft_source *files;      /* of the shards */
    sfti_convert_pick *picks; /* metadata of all shards, without stale digests */
    size_t metadata_count;
    unsigned dropped;         /* those digests */
    bool has_metadata;
    bool two_declared;        /* shards declare their quantised layers otherwise, and some remain */
    bool two_configs;         /* they have different configurations of adapters */
    uint64_t by_action[SFTI_CONVERT_ACTIONS]; /* tensors of each */
    uint64_t bytes_before, bytes_after;
    sfti_cast_kernels kernels;
    sfti_cast cast;               /* of the dtype of `now` */
    sfti_convert_now now;
    uint8_t *in;                  /* buffer of the calling thread, while it saves */
    sfti_cast_workers pool;
};

/* What is written; the metadata are those of all shards. */
sft_plan_options sfti_conversion_plan(const sft_conversion *c);
/* With dequantize: the layout of tensor i, and what belongs to it; NULL if it is not quantised, or
 * not wanted. SFT_CAST_DTYPE: its values cannot be computed. */
sft_code sfti_conversion_find(const sft_conversion *c, sfti_quant_search *search, size_t i,
                              sfti_quant **out, sft_error *err);

/* What rows, or the names beside it, say of tensor i (SCALED: it is codes; SCALE: it belongs to
 * some), and of what; NULL, with *action unchanged: nothing. */
const sft_tensor *sfti_conversion_beside(const sft_conversion *c, size_t i,
                                         sft_convert_action *action);

/* Fails if a record of another name of a tensor (aliases.c) is about a quantised layer, unless all
 * of the layer is another one's. */
sft_code sfti_convert_check_aliases(const sft_set *set, const sft_allocator *alloc,
                                    sft_error *err);

/* For one about a tensor that gets another name: an error. */
sft_code sfti_convert_rename_alias(const sft_conversion *c, sft_pair pair, sft_error *err);
/* Whether it is about a tensor that is dropped, with the layer that the alias belongs to. */
bool sfti_convert_ends_alias(const sft_conversion *c, sft_pair pair);
/* Whether a pair is torchao's of a tensor that is computed. */
bool sfti_conversion_classed(const sft_conversion *c, sft_pair pair);
/* torchao's list of all shards becomes the value of its pick. */
sft_code sfti_conversion_join_lists(sft_conversion *c, sft_error *err);

/* The source of cast bytes; ctx is the conversion. One read stays within one tensor. On the
 * calling thread only. */
extern const sft_source_vtable sfti_convert_source;

/* Allocates buffers and slots before anything is read. sfti_convert_end follows even a failure. */
sft_code sfti_convert_begin(sft_conversion *c, const sft_job *job, sft_error *err);
void sfti_convert_end(sft_conversion *c);

#endif
