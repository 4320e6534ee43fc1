/* convert over a system of which the nth allocation or call fails, or which is told to stop:
 * what stood there stands there still, or the result is there whole; no hidden file is left,
 * and the exit status tells. */
#include "faults.h"

#include "safetensors_import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── What stands where results go ── */

static const char *const places[] = {
    "/dir/o.safetensors",
    "/dir/old.safetensors",
    "/m/a.safetensors",
    "/set/m.safetensors.index.json",
    "/dir/new/m-00001-of-00003.safetensors",
    "/dir/new/m-00002-of-00003.safetensors",
    "/dir/new/m-00003-of-00003.safetensors",
    "/dir/new/m.safetensors.index.json",
    "/dir/o.npz",
    "/dir/o.pt",
};

#define PLACES (sizeof places / sizeof *places)
#define FIRST_SHARD 4
#define NEW_INDEX 7

typedef struct state {
    uint64_t digest[PLACES]; /* 0: nothing there */
    size_t files;            /* in the whole system */
} state;

static state look(void) {
    state s;
    memset(&s, 0, sizeof s);
    s.files = os_fake_count_files();
    for (size_t i = 0; i < PLACES; i++) {
        size_t len;
        const void *bytes = os_fake_file(places[i], &len);
        if (bytes) s.digest[i] = fault_digest(bytes, len);
    }
    return s;
}

static state before, done;
static const fault_scene *learned; /* of which `done` is the result */

/* 300,000 elements of a byte: over 1 MiB as F64, the least for which threads go ahead. */
static void add_long(void) {
    static const char head[] = "{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[300000],"
                               "\"data_offsets\":[0,300000]}}";
    static char bytes[8 + sizeof head - 1 + 300000];
    bytes[0] = (char)(sizeof head - 1);
    memcpy(bytes + 8, head, sizeof head - 1);
    for (size_t i = 0; i < 300000; i++) bytes[8 + sizeof head - 1 + i] = (char)(i * i % 120);
    os_fake_add_file("/m/long.safetensors", bytes, sizeof bytes);
}

static void add_scaled(void) {
    static const char head[] =
        "{\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]},"
        "\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}";
    static char bytes[8 + sizeof head - 1 + 16];
    bytes[0] = (char)(sizeof head - 1);
    memcpy(bytes + 8, head, sizeof head - 1);
    os_fake_add_file("/m/scaled.safetensors", bytes, sizeof bytes);
}

/* The same three tensors as NumPy and PyTorch have them. */
static void add_foreign(void) {
    static const uint64_t shape[] = { 2, 3 };
    static const char bytes[96] = "forty-eight bytes of three tensors, and no more ..";
    sft_source source = sft_source_memory(bytes, sizeof bytes);
    const sft_part parts[] = {
        { { { "a", 1 }, SFT_F32, 2, shape }, &source, 0 },
        { { { "b", 1 }, SFT_F64, 2, shape }, &source, 24 },
        { { { "c", 1 }, SFT_I16, 0, NULL }, &source, 90 },
    };
    sft_buffer file = { 0 };
    fault_need(!sft_export_npz(parts, 3, NULL, sft_sink_memory(&file), NULL, NULL));
    os_fake_add_file("/m/x.npz", file.data, file.len);
    fault_need(!sft_export_pt(parts, 3, NULL, sft_sink_memory(&file), NULL, NULL));
    os_fake_add_file("/m/x.pt", file.data, file.len);
    sft_buffer_free(&file);
}

static void set_world(const fault_scene *scene) {
    if (strstr(scene->line, "/m/x.")) add_foreign();
    os_fake_add_file("/dir/old.safetensors", "old", 3);
    add_long();
    add_scaled();
    os_fake_no_unnamed(scene->way);
    if (!strstr(scene->line, "long")) os_fake_short_writes(5000);
    before = look();
}

static bool is_torn(const state *now) {
    size_t shards = 0;
    for (size_t i = 0; i < 3; i++) shards += now->digest[FIRST_SHARD + i] != 0;
    return now->digest[NEW_INDEX] && shards < 3;
}

static const char *judge_state(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    state now = look();
    if (learned != scene) {
        learned = scene;
        done = now;
        if (seen->status == 0 && !strstr(scene->line, "--dry-run")
            && memcmp(now.digest, before.digest, sizeof now.digest) == 0)
            return "success, and nothing is there";
    }
    if (is_torn(&now)) return "an index without its shards";
    bool old = memcmp(now.digest, before.digest, sizeof now.digest) == 0;
    bool fresh = memcmp(now.digest, done.digest, sizeof now.digest) == 0;
    if (seen->status == 0 && !fresh) return "success, and another result";
    if (lasting) return NULL;
    if (!old && !fresh) return "neither the old state nor the new one";
    return now.files > (fresh ? done.files : before.files) ? "a hidden file is left" : NULL;
}

