/* Protocol buffers, as they stand in a file: fields one after another, whose bytes are skipped
 * rather than read. The encoding: protobuf.dev/programming-guides/encoding. */
#ifndef SFTI_WIRE_H
#define SFTI_WIRE_H

#include "formats/parts/state.h"

typedef enum sfti_wire_type {
    SFTI_WIRE_VARINT = 0,
    SFTI_WIRE_64 = 1,
    SFTI_WIRE_BYTES = 2,
    SFTI_WIRE_32 = 5
} sfti_wire_type;

#define SFTI_WIRE_BUFFER ((size_t)4 << 10) /* more would be read in vain: most bytes are skipped */

/* Bytes [have, have + len) of a source. */
typedef struct sfti_wire_buffer {
    uint64_t have, len;
    uint8_t bytes[SFTI_WIRE_BUFFER];
} sfti_wire_buffer;

/* Bytes [at, end) of a source that are a message, or packed numbers. */
typedef struct sfti_wire {
    sfti_import *im;
    const sft_source *source;
    uint64_t at, end;
    sfti_wire_buffer *buffer;
} sfti_wire;

typedef struct sfti_wire_field {
    uint64_t number;
    sfti_wire_type type;
    uint64_t value;      /* VARINT, 64, 32 */
    uint64_t begin, end; /* BYTES: of its contents */
    uint64_t at;         /* of the field's tag */
} sfti_wire_field;

/* Bytes [begin, end); the buffer is in the import's arena. SFT_OUT_OF_MEMORY. */
sft_code sfti_wire_open(sfti_import *im, const sft_source *source, uint64_t begin, uint64_t end,
                        sfti_wire *out);
/* Another range of the same source, with the same buffer. */
sfti_wire sfti_wire_inside(const sfti_wire *wire, uint64_t begin, uint64_t end);

/* The next field; *more is false at the end. SFT_FOREIGN_SYNTAX, _TRUNCATED. */
sft_code sfti_wire_next(sfti_wire *wire, sfti_wire_field *out, bool *more);
/* The byte at wire->at, which must be before its end. */
sft_code sfti_wire_byte(sfti_wire *wire, uint8_t *out);
/* A number of at most 64 bits at wire->at. */
sft_code sfti_wire_varint(sfti_wire *wire, uint64_t *out);
/* The same of any type but BYTES. */
sft_code sfti_wire_number(sfti_wire *wire, sfti_wire_type type, uint64_t *out);
/* The contents of a BYTES field as text in the arena, at most `most` bytes. */
sft_code sfti_wire_text(sfti_wire *wire, const sfti_wire_field *field, uint64_t most,
                        sft_span *out);

#endif
