/* File systems on which names of any case, and however composed, are one: those of Windows and
 * macOS. What is next to a model is found, a file stays one file, and the cache of digests knows
 * it, whatever path leads there. */
#include "faults.h"
#include "unit/make_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define COMPOSED "caf\xC3\xA9"
#define DECOMPOSED "cafe\xCC\x81"
#define HEADER "{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"

static void add_model(const char *path, const char *header) {
    test_file f = make_file(header, "abcd", 4);
    os_fake_add_file(path, f.bytes, f.len);
    free_file(&f);
}

static int setup(void **state) {
    (void)state;
    os_fake_reset();
    os_fake_folds_case(true);
    return 0;
}

/* What the command prints. */
static const char *output_of(const char *line, int expected) {
    static char text[65536];
    size_t len, err_len, before;
    (void)os_fake_output(1, &before);
    int status = fault_command(line);
    const char *bytes = os_fake_output(1, &len);
    const char *message = os_fake_output(2, &err_len);
    if (status != expected) print_error("%s: %.*s\n", line, (int)err_len, message);
    assert_int_equal(status, expected);
    len -= before;
    if (len >= sizeof text) len = sizeof text - 1;
    memcpy(text, bytes + before, len);
    text[len] = '\0';
    return text;
}

static bool says(const char *text, const char *part) {
    if (strstr(text, part)) return true;
    print_error("no %s in %s\n", part, text);
    return false;
}

static void test_sidecars(void **state) {
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x04\0\0\0\x03\x08\x02\0\0\0";
    static const char site[] = "{\"id\":7,\"modelId\":70,\"name\":\"v2\","
                               "\"trainedWords\":[\"neon\"],\"model\":{\"name\":\"Neon City\"}}";
    (void)state;
    add_model("/s/Neon.safetensors", HEADER);
    os_fake_add_file("/s/NEON.civitai.info", site, sizeof site - 1);
    os_fake_add_file("/s/neon.Preview.PNG", png, sizeof png - 1);
    os_fake_add_file("/s/neon2.civitai.info", "{}", 2);
    static const char *const lines[] = { "safetensors info --json /s/Neon.safetensors",
                                         "safetensors info --json /S/nEON.SAFETENSORS" };
    for (size_t i = 0; i < 2; i++) {
        const char *text = output_of(lines[i], 0);
        assert_true(says(text, "Neon City"));
        assert_true(says(text, "neon.Preview.PNG"));
        assert_null(strstr(text, "neon2"));
    }
    os_fake_folds_case(false);
    const char *text = output_of(lines[0], 0);
    assert_null(strstr(text, "Neon City"));
    assert_null(strstr(text, "Preview"));
}

/* Programs spell what a person types with composed letters; the folder may have the other. */
static void test_composed(void **state) {
    static const char text[] = "a word from " DECOMPOSED;
    (void)state;
    add_model("/s/" DECOMPOSED ".safetensors", HEADER);
    os_fake_add_file("/s/" DECOMPOSED ".txt", text, sizeof text - 1);
    assert_true(says(output_of("safetensors info --json /s/" COMPOSED ".safetensors", 0),
                     "a word from"));
    assert_true(says(output_of("safetensors info --json /s/" DECOMPOSED ".safetensors", 0),
                     "a word from"));
}

/* One file, whatever it is called: changed, not made a second time. */
static void test_edits(void **state) {
    (void)state;
    add_model("/s/Neon.safetensors", HEADER);
    (void)output_of("safetensors meta set /s/NEON.safetensors k 1", 0);
    assert_int_equal(os_fake_count_files(), 1);
    assert_true(says(output_of("safetensors meta get /s/neon.safetensors k", 0), "1"));
    (void)output_of("safetensors select /s/neon.SAFETENSORS --keep w -o /s/NEON.safetensors", 0);
    assert_int_equal(os_fake_count_files(), 1);
}

