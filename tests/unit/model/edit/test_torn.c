/* Every public function that takes the path of a model, held against a file in the middle of an
 * edit: each says so. The table is complete by what the headers declare. */
#define _GNU_SOURCE
#include "safetensors.h"
#include "safetensors_dataset.h"
#include "safetensors_edit.h"
#include "safetensors_hash.h"
#include "safetensors_info.h"
#include "safetensors_io.h"
#include "safetensors_scan.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/make_journal.h"
#include "unit/temp_dir.h"

#define FILE_NAME "m.safetensors"
#define JOURNAL ".m.safetensors.sft-journal"
#define INDEX "m.safetensors.index.json"
#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":[0,10]}}"
#define DATA 10

static void tear(void) {
    static const char index[] =
        "{\"metadata\":{\"total_size\":10},\"weight_map\":{\"a\":\"" FILE_NAME "\"}}";
    test_file f = make_file(HEADER, NULL, DATA);
    memcpy(f.bytes + f.len - DATA, "nnnnoooooo", DATA);
    temp_write(FILE_NAME, f.bytes, f.len);
    test_journal journal = { .old = HEADER, .new = HEADER, .size = f.len, .at = f.len - DATA,
                             .len = DATA, .old_bytes = "oooooooooo", .new_bytes = "nnnnnnnnnn" };
    (void)make_journal(&journal, FILE_NAME, JOURNAL);
    temp_write(INDEX, index, sizeof index - 1);
    free_file(&f);
}

/* ── Each function ── */

static sft_code by_open(sft_error *err) {
    sft_file *file = NULL;
    sft_code code = sft_open(temp_path(FILE_NAME), NULL, &file, err);
    sft_close(file);
    return code;
}

static sft_code by_scan(sft_error *err) {
    sft_scan *scan = NULL;
    sft_code code = sft_scan_open(temp_path(FILE_NAME), NULL, &scan, err);
    if (code == SFT_OK && sft_scan_error(scan)) *err = *sft_scan_error(scan);
    if (code == SFT_OK) code = err->code;
    sft_scan_close(scan);
    return code;
}

static sft_code by_repair(sft_error *err) {
    sft_repair *repair = NULL;
    sft_code code = sft_repair_open(temp_path(FILE_NAME), NULL, &repair, err);
    sft_repair_close(repair);
    return code;
}

static sft_code by_edit(sft_error *err) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit = NULL;
    options.no_recover = true;
    sft_code code = sft_edit_open(temp_path(FILE_NAME), &options, &edit, err);
    sft_edit_close(edit);
    return code;
}

static sft_code by_edit_check(sft_error *err) {
    return sft_edit_check(temp_path(FILE_NAME), NULL, err);
}

static sft_code by_set(sft_error *err) {
    sft_set *set = NULL;
    sft_code code = sft_set_open(temp_path(FILE_NAME), NULL, &set, err);
    sft_set_close(set);
    return code;
}

static sft_code by_index(sft_error *err) {
    sft_set *set = NULL;
    sft_code code = sft_set_open(temp_path(INDEX), NULL, &set, err);
    sft_set_close(set);
    return code;
}

static sft_code by_list(sft_error *err) {
    const char *path = temp_path(FILE_NAME);
    sft_set *set = NULL;
    sft_code code = sft_set_open_list(&path, 1, NULL, &set, err);
    sft_set_close(set);
    return code;
}

static sft_code by_hash(sft_error *err) {
    sft_hashes hashes;
    const char *path = temp_path(FILE_NAME);
    return sft_hash_path(path, SFT_HASH_BIT(SFT_HASH_SHA256), NULL, &hashes, NULL, err);
}

static bool hash_each(void *ctx, const sft_hash_result *result) {
    if (result->error) *(sft_error *)ctx = *result->error;
    return true;
}

static sft_code by_hashes(sft_error *err) {
    sft_hash_request ask = { .path = temp_path(FILE_NAME), .algos = SFT_HASH_BIT(SFT_HASH_SHA256) };
    sft_code code = sft_hash_paths(&ask, 1, NULL, hash_each, err, NULL, NULL);
    return code == SFT_OK ? err->code : code;
}

static sft_code by_storage(sft_error *err) {
    sft_storage storage;
    sft_source source;
    assert_int_equal(sft_storage_local(temp_dir, true, NULL, &storage, NULL), SFT_OK);
    sft_code code = storage.vtable->open(storage.ctx, FILE_NAME, &source, err);
    if (code == SFT_OK) sft_source_close(&source);
    sft_storage_close(&storage);
    return code;
}

