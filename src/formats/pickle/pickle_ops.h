/* The opcodes of pickles, by their byte. */
#ifndef SFTI_PICKLE_OPS_H
#define SFTI_PICKLE_OPS_H

#include "formats/pickle/pickle_stack.h"

extern const sfti_opcode sfti_opcodes[256];
/* The byte of STOP, which ends the machine. */
#define SFTI_STOP 0x2e

#endif
