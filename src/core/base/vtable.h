/* Tables of functions that callers give: whether a member is there. A table of an older program
 * is shorter, and what it lacks is not supported; nothing beyond its size is read. */
#ifndef SFTI_VTABLE_H
#define SFTI_VTABLE_H

#include <stddef.h>

#define SFTI_CAN(of, type, member)                                                             \
    ((of)->vtable                                                                              \
     && (of)->vtable->size >= offsetof(type, member) + sizeof(of)->vtable->member              \
     && (of)->vtable->member)

#endif
