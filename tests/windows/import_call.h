/* Calls of the system's DLLs go through pointers __imp_NAME of the program: a test has its own. */
#ifndef IMPORT_CALL_H
#define IMPORT_CALL_H

#include <windows.h>

/* place: &__imp_NAME; function: a variable of its type. */
static inline void set_import(void *place, const void *function, size_t bytes) {
    DWORD before;
    assert_true(VirtualProtect(place, bytes, PAGE_READWRITE, &before));
    memcpy(place, function, bytes);
    assert_true(VirtualProtect(place, bytes, before, &before));
}

#endif
