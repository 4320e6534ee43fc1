/* Structs of callers that begin with their size: options, and tables of functions.
 *
 * Options are read here and nowhere else. `size` is what their caller's header had as sizeof. A
 * shorter struct is of an older caller: what it lacks has its default. A longer one is of a newer
 * caller: it will do while all that is not known here is zero. Nothing beyond size is read.
 *
 * To add a member: last, aligned to 8 bytes (what was padding of an older caller holds anything),
 * and zero means what was done before. Nested options are pointers, NULL for the defaults, and are
 * taken as the others are. Public functions take them before anything else; what is called inside
 * gets the taken ones. */
#ifndef SFTI_OPTIONS_H
#define SFTI_OPTIONS_H

#include "safetensors.h"

#define SFTI_OPTIONS_MOST ((size_t)64 << 10) /* no struct will ever be larger */

/* Over the defaults of *to, which is of `known` bytes. least: where the last member ends that the
 * struct's first release had. from may be NULL. SFT_BAD_ARGUMENT; *to then keeps its defaults. */
sft_code sfti_options_take(const void *from, void *to, size_t known, size_t least,
                           const char *name, sft_error *err);

/* The typed function for one struct: its _INIT, and the last member of its first release. */
#define SFTI_OPTIONS_TAKE(function, type, INIT, last)                                         \
    sft_code function(const type *from, type *to, sft_error *err) {                           \
        *to = (type)INIT;                                                                     \
        return sfti_options_take(from, to, sizeof *to, offsetof(type, last) + sizeof to->last, \
                                 #type, err);                                                 \
    }

/* *to is filled in every case. */
sft_code sfti_take_job(const sft_job *from, sft_job *to, sft_error *err);
sft_code sfti_take_path(const sft_path_options *from, sft_path_options *to, sft_error *err);
sft_code sfti_take_open(const sft_open_options *from, sft_open_options *to, sft_error *err);
sft_code sfti_take_plan(const sft_plan_options *from, sft_plan_options *to, sft_error *err);

/* Whether a member of a table of functions is there. A table of an older program is shorter, and
 * what it lacks is not supported; nothing beyond its size is read. */
#define SFTI_CAN(of, type, member)                                                             \
    ((of)->vtable                                                                              \
     && (of)->vtable->size >= offsetof(type, member) + sizeof(of)->vtable->member              \
     && (of)->vtable->member)

#endif
