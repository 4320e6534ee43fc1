/* Configuration files of the AWS command: sections of "key = value" lines, and lines of that kind
 * indented below a key without a value. As Python's configparser reads them: no comments behind
 * values, the last of equal keys counts. */
#ifndef SFTI_REMOTE_INI_H
#define SFTI_REMOTE_INI_H

#include "safetensors.h"

typedef struct sfti_ini {
    sft_span rest;
    sft_span section;    /* "profile NAME"; empty before the first */
    sft_span parent;     /* of an indented line the key above it; else empty */
    sft_span key, value; /* keys in any case */
    sft_span last;       /* private: the last key that was not indented */
} sfti_ini;

void sfti_ini_begin(sfti_ini *ini, sft_span text);
/* The next key and its value; false: no more. What is neither section, key nor comment is left
 * out. */
bool sfti_ini_next(sfti_ini *ini);

#endif
