/* GGUF: the types of its tensors (ggml's, by number), the functions that unpack their blocks, and
 * the cursor that reads its keys. */
#ifndef SFTI_IMPORT_GGUF_H
#define SFTI_IMPORT_GGUF_H

#include "formats/parts/state.h"

typedef struct sfti_gguf_type {
    sfti_codec codec;   /* of plain elements: without unpack, of one element */
    sft_dtype dtype;    /* of plain elements */
    const char *refused; /* NULL: it is read */
} sfti_gguf_type;

/* The type of that number; one of stored bytes 0 is refused, its size unknown. */
const sfti_gguf_type *sfti_gguf_type_of(uint32_t number);
/* How it is unpacked by this processor: the codec's function, or a faster one. */
typedef void (*sfti_gguf_unpack)(const uint8_t *in, float *out, size_t count);
sfti_gguf_unpack sfti_gguf_fastest(uint32_t number);
/* The variant for AVX2; NULL if there is none, or the processor has no AVX2. */
sfti_gguf_unpack sfti_gguf_avx2(uint32_t number);

/* ── Blocks in portable C ──
 * Everything but one addition is exact in F32, so that fused and separate operations agree. */

void sfti_gguf_q1_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q2_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q4_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q4_1(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q5_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q5_1(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q8_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q2_k(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q3_k(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q4_k(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q5_k(const uint8_t *in, float *out, size_t count);
void sfti_gguf_q6_k(const uint8_t *in, float *out, size_t count);
void sfti_gguf_tq1_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_tq2_0(const uint8_t *in, float *out, size_t count);
void sfti_gguf_mxfp4(const uint8_t *in, float *out, size_t count);
void sfti_gguf_nvfp4(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq1_s(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq1_m(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq2_xxs(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq2_xs(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq2_s(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq3_xxs(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq3_s(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq4_nl(const uint8_t *in, float *out, size_t count);
void sfti_gguf_iq4_xs(const uint8_t *in, float *out, size_t count);

/* ── What blocks consist of ── */

/* An F16 of two bytes as F32. */
float sfti_gguf_half(const uint8_t *at);
/* The scale of MXFP4, and of 16 elements of NVFP4; their 4-bit codes are twice the values. */
float sfti_gguf_e8m0(uint8_t code);
float sfti_gguf_ue4m3(uint8_t code);
extern const int8_t sfti_gguf_e2m1[16];
extern const int8_t sfti_gguf_iq4[16];
/* Scale and minimum j (0 to 7) of the 12 bytes of Q4_K and Q5_K. */
void sfti_gguf_scale_k4(const uint8_t *packed, unsigned j, uint8_t *scale, uint8_t *minimum);
/* The 16 scales of Q3_K, of its 12 bytes. */
void sfti_gguf_scales_q3_k(const uint8_t *packed, int8_t scales[16]);
/* The one scale of IQ1_M, in four parts. */
float sfti_gguf_scale_iq1_m(const uint8_t *scales);
/* Eight signs, of which seven are stored: their number is even. */
uint8_t sfti_gguf_signs(uint32_t code);

/* Grids: rows of 8 values in 2 bits each, or of 4 in 4 bits, the first one lowest. They are
 * indexes into the values of the kind. */
extern const uint16_t sfti_gguf_iq2_xxs_grid[256], sfti_gguf_iq2_xs_grid[512];
extern const uint16_t sfti_gguf_iq2_s_grid[1024];
extern const uint16_t sfti_gguf_iq3_xxs_grid[256], sfti_gguf_iq3_s_grid[512];
extern const uint16_t sfti_gguf_iq1_grid[2048];
extern const int8_t sfti_gguf_iq1_values[8], sfti_gguf_iq2_values[8];
extern const int8_t sfti_gguf_iq3_xxs_values[8], sfti_gguf_iq3_s_values[8];

/* ── gguf_cursor.c: a file read from front to back, a window at a time ── */

#define SFTI_GGUF_WINDOW ((size_t)1 << 16)

typedef struct sfti_gguf_cursor {
    sfti_import *im;
    const sft_source *source;
    uint64_t at;     /* the next byte */
    uint64_t begin;  /* window holds [begin, begin + filled) */
    size_t filled;
    uint8_t *window; /* SFTI_GGUF_WINDOW bytes */
    bool big_endian;
} sfti_gguf_cursor;

sft_code sfti_gguf_begin(sfti_gguf_cursor *c, sfti_import *im, const sft_source *source);
sft_code sfti_gguf_skip(sfti_gguf_cursor *c, uint64_t len);
/* A number of 1, 2, 4 or 8 bytes in the file's byte order. */
sft_code sfti_gguf_number(sfti_gguf_cursor *c, size_t bytes, uint64_t *out);
sft_code sfti_gguf_u32(sfti_gguf_cursor *c, uint32_t *out);
/* A string of at most `most` bytes in the arena; a longer one is skipped: *out has no data. */
sft_code sfti_gguf_string(sfti_gguf_cursor *c, uint64_t most, sft_span *out);

/* ── gguf_pairs.c: the key-value pairs of a file ── */

/* The shape that a tensor had before it was written as rows of 256, as ComfyUI-GGUF does with
 * weights whose last dimension is no multiple of that. Its elements are in the same order. */
typedef struct sfti_gguf_shape {
    sft_span key, name; /* name: the tensor's, the end of the key */
    uint64_t at;        /* of the key in the file */
    uint64_t *dims;
    uint32_t rank;
} sfti_gguf_shape;

/* What the reader itself needs of them. */
typedef struct sfti_gguf_pairs {
    uint64_t alignment; /* of tensors' bytes, a power of two */
    bool is_model;      /* it names an architecture */
    /* For a model in several files; 1, 0 and UINT64_MAX if the pairs do not tell. */
    uint64_t split_count, split_number, split_tensors;
    sfti_gguf_shape *shapes;
    size_t shape_count, shape_cap;
} sfti_gguf_pairs;

/* Read `count` pairs. report: scalars become metadata, and what is left out is listed; shapes are
 * those of tensors in all parts, and refused without it. */
sft_code sfti_gguf_read_pairs(sfti_gguf_cursor *c, uint64_t count, bool report,
                              sfti_gguf_pairs *out);

#endif
