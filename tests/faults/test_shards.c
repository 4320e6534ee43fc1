/* The commands that change a model in several files, where it is or into a new folder, over a
 * system of which the nth allocation or call fails, or which is told to stop: the model is the
 * old one or the new one, can be read, and no file is left that no index names. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define INDEX "/set/m.safetensors.index.json"
#define ROOM 65536

typedef struct model {
    uint64_t digest; /* of all tensors, in any order; 0: cannot be opened */
    size_t files;    /* and folders, in the whole system */
} model;

static uint64_t mix(uint64_t digest, const void *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        digest = (digest ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static uint64_t tensor_digest(const sft_file *file, const sft_tensor *tensor) {
    static char buffer[ROOM];
    uint64_t digest = mix(UINT64_C(0xcbf29ce484222325), tensor->name.data, tensor->name.len);
    size_t len = (size_t)(tensor->end - tensor->begin);
    fault_need(len <= ROOM);
    if (sft_read_into(file, tensor, buffer, len, NULL)) return 0;
    return mix(mix(digest, &tensor->dtype, sizeof tensor->dtype), buffer, len);
}

static void count_folder(void *ctx, const char *path) {
    (void)path;
    ++*(size_t *)ctx;
}

static model look(void) {
    model m = { 0, os_fake_count_files() };
    os_fake_each_folder(count_folder, &m.files);
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_set *set;
    options.open = &open;
    open.alloc = &fault_alloc;
    if (sft_set_open(INDEX, &options, &set, NULL)) return m;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++)
        m.digest += tensor_digest(sft_set_shard_at(set, sft_set_tensor_shard(set, i)),
                                  sft_set_tensor_at(set, i));
    sft_set_close(set);
    return m;
}

static model before, done;
static const fault_scene *learned; /* of which `done` is the result */

/* A model with a shard in a folder of its own. */
static void add_deep(void) {
    static const char header[] = "{\"%c\":{\"dtype\":\"U8\",\"shape\":[4],"
                                 "\"data_offsets\":[0,4]}}";
    static const char index[] = "{\"weight_map\":{\"q\":\"s/t/x.safetensors\","
                                "\"r\":\"y.safetensors\"}}";
    char bytes[8 + sizeof header + 8] = { 0 };
    for (int i = 0; i < 2; i++) {
        int len = snprintf(bytes + 8, sizeof header, header, 'q' + i);
        bytes[0] = (char)len;
        memcpy(bytes + 8 + len, "data", 4);
        os_fake_add_file(i ? "/deep/y.safetensors" : "/deep/s/t/x.safetensors", bytes,
                         (size_t)len + 12);
    }
    os_fake_add_file("/deep/m.safetensors.index.json", index, sizeof index - 1);
}

static void set_shards(const fault_scene *scene) {
    static const char head[] = "\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, "
                               "'shape': (2, 3), }          \n";
    char bytes[10 + 70 + 24] = { 0 };
    memcpy(bytes, head, sizeof head - 1);
    os_fake_add_file("/m/x.npy", bytes, sizeof bytes);
    if (strstr(scene->line, "/deep")) add_deep();
    os_fake_no_unnamed(scene->way);
    before = look();
    fault_need(before.digest != 0);
}

/* Where it is: the index decides. */
static const char *judge_place(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    os_fake_heal();
    model now = look();
    if (learned != scene) {
        learned = scene;
        done = now;
        return now.digest && seen->status == 0 ? NULL : "the model cannot be read, or is not done";
    }
    if (now.digest != before.digest && now.digest != done.digest)
        return "neither the old model nor the new one";
    if (seen->status == 0 && now.digest != done.digest) return "success, and not the new model";
    if (lasting) return NULL;
    if (now.digest == before.digest && done.digest != before.digest && now.files != before.files)
        return "the old model, and other files";
    /* Old shards stay that could not be removed, or where the index may not be on the disk. */
    return seen->status == 0 && now.files != done.files ? "success, and other files" : NULL;
}

/* Into a folder: all or nothing of it. */
static const char *judge_folder(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    os_fake_heal();
    model now = look();
    if (learned != scene) {
        learned = scene;
        done = now;
    }
    if (now.digest != before.digest) return "the model has changed";
    if (seen->status == 0 && now.files != done.files) return "success, and not all files";
    if (lasting || now.files == done.files) return NULL;
    return now.files == before.files ? NULL : "some of the files";
}

#define SCENE(text, named, judge) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .writes = true, \
      .way = named, .set = set_shards, .after = judge }

static const fault_scene here[] = {
    SCENE("add " INDEX " n=/m/x.npy", false, judge_place),
    SCENE("add " INDEX " n=/m/x.npy --no-sync --keep-mtime", true, judge_place),
    SCENE("select " INDEX " --in-place --drop s1.*", false, judge_place),
    SCENE("select " INDEX " --in-place --keep s1.*", true, judge_place),
    SCENE("rm-tensor " INDEX " s1.a", false, judge_place),
    SCENE("rename " INDEX " --add-prefix x.", false, judge_place),
    SCENE("rename " INDEX " --regex s/^s1/t/", true, judge_place),
    SCENE("convert " INDEX " --in-place --dtype F64", false, judge_place),
    SCENE("convert " INDEX " --in-place --dtype F16 --match s1.* --keep-mtime", true,
          judge_place),
    SCENE("add " INDEX " n=/m/x.npy --dry-run --json", false, judge_place),
};

static const fault_scene folders[] = {
    SCENE("repair " INDEX " -o /dir/new", false, judge_folder),
    SCENE("repair " INDEX " -o /dir/new --json --no-sync", true, judge_folder),
    SCENE("repair " INDEX " -o /dir/new --dry-run", false, judge_folder),
    SCENE("convert " INDEX " -o /dir/new --dtype F64 --keep-mtime --threads 1", false,
          judge_folder),
    SCENE("split " INDEX " -o /dir/new --count 2 --keep-mtime", false, judge_folder),
    SCENE("rename " INDEX " --add-prefix x. -o /dir/new", false, judge_folder),
    SCENE("rename /deep/m.safetensors.index.json --add-prefix x. -o /dir/new", false,
          judge_folder),
    SCENE("repair /deep/m.safetensors.index.json -o /dir/new", true, judge_folder),
};

static void play_here(void **unused) {
    (void)unused;
    assert_true(fault_play(here, sizeof here / sizeof *here, 150, 250));
}

static void play_folders(void **unused) {
    (void)unused;
    assert_true(fault_play(folders, sizeof folders / sizeof *folders, 150, 250));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(play_here),
                                        cmocka_unit_test(play_folders) };
    return cmocka_run_group_tests_name("changing models in several files over a failing system",
                                       tests, NULL, NULL);
}
