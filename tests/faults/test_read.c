/* Opening, reading, slicing, scanning and diagnosing over a system of which the nth
 * allocation or call fails. */
#include "bytes/source.h"
#include "faults.h"
#include "hash/hash.h"
#include "unit/make_file.h"
#include "safetensors_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static char buffer[400000];
static uint32_t places[512];

/* ── Ways to open ── */

enum { BY_PATH, BY_FD, BY_MEMORY, BY_SOURCE, BY_PIPE };

static int fd_given = -1;
static int times_closed;

static void open_given(const fault_scene *scene) {
    if (sfti_os_open_read(scene->path, &fd_given) != 0) fail();
}

static const char *close_given(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    (void)scene, (void)seen, (void)lasting;
    (void)sfti_os_close(fd_given);
    return NULL;
}

static sft_code read_own(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                         sft_error *err) {
    (void)ctx;
    *got = 0;
    while (*got < len) {
        size_t piece = 0;
        int error = sfti_os_pread(fd_given, (char *)into + *got, len - *got, offset + *got, &piece);
        if (error) return sft_error_set(err, SFT_IO_READ, error, "the source says no");
        if (piece == 0) break;
        *got += piece;
    }
    return SFT_OK;
}

static void close_own(void *ctx) {
    (void)ctx;
    times_closed++;
}

static const sft_source_vtable own_source_vtable = {
    sizeof(sft_source_vtable), read_own, close_own, NULL, NULL
};

static sft_source own_source(const fault_scene *scene) {
    size_t len;
    times_closed = 0;
    (void)os_fake_file(scene->path, &len);
    return (sft_source){ &fd_given, &own_source_vtable, len, NULL, false };
}

static const char *closed_once(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    (void)close_given(scene, seen, lasting);
    return times_closed == 1 ? NULL : "the source was not closed once";
}

static sft_code open_as(const fault_scene *scene, sft_file **file, sft_error *err) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    size_t len;
    const void *bytes;
    options.mode = (sft_mode)scene->mode;
    options.alloc = &fault_alloc;
    switch (scene->way) {
    case BY_FD:
    case BY_PIPE: return sft_open_fd(fd_given, &options, file, err);
    case BY_MEMORY:
        bytes = os_fake_file(scene->path, &len);
        return sft_open_memory(bytes, len, &options, file, err);
    case BY_SOURCE: return sft_open_source(own_source(scene), &options, file, err);
    default: return sft_open(scene->path, &options, file, err);
    }
}

/* ── What is read ── */

static sft_code see_orders(fault_seen *seen, const sft_file *file) {
    sft_code code = SFT_OK;
    for (int order = 0; !code && order <= SFT_ORDER_HEADER; order++) {
        code = sft_file_order(file, (sft_order)order, places, &seen->err);
        if (!code) fault_see_bytes(seen, places, sft_file_tensor_count(file) * sizeof *places);
    }
    return code;
}

static void see_facts(fault_seen *seen, const sft_file *file) {
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        fault_see_tensor(seen, tensor);
        fault_see(seen, "%d", sft_file_find(file, tensor->name) == tensor);
    }
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        fault_see(seen, "%.*s=%.*s\n", (int)pair.key.len, pair.key.data, (int)pair.value.len,
                  pair.value.data);
    }
}

static sft_code see_borrowed(fault_seen *seen, const sft_file *file, const sft_tensor *tensor) {
    sft_loan loan;
    sft_code code = sft_borrow(file, tensor, &loan, &seen->err);
    if (code) return code;
    fault_see_bytes(seen, loan.data, loan.len);
    sft_return(file, &loan);
    return SFT_OK;
}

static sft_code see_viewed(fault_seen *seen, const sft_file *file, const sft_tensor *tensor) {
    const void *view;
    void *writable;
    sft_code code = sft_view(file, tensor, &view, &seen->err);
    if (code) return code;
    fault_see_bytes(seen, view, tensor->end - tensor->begin);
    if (sft_view_writable(file, tensor, &writable, NULL) == SFT_OK && tensor->end > tensor->begin)
        *(char *)writable ^= 1;
    return SFT_OK;
}

static sft_code see_copied(fault_seen *seen, const sft_file *file, const sft_tensor *tensor) {
    size_t len = (size_t)(tensor->end - tensor->begin);
    sft_code code = sft_read_into(file, tensor, buffer, len, &seen->err);
    if (!code) fault_see_bytes(seen, buffer, len);
    return code;
}

