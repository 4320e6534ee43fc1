/* Editing what is odd, and with others at work: headers in every spelling, at their limits,
 * files and folders that may not be written, editors side by side, editors that are killed. */
#define _GNU_SOURCE
#include "os/os.h"
#include "safetensors.h"
#include "safetensors_edit.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/temp_dir.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define FILE_NAME "m.safetensors"
#define U8(begin, end) \
    "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" #begin "," #end "]}"
#define A_B "\"a\":" U8(0, 4) ",\"b\":" U8(4, 8)
#define PAD "                                "

static char found[1 << 16];

static void put_file(const char *header, size_t data) {
    test_file f = make_file(header, NULL, data);
    temp_write(FILE_NAME, f.bytes, f.len);
    free_file(&f);
}

static sft_edit *open_edit(const sft_edit_options *options) {
    sft_edit *edit = NULL;
    sft_error err = SFT_ERROR_INIT;
    if (sft_edit_open(temp_path(FILE_NAME), options, &edit, &err)) print_error("%s\n", err.message);
    assert_non_null(edit);
    return edit;
}

static sft_code finish(sft_edit *edit, sft_edit_report *report) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_edit_apply(edit, NULL, report, &err);
    if (code) print_message("%s\n", err.message);
    sft_edit_close(edit);
    return code;
}

static sft_code set(sft_edit *edit, const char *key, const char *value) {
    return sft_edit_set(edit, sft_span_cstr(key), sft_span_cstr(value), NULL);
}

/* ── Spellings ── */

typedef struct odd_case {
    const char *before, *set, *removed, *from, *to, *after; /* set: the key; its value is "V" */
} odd_case;

static const odd_case odd_cases[] = {
    /* the key __metadata__ itself with an escape */
    { "{\"__met\\u0061data__\":{\"k\":\"v\"}," A_B "}", "k", NULL, NULL, NULL,
      "{\"__met\\u0061data__\":{\"k\":\"V\"}," A_B "}" },
    /* keys twice: both change, both go */
    { "{\"__metadata__\":{\"k\":\"1\",\"j\":\"x\",\"k\":\"2\"}," A_B "}", "k", NULL, NULL, NULL,
      "{\"__metadata__\":{\"k\":\"V\",\"j\":\"x\",\"k\":\"V\"}," A_B "}" },
    { "{\"__metadata__\":{\"k\":\"1\",\"j\":\"x\",\"k\":\"2\"}," A_B "}", NULL, "k", NULL, NULL,
      "{\"__metadata__\":{\"j\":\"x\"}," A_B "}" },
    { "{\"__metadata__\":{\"k\":\"1\",\"\\u006B\":\"2\"}," A_B "}", NULL, "k", NULL, NULL,
      "{\"__metadata__\":{}," A_B "}" },
    /* white space everywhere, the first and the last key */
    { "{ \"__metadata__\" : { \"a\" : \"1\" , \"b\" : \"2\" , \"c\" : \"3\" } , " A_B " }", NULL,
      "a", NULL, NULL,
      "{ \"__metadata__\" : { \"b\" : \"2\" , \"c\" : \"3\" } , " A_B " }" },
    { "{ \"__metadata__\" : { \"a\" : \"1\" , \"b\" : \"2\" , \"c\" : \"3\" } , " A_B " }", NULL,
      "c", NULL, NULL,
      "{ \"__metadata__\" : { \"a\" : \"1\" , \"b\" : \"2\" } , " A_B " }" },
    { "{ \"__metadata__\" : { \"a\" : \"1\" } , " A_B " }" PAD, "new", "a", NULL, NULL,
      "{ \"__metadata__\" : { \"new\":\"V\" } , " A_B " }" },
    /* metadata last, and empty */
    { "{" A_B ",\"__metadata__\":{}}" PAD, "k", NULL, NULL, NULL,
      "{" A_B ",\"__metadata__\":{\"k\":\"V\"}}" },
    { "{" A_B ",\"__metadata__\":null}" PAD, "k", NULL, NULL, NULL,
      "{" A_B ",\"__metadata__\":{\"k\":\"V\"}}" },
    /* empty keys and names */
    { "{\"__metadata__\":{\"\":\"x\"},\"\":" U8(0, 4) ",\"b\":" U8(4, 8) "}" PAD, "", NULL, "", "n",
      "{\"__metadata__\":{\"\":\"V\"},\"n\":" U8(0, 4) ",\"b\":" U8(4, 8) "}" },
    /* brackets, commas and quotes inside strings */
    { "{\"__metadata__\":{\"a\":\"}},{\\\"k\\\":\\\\\",\"k\":\"[\"}," A_B "}", "k", NULL, NULL,
      NULL, "{\"__metadata__\":{\"a\":\"}},{\\\"k\\\":\\\\\",\"k\":\"V\"}," A_B "}" },
    /* pairs of surrogates; the same name raw */
    { "{\"\\ud83d\\ude00\":" U8(0, 4) ",\"b\":" U8(4, 8) "}", NULL, NULL, "\xf0\x9f\x98\x80", "s",
      "{\"s\":" U8(0, 4) ",\"b\":" U8(4, 8) "}" },
    /* a metadata key that is a tensor's name, and a tensor's field that is a key */
    { "{\"__metadata__\":{\"a\":\"1\"},\"a\":{\"k\":\"v\",\"dtype\":\"U8\",\"shape\":[8],"
      "\"data_offsets\":[0,8]}}" PAD, "a", "k", "a", "c",
      "{\"__metadata__\":{\"a\":\"V\"},\"c\":{\"k\":\"v\",\"dtype\":\"U8\",\"shape\":[8],"
      "\"data_offsets\":[0,8]}}" },
    /* names twice: the last counts, and both are renamed */
    { "{\"a\":" U8(4, 8) ",\"c\":" U8(0, 4) ",\"a\":" U8(4, 8) "}", NULL, NULL, "a", "d",
      "{\"d\":" U8(4, 8) ",\"c\":" U8(0, 4) ",\"d\":" U8(4, 8) "}" },
    /* new lines before the padding stay where they stood if there is room */
    { "{\"__metadata__\":{\"k\":\"v\"}," A_B "}" PAD "\n\n", "k", NULL, NULL, NULL,
      "{\"__metadata__\":{\"k\":\"V\"}," A_B "}" PAD "\n\n" },
};

