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
