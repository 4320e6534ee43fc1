/* What the tests of sft_open_options.files share: files in memory, and options that lead there. */
#ifndef FILES_CASE_H
#define FILES_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "safetensors_set.h"
#include "unit/make_file.h"
#include "unit/mem_files.h"
#include "unit/temp_dir.h"

#define HEADER(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}"

static mem_files mem;
static sft_error err;
static sft_open_options how;

static inline int begin(void **state) {
    mem_begin(&mem);
    err = (sft_error)SFT_ERROR_INIT;
    how = (sft_open_options)SFT_OPEN_OPTIONS_INIT;
    how.files = &mem.files;
    return temp_dir_make(state);
}

static inline int end(void **state) {
    mem_end(&mem);
    if (mem.open > 0) fail_msg("%zu sources are not closed", mem.open);
    return temp_dir_remove(state);
}

static inline void add_model(const char *path, const char *header) {
    test_file f = make_file(header, "abcdefgh", 8);
    mem_add(&mem, path, f.bytes, f.len);
    free_file(&f);
}

/* Three tensors in 16 bytes. */
#define THREE \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}," \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}," \
    "\"c\":{\"dtype\":\"U8\",\"shape\":[4,2],\"data_offsets\":[8,16]}}"
#define THREE_DATA (8 + sizeof THREE - 1) /* where they begin */

static inline void add_three(const char *path, const char *data) {
    test_file f = make_file(THREE, data, 16);
    mem_add(&mem, path, f.bytes, f.len);
    free_file(&f);
}

/* "runs", then what is given: pairs of an offset in the data of add_three and a length. */
static inline void assert_runs(const uint64_t (*runs)[2], size_t count) {
    char want[1000] = "runs";
    for (size_t i = 0; i < count; i++)
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), " %llu+%llu",
                       (unsigned long long)(THREE_DATA + runs[i][0]),
                       (unsigned long long)runs[i][1]);
    strcat(want, "\n");
    const char *at = strstr(mem.log, want);
    if (!at || strstr(at + 1, "runs")) fail_msg("expected %sfound %s", want, mem.log);
    mem.log[0] = '\0';
}
#define RUNS(...) \
    assert_runs((const uint64_t[][2]){ __VA_ARGS__ }, \
                sizeof((const uint64_t[][2]){ __VA_ARGS__ }) / sizeof(uint64_t[2]))

static inline void assert_log(const char *want) {
    assert_string_equal(mem.log, want);
    mem.log[0] = '\0';
}

#define INDEX(a, b) "{\"metadata\":{\"k\":1},\"weight_map\":{\"a\":\"" a "\",\"b\":\"" b "\"}}"

static inline sft_code open_set(const char *path, sft_set **out) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    options.open = &how;
    return sft_set_open(path, &options, out, &err);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

#endif