static bool go_on(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return true;
}

/* All at once, last first, by four threads. */
static sft_code see_many(fault_seen *seen, const sft_file *file) {
    static sft_read reads[512];
    sft_job job = SFT_JOB_INIT;
    size_t count = sft_file_tensor_count(file), at = 0;
    job.tick = go_on;
    job.threads = 4;
    for (size_t i = count; i-- > 0;) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        size_t len = (size_t)(tensor->end - tensor->begin);
        reads[i] = (sft_read){ tensor, buffer + at, len };
        at += len;
    }
    sft_code code = sft_read_many(file, reads, count, &job, &seen->err);
    if (!code) fault_see_bytes(seen, buffer, at);
    return code;
}

static sft_code see_slice(fault_seen *seen, const sft_file *file, const sft_tensor *tensor,
                          const char *text) {
    sft_slice slice;
    uint64_t len;
    sft_code code = sft_slice_parse(tensor->shape, tensor->rank, sft_span_cstr(text), &slice,
                                    &seen->err);
    if (!code) code = sft_slice_size(&slice, tensor->dtype, NULL, &len, &seen->err);
    if (!code) code = sft_slice_read(file, tensor, &slice, buffer, (size_t)len, &seen->err);
    if (!code) fault_see_bytes(seen, buffer, len);
    return code;
}

static sft_code see_slices(fault_seen *seen, const sft_file *file) {
    static const char *const of_matrix[] = { "[0]", "[::-1, 1:]", "[:, ::2]", "[::2]", "[-1, -1]",
                                             "[:, 1]" };
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sft_file_tensor_count(file) && i < 8; i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        if (tensor->rank == 1) code = see_slice(seen, file, tensor, "[::-2]");
        for (size_t s = 0; !code && tensor->rank == 2 && tensor->shape[0] && s < 6; s++)
            code = see_slice(seen, file, tensor, of_matrix[s]);
    }
    return code;
}

static sft_code see_some(fault_seen *seen, const sft_file *file) {
    uint64_t size = sft_file_size(file);
    size_t len = size > 1000 ? 1000 : (size_t)size;
    sft_code code = sft_read_bytes(file, size - len, buffer, len, &seen->err);
    if (!code) fault_see_bytes(seen, buffer, len);
    return code;
}

static sft_code see_tensors(fault_seen *seen, const sft_file *file, bool mapped) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sft_file_tensor_count(file) && i < 20; i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        code = see_borrowed(seen, file, tensor);
        if (!code && mapped) code = see_viewed(seen, file, tensor);
        if (!code) code = see_copied(seen, file, tensor);
    }
    return code;
}

static sft_code see_forward(fault_seen *seen, const sft_file *file) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sft_file_tensor_count(file); i++)
        code = see_copied(seen, file, sft_file_tensor_at(file, i));
    return code;
}

static sft_code see_all(fault_seen *seen, const sft_file *file, int mode) {
    bool mapped = mode == SFT_MAP || mode == SFT_MAP_COW;
    sft_code code = see_orders(seen, file);
    if (!code) code = see_tensors(seen, file, mapped);
    if (!code) code = see_many(seen, file);
    if (!code) code = see_slices(seen, file);
    return code ? code : see_some(seen, file);
}

static void run_file(const fault_scene *scene, fault_seen *seen) {
    sft_file *file = NULL;
    sft_code code = open_as(scene, &file, &seen->err);
    if (!code) {
        see_facts(seen, file);
        code = scene->way == BY_PIPE ? see_forward(seen, file)
                                     : see_all(seen, file, scene->mode);
    }
    sft_close(file);
    seen->status = code;
}

#define BY(how, what, m) { .name = #how " " #m " " what, .run = run_file, .way = how, \
                           .mode = m, .path = "/m/" what ".safetensors" }
#define GIVEN(how, what, m, end) { .name = #how " " #m " " what, .run = run_file, .way = how, \
    .mode = m, .path = "/m/" what, .set = open_given, .after = end }
#define BAD(how, what) { .name = #how " " what, .run = run_file, .way = how, .refused = true, \
                         .path = "/m/" what ".safetensors" }