static void expect_text(const char *before, const char *after) {
    char padded[1024];
    size_t cap = strlen(before), len = strlen(after);
    assert_true(len <= cap && cap < sizeof padded);
    memset(padded, ' ', sizeof padded);
    memcpy(padded, after, len);
    padded[cap] = '\0';
    test_file f = make_file(padded, NULL, 8);
    long got = temp_read(FILE_NAME, found, sizeof found);
    if ((size_t)got != f.len || memcmp(found, f.bytes, f.len) != 0)
        print_error("expected %s\nfound    %.*s\n", after, (int)got - 16, found + 8);
    assert_int_equal(got, f.len);
    assert_memory_equal(found, f.bytes, f.len);
    free_file(&f);
}

static void test_odd(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    (void)state;
    options.open = &open;
    open.level = SFT_LEVEL_COMPAT;
    for (size_t i = 0; i < sizeof odd_cases / sizeof *odd_cases; i++) {
        const odd_case *row = &odd_cases[i];
        sft_edit_report report;
        put_file(row->before, 8);
        sft_edit *edit = open_edit(&options);
        if (row->set) assert_int_equal(set(edit, row->set, "V"), SFT_OK);
        if (row->removed)
            assert_int_equal(sft_edit_remove(edit, sft_span_cstr(row->removed), NULL), SFT_OK);
        if (row->from)
            assert_int_equal(sft_edit_rename(edit, sft_span_cstr(row->from),
                                             sft_span_cstr(row->to), NULL), SFT_OK);
        assert_int_equal(finish(edit, &report), SFT_OK);
        assert_int_equal(report.method, SFT_EDIT_PLACE);
        expect_text(row->before, row->after);
    }
}

/* ── Chance ── */

#define KEYS 9
static uint64_t dice = 88172645463325252u;

static unsigned roll(unsigned sides) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 33) % sides;
}

static size_t put_blank(char *out, size_t at) {
    static const char blanks[] = " \t\n\r";
    for (unsigned n = roll(4) == 0 ? roll(4) : 0; n > 0; n--) out[at++] = blanks[roll(4)];
    return at;
}

static size_t put_text(char *out, size_t at, const char *text) {
    memcpy(out + at, text, strlen(text));
    return put_blank(out, at + strlen(text));
}

static size_t put_string(char *out, size_t at, char c) {
    char text[16];
    if (roll(2)) (void)snprintf(text, sizeof text, "\"%c\"", c);
    else (void)snprintf(text, sizeof text, "\"\\u%04x\"", (unsigned)c);
    return put_text(out, at, text);
}

