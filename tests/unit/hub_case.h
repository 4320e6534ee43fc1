/* What tests of the Hub share: an environment, a remote that needs no network, a folder with a
 * cache in it. */
#ifndef HUB_CASE_H
#define HUB_CASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/error.h"
#include "remote/hub/hub_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUB_COMMIT "0123456789abcdef0123456789abcdef01234567"
#define HUB_OTHER "fedcba9876543210fedcba9876543210fedcba98"
#define HUB_SHA256 "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffff0000000011111111"
#define HUB_XET "11111111bbbbbbbbccccccccddddddddeeeeeeeeffffffff0000000011111111"
#define HUB_TOKEN "hf_TheSecret"

typedef struct hub_variable {
    const char *name, *value;
} hub_variable;

#define HUB_VARIABLES 8
static hub_variable hub_variables[HUB_VARIABLES];

static const char *hub_variable_of(void *ctx, const char *name) {
    (void)ctx;
    for (size_t i = 0; i < HUB_VARIABLES && hub_variables[i].name; i++)
        if (strcmp(hub_variables[i].name, name) == 0) return hub_variables[i].value;
    return NULL;
}

static inline void hub_set_variables(const hub_variable *variables) {
    size_t i = 0;
    memset(hub_variables, 0, sizeof hub_variables);
    for (; variables && i < HUB_VARIABLES && variables[i].name; i++)
        hub_variables[i] = variables[i];
}

/* ── A folder of its own for each test, made current; the cache is in "hub" ── */

static char hub_temp[256];

static inline int hub_temp_make(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    (void)snprintf(hub_temp, sizeof hub_temp, "%s/sft-hub-XXXXXX", base ? base : "/tmp");
    return mkdtemp(hub_temp) ? chdir(hub_temp) : -1;
}

static inline int hub_unlink_one(const char *path, const struct stat *st, int type,
                                 struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline int hub_temp_remove(void **state) {
    (void)state;
    return chdir("/") || nftw(hub_temp, hub_unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void hub_make_folders(const char *path) {
    char folder[512];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (slash == path) continue;
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        (void)mkdir(folder, 0700);
    }
}

static inline void hub_put(const char *path, const char *text) {
    hub_make_folders(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static inline void hub_link(const char *path, const char *target) {
    hub_make_folders(path);
    assert_int_equal(symlink(target, path), 0);
}

#endif
