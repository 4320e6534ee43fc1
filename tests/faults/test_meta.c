/* meta and rename over a system of which the nth allocation or call fails, or which is told
 * to stop: the model is the old one or the new one, at once or once it is recovered, and no
 * hidden file is left. */
#include "faults.h"
#include "os/io.h"
#include "safetensors_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* ── A model, whatever files it is in ── */

static uint64_t mix(uint64_t sum, const void *bytes, size_t len) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return (sum ^ len) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t tensor_sum(const sft_set *set, size_t i) {
    const sft_tensor *t = sft_set_tensor_at(set, i);
    sft_loan loan;
    uint64_t sum = mix(1, t->name.data, t->name.len);
    const sft_file *file = sft_set_shard_at(set, sft_set_tensor_shard(set, i));
    if (sft_borrow(file, t, &loan, NULL)) return 0;
    sum = mix(mix(sum, t->shape, t->rank * sizeof *t->shape), loan.data, loan.len);
    sft_return(file, &loan);
    return sum;
}

/* Sum of names, shapes, bytes and metadata; 0 when it does not open. */
static uint64_t model_sum(const char *path) {
    sft_set *set = NULL;
    uint64_t sum = 1;
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    options.open = &open;
    open.alloc = &fault_alloc;
    if (sft_set_open(path, &options, &set, NULL)) return 0;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) sum += tensor_sum(set, i);
    for (size_t s = 0; s < sft_set_shard_count(set); s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            sum += mix(mix(2, pair.key.data, pair.key.len), pair.value.data, pair.value.len);
        }
    }
    sft_span index = sft_set_index_metadata(set);
    sum += mix(3, index.data, index.len);
    sft_set_close(set);
    return sum;
}

#define SHARD(n) "/set/m-0000" #n "-of-00003.safetensors"
static const char *const edited[] = { "/m/a.safetensors", SHARD(0), SHARD(1), SHARD(2) };

static uint64_t old_sum, new_sum;
static size_t files_before;

static void set_world(const fault_scene *scene) {
    static const char json[] = "{\"from\":\"json\",\"format\":null,\"n\":12}";
    os_fake_can(scene->way == 1, false);
    os_fake_add_file("/in.json", json, sizeof json - 1);
    os_fake_add_file("/in.png", "\x89PNG\r\n\x1a\n....", 12);
    (void)sfti_os_unlink("/set/plain.json"); /* old shards that it names would stay */
    files_before = os_fake_count_files();
    old_sum = model_sum(scene->path);
    os_fake_fail(0, 0, false);
}

static const char *recover_all(void) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    options.open = &open;
    open.alloc = &fault_alloc;
    for (size_t i = 0; i < sizeof edited / sizeof *edited; i++) {
        sft_edit_found found;
        if (!os_fake_exists(edited[i])) continue;
        if (sft_edit_recover(edited[i], &options, &found, NULL)) return "cannot be recovered";
    }
    return NULL;
}

static size_t hidden;

static void count_hidden(void *ctx, const char *path, uint64_t inode) {
    (void)ctx, (void)inode;
    hidden += strstr(path, ".sft-") != NULL;
}

static const char *judge_model(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    bool clean = os_fake_failed() == 0 && seen->status == 0;
    os_fake_heal();
    const char *wrong = recover_all();
    uint64_t sum = model_sum(scene->path);
    if (clean) new_sum = sum;
    if (wrong) return wrong;
    if (sum == 0) return "the model does not open";
    if (sum != old_sum && sum != new_sum) return "neither the old nor the new model";
    if (seen->status == 0 && sum != new_sum) return "success, and not the new model";
    hidden = 0;
    os_fake_each(count_hidden, NULL);
    if (hidden > lasting) return "a hidden file is left";
    bool shards_stay = sum == new_sum && seen->status != 0; /* the index was not synced */
    size_t most = files_before + (os_fake_exists("/dir/o.safetensors") ? 1 : 0);
    if (os_fake_exists("/dir/set/m.safetensors.index.json")) most += 4;
    return os_fake_count_files() > most && !lasting && !shards_stay ? "a file is left" : NULL;
}

/* ── The files of a set, each by itself ── */

static uint64_t old_shards[4], new_shards[4]; /* as in edited */