/* A header of some of the keys k[0]… with random white space and spelling. */
static void make_random(char *header, char values[KEYS]) {
    size_t at = put_text(header, 0, "{");
    at = put_text(header, at, "\"__metadata__\"");
    at = put_text(header, at, ":");
    at = put_text(header, at, "{");
    bool first = true;
    for (int i = 0; i < KEYS; i++) {
        values[i] = roll(3) ? (char)('A' + (int)roll(26)) : '\0';
        if (!values[i]) continue;
        if (!first) at = put_text(header, at, ",");
        first = false;
        at = put_string(header, at, (char)('a' + i));
        at = put_text(header, at, ":");
        at = put_string(header, at, values[i]);
    }
    at = put_text(header, at, "}");
    at = put_text(header, at, "," A_B);
    at = put_text(header, at, "}");
    memset(header + at, ' ', 8 * KEYS);
    header[at + roll(8 * KEYS)] = '\0';
}

static void change_at_random(sft_edit *edit, char values[KEYS]) {
    for (unsigned n = roll(6); n > 0; n--) {
        unsigned i = roll(KEYS);
        char key = (char)('a' + (int)i);
        values[i] = roll(2) ? (char)('A' + (int)roll(26)) : '\0';
        sft_span name = { &key, 1 }, value = { &values[i], 1 };
        sft_code code = values[i] ? sft_edit_set(edit, name, value, NULL)
                                  : sft_edit_remove(edit, name, NULL);
        assert_int_equal(code, SFT_OK);
    }
}

static void expect_values(const char values[KEYS]) {
    sft_file *file = NULL;
    size_t count = 0;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    for (int i = 0; i < KEYS; i++) {
        char key[2] = { (char)('a' + i), 0 };
        sft_span value;
        bool there = sft_file_metadata_get_cstr(file, key, &value);
        assert_int_equal(there, values[i] != 0);
        if (there) assert_true(value.len == 1 && value.data[0] == values[i]);
        count += there;
    }
    assert_int_equal(sft_file_metadata_count(file), count);
    assert_int_equal(sft_file_tensor_count(file), 2);
    sft_close(file);
}

static void test_random(void **state) {
    static char header[4096];
    char values[KEYS];
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    (void)state;
    options.no_sync = true;
    for (int round = 0; round < 600; round++) {
        make_random(header, values);
        put_file(header, 8);
        for (int again = 0; again < 3; again++) {
            sft_edit *edit = open_edit(&options);
            change_at_random(edit, values);
            assert_int_equal(finish(edit, NULL), SFT_OK);
            expect_values(values);
        }
    }
}

/* ── Limits ── */

static void test_large_metadata(void **state) {
    const size_t len = (size_t)20 << 20;
    char *value = malloc(len), key[32];
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit_report report;
    sft_file *file = NULL;
    sft_span back;
    (void)state;
    assert_non_null(value);
    memset(value, '"', len); /* each becomes two */
    options.no_sync = true;
    put_file("{" A_B "}", 8);
    sft_edit *edit = open_edit(&options);
    assert_int_equal(sft_edit_set(edit, sft_span_cstr("v"), (sft_span){ value, len }, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(set(edit, key, key), SFT_OK);
    }
    assert_int_equal(finish(edit, &report), SFT_OK);
    assert_true(report.header_after > 2 * len);
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    assert_true(sft_file_metadata_get_cstr(file, "v", &back));
    assert_true(back.len == len && memcmp(back.data, value, len) == 0);
    assert_int_equal(sft_file_metadata_count(file), 20001);
    sft_close(file);
    free(value);
    edit = open_edit(&options);
    assert_int_equal(sft_edit_remove(edit, sft_span_cstr("v"), NULL), SFT_OK);
    assert_int_equal(finish(edit, &report), SFT_OK); /* what it gave up is spaces now */
    assert_int_equal(report.method, SFT_EDIT_PLACE);
    assert_true(report.spare > 2 * len);
}

/* Room to spare is given up before an edit is refused. */
static void test_header_cap(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_edit_report report;
    (void)state;
    put_file("{" A_B "}", 8);
    size_t n = strlen("{" A_B "}");
    options.open = &open;
    open.max_header_bytes = n + 4096;
    sft_edit *edit = open_edit(&options);
    assert_int_equal(set(edit, "k", "v"), SFT_OK);
    assert_int_equal(finish(edit, &report), SFT_OK);
    assert_int_equal(report.header_after, n + 4096);
    put_file("{" A_B "}", 8);
    open.max_header_bytes = n + 4095;
    edit = open_edit(&options);
    assert_int_equal(set(edit, "k", "v"), SFT_OK);
    assert_int_equal(finish(edit, &report), SFT_HEADER_TOO_LARGE);
    open.max_header_bytes = n;
    edit = open_edit(&options);
    assert_int_equal(sft_edit_rename(edit, sft_span_cstr("a"), sft_span_cstr("c"), NULL), SFT_OK);
    assert_int_equal(finish(edit, &report), SFT_OK); /* fits */
}

/* ── What may not be written ── */

static sft_code try_edit(bool safe, sft_error *err) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit;
    options.safe = safe;
    sft_code code = sft_edit_open(temp_path(FILE_NAME), &options, &edit, err);
    if (code) return code;
    assert_int_equal(set(edit, "k", "v"), SFT_OK);
    code = sft_edit_apply(edit, NULL, NULL, err);
    sft_edit_close(edit);
    return code;
}

