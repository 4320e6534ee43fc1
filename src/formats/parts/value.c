/* Names of kinds of values. */
#include "formats/parts/value.h"

const char *sfti_value_kind_name(uint8_t kind) {
    static const char *const names[] = {
        "None", "a boolean", "an integer", "a number", "a number", "text", "bytes", "a list",
        "a tuple", "a set", "a dict", "an object", "a global", "a persistent object",
        "a tensor", "a tensor that is not read",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : "a value";
}
