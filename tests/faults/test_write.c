/* The plan, the writer and copies into every kind of sink over a system of which the nth
 * allocation or call fails: the whole file or none (or the old one), and no leftover files. What
 * sft_sink_path does by itself is in test_bytes.c. */
#include "faults.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#define TARGET "/dir/target"

/* ── Sinks ── */

enum { TO_MEMORY, TO_PIPE, TO_FILE, TO_PATH, TO_NAMED_PATH, TO_CALLBACK, TO_TEE, TO_TEE_FIRST };

static sft_buffer buffer;
static int fd_given = -1;
static size_t files_before;
static const sft_allocator *alloc_given; /* NULL: libc's */

static sft_code count_bytes(void *ctx, const void *bytes, size_t len, sft_error *err) {
    (void)err;
    fault_see_bytes(ctx, bytes, len);
    return SFT_OK;
}

static sft_code sink_path(sft_sink *out, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    options.alloc = alloc_given;
    return sft_sink_path(TARGET, &options, out, err);
}

static sft_code sink_tee(bool path_first, sft_sink *out, sft_error *err) {
    sft_sink path, memory = sft_sink_memory(&buffer);
    sft_code code = sink_path(&path, err);
    if (code) return code;
    return sft_sink_tee(path_first ? path : memory, path_first ? memory : path, alloc_given,
                        out, err);
}

static sft_code open_sink(const fault_scene *scene, sft_sink *out, fault_seen *seen) {
    sft_error *err = &seen->err;
    switch (scene->way) {
    case TO_PIPE: return sft_sink_fd(1, alloc_given, out, err);
    case TO_FILE: return sft_sink_fd(fd_given, alloc_given, out, err);
    case TO_PATH:
    case TO_NAMED_PATH: return sink_path(out, err);
    case TO_CALLBACK: return sft_sink_callback(count_bytes, seen, alloc_given, out, err);
    case TO_TEE:
    case TO_TEE_FIRST: return sink_tee(scene->way == TO_TEE_FIRST, out, err);
    default: *out = sft_sink_memory(&buffer); return SFT_OK;
    }
}

static void set_sinks(const fault_scene *scene) {
    static sft_buffer empty;
    alloc_given = scene->mode ? NULL : &fault_alloc;
    buffer = empty;
    if (alloc_given) buffer.alloc = *alloc_given;
    os_fake_no_unnamed(scene->way == TO_NAMED_PATH);
    os_fake_short_writes(100);
    if (scene->path) os_fake_add_file(TARGET, "old", 3);
    fd_given = -1;
    if (scene->way == TO_FILE && sfti_os_open_new("/dir/opened", 0666, &fd_given) != 0) fail();
    files_before = os_fake_count_files();
}

static bool is_old(void) {
    size_t len;
    const void *bytes = os_fake_file(TARGET, &len);
    return bytes && len == 3 && memcmp(bytes, "old", 3) == 0;
}

/* After publication nothing fails. */
static const char *judge_target(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    bool path = scene->way == TO_PATH || scene->way == TO_NAMED_PATH || scene->way >= TO_TEE;
    bool there = os_fake_exists(TARGET), fresh = there && !is_old();
    size_t most = files_before + (fresh && !scene->path);
    if (fd_given >= 0) (void)sfti_os_close(fd_given);
    if (!path) return NULL;
    if (seen->status == SFT_OK && !fresh) return "success, and no file";
    if (seen->status != SFT_OK && fresh) return "failure, and a new file";
    if (scene->path && !there) return "the old file is gone";
    return os_fake_count_files() > most + lasting ? "a hidden file is left" : NULL;
}

/* The bytes that arrived, if all went well. */
static void see_sink(const fault_scene *scene, fault_seen *seen) {
    size_t len = 0;
    const void *bytes = NULL;
    if (seen->status == SFT_OK) {
        if (scene->way == TO_MEMORY || scene->way >= TO_TEE)
            fault_see_bytes(seen, buffer.data, buffer.len);
        if (scene->way == TO_PIPE) bytes = os_fake_output(1, &len);
        else if (scene->way == TO_FILE) bytes = os_fake_file("/dir/opened", &len);
        else bytes = os_fake_file(TARGET, &len);
        if (bytes) fault_see_bytes(seen, bytes, len);
    }
    sft_buffer_free(&buffer);
}

/* ── The writer ── */

static const uint64_t sides[] = { 5, 6 };
static const sft_spec specs[] = {
    { { "bytes", 5 }, SFT_U8, 1, sides }, { { "matrix", 6 }, SFT_F32, 2, sides },
    { { "one", 3 }, SFT_I64, 0, NULL },   { { "halves", 6 }, SFT_BF16, 1, sides },
};
static const sft_pair pairs[] = { { { "format", 6 }, { "pt", 2 } },
                                  { { "about", 5 }, { "a \"test\"", 8 } } };

