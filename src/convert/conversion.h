/* A conversion from file to file: what becomes of each tensor, and the stream of cast bytes
 * that the writer copies from. */
#ifndef SFTI_CONVERSION_H
#define SFTI_CONVERSION_H

#include "base/error.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "os/os.h"

#define SFTI_CONVERT_FATES 5

typedef struct sfti_converted {
    sft_convert_fate fate;
    bool overruled;
    const sft_tensor *tensor, *partner;
    const sft_file *file;
    uint64_t elements, bytes; /* afterwards */
    sft_source source;        /* of cast bytes; ctx is the conversion's own */
    sft_conversion *of;
} sfti_converted;

/* Cast bytes of one tensor, begun at a multiple of 8 elements. */
typedef struct sfti_convert_slot {
    sft_conversion *of;
    const sfti_converted *row;
    uint64_t first;      /* element */
    uint64_t count;      /* elements */
    size_t bytes;        /* of `out`, afterwards */
    uint8_t *in, *out;   /* rooms */
    sft_error err;       /* code SFT_OK: the bytes are there */
    os_thread thread;
    bool running;
} sfti_convert_slot;

/* Two batches of slots in turn: one is handed out while threads fill the other. */
typedef struct sfti_convert_crew {
    size_t workers;            /* 0: all on the calling thread */
    sfti_convert_slot *slots;  /* 2 * workers */
    uint8_t *rooms;
    size_t rooms_size;
    const sfti_converted *row; /* being streamed, or NULL */
    uint64_t at;               /* byte to be handed out next */
    uint64_t next;             /* element that no slot has yet */
    size_t count[2];           /* slots in use */
    size_t batch, slot, used;  /* where byte `at` is */
} sfti_convert_crew;

struct sft_conversion {
    sfti_arena arena;
    sft_allocator alloc;
    const sft_set *set;
    sft_dtype to;
    sft_convert_options options;
    size_t count;
    sfti_converted *rows;   /* of the set's tensors */
    sft_source *files;      /* of the shards */
    sft_pair *metadata;
    size_t metadata_count;
    bool has_metadata;
    uint64_t fates[SFTI_CONVERT_FATES]; /* tensors of each */
    uint64_t bytes_before, bytes_after;
    sfti_cast_kit kit;
    sfti_cast cast;               /* of cast_row's dtype */
    const sfti_converted *cast_row;
    uint8_t *in;                  /* room of the calling thread, while it saves */
    sfti_convert_crew crew;
};

/* Of a row's source; ctx is the row. On the calling thread only. */
extern const sft_source_vtable sfti_convert_source;

/* Before anything is read: memory, and threads if there are more than one. End in any case. */
sft_code sfti_convert_begin(sft_conversion *c, const sft_job *job, sft_error *err);
void sfti_convert_end(sft_conversion *c);

#endif
