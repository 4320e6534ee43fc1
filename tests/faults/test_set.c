/* Sets, the deep check and the results as JSON over a system of which the nth allocation
 * or call fails. */
#include "faults.h"
#include "safetensors_index.h"
#include "safetensors_report.h"
#include "safetensors_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

static uint32_t places[512];

static sft_set_options options_of(const fault_scene *scene) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    static sft_open_options open;
    open = (sft_open_options)SFT_OPEN_OPTIONS_INIT;
    options.open = &open;
    open.mode = (sft_mode)scene->mode;
    open.alloc = &fault_alloc;
    return options;
}

enum { AS_IT_IS, AS_LIST, AS_FILE, AS_SYSTEM };

static sft_code open_file_as_set(const fault_scene *scene, sft_set **set, sft_error *err) {
    sft_set_options options = options_of(scene);
    sft_file *file;
    sft_code code = sft_open(scene->path, options.open, &file, err);
    return code ? code : sft_set_from_file(file, scene->path, set, err);
}

static sft_code open_set(const fault_scene *scene, sft_set **set, sft_error *err) {
    static const char *const paths[] = { "/set/m-00002-of-00003.safetensors",
                                         "/m/a.safetensors", "/m/many.safetensors" };
    sft_set_options options = options_of(scene);
    *set = NULL;
    switch (scene->way) {
    case AS_LIST: return sft_set_open_list(paths, 3, &options, set, err);
    case AS_FILE: return open_file_as_set(scene, set, err);
    case AS_SYSTEM: return sft_set_open(scene->path, NULL, set, err);
    default: return sft_set_open(scene->path, &options, set, err);
    }
}

/* ── The namespace ── */

static void see_namespace(fault_seen *seen, const sft_set *set) {
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        size_t shard = SIZE_MAX;
        fault_see_tensor(seen, tensor);
        bool found = sft_set_find(set, tensor->name, &shard) == tensor;
        fault_see(seen, "%d %zu %zu\n", found, shard, sft_set_tensor_shard(set, i));
    }
    for (size_t i = 0; i < sft_set_shard_count(set); i++)
        fault_see(seen, "%s\n", sft_set_shard_path(set, i));
    sft_span metadata = sft_set_index_metadata(set);
    fault_see(seen, "%.*s\n", (int)metadata.len, metadata.len ? metadata.data : "");
}

static sft_code see_orders(fault_seen *seen, const sft_set *set) {
    sft_code code = SFT_OK;
    for (int order = 0; !code && order <= SFT_ORDER_HEADER; order++) {
        code = sft_set_order(set, (sft_order)order, places, &seen->err);
        if (!code) fault_see_bytes(seen, places, sft_set_tensor_count(set) * sizeof *places);
    }
    return code;
}

static bool go_on(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return true;
}

static sft_code see_deep(fault_seen *seen, const sft_set *set, sft_deep_counts *deep) {
    sft_job job = SFT_JOB_INIT;
    job.tick = go_on;
    sft_code code = sft_set_check_deep(set, deep, &job, &seen->err);
    fault_see(seen, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", deep->tensors,
              deep->values, deep->nan, deep->inf);
    return code;
}

static void run_set(const fault_scene *scene, fault_seen *seen) {
    sft_set *set;
    sft_deep_counts deep;
    sft_code code = open_set(scene, &set, &seen->err);
    if (!code) {
        see_namespace(seen, set);
        code = see_orders(seen, set);
    }
    if (!code) code = see_deep(seen, set, &deep);
    sft_set_close(set);
    seen->status = code;
}

static void run_index(const fault_scene *scene, fault_seen *seen) {
    sft_set_options options = options_of(scene);
    sft_index *names;
    seen->status = sft_index_open(scene->path, &options, &names, &seen->err);
    for (size_t i = 0; names && i < sft_index_shard_count(names); i++)
        fault_see(seen, "%s\n", sft_index_shard_at(names, i));
    sft_index_close(names);
}

#define SET(w, m, what) { .name = #w " " #m " " what, .run = run_set, .way = w, .mode = m, \
                          .path = what }
#define NOT_A_SET(what) { .name = "refused " what, .run = run_set, .path = what, .refused = true }

static const fault_scene sets[] = {
    SET(AS_IT_IS, SFT_READ, "/set/m.safetensors.index.json"),
    SET(AS_IT_IS, SFT_MAP, "/set/m.safetensors.index.json"),
    SET(AS_IT_IS, SFT_AUTO, "/set/m.safetensors.index.json"),
    SET(AS_IT_IS, SFT_READ, "/set/plain.json"),
    SET(AS_SYSTEM, SFT_READ, "/set/m.safetensors.index.json"),
    SET(AS_IT_IS, SFT_READ, "/m/a.safetensors"),
    SET(AS_SYSTEM, SFT_READ, "/m/many.safetensors"),
    SET(AS_LIST, SFT_READ, ""),
    SET(AS_LIST, SFT_AUTO, ""),
    SET(AS_FILE, SFT_READ, "/m/a.safetensors"),
    SET(AS_FILE, SFT_MAP_COW, "/m/big.safetensors"),
    NOT_A_SET("/gap/m.safetensors.index.json"),
    NOT_A_SET("/odd/m.safetensors.index.json"),
    NOT_A_SET("/m/page.safetensors"),
    NOT_A_SET("/m/bad.safetensors"),
    { .name = "sft_index_open", .run = run_index, .path = "/set/m.safetensors.index.json" },
    { .name = "sft_index_open plain", .run = run_index, .path = "/set/plain.json" },
};

