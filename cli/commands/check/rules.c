/* The first sentences of the rules, for --explain. Tests: tests/cli/tables.py. */
#include "commands/check/check.h"

#include <stddef.h>

/* The first sentence of each rule of docs/format.md; tests/cli/tables.py compares, and
 * writes this table with --write-rules. */
static const char *const rule_sentences[] = {
    [1] = "A file is at least 8 bytes long: the header length",
    [2] = "The header length `N` is at most 100,000,000",
    [3] = "The file holds all `N` bytes of the header: `8 + N` is at most its length",
    [4] = "The `N` bytes are UTF-8 throughout, also outside strings and in ignored fields: no "
           "overlong form, no encoded surrogate, nothing past U+10FFFF",
    [5] = "The header's text is JSON by RFC 8259: double quotes, no comments, no trailing "
           "commas, no `NaN` or `Infinity`",
    [6] = "A string holds no byte below 20 (hexadecimal) unescaped, only the escapes of JSON, "
           "and `\\u` with four hexadecimal digits",
    [7] = "A number is spelled as JSON demands (no leading zero or plus, digits after a point "
           "and after an `e`) and is in the range of a double",
    [8] = "Objects and arrays are nested at most 127 deep, the header's own object counted, "
           "also inside ignored fields",
    [9] = "Only white space follows the header's object inside the `N` bytes",
    [10] = "The header is an object",
    [11] = "Each member of the header but `__metadata__` is a tensor entry: an object, or "
           "(compat only, R24) an array of exactly three elements",
    [12] = "An entry has `dtype`, `shape` and `data_offsets`",
    [13] = "`dtype`, `shape` and `data_offsets` are each there once",
    [14] = "`dtype` is a string, or (compat only, R25) an object with one member whose value is "
           "`null`",
    [15] = "The dtype is one of the table, bytes for bytes",
    [16] = "`shape` is an array of integers from 0 to 2^64 - 1, in digits alone: no sign, point "
           "or exponent (`-0` and `2.0` are refused)",
    [17] = "`data_offsets` is an array of two integers from 0 to 2^64 - 1, in digits alone",
    [18] = "`__metadata__` is an object, or `null` (R31)",
    [19] = "Each value of `__metadata__` is a string",
    [20] = "`__metadata__` is there once, `null` counted",
    [21] = "The layout of 2022 is refused with a code of its own, so that a program can offer "
           "the option `legacy`",
    [22] = "No two tensors have one name",
    [23] = "No key is twice in `__metadata__`",
    [24] = "An entry is an object",
    [25] = "A dtype is a string",
    [26] = "A shape has at most 64 dimensions",
    [27] = "The first byte of the header is `{`",
    [28] = "Only spaces (20 hexadecimal) follow the object: no tab, line feed or carriage return",
    [29] = "An entry has no other field than the three",
    [30] = "A tensor's name holds no control character: none of U+0000 to U+001F and U+007F to "
           "U+009F",
    [31] = "`__metadata__` is not `null`",
    [32] = "`end` is not less than `begin`",
    [33] = "Tensors, sorted by (`begin`, `end`), follow one another without a hole: the first "
           "begins at 0, each further one where the one before it ends",
    [34] = "No two tensors share a byte: a tensor that begins before the end of the one before "
           "it breaks this rule",
    [35] = "The product of the dimensions, taken from left to right, and then the number of "
           "bits stay below 2^64 at each step",
    [36] = "The tensor's bits are whole bytes: an even count of F4, a multiple of four of F6",
    [37] = "`end - begin` is the number of bytes that shape and dtype ask for",
    [38] = "The file holds all bytes of all tensors",
    [39] = "The file ends where the last tensor does; a file without tensors ends with its "
           "header",
    [40] = "The index is a JSON object with the member `weight_map`, an object whose values are "
           "strings",
    [41] = "A shard's name leads nowhere outside the folder of the index: no absolute path, no "
           "component `..`, no backslash, no NUL",
    [42] = "Each shard the index names is there",
    [43] = "Each tensor the index names is in some shard",
    [44] = "Each tensor the index names is in the shard that it names",
    [45] = "No tensor is in two shards",
};

const char *cli_rule_sentence(const char *rule) {
    size_t number = 0;
    if (!rule || *rule != 'R') return NULL;
    for (rule++; *rule >= '0' && *rule <= '9' && number < 1000; rule++) {
        number = number * 10 + (size_t)(*rule - '0');
    }
    return number < sizeof rule_sentences / sizeof *rule_sentences ? rule_sentences[number]
                                                                   : NULL;
}
