/* MessagePack: values one after another, as far as Flax uses them. The encoding:
 * github.com/msgpack/msgpack, spec.md. */
#ifndef SFTI_MSGPACK_H
#define SFTI_MSGPACK_H

#include "formats/parts/wire.h"

typedef enum sfti_msgpack_kind {
    SFTI_MSGPACK_NIL,
    SFTI_MSGPACK_BOOL,
    SFTI_MSGPACK_INT,   /* number: its bits */
    SFTI_MSGPACK_FLOAT,
    SFTI_MSGPACK_TEXT,  /* bytes [begin, begin + len) of the file */
    SFTI_MSGPACK_BYTES,
    SFTI_MSGPACK_EXT,
    SFTI_MSGPACK_LIST,  /* len values follow */
    SFTI_MSGPACK_MAP    /* len keys follow, each with its value */
} sfti_msgpack_kind;

typedef struct sfti_msgpack {
    sfti_msgpack_kind kind;
    uint64_t at, begin, len;
    uint64_t number;
    bool negative;
    int8_t ext; /* type of an EXT */
} sfti_msgpack;

/* The value at wire->at; what is inside a list or map follows it. SFT_FOREIGN_SYNTAX for what no
 * value begins with, and for bytes beyond the wire's end. */
sft_code sfti_msgpack_next(sfti_wire *wire, sfti_msgpack *out);

#endif