static sft_code put_tensors(sft_writer *writer, const sft_plan *plan, bool backwards,
                            sft_error *err) {
    static const char bytes[120] = "the same bytes for all";
    size_t count = sft_plan_tensor_count(plan);
    for (size_t n = 0; n < count; n++) {
        size_t i = backwards ? count - 1 - n : n;
        const sft_tensor *tensor = sft_plan_tensor_at(plan, i);
        size_t len = (size_t)(tensor->end - tensor->begin), half = len / 2;
        sft_code code = sft_writer_put(writer, i, bytes, half, err);
        if (!code) code = sft_writer_put(writer, i, bytes + half, len - half, err);
        if (code) return code;
    }
    return SFT_OK;
}

static sft_code write_planned(const fault_scene *scene, const sft_plan *plan, fault_seen *seen) {
    sft_writer *writer;
    sft_sink sink;
    sft_code code = open_sink(scene, &sink, seen);
    if (code) return code;
    bool backwards = sink.seekable;
    code = sft_writer_begin(plan, sink, &writer, &seen->err);
    if (code) return code;
    code = put_tensors(writer, plan, backwards, &seen->err);
    if (!code) return sft_writer_finish(writer, &seen->err);
    sft_writer_abandon(writer);
    return code;
}

static void run_writer(const fault_scene *scene, fault_seen *seen) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_plan *plan = NULL;
    options.alloc = alloc_given;
    options.align = 64;
    sft_code code = sft_plan_new(specs, 4, pairs, 2, &options, &plan, &seen->err);
    if (!code) code = write_planned(scene, plan, seen);
    sft_plan_free(plan);
    seen->status = code;
    see_sink(scene, seen);
}

#define WRITE(to, old) { .name = "write " #to " " #old, .run = run_writer, .way = to, \
    .path = old, .writes = true, .set = set_sinks, .after = judge_target }
#define WRITE_LIBC(to) { .name = "write libc " #to, .run = run_writer, .way = to, .mode = 1, \
    .writes = true, .set = set_sinks, .after = judge_target }

static const fault_scene writers[] = {
    WRITE(TO_MEMORY, NULL),     WRITE(TO_PIPE, NULL),       WRITE(TO_FILE, NULL),
    WRITE(TO_PATH, NULL),       WRITE(TO_PATH, TARGET),     WRITE(TO_NAMED_PATH, NULL),
    WRITE(TO_NAMED_PATH, TARGET), WRITE(TO_CALLBACK, NULL), WRITE(TO_TEE, NULL),
    WRITE(TO_TEE, TARGET),      WRITE(TO_TEE_FIRST, TARGET),
    WRITE_LIBC(TO_MEMORY),      WRITE_LIBC(TO_PATH),
    WRITE_LIBC(TO_CALLBACK),    WRITE_LIBC(TO_TEE),
};

/* ── Copies ── */

static bool go_on(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return true;
}

static sft_code copy_file(const fault_scene *scene, const sft_file *file, fault_seen *seen) {
    sft_job job = SFT_JOB_INIT;
    sft_source source = sft_file_source(file);
    sft_sink sink;
    job.tick = go_on;
    sft_code code = open_sink(scene, &sink, seen);
    if (code) return code;
    return sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sink, &job, &seen->err);
}

static void run_copy(const fault_scene *scene, fault_seen *seen) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    options.alloc = alloc_given;
    sft_code code = sft_open("/m/many.safetensors", &options, &file, &seen->err);
    if (!code) code = copy_file(scene, file, seen);
    sft_close(file);
    seen->status = code;
    see_sink(scene, seen);
}

#define COPY(to, old) { .name = "copy " #to " " #old, .run = run_copy, .way = to, \
    .path = old, .writes = true, .set = set_sinks, .after = judge_target }

static const fault_scene copies[] = {
    COPY(TO_MEMORY, NULL),     COPY(TO_PIPE, NULL), COPY(TO_FILE, NULL), COPY(TO_PATH, TARGET),
    COPY(TO_NAMED_PATH, NULL), COPY(TO_TEE, TARGET),
};

static void play_writers(void **state) {
    (void)state;
    assert_true(fault_play(writers, sizeof writers / sizeof *writers, 70, 170));
}

static void play_copies(void **state) {
    (void)state;
    assert_true(fault_play(copies, sizeof copies / sizeof *copies, 55, 1100));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_writers),
        cmocka_unit_test(play_copies),
    };
    return cmocka_run_group_tests_name("writing over a failing system", tests, NULL, NULL);
}