static void test_read_only(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    put_file("{" A_B "}" PAD, 8);
    for (int folder = 0; folder < 2; folder++) {
        assert_int_equal(chmod(temp_path(FILE_NAME), folder ? 0666 : 0444), 0);
        assert_int_equal(chmod(temp_dir, folder ? 0555 : 0777), 0);
        if (geteuid() == 0) assert_int_equal(seteuid(65534), 0);
        sft_code place = try_edit(false, &err);
        int32_t os_errno = err.os_errno;
        sft_code safe = try_edit(true, &err);
        if (getuid() == 0) assert_int_equal(seteuid(0), 0);
        assert_int_equal(chmod(temp_dir, 0777), 0);
        assert_int_equal(place, SFT_IO_OPEN);
        assert_int_equal(os_errno, EACCES);
        assert_int_equal(safe, SFT_IO_OPEN);
        expect_text("{" A_B "}" PAD, "{" A_B "}");
        assert_int_equal(temp_dir_count(), 1);
    }
}

/* The changed copy goes to another device. */
static void test_other_device(void **state) {
    struct stat here, there;
    char path[64];
    (void)state;
    if (stat("/dev/shm", &there) != 0 || stat(temp_dir, &here) != 0 ||
        there.st_dev == here.st_dev || access("/dev/shm", W_OK) != 0)
        skip();
    put_file("{" A_B "}" PAD, 8);
    (void)snprintf(path, sizeof path, "/dev/shm/sft-test-%d", (int)getpid());
    sft_edit *edit = open_edit(NULL);
    sft_edit_report report;
    assert_int_equal(set(edit, "k", "V"), SFT_OK);
    assert_int_equal(sft_edit_save(edit, path, NULL, NULL, &report, NULL), SFT_OK);
    assert_int_equal(report.method, SFT_EDIT_COPY);
    sft_edit_close(edit);
    sft_file *file = NULL;
    sft_code code = sft_open(path, NULL, &file, NULL);
    sft_close(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(code, SFT_OK);
}

/* ── Side by side ── */

#define EDITORS 4
#define EDITS 40

/* Exits with how many of its edits were done. */
static void edit_and_exit(int number) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    int done = 0;
    options.no_sync = true;
    for (int i = 0; i < 4000 && done < EDITS; i++) {
        char key[32];
        sft_edit *edit;
        (void)snprintf(key, sizeof key, "%d.%d", number, done);
        sft_code code = sft_edit_open(temp_path(FILE_NAME), &options, &edit, NULL);
        if (code == SFT_OK) {
            code = set(edit, key, "v");
            if (code == SFT_OK) code = sft_edit_apply(edit, NULL, NULL, NULL);
            sft_edit_close(edit);
        }
        if (code != SFT_OK && code != SFT_EDIT_BUSY) _exit(200);
        if (code == SFT_OK) done++;
        else usleep((useconds_t)(50 * number));
    }
    _exit(done);
}

/* A header read in the middle of an edit that has ended since is read again. */
static void read_beside(void) {
    sft_code code = SFT_JSON_SYNTAX;
    for (int i = 0; i < 3 && code >= 100 && code < 180; i++) {
        sft_file *file = NULL;
        code = sft_open(temp_path(FILE_NAME), NULL, &file, NULL);
        sft_close(file);
    }
    assert_true(code == SFT_OK || code == SFT_EDIT_INTERRUPTED);
}

