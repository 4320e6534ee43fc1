/* The commands that write models anew, over a system of which the nth allocation or call
 * fails, or which is told to stop: what stood there stands there still, or what was to come
 * is there whole; no hidden file is left, and the exit status tells. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reshape_world.h"

#include <stdio.h>
#include <string.h>

static void add_npy(void) {
    static const char head[] = "\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, "
                               "'shape': (2, 3), }          \n";
    char bytes[10 + 70 + 24] = { 0 };
    memcpy(bytes, head, sizeof head - 1);
    assert_int_equal(sizeof head - 1, 80);
    os_fake_add_file("/m/x.npy", bytes, sizeof bytes);
}

/* As it would be written: its data come to lie where they lay. */
static void add_model(void) {
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[9000],"
                                 "\"data_offsets\":[0,9000]}}     ";
    static char bytes[8 + sizeof header - 1 + 9000] = { sizeof header - 1 };
    assert_int_equal((sizeof header - 1) % 8, 0);
    memcpy(bytes + 8, header, sizeof header - 1);
    for (size_t i = 0; i < 9000; i++) bytes[8 + sizeof header - 1 + i] = (char)(i * 7 >> 3);
    os_fake_add_file("/m/std.safetensors", bytes, sizeof bytes);
}

/* A file of a header and zeros. */
static void add_zeros(const char *path, const char *header, size_t count) {
    char bytes[1024] = { (char)strlen(header), (char)(strlen(header) >> 8) };
    size_t len = strlen(header);
    assert_true(8 + len + count <= sizeof bytes);
    memcpy(bytes + 8, header, len);
    os_fake_add_file(path, bytes, 8 + len + count);
}

/* A model, and an adapter with a configuration beside it. */
static void add_adapter(void) {
    add_zeros("/l/model.safetensors",
              "{\"c.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
              "\"c.weight\":{\"dtype\":\"F16\",\"shape\":[4,2],\"data_offsets\":[0,16]}}", 24);
    static const char adapter[] =
        "{\"c.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"c.lora_B.weight\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[8,24]},"
        "\"c.lora_magnitude_vector\":{\"dtype\":\"F32\",\"shape\":[4],"
        "\"data_offsets\":[24,40]}}";
    add_zeros("/l/adapter_model.safetensors", adapter, 40);
    add_zeros("/l/lora.safetensors", adapter, 40); /* the configuration is not its */
    static const char config[] = "{\"lora_alpha\":2,\"use_dora\":true}";
    os_fake_add_file("/l/adapter_config.json", config, sizeof config - 1);
}

static void set_world(const fault_scene *scene) {
    static const char bytes[24] = "twenty-four bytes for w";
    os_fake_add_file("/dir/old.safetensors", "old", 3);
    os_fake_add_link("/dir/link.safetensors", "old.safetensors");
    os_fake_add_file("/lit/.x.safetensors.sft-00000v", "left", 4);
    os_fake_add_file("/lit/.y.sft-abcdef", "left", 4);
    os_fake_add_file("/lit/.y.sft-ABCDEF", "ours", 4);
    add_npy();
    add_model();
    add_adapter();
    os_fake_set_input(scene->mode == OS_PIPE ? OS_PIPE : OS_FILE, bytes, sizeof bytes);
    os_fake_no_unnamed(scene->way);
    os_fake_short_writes(5000);
    before = look();
}

/* What --clean removes is gone one by one. */
static const char *judge_clean(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    (void)lasting;
    bool first = os_fake_exists("/lit/.x.safetensors.sft-00000v");
    bool second = os_fake_exists("/lit/.y.sft-abcdef");
    bool dry = strstr(scene->line, "--dry-run") != NULL;
    if (!os_fake_exists("/lit/.y.sft-ABCDEF")) return "a file that is not ours is gone";
    if (dry && (!first || !second)) return "--dry-run removed something";
    if (!dry && seen->status == 0 && (first || second)) return "success, and something is left";
    return NULL;
}

#define CLEANS(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .writes = true, \
      .set = set_world, .after = judge_clean }
#define UNREAD(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .refused = true, \
      .set = set_world, .after = judge_state }
#define INDEX "/set/m.safetensors.index.json"

static const fault_scene merges[] = {
    WRITES("merge " INDEX " -o /dir/o.safetensors"),
    NAMED("merge /m/a.safetensors /m/big.safetensors -o /dir/old.safetensors --force"),
    WRITES("merge /m/a.safetensors /m/big.safetensors -o /dir/o.safetensors --no-sync"),
    WRITES("merge /m/a.safetensors -o /dir/o.safetensors --keep-mtime"),
    WRITES("merge /m/a.safetensors -o /dir/link.safetensors --force --follow"),
    WRITES("merge " INDEX " -o /dir/o.safetensors --dry-run"),
    WRITES("merge /m/std.safetensors -o /dir/o.safetensors"),
    NAMED("merge /m/std.safetensors -o /dir/old.safetensors --force"),
    WRITES("lora merge /l/model.safetensors /l/adapter_model.safetensors -o /dir/o.safetensors"),
    NAMED("lora merge /l/model.safetensors /l/adapter_model.safetensors:0.5 -o "
          "/dir/old.safetensors --force"),
    READS("lora info /l/lora.safetensors"),
    READS("lora info --json /l/lora.safetensors"),
    REFUSES("lora merge /l/model.safetensors /m/a.safetensors -o /dir/o.safetensors"),
    REFUSES("merge /m/a.safetensors /m/a.safetensors -o /dir/o.safetensors"),
    REFUSES("merge /m/a.safetensors -o /dir/old.safetensors"),
    REFUSES("merge /m/a.safetensors -o /dir/link.safetensors --force"),
};