/* What only tells a path, writes one, or takes one of something else: never a model's bytes. */
#define NOT_READ NULL

static const struct row {
    const char *name;
    sft_code (*call)(sft_error *err);
} rows[] = {
    { "sft_open", by_open },
    { "sft_scan_open", by_scan },
    { "sft_repair_open", by_repair },
    { "sft_edit_open", by_edit },
    { "sft_edit_check", by_edit_check },
    { "sft_set_open", by_set },
    { "sft_set_open", by_index },
    { "sft_set_open_list", by_list },
    { "sft_hash_path", by_hash },
    { "sft_hash_paths", by_hashes },
    { "sft_storage_local", by_storage },
    { "sft_edit_recover", NOT_READ }, /* recovers it, see test_edit_put */
    { "sft_source_path", NOT_READ }, /* bytes, be they a model's or not */
    { "sft_error_text", NOT_READ }, { "sft_error_text_as", NOT_READ }, /* only say it */
    { "sft_sink_path", NOT_READ },
    { "sft_save_arrays", NOT_READ },
    { "sft_edit_save", NOT_READ },
    { "sft_sweep", NOT_READ },
    { "sft_hash_cache_open", NOT_READ },
    { "sft_hash_cache_find", NOT_READ },
    { "sft_hash_cache_mark", NOT_READ },
    { "sft_hash_cache_marked", NOT_READ },
    { "sft_info_folder_open", NOT_READ },
    { "sft_info_folder_listed", NOT_READ },
    { "sft_info_open", NOT_READ }, /* of an open set */
    { "sft_info_open_components", NOT_READ },
    { "sft_set_from_file", NOT_READ },
    { "sft_path_is_index", NOT_READ },
    { "sft_index_open", NOT_READ }, /* opens no shard */
    { "sft_index_rewrite", NOT_READ },
    { "sft_set_output_mode", NOT_READ },
    { "sft_sets_tree", NOT_READ }, /* of open sets */
    { "sft_info_tree", NOT_READ },
    { "sft_save_set", NOT_READ },
    { "sft_conversion_save_set", NOT_READ },
    { "sft_conversion_set", NOT_READ }, /* of an open set */
};
#define ROWS (sizeof rows / sizeof *rows)

static void test_each(void **state) {
    (void)state;
    tear();
    for (size_t i = 0; i < ROWS; i++) {
        sft_error err = SFT_ERROR_INIT;
        if (!rows[i].call) continue;
        sft_code code = rows[i].call(&err);
        if (code != SFT_EDIT_INTERRUPTED)
            print_error("%s: %d: %s\n", rows[i].name, (int)code, err.message);
        assert_int_equal(code, SFT_EDIT_INTERRUPTED);
    }
}

/* ── All functions ── */

static bool is_in_table(const char *name, size_t len) {
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0) return true;
    return false;
}

/* The declaration that begins with SFT_API at `at`: of what names a file, it is in the table. */
static size_t judge_declaration(const char *at, size_t len) {
    static const char *const words[] = { "const char *path", "const char *folder", "*paths",
                                         "sft_hash_request *asks" };
    bool named = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        named = named || memmem(at, len, words[i], strlen(words[i]));
    if (!named) return 0;
    const char *open = memchr(at, '(', len), *name = open;
    while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z')) name--;
    bool told = strncmp(open - 5, "_json", 5) == 0; /* only says the path */
    if (told || strncmp(name, "sft_dataset_", 12) == 0) return 1; /* that is of an open one */
    if (!is_in_table(name, (size_t)(open - name)))
        fail_msg("not in the table: %.*s", (int)(open - name), name);
    return 1;
}

static size_t judge_header(const char *name) {
    static char text[1 << 20];
    char path[512];
    size_t found = 0;
    (void)snprintf(path, sizeof path, "%s/%s", SFT_TEST_INCLUDE, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    fclose(file);
    for (char *at = strstr(text, "\nSFT_API"); at; at = strstr(at + 1, "\nSFT_API")) {
        const char *end = strstr(at, ");");
        assert_non_null(end);
        found += judge_declaration(at, (size_t)(end - at));
    }
    return found;
}

static void test_table(void **state) {
    static const char *const headers[] = {
        "safetensors.h", "safetensors_set.h", "safetensors_info.h", "safetensors_hash.h",
        "safetensors_convert.h", "safetensors_dataset.h" };
    size_t found = 0;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) found += judge_header(headers[i]);
    assert_true(found > 30);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = { IN_DIR(test_each), cmocka_unit_test(test_table) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
