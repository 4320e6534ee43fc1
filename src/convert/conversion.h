/* A conversion from file to file: what becomes of each tensor, and the stream of cast bytes
 * that the writer copies from. */
#ifndef SFTI_CONVERSION_H
#define SFTI_CONVERSION_H

#include "base/error.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "os/os.h"

#define SFTI_CONVERT_ACTIONS 5

/* What becomes of one tensor of the set. Cast bytes of all tensors are one source, in which
 * those of this one are [begin, begin of the next row). */
typedef struct sfti_converted {
    uint64_t begin;
    uint8_t action; /* sft_convert_action */
    bool overruled;
} sfti_converted;

/* The tensor whose cast bytes are being read. */
typedef struct sfti_convert_now {
    const sft_tensor *tensor; /* NULL: none yet */
    const sft_file *file;
    uint64_t begin;           /* of its bytes in the source */
    uint64_t elements, bytes; /* afterwards */
} sfti_convert_now;

/* Cast bytes of that tensor, begun at a multiple of 8 elements. */
typedef struct sfti_convert_slot {
    sft_conversion *of;
    uint64_t first;      /* element */
    uint64_t count;      /* elements */
    size_t bytes;        /* of `out`, afterwards */
    uint8_t *in, *out;   /* buffers */
    sft_error err;       /* code SFT_OK: the bytes are there */
    os_thread thread;
    bool running;
} sfti_convert_slot;

/* Two batches of slots in turn: one is handed out while threads fill the other. */
typedef struct sfti_cast_workers {
    size_t workers;            /* 0: all on the calling thread */
    sfti_convert_slot *slots;  /* 2 * workers */
    uint8_t *buffers;
    size_t buffers_size;
    bool open;                 /* for the tensor of `now` */
    uint64_t at;               /* its byte to be handed out next */
    uint64_t next;             /* element that no slot has yet */
    size_t count[2];           /* slots in use */
    size_t batch, slot, used;  /* where byte `at` is */
} sfti_cast_workers;

/* Metadata pair `pair` of a shard. */
typedef struct sfti_convert_pick {
    uint32_t shard, pair;
} sfti_convert_pick;

struct sft_conversion {
    sfti_arena arena;
    sft_allocator alloc;
    const sft_set *set;
    sft_dtype to;
    sft_convert_options options;
    size_t count;
    sfti_converted *rows;   /* of the set's tensors, and where the last one ends */
    sft_source source;      /* of all cast bytes */
    sft_source *files;      /* of the shards */
    sfti_convert_pick *picks; /* metadata of several shards; NULL: that of the only one */
    size_t metadata_count;
    bool has_metadata;
    uint64_t by_action[SFTI_CONVERT_ACTIONS]; /* tensors of each */
    uint64_t bytes_before, bytes_after;
    sfti_cast_kernels kernels;
    sfti_cast cast;               /* of the dtype of `now` */
    sfti_convert_now now;
    uint8_t *in;                  /* buffer of the calling thread, while it saves */
    sfti_cast_workers pool;
};

/* Of the source of cast bytes, of one tensor at a time; ctx is the conversion. On the calling
 * thread only. */
extern const sft_source_vtable sfti_convert_source;

/* Before anything is read: memory, and threads if there are more than one. End in any case. */
sft_code sfti_convert_begin(sft_conversion *c, const sft_job *job, sft_error *err);
void sfti_convert_end(sft_conversion *c);

#endif