/* ── Results as JSON ── */

typedef enum result_kind { INFO, LS, CHECK, CHECK_SET, ERROR } result_kind;

static sft_code put_check(const fault_scene *scene, sft_sink *sink, sft_error *err) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan = NULL;
    options.alloc = &fault_alloc;
    sft_code code = sft_scan_open(scene->path, &options, &scan, err);
    if (!code) code = sft_scan_json(scan, scene->path, NULL, sink, err);
    sft_scan_close(scan);
    return code;
}

static sft_code put_set(const fault_scene *scene, result_kind kind, sft_sink *sink,
                        fault_seen *seen) {
    sft_set *set;
    sft_deep_counts deep;
    sft_span none = { NULL, 0 };
    sft_error *err = &seen->err;
    sft_code code = open_set(scene, &set, err);
    if (!code && kind == INFO) code = sft_set_json(set, scene->path, 0, sink, err);
    if (!code && kind == LS)
        code = sft_set_ls_json(set, scene->path, SFT_ORDER_NATURAL, NULL, NULL, sink, err);
    if (!code && kind == CHECK_SET) code = see_deep(seen, set, &deep);
    if (!code && kind == CHECK_SET)
        code = sft_set_check_json(NULL, SFT_LEVEL_DEFAULT, none, scene->path, &deep, sink, err);
    sft_set_close(set);
    return code;
}

static sft_code put_result(const fault_scene *scene, result_kind kind, sft_sink *sink,
                           fault_seen *seen) {
    sft_error error = SFT_ERROR_INIT;
    if (kind == CHECK) return put_check(scene, sink, &seen->err);
    if (kind != ERROR) return put_set(scene, kind, sink, seen);
    (void)sft_error_set(&error, SFT_IO_READ, 5, "it would not");
    return sft_error_json(&error, scene->path, sink, &seen->err);
}

/* way is the kind of result. */
static void run_into_memory(const fault_scene *scene, fault_seen *seen) {
    fault_scene plain = *scene;
    sft_buffer buffer = { .alloc = fault_alloc };
    sft_sink sink = sft_sink_memory(&buffer);
    plain.way = AS_IT_IS;
    sft_code code = put_result(&plain, (result_kind)scene->way, &sink, seen);
    if (!code) code = sft_sink_finish(&sink, &seen->err);
    else sft_sink_abandon(&sink);
    if (!code) fault_see(seen, "%.*s\n", (int)buffer.len, buffer.data);
    sft_buffer_free(&buffer);
    seen->status = code;
}

static void run_into_pipe(const fault_scene *scene, fault_seen *seen) {
    fault_scene plain = *scene;
    sft_sink sink;
    size_t len;
    plain.way = AS_IT_IS;
    sft_code code = sft_sink_fd(1, &fault_alloc, &sink, &seen->err);
    seen->status = code;
    if (code) return;
    code = put_result(&plain, (result_kind)scene->way, &sink, seen);
    if (!code) code = sft_sink_finish(&sink, &seen->err);
    else sft_sink_abandon(&sink);
    const char *out = os_fake_output(1, &len);
    if (!code) fault_see(seen, "%.*s\n", (int)len, out);
    seen->status = code;
}

#define RESULT(kind, what) \
    { .name = #kind " memory " what, .run = run_into_memory, .way = kind, .path = what }, \
    { .name = #kind " pipe " what, .run = run_into_pipe, .way = kind, .path = what }

static const fault_scene results[] = {
    RESULT(INFO, "/m/a.safetensors"),
    RESULT(INFO, "/set/m.safetensors.index.json"),
    RESULT(LS, "/m/many.safetensors"),
    RESULT(LS, "/set/plain.json"),
    RESULT(CHECK, "/m/a.safetensors"),
    RESULT(CHECK, "/m/bad.safetensors"),
    RESULT(CHECK_SET, "/set/m.safetensors.index.json"),
    RESULT(ERROR, "/m/a\xFFsafetensors"),
};

static void play_sets(void **state) {
    (void)state;
    assert_true(fault_play(sets, sizeof sets / sizeof *sets, 190, 370));
}

static void play_results(void **state) {
    (void)state;
    assert_true(fault_play(results, sizeof results / sizeof *results, 165, 320));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_sets),
        cmocka_unit_test(play_results),
    };
    return cmocka_run_group_tests_name("sets over a failing system", tests, NULL, NULL);
}