static void set_shards(const fault_scene *scene) {
    set_world(scene);
    for (size_t i = 1; i < 4; i++) old_shards[i] = model_sum(edited[i]);
    os_fake_fail(0, 0, false);
}

static const char *judge_shards(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    bool clean = os_fake_failed() == 0 && seen->status == 0;
    (void)scene;
    os_fake_heal();
    const char *wrong = recover_all();
    for (size_t i = 1; i < 4; i++) {
        uint64_t sum = model_sum(edited[i]);
        if (clean) new_shards[i] = sum;
        if (sum == 0 || (sum != old_shards[i] && sum != new_shards[i]))
            return "a file that is neither the old nor the new one";
        if (seen->status == 0 && sum != new_shards[i]) return "success, and not the new file";
    }
    hidden = 0;
    os_fake_each(count_hidden, NULL);
    return wrong ? wrong : hidden > lasting ? "a hidden file is left" : NULL;
}

#define ON(model, text) { .command = true, .run = fault_run, .line = "safetensors " text, \
    .writes = true, .set = set_world, .after = judge_model, .path = model }
#define CLONED(model, text) { .command = true, .run = fault_run, .line = "safetensors " text, \
    .writes = true, .set = set_world, .after = judge_model, .path = model, .way = 1 }
/* Lists what lies beside the model. */
#define SCRUBS(model, text) { .command = true, .run = fault_run, .line = "safetensors " text, \
    .writes = true, .beside = true, .set = set_world, .after = judge_model, .path = model }
/* File by file: each is the old or the new one. */
#define EACH(text) { .command = true, .run = fault_run, .line = "safetensors " text, \
    .writes = true, .set = set_shards, .after = judge_shards, .path = INDEX }
#define A "/m/a.safetensors"
#define INDEX "/set/m.safetensors.index.json"

static const fault_scene metas[] = {
    ON(A, "meta list " A),
    ON(A, "meta list --json " A),
    ON(A, "meta --to-json " A),
    ON(A, "meta get " A " format"),
    ON(A, "meta rm " A " note"),
    ON(A, "meta rm --json " A " note format"),
    ON(A, "meta set " A " format np"),
    ON(A, "meta set --keep-mtime " A " format np"),
    ON(A, "meta set " A " another value"),
    CLONED(A, "meta set " A " another value"),
    ON(A, "meta set --dry-run " A " another value"),
    ON(A, "meta set --from-json /in.json " A),
    ON(A, "meta set --thumbnail /in.png --jsonl " A),
    ON(A, "meta set " A " k v -o /dir/o.safetensors"),
    SCRUBS(A, "meta scrub " A " --keep format"),
    ON(A, "meta recover " A),
};

static const fault_scene sets[] = {
    ON(INDEX, "meta list " INDEX),
    ON(INDEX, "meta get " INDEX " total_size"),
    ON(INDEX, "meta set " INDEX " k v"),
    ON(INDEX, "meta scrub " INDEX),
    EACH("meta set " INDEX " k v --each-shard"),
    EACH("meta set " INDEX " k v --each-shard --safe"),
};

static const fault_scene renames[] = {
    ON(A, "rename " A " --map w=v"),
    ON(A, "rename " A " --regex s/^b/x/ --add-prefix y. --json"),
    ON(A, "rename " A " --strip-prefix b. --dry-run"),
    ON(A, "rename " A " --map w=v -o /dir/o.safetensors"),
    ON(INDEX, "rename " INDEX " --map s1.a=other"),
    ON(INDEX, "rename " INDEX " --add-prefix x. --json"),
    ON(INDEX, "rename " INDEX " --add-prefix x. -o /dir/set"),
};

static void play_metas(void **state) {
    (void)state;
    assert_true(fault_play(metas, sizeof metas / sizeof *metas, 100, 300));
}

static void play_sets(void **state) {
    (void)state;
    assert_true(fault_play(sets, sizeof sets / sizeof *sets, 40, 80));
}

static void play_renames(void **state) {
    (void)state;
    assert_true(fault_play(renames, sizeof renames / sizeof *renames, 80, 200));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_metas),
        cmocka_unit_test(play_sets),
        cmocka_unit_test(play_renames),
    };
    return cmocka_run_group_tests_name("meta and rename over a failing system", tests, NULL,
                                       NULL);
}