/* A writer that says it is done is; and readers find a model or are told. */
static void test_editors(void **state) {
    pid_t editors[EDITORS];
    int status, sum = 0;
    sft_file *file;
    (void)state;
    put_file("{" A_B "}" PAD, 8);
    for (int i = 0; i < EDITORS; i++) {
        editors[i] = fork();
        assert_true(editors[i] >= 0);
        if (editors[i] == 0) edit_and_exit(i + 1);
    }
    for (int i = 0; i < EDITORS; i++) {
        while (waitpid(editors[i], &status, WNOHANG) == 0) read_beside();
        assert_true(WIFEXITED(status));
        assert_int_not_equal(WEXITSTATUS(status), 200);
        sum += WEXITSTATUS(status);
    }
    assert_true(sum >= EDITS);
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_metadata_count(file), sum);
    sft_close(file);
    assert_int_equal(temp_dir_count(), 1);
}

/* ── Killed ── */

#define BIG ((size_t)2 << 20)
#define KILLS 40

/* Tensor w becomes all As, all Bs, all As ... */
_Noreturn static void put_for_ever(void) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    char *bytes = malloc(BIG);
    options.no_sync = true;
    if (!bytes) _exit(5);
    for (int i = 0;; i++) {
        sft_edit *edit;
        memset(bytes, 'A' + i % 2, BIG);
        sft_source source = sft_source_memory(bytes, BIG);
        if (sft_edit_open(temp_path(FILE_NAME), &options, &edit, NULL)) _exit(1);
        if (sft_edit_put(edit, sft_span_cstr("w"), &source, NULL)) _exit(2);
        if (sft_edit_set(edit, sft_span_cstr("k"), (sft_span){ bytes, 1 }, NULL)) _exit(3);
        if (sft_edit_apply(edit, NULL, NULL, NULL)) _exit(4);
        sft_edit_close(edit);
    }
}

/* All of w is of the letter that the metadata name. */
static void expect_one_letter(void) {
    sft_file *file = NULL;
    sft_span value;
    char *bytes = malloc(BIG);
    assert_non_null(bytes);
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    assert_true(sft_file_metadata_get_cstr(file, "k", &value));
    assert_int_equal(sft_read_bytes(file, sft_file_data_offset(file), bytes, BIG, NULL), SFT_OK);
    for (size_t i = 0; i < BIG; i++) assert_int_equal(bytes[i], value.data[0]);
    sft_close(file);
    free(bytes);
}

/* Where files must have names while they are written, who is killed leaves one. */
static void sweep_named(void) {
    int fd = -1;
    int error = sfti_os_open_unnamed(temp_dir, 0600, &fd);
    if (!error) assert_int_equal(sfti_os_close(fd), 0);
    else assert_int_equal(error, EOPNOTSUPP);
    if (error) assert_int_equal(sft_sweep(temp_dir, false, NULL, NULL, NULL, NULL), SFT_OK);
}

static void test_killed(void **state) {
    int status, torn = 0;
    char *header = found;
    (void)state;
    (void)snprintf(header, sizeof found,
                   "{\"__metadata__\":{\"k\":\"A\"},\"w\":{\"dtype\":\"U8\",\"shape\":[%zu],"
                   "\"data_offsets\":[0,%zu]}}", BIG, BIG);
    char *bytes = malloc(BIG);
    assert_non_null(bytes);
    memset(bytes, 'A', BIG);
    test_file f = make_file(header, bytes, BIG);
    free(bytes);
    temp_write(FILE_NAME, f.bytes, f.len);
    free_file(&f);
    for (int round = 0; round < KILLS; round++) {
        sft_file *file = NULL;
        pid_t editor = fork();
        assert_true(editor >= 0);
        if (editor == 0) put_for_ever();
        usleep(2000 + roll(60000));
        assert_int_equal(kill(editor, SIGKILL), 0);
        assert_int_equal(waitpid(editor, &status, 0), editor);
        assert_true(WIFSIGNALED(status));
        sft_code code = sft_open(temp_path(FILE_NAME), NULL, &file, NULL);
        sft_close(file);
        assert_true(code == SFT_OK || code == SFT_EDIT_INTERRUPTED);
        if (code == SFT_OK) expect_one_letter();
        torn += code != SFT_OK;
        assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, NULL), SFT_OK);
        expect_one_letter();
        sweep_named();
        assert_int_equal(temp_dir_count(), 1);
    }
    print_message("%d of %d kills tore the file\n", torn, KILLS);
}

/* ── What a name leads to ── */

#define HEX40 "0123456789abcdef0123456789abcdef01234567"