static const fault_scene files[] = {
    BY(BY_PATH, "a", SFT_READ), BY(BY_PATH, "a", SFT_MAP),
    BY(BY_PATH, "a", SFT_MAP_COW), BY(BY_PATH, "a", SFT_AUTO),
    BY(BY_PATH, "many", SFT_READ), BY(BY_PATH, "many", SFT_MAP),
    BY(BY_PATH, "many", SFT_AUTO), BY(BY_PATH, "big", SFT_READ),
    BY(BY_PATH, "big", SFT_MAP_COW), BY(BY_PATH, "big", SFT_AUTO),
    BY(BY_MEMORY, "a", SFT_READ), BY(BY_MEMORY, "many", SFT_READ),
    BY(BY_MEMORY, "big", SFT_AUTO),
    GIVEN(BY_FD, "a.safetensors", SFT_READ, close_given),
    GIVEN(BY_FD, "a.safetensors", SFT_MAP, close_given),
    GIVEN(BY_FD, "a.safetensors", SFT_MAP_COW, close_given),
    GIVEN(BY_FD, "big.safetensors", SFT_READ, close_given),
    GIVEN(BY_FD, "big.safetensors", SFT_AUTO, close_given),
    GIVEN(BY_SOURCE, "a.safetensors", SFT_READ, closed_once),
    GIVEN(BY_SOURCE, "a.safetensors", SFT_AUTO, closed_once),
    GIVEN(BY_SOURCE, "big.safetensors", SFT_READ, closed_once),
    GIVEN(BY_PIPE, "pipe", SFT_READ, close_given),
    GIVEN(BY_PIPE, "pipe", SFT_AUTO, close_given),
    { .name = "a FIFO by its path", .run = run_file, .way = BY_PIPE, .path = "/m/pipe" },
    BAD(BY_PATH, "bad"), BAD(BY_PATH, "cut"), BAD(BY_PATH, "page"), BAD(BY_PATH, "twice"),
    BAD(BY_MEMORY, "bad"), BAD(BY_PATH, "none"),
};

static sft_code open_fifo_path(const fault_scene *scene, sft_source *out, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    how.alloc = &fault_alloc;
    return sft_source_path(scene->path, &how, out, err);
}

/* ── Scan ── */

static void see_error(fault_seen *seen, const char *what, const sft_error *error) {
    fault_see(seen, "%s %d @%" PRIu64 " %s\n", what, (int)error->code, error->offset,
              error->message);
}

static void see_scan(fault_seen *seen, const sft_scan *scan) {
    if (sft_scan_error(scan)) see_error(seen, "verdict", sft_scan_error(scan));
    for (size_t i = 0; i < sft_scan_finding_count(scan); i++)
        see_error(seen, "finding", &sft_scan_finding_at(scan, i)->error);
    for (size_t i = 0; i < sft_scan_note_count(scan); i++)
        see_error(seen, sft_scan_note_at(scan, i)->name, &sft_scan_note_at(scan, i)->error);
    for (size_t i = 0; i < sft_scan_entry_count(scan); i++) {
        const sft_scan_entry one = sft_scan_entry_at(scan, i), *entry = &one;
        fault_see(seen, "%.*s %" PRIu64 "\n", (int)entry->name.len, entry->name.data,
                  entry->value_begin);
    }
}

/* mode is the level. A bad file scans well: only the verdict in the scan says no. */
static void run_scan(const fault_scene *scene, fault_seen *seen) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan = NULL;
    sft_source source;
    sft_code code = SFT_OK;
    options.level = (sft_level)scene->mode;
    options.alloc = &fault_alloc;
    if (scene->way == BY_PATH) {
        code = sft_scan_open(scene->path, &options, &scan, &seen->err);
    } else {
        code = open_fifo_path(scene, &source, &seen->err);
        if (!code) code = sft_scan_open_source(source, &options, &scan, &seen->err);
    }
    if (!code) see_scan(seen, scan);
    sft_scan_close(scan);
    seen->status = code;
}

#define SCAN(what, level) { .name = "scan " what " " #level, .run = run_scan, .path = what, \
                            .mode = level }
#define SCAN_SOURCE(what) { .name = "scan source " what, .run = run_scan, .path = what, \
                            .mode = SFT_LEVEL_DEFAULT, .way = BY_SOURCE }