static const fault_scene selects[] = {
    WRITES("select /m/a.safetensors -o /dir/o.safetensors --keep b.*"),
    NAMED("select /m/a.safetensors -o /dir/old.safetensors --drop w --force"),
    WRITES("select " INDEX " -o /dir/new --drop s1.*"),
    WRITES("select " INDEX " -o /dir/o.safetensors --drop s1.*"),
    REFUSES("select /m/a.safetensors -o /dir/o.safetensors --keep nothing"),
    WRITES("rm-tensor /m/a.safetensors w -o /dir/o.safetensors"),
    REFUSES("rm-tensor /m/a.safetensors w nothing"),
};

static const fault_scene splits[] = {
    WRITES("split /m/a.safetensors -o /dir/new --count 2"),
    NAMED("split /m/a.safetensors -o /dir/new --count 3"),
    WRITES("split /m/a.safetensors -o /dir/new"),
    WRITES("split " INDEX " -o /dir/new --max-size 20 --no-sync"),
    WRITES("split " INDEX " -o /dir/new --count 3 --dry-run"),
    REFUSES("split /m/a.safetensors -o /dir"),
    REFUSES("split /m/a.safetensors -o /dir/old.safetensors"),
};

static const fault_scene repairs[] = {
    WRITES("repair /m/twice.safetensors -o /dir/o.safetensors"),
    NAMED("repair /m/twice.safetensors -o /dir/old.safetensors --force"),
    WRITES("repair /m/a.safetensors -o /dir/o.safetensors --dry-run"),
    REFUSES("repair /m/cut.safetensors -o /dir/o.safetensors"),
    REFUSES("repair /m/page.safetensors -o /dir/o.safetensors"),
    CLEANS("repair --clean /lit"),
    CLEANS("repair --clean /lit --dry-run"),
};

static const fault_scene edits[] = {
    WRITES("add /m/a.safetensors n=/m/x.npy"),
    NAMED("add /m/a.safetensors n=/m/x.npy w=/m/x.npy --replace"),
    WRITES("add " INDEX " n=/m/x.npy -o /dir/o.safetensors"),
    REFUSES("add /m/a.safetensors w=/m/x.npy"),
    WRITES("put /m/a.safetensors w"),
    PIPED("put /m/a.safetensors w"),
    NAMED("put /m/a.safetensors w -o /dir/old.safetensors --force"),
    REFUSES("put /m/a.safetensors c"),
    REFUSES("put /m/a.safetensors nothing"),
};

static const fault_scene diffs[] = {
    READS("diff /m/a.safetensors /m/a.safetensors"),
    READS("diff /m/a.safetensors /m/big.safetensors"),
    READS("diff --json /m/a.safetensors /m/big.safetensors"),
    READS("diff --jsonl " INDEX " /set/plain.json"),
    UNREAD("diff " INDEX " /gap/m.safetensors.index.json"),
    UNREAD("diff --json /m/a.safetensors /m/none"),
};

static void play_merges(void **unused) {
    (void)unused;
    assert_true(fault_play(merges, sizeof merges / sizeof *merges, 100, 150));
}

static void play_selects(void **unused) {
    (void)unused;
    assert_true(fault_play(selects, sizeof selects / sizeof *selects, 100, 100));
}

static void play_splits(void **unused) {
    (void)unused;
    assert_true(fault_play(splits, sizeof splits / sizeof *splits, 100, 150));
}

static void play_repairs(void **unused) {
    (void)unused;
    assert_true(fault_play(repairs, sizeof repairs / sizeof *repairs, 50, 70));
}

static void play_edits(void **unused) {
    (void)unused;
    assert_true(fault_play(edits, sizeof edits / sizeof *edits, 100, 100));
}

static void play_diffs(void **unused) {
    (void)unused;
    assert_true(fault_play(diffs, sizeof diffs / sizeof *diffs, 60, 60));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_merges),  cmocka_unit_test(play_selects),
        cmocka_unit_test(play_splits),  cmocka_unit_test(play_repairs),
        cmocka_unit_test(play_edits),   cmocka_unit_test(play_diffs),
    };
    return cmocka_run_group_tests_name("writing models anew over a failing system", tests, NULL,
                                       NULL);
}
