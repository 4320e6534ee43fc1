/* Operands that lie in one another. Tests: tests/cli/catalog, tests/cli/note. */
#include "support/models.h"

#include "os/io.h"
#include "os/path.h"
#include "support/output.h"
#include "support/remote.h"

#include <stdlib.h>
#include <string.h>

typedef struct known_operand {
    const char *name; /* its real path, or URL */
    size_t at;        /* its place among the operands */
    bool is_folder;
} known_operand;

static int compare_operands(const void *a, const void *b) {
    const known_operand *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : one->at < other->at ? -1 : 1;
}

/* Whether one of the sorted operands has this name. */
static bool is_operand(const known_operand *sorted, size_t count, const char *name, size_t len) {
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (strncmp(sorted[middle].name, name, len) < 0) low = middle + 1;
        else high = middle;
    }
    return low < count && strncmp(sorted[low].name, name, len) == 0 && !sorted[low].name[len];
}

/* Whether the recursion of another operand enters this folder: it is above, and nothing between is
 * hidden. A root alone ends with a slash. */
static bool is_within(const known_operand *sorted, size_t count, const known_operand *one) {
    const char *name = one->name;
    for (size_t len = one->is_folder ? strlen(name) : 0; len-- > 0;) {
        if (name[len] != '/' || !name[len + 1]) continue;
        if (name[len + 1] == '.') return false;
        if (is_operand(sorted, count, name, len) || is_operand(sorted, count, name, len + 1))
            return true;
    }
    return false;
}

sft_code cli_distinct_operands(cli *c, char **operands, size_t *count, sfti_arena *arena,
                                  sft_error *err) {
    size_t kept = 0;
    known_operand *known = sfti_arena_array(arena, *count, sizeof *known);
    if (!known) return sfti_fail_memory(err, *count * sizeof *known);
    for (size_t i = 0; i < *count; i++) {
        char real[CLI_REAL_SIZE];
        os_info info;
        const char *name = operands[i];
        bool is_local = !cli_is_remote(c, name);
        if (is_local && sfti_os_real_path(name, real, sizeof real) == 0) name = real;
        known[i].at = i;
        known[i].name = sfti_arena_copy(arena, name, strlen(name));
        known[i].is_folder = is_local && sfti_os_info_path(name, true, &info) == 0
                          && info.kind == OS_DIR;
        if (!known[i].name) return sfti_fail_memory(err, strlen(name));
    }
    qsort(known, *count, sizeof *known, compare_operands);
    for (size_t i = 0; i < *count; i++) {
        bool again = i > 0 && strcmp(known[i].name, known[i - 1].name) == 0;
        if (again || is_within(known, *count, &known[i])) operands[known[i].at] = NULL;
    }
    for (size_t i = 0; i < *count; i++)
        if (operands[i]) operands[kept++] = operands[i];
    *count = kept;
    return SFT_OK;
}