static void test_leads_to(void **state) {
    static const struct {
        const char *folder, *name; /* of what the link leads to; name NULL: nothing is there */
        const char *words;
        bool is_blob; /* of a Hugging Face cache, as the hint says */
    } rows[] = {
        { "blobs", HEX40, "/blobs/" HEX40, true },
        { "blobs", HEX40 "89abcdef0123456789abcdef", "/blobs/" HEX40, true },
        { "blobs", HEX40 "8", "/blobs/" HEX40 "8", false },
        { "blobs", "g123456789abcdef0123456789abcdef01234567", "/blobs/g", false },
        { "blob", HEX40, "/blob/" HEX40, false },
        { "blobs", NULL, "a symbolic link to what cannot be reached", false },
    };
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[300];
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(mkdir(temp_path(rows[i].folder), 0700), 0);
        (void)snprintf(path, sizeof path, "%s/%s", rows[i].folder,
                       rows[i].name ? rows[i].name : "none");
        put_file("{" A_B "}", 8);
        if (rows[i].name) assert_int_equal(rename(temp_path(FILE_NAME), temp_path(path)), 0);
        else (void)unlink(temp_path(FILE_NAME));
        assert_int_equal(symlink(path, temp_path(FILE_NAME)), 0);
        options.link = SFT_LINK_REFUSE;
        assert_int_equal(sft_edit_open(temp_path(FILE_NAME), &options, &edit, &err), SFT_IS_LINK);
        if (!strstr(err.message, rows[i].words)) fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(err.hint == SFT_HINT_HUB_CACHE, rows[i].is_blob);
        options.link = SFT_LINK_FOLLOW;
        sft_code code = sft_edit_open(temp_path(FILE_NAME), &options, &edit, &err);
        assert_int_equal(code, rows[i].name ? SFT_OK : SFT_NOT_FOUND);
        sft_edit_close(edit);
        (void)unlink(temp_path(path));
        (void)unlink(temp_path(FILE_NAME));
        assert_int_equal(rmdir(temp_path(rows[i].folder)), 0);
    }
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(mkdir(temp_path("folder"), 0700), 0);
    assert_int_equal(sft_edit_open(temp_path("folder"), NULL, &edit, &err), SFT_IO_NOT_FILE);
    assert_non_null(strstr(err.message, "found a folder"));
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);
    assert_int_equal(sft_edit_open(temp_path("pipe"), NULL, &edit, &err), SFT_IO_NOT_FILE);
    assert_non_null(strstr(err.message, "found a pipe or device"));
    /* A link that is replaced leaves a file of several names alone; an edit of it does not. */
    put_file("{" A_B "}", 8);
    assert_int_equal(link(temp_path(FILE_NAME), temp_path("second")), 0);
    assert_int_equal(symlink(FILE_NAME, temp_path("link")), 0);
    edit = open_edit(NULL);
    assert_int_equal(set(edit, "k", "v"), SFT_OK);
    assert_int_equal(finish(edit, NULL), SFT_HARD_LINKS);
    assert_int_equal(sft_edit_open(temp_path("link"), NULL, &edit, &err), SFT_OK);
    assert_int_equal(set(edit, "k", "v"), SFT_OK);
    assert_int_equal(finish(edit, NULL), SFT_OK);
    struct stat st;
    assert_int_equal(lstat(temp_path("link"), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(stat(temp_path("second"), &st), 0);
    assert_int_equal(st.st_nlink, 2);
}

/* Room and limits that no header has: what fits is written without them. */
static void test_extremes(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    (void)state;
    options.open = &open;
    for (int row = 0; row < 4; row++) {
        sft_edit_report report;
        put_file("{" A_B "}", 8);
        options.spare = row == 1 ? UINT64_MAX : row == 2 ? (uint64_t)1 << 31 : 0;
        open.max_header_bytes = row == 3 ? UINT64_MAX : 0;
        sft_edit *edit = open_edit(&options);
        assert_int_equal(set(edit, "key", "value"), SFT_OK);
        assert_int_equal(finish(edit, &report), SFT_OK);
        sft_file *file = NULL;
        assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
        assert_int_equal(sft_file_metadata_count(file), 1);
        assert_true(sft_file_data_offset(file) < 3 * 4096 + 512);
        sft_close(file);
    }
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_DIR(test_odd),        IN_DIR(test_random),       IN_DIR(test_large_metadata),
        IN_DIR(test_header_cap), IN_DIR(test_read_only),    IN_DIR(test_other_device),
        IN_DIR(test_editors),    IN_DIR(test_killed),       IN_DIR(test_leads_to),
        IN_DIR(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
