/* Names of kinds of values. */
#include "formats/parts/value.h"

#include <stdio.h>

const char *sfti_value_kind_name(uint8_t kind) {
    static const char *const names[] = {
        "None", "a boolean", "an integer", "a number", "a number", "text", "bytes", "a list",
        "a tuple", "a set", "a dict", "an object", "a global", "a persistent object",
        "a tensor", "a tensor that is not read",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : "a value";
}

const char *sfti_object_unread(const sfti_object *object, char *text, size_t size) {
    const sfti_value *callee = object->callee;
    if (callee->kind == SFTI_VALUE_GLOBAL)
        (void)snprintf(text, size, "expected a tensor or dict, found an object of %.*s.%.*s that "
                       "is not read", SFTI_CLIP(callee->u.global->module, 80),
                       SFTI_CLIP(callee->u.global->name, 80));
    else (void)snprintf(text, size, "expected a tensor, found a call of %s with tensors",
                        sfti_value_kind_name(callee->kind));
    return text;
}