/* Of two results that are one file there the second is refused, with --force, too. */
static void test_results(void **state) {
    (void)state;
    add_model("/s/one/Neon.safetensors", HEADER);
    add_model("/s/two/NEON.safetensors", HEADER);
    static const char line[] = "safetensors convert /s/one/Neon.safetensors "
                               "/s/two/NEON.safetensors --dtype F16 --copy -o /o/ --force";
    os_fake_add_dir("/o");
    (void)output_of(line, 2);
    assert_int_equal(os_fake_count_files(), 3);
    (void)output_of(line, 2); /* what another run wrote is replaced */
    os_fake_folds_case(false);
    (void)output_of(line, 0);
    assert_int_equal(os_fake_count_files(), 4);
}

/* Only the case of a name changes: that is a rename, not a place that is taken; back, too. */
static void test_case_renamed(void **state) {
    static const char manager[] = "{\"file_path\":\"/s/Neon.safetensors\",\"notes\":\"n\"}";
    (void)state;
    os_fake_set_env("HOME", "/h");
    os_fake_set_env("LOCALAPPDATA", "/h");
    os_fake_add_dir("/h");
    add_model("/s/Neon.safetensors", HEADER);
    os_fake_add_file("/s/NEON.metadata.json", manager, sizeof manager - 1);
    (void)output_of("safetensors mv /s/NEON.safetensors /s/neoN.safetensors", 0);
    assert_true(says(output_of("safetensors ls /s", 0), "neoN.safetensors"));
    size_t len;
    const char *text = os_fake_file("/s/neoN.metadata.json", &len);
    assert_true(text && len == sizeof manager - 1 && memcmp(text, manager, len) == 0);
    (void)output_of("safetensors mv --undo", 0);
    assert_true(says(output_of("safetensors ls /s", 0), "NEON.safetensors"));
    (void)output_of("safetensors mv --copy /s/neon.safetensors /s/NEOn.safetensors", 2);
    os_fake_folds_case(false);
    add_model("/s/neon.safetensors", HEADER);
    (void)output_of("safetensors mv /s/NEON.safetensors /s/neon.safetensors", 2);
}

static void test_set(void **state) {
    static const char index[] = "{\"metadata\":{\"total_size\":8},\"weight_map\":{"
        "\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"model-00002-of-00002.safetensors\"}}";
    (void)state;
    add_model("/s/Model-00001-of-00002.safetensors",
              "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}");
    add_model("/s/MODEL-00002-OF-00002.safetensors",
              "{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}");
    os_fake_add_file("/s/model.safetensors.index.json", index, sizeof index - 1);
    (void)output_of("safetensors check /s/model.safetensors.index.json", 0);
    /* All files of the folder are shards of one model: what speaks for the folder is its. */
    os_fake_add_file("/s/README.md", "---\nlicense: mit\n---\n", 21);
    assert_true(says(output_of("safetensors info --json /s/model.safetensors.index.json", 0),
                     "\"mit\""));
}

/* Two paths to one file are no copies of it. */
static void test_duplicates(void **state) {
    (void)state;
    add_model("/s/Neon.safetensors", HEADER);
    const char *text = output_of("safetensors dup /s /S/NEON.safetensors", 0);
    assert_null(strstr(text, "freed"));
    text = output_of("safetensors catalog -o /s/c.html /s /S", 0);
    assert_true(says(text, "1 model,"));
}

/* The cache knows files by their numbers. */
static void test_digests(void **state) {
    (void)state;
    add_model("/s/Neon.safetensors", HEADER);
    (void)output_of("safetensors hash --cache /s/c.json /s/Neon.safetensors", 0);
    os_fake_fail(0, 0, false);
    (void)output_of("safetensors hash --cache /S/C.json /S/NEON.safetensors", 0);
    size_t len;
    const char *cache = os_fake_file("/s/c.json", &len);
    assert_non_null(cache);
    size_t entries = 0;
    for (size_t i = 0; i + 7 < len; i++) entries += memcmp(cache + i, "\"inode\"", 7) == 0;
    assert_int_equal(entries, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sidecars, setup), cmocka_unit_test_setup(test_composed, setup),
        cmocka_unit_test_setup(test_edits, setup), cmocka_unit_test_setup(test_results, setup),
        cmocka_unit_test_setup(test_case_renamed, setup), cmocka_unit_test_setup(test_set, setup),
        cmocka_unit_test_setup(test_duplicates, setup), cmocka_unit_test_setup(test_digests, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