static const fault_scene scans[] = {
    SCAN("/m/a.safetensors", SFT_LEVEL_COMPAT), SCAN("/m/a.safetensors", SFT_LEVEL_STRICT),
    SCAN("/m/many.safetensors", SFT_LEVEL_DEFAULT), SCAN("/m/big.safetensors", SFT_LEVEL_STRICT),
    SCAN("/m/bad.safetensors", SFT_LEVEL_COMPAT), SCAN("/m/bad.safetensors", SFT_LEVEL_STRICT),
    SCAN("/m/cut.safetensors", SFT_LEVEL_DEFAULT), SCAN("/m/twice.safetensors", SFT_LEVEL_DEFAULT),
    SCAN("/m/twice.safetensors", SFT_LEVEL_COMPAT), SCAN("/m/page.safetensors", SFT_LEVEL_DEFAULT),
    SCAN("/set/plain.json", SFT_LEVEL_DEFAULT), SCAN("/m/pipe", SFT_LEVEL_DEFAULT),
    SCAN_SOURCE("/m/a.safetensors"), SCAN_SOURCE("/m/pipe"), SCAN_SOURCE("/m/bad.safetensors"),
};

/* ── Diagnosis ── */

static void run_diagnosis(const fault_scene *scene, fault_seen *seen) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    sft_source source;
    options.alloc = &fault_alloc;
    seen->status = sft_open(scene->path, &options, &file, &seen->err);
    sft_close(file);
    if (open_fifo_path(scene, &source, NULL) == SFT_OK) {
        sft_diagnose(&source, &seen->err);
        sft_source_close(&source);
    }
    if (seen->err.code) seen->status = seen->err.code;
    see_error(seen, "diagnosis", &seen->err);
}

#define LOOK(what) { .name = "diagnose " what, .run = run_diagnosis, .path = what, .refused = true }

static const fault_scene diagnoses[] = {
    LOOK("/m/page.safetensors"), LOOK("/m/cut.safetensors"), LOOK("/m/bad.safetensors"),
    LOOK("/set/plain.json"), LOOK("/tree/deep/notes.txt"),
};

/* ── What must be done without ── */

/* A map that is refused under SFT_AUTO is not missed. */
static void auto_reads_what_it_cannot_map(void **state) {
    static const int errors[] = { ENODEV, ENOMEM, EACCES, EPERM, EAGAIN };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    (void)state;
    options.mode = SFT_AUTO;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_file *file = NULL;
        fault_world();
        os_fake_fail_call("sfti_os_map", 1, errors[i], true);
        assert_int_equal(sft_open("/m/a.safetensors", &options, &file, &err), SFT_OK);
        assert_false(sft_file_is_mapped(file));
        sft_close(file);
        options.mode = SFT_MAP;
        assert_int_equal(sft_open("/m/a.safetensors", &options, &file, &err), SFT_IO_MAP);
        assert_int_equal(err.os_errno, errors[i]);
        assert_null(file);
        options.mode = SFT_AUTO;
        assert_int_equal(os_fake_open_fds(), 0);
        os_fake_reset();
    }
}

/* A system without memory is not a file that cannot be opened. */
static void out_of_memory_while_opening(void **state) {
    static const char *const calls[] = { "sfti_os_open_read", "sfti_os_info_fd",
                                          "sfti_os_open_beneath" };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        sft_open_options options = SFT_OPEN_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_file *file = NULL;
        if (i == 2) options.beneath = "/m";
        fault_world();
        os_fake_fail_call(calls[i], 1, ENOMEM, true);
        assert_int_equal(sft_open("/m/a.safetensors", &options, &file, &err), SFT_OUT_OF_MEMORY);
        assert_int_equal(err.code, SFT_OUT_OF_MEMORY);
        assert_int_equal(err.os_errno, ENOMEM);
        os_fake_reset();
    }
}

static int no_update(void *ctx, const void *data, size_t len) {
    (void)ctx, (void)data, (void)len;
    return 1;
}

/* A library of libcrypto's name may be another: its digests are compared before they count. */
static void wrong_library_is_not_used(void **state) {
    sfti_hash_impl impl;
    (void)state;
    os_fake_set_library((os_function)no_update);
    sfti_hash_impl_fill(&impl, SFTI_HASH_NO_SHA);
    assert_true(impl.sha_blocks == sfti_sha_blocks_plain);
    os_fake_reset();
}