#define CONVERT(text, named, bad) \
    { .command = true, .run = fault_run, .line = "safetensors convert " text, .writes = true, \
      .way = named, .refused = bad, .set = set_world, .after = judge_state }
#define WRITES(text) CONVERT(text, false, false)
#define NAMED(text) CONVERT(text, true, false)
/* Refuses; a failure may hide why. */
#define REFUSES(text) CONVERT(text, false, true)

#define INDEX "/set/m.safetensors.index.json"

static const fault_scene files[] = {
    WRITES("/m/a.safetensors -o /dir/o.safetensors --dtype BF16 --threads 1"),
    NAMED("/m/a.safetensors -o /dir/old.safetensors --dtype F64 --force --threads 1"),
    WRITES("/m/big.safetensors -o /dir/o.safetensors --dtype f16 --no-sync --threads 1"),
    WRITES("/m/a.safetensors -o /m/a.safetensors --dtype BF16 --force --keep-mtime"),
    WRITES("/m/a.safetensors -o /dir/o.safetensors --dtype F8_E4M3 --dry-run"),
    WRITES("/m/scaled.safetensors -o /dir/o.safetensors --dtype BF16"),
    WRITES("/m/scaled.safetensors -o /dir/o.safetensors --dtype BF16 --force --saturate"),
    WRITES("/m/long.safetensors -o /dir/o.safetensors --dtype F64 --threads 1"),
    WRITES("/m/long.safetensors -o /dir/o.safetensors --dtype F64 --threads 2"),
    NAMED("/m/long.safetensors -o /dir/old.safetensors --dtype F32 --force --threads 3"),
};

static const fault_scene refusals[] = {
    REFUSES("/m/long.safetensors -o /dir/o.safetensors --dtype BOOL --match nothing"),
    REFUSES("/m/a.safetensors -o /dir/o.safetensors --dtype I8 --match *"),
    REFUSES("/m/a.safetensors -o /dir/old.safetensors --dtype BF16"),
    REFUSES("/m/a.safetensors -o /dir/o.safetensors --dtype F17"),
    REFUSES("/m/page.safetensors -o /dir/o.safetensors --dtype BF16"),
    REFUSES("/m -o /dir/o.safetensors --dtype BF16"),
    REFUSES(INDEX " -o /dir --dtype F16"),
};

static const fault_scene sets[] = {
    WRITES(INDEX " -o /dir/new --dtype F64"),
    NAMED(INDEX " -o /dir/new --dtype F16 --threads 2 --no-sync --saturate"),
    WRITES(INDEX " -o /dir/o.safetensors --dtype F64"),
    WRITES(INDEX " -o /dir/new --dtype F64 --dry-run"),
};

static const fault_scene foreign[] = {
    WRITES("/m/x.npz -o /dir/o.safetensors"),
    WRITES("/m/x.pt -o /dir/o.safetensors"),
    NAMED("/m/x.npz -o /dir/o.safetensors --dtype F16"),
    WRITES("/m/x.npz -o /dir/o.pt"),
    WRITES("/m/x.pt -o /dir/o.npz --no-sync"),
    WRITES("/m/long.safetensors -o /dir/o.pt"),
    WRITES("/m/long.safetensors -o /dir/o.npz --dtype F64"),
    REFUSES("/m/long.safetensors -o /dir/o.npz"),
};

static void play_foreign(void **unused) {
    (void)unused;
    assert_true(fault_play(foreign, sizeof foreign / sizeof *foreign, 100, 100));
}

static void play_files(void **unused) {
    (void)unused;
    assert_true(fault_play(files, sizeof files / sizeof *files, 200, 150));
}

static void play_refusals(void **unused) {
    (void)unused;
    assert_true(fault_play(refusals, sizeof refusals / sizeof *refusals, 40, 30));
}

static void play_sets(void **unused) {
    (void)unused;
    assert_true(fault_play(sets, sizeof sets / sizeof *sets, 80, 80));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_files),
        cmocka_unit_test(play_refusals),
        cmocka_unit_test(play_sets),
        cmocka_unit_test(play_foreign),
    };
    return cmocka_run_group_tests_name("converting over a failing system", tests, NULL, NULL);
}