/* A file that is cut while it is open is told of, at every place. */
static void a_file_cut_short_is_told(void **state) {
    (void)state;
    for (size_t len = 0; len < 404; len++) {
        sft_error err = SFT_ERROR_INIT;
        sft_file *file = NULL;
        fault_world();
        assert_int_equal(sft_open("/m/a.safetensors", NULL, &file, &err), SFT_OK);
        os_fake_set_size("/m/a.safetensors", len);
        for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
            const sft_tensor *tensor = sft_file_tensor_at(file, i);
            size_t bytes = (size_t)(tensor->end - tensor->begin);
            bool cut = bytes && tensor->offset + bytes > len;
            assert_int_equal(sft_read_into(file, tensor, buffer, bytes, &err),
                             cut ? SFT_IO_SHRUNK : SFT_OK);
        }
        sft_close(file);
    }
    os_fake_reset();
}

static void play_files(void **state) {
    (void)state;
    assert_true(fault_play(files, sizeof files / sizeof *files, 230, 650));
}

static void play_scans(void **state) {
    (void)state;
    assert_true(fault_play(scans, sizeof scans / sizeof *scans, 110, 110));
}

static void play_diagnoses(void **state) {
    (void)state;
    assert_true(fault_play(diagnoses, sizeof diagnoses / sizeof *diagnoses, 15, 55));
}

/* A column comes out of a map by a few calls; without one, by a few reads of all columns. */
static void columns_are_gathered(void **state) {
    (void)state;
    static const char *const without[] = { NULL, "sfti_os_map", "sfti_os_gather" };
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        fault_seen seen = { .err = SFT_ERROR_INIT };
        sft_file *file = NULL;
        size_t reads = 0, gathers = 0, maps = 0, calls;
        fault_world();
        assert_int_equal(sft_open("/m/big.safetensors", NULL, &file, NULL), SFT_OK);
        if (without[i]) os_fake_fail_call(without[i], 1, EOPNOTSUPP, true);
        else os_fake_fail(0, 0, false);
        assert_int_equal(see_slice(&seen, file, sft_file_tensor_at(file, 0), "[:, 3]"), SFT_OK);
        for (calls = 1; calls <= os_fake_calls(); calls++) {
            reads += strcmp(os_fake_call_name(calls), "sfti_os_pread") == 0;
            gathers += strcmp(os_fake_call_name(calls), "sfti_os_gather") == 0;
            maps += strcmp(os_fake_call_name(calls), "sfti_os_map") == 0;
        }
        assert_int_equal(reads, without[i] ? 2 : 0);
        assert_int_equal(gathers, without[i] ? 1 : 2); /* the first asks whether the system can */
        assert_int_equal(maps, i == 2 ? 0 : 1);
        sft_close(file);
        os_fake_reset();
    }
}

static size_t count_reads(const sft_file *file, const char *text) {
    fault_seen seen = { .err = SFT_ERROR_INIT };
    size_t reads = 0;
    os_fake_fail(0, 0, false);
    assert_int_equal(see_slice(&seen, file, sft_file_tensor_at(file, 0), text), SFT_OK);
    for (size_t call = 1; call <= os_fake_calls(); call++)
        reads += strcmp(os_fake_call_name(call), "sfti_os_pread") == 0;
    return reads;
}

/* A gap is read along where that costs less than another read. */
static void gaps_are_read_where_that_pays(void **state) {
    (void)state;
    static const struct { const char *text; size_t reads; } cases[] = {
        { "[:, 100:116]", 1 }, { "[:, :4096]", 1 }, { "[::-1, 50:4100]", 1 }, { "[:, :8191]", 1 },
        { "[::2, :1000]", 5 }, { "[::2, :8000]", 5 }, { "[:, ::5]", 1 },
    };
    test_file f = make_file("{\"t\":{\"dtype\":\"U8\",\"shape\":[10,8192],"
                            "\"data_offsets\":[0,81920]}}", NULL, 81920);
    sft_file *file = NULL;
    fault_world();
    os_fake_add_file("/m/wide.safetensors", f.bytes, f.len);
    assert_int_equal(sft_open("/m/wide.safetensors", NULL, &file, NULL), SFT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(count_reads(file, cases[i].text), cases[i].reads);
    sft_close(file);
    os_fake_reset();
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_gathered),
        cmocka_unit_test(gaps_are_read_where_that_pays),
        cmocka_unit_test(auto_reads_what_it_cannot_map),
        cmocka_unit_test(out_of_memory_while_opening),
        cmocka_unit_test(wrong_library_is_not_used),
        cmocka_unit_test(a_file_cut_short_is_told),
        cmocka_unit_test(play_files),
        cmocka_unit_test(play_scans),
        cmocka_unit_test(play_diagnoses),
    };
    return cmocka_run_group_tests_name("reading over a failing system", tests, NULL, NULL);
}
