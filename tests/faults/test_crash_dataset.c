/* Power failures during a commit: afterwards the dataset is the old one or the new one, complete,
 * and once the call has returned it is the new one. Without one of the syncs the same test must
 * find damage, or it would prove nothing. */
#define _GNU_SOURCE
#include "crash.h"
#include "dataset_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct cut_scene {
    world_commit before, run;
    const char *old, *fresh;
    const char *done, *does; /* before the run, or by it: a letter that is deleted, or, behind a
                              * plus, those of a column that is added */
} cut_scene;

enum {
    CUT_NEW, CUT_APPEND, CUT_OVERWRITE, CUT_INDEXED, CUT_COMPACT, CUT_SEGMENTS, CUT_ADDED,
    CUT_MERGED, CUT_RENEWED, CUT_FORMED, CUT_DROPPED, CUT_SHED, CUT_DELETED, CUT_DELETED_TWICE,
    CUT_FOLDED, CUT_AFTER,
    CUT_WIDENED, CUT_WIDENED_TWICE, CUT_LACKING, CUT_JOINED, CUT_KINDS
};
#define CUT_NAMED 32 /* where there are no unnamed files */

static const cut_scene cuts[CUT_KINDS] = {
    [CUT_NEW] = { { 0 }, { "fail", SFT_COMMIT_NEW, "ab|c", false, false }, "-", "abc", NULL, NULL },
    [CUT_APPEND] = { { "fail", SFT_COMMIT_NEW, "a", false, false },
                     { "fail", SFT_COMMIT_APPEND, "b|c", false, false }, "a", "abc", NULL, NULL },
    [CUT_OVERWRITE] = { { "fail", SFT_COMMIT_NEW, "a|b", false, false },
                        { "fail", SFT_COMMIT_OVERWRITE, "c", false, false }, "ab", "c",
                      NULL, NULL },
    [CUT_INDEXED] = { { "fail", SFT_COMMIT_NEW, "a", true, false },
                      { "fail", SFT_COMMIT_OVERWRITE, "b", true, false }, "a", "b", NULL, NULL },
    [CUT_COMPACT] = { { "lastWin", SFT_COMMIT_NEW, "ab|bc", false, false },
                      { NULL, SFT_COMMIT_NEW, NULL, false, false }, "abc", "abc", NULL, NULL },
    [CUT_SEGMENTS] = { { 0 }, { "fail segments", SFT_COMMIT_NEW, "ab|c", false, false },
                       "-", "abc", NULL, NULL },
    [CUT_ADDED] = { { "fail batch segments", SFT_COMMIT_NEW, "a|b", false, false },
                    { "fail batch", SFT_COMMIT_APPEND, "c", false, false }, "ab", "abc",
                      NULL, NULL },
    [CUT_MERGED] = { { "fail batch segments", SFT_COMMIT_NEW, "a", false, false },
                     { "fail batch", SFT_COMMIT_APPEND, "b|c", false, false }, "a", "abc",
                      NULL, NULL },
    [CUT_RENEWED] = { { "fail segments", SFT_COMMIT_NEW, "a|b", false, false },
                      { "fail segments", SFT_COMMIT_OVERWRITE, "c", false, false }, "ab", "c",
                      NULL, NULL },
    [CUT_DROPPED] = { { "fail segments", SFT_COMMIT_NEW, "a|b", false, false },
                      { "fail segments drop", SFT_COMMIT_OVERWRITE, "c", false, false }, "ab",
                      "c", NULL, NULL },
    [CUT_SHED] = { { "lastWin", SFT_COMMIT_NEW, "ab|bc", false, false },
                   { NULL, SFT_COMMIT_NEW, NULL, false, false }, "abc", "abc", NULL, NULL },
    [CUT_DELETED] = { { "lastWin", SFT_COMMIT_NEW, "ab|bc", false, false }, { 0 }, "abc", "ac",
                      NULL, "b" },
    [CUT_DELETED_TWICE] = { { "lastWin segments", SFT_COMMIT_NEW, "ab|bc", false, false }, { 0 },
                            "ac", "a", "b", "c" },
    [CUT_FOLDED] = { { "lastWin", SFT_COMMIT_NEW, "ab|bc", false, false },
                     { NULL, SFT_COMMIT_NEW, NULL, false, false }, "ac", "ac", "b", NULL },
    [CUT_AFTER] = { { "fail", SFT_COMMIT_NEW, "ab|c", false, false },
                    { "fail", SFT_COMMIT_APPEND, "b", false, false }, "ac", "acb", "b", NULL },
    [CUT_WIDENED] = { { "fail batch", SFT_COMMIT_NEW, "ab|c", false, false }, { 0 }, "abc",
                      "abxycz", NULL, "+xyz" },
    [CUT_WIDENED_TWICE] = { { "fail batch segments", SFT_COMMIT_NEW, "a|b", false, false }, { 0 },
                            "apbq", "apxbqy", "+pq", "+xy" },
    [CUT_LACKING] = { { "fail batch", SFT_COMMIT_NEW, "a|b", false, false },
                      { "fail batch", SFT_COMMIT_APPEND, "c", false, false }, "axby", "axbyc",
                      "+xy", NULL },
    [CUT_JOINED] = { { "fail batch", SFT_COMMIT_NEW, "a|b", false, false },
                     { NULL, SFT_COMMIT_NEW, NULL, false, false }, "axby", "abxy", "+xy", NULL },
    [CUT_FORMED] = { { "lastWin segments", SFT_COMMIT_NEW, "ab|bc", false, false },
                     { NULL, SFT_COMMIT_NEW, NULL, false, false }, "abc", "abc", NULL, NULL },
};

static bool cut_compacts(int way) {
    return way == CUT_COMPACT || way == CUT_FORMED || way == CUT_SHED || way == CUT_FOLDED ||
           way == CUT_JOINED;
}

/* Whether the version before stays. */
static bool cut_keeps(int way) {
    return cuts[way].before.letters && way != CUT_DROPPED && way != CUT_SHED;
}

static bool is_column(const char *what) { return what && *what == '+'; }

static sft_code change(const char *what, sft_error *err) {
    return is_column(what) ? world_add(what + 1, err) : world_delete(what, err);
}

static void set_cut(const crash_scene *scene) {
    const world_commit *before = &cuts[scene->way % CUT_NAMED].before;
    sft_error err = SFT_ERROR_INIT;
    if (before->letters && world_run(before, &err))
        fail_msg("%s", err.message);
    const cut_scene *cut = &cuts[scene->way % CUT_NAMED];
    if (is_column(cut->done) && world_values(cut->done + 1, &err)) fail_msg("%s", err.message);
    if (cut->done && change(cut->done, &err)) fail_msg("%s", err.message);
    if (is_column(cut->does) && world_values(cut->does + 1, &err)) fail_msg("%s", err.message);
    os_fake_no_unnamed(scene->way >= CUT_NAMED);
}

static sft_code run_compact(bool drop, sft_error *err) {
    sft_compact_options whole = SFT_COMPACT_OPTIONS_INIT;
    whole.drop_old = drop;
    whole.target_bytes = UINT64_MAX;
    sft_storage s;
    sft_buffer text = { .alloc = { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&text);
    sft_code code = sft_storage_local(DS, false, NULL, &s, err);
    if (!code) code = sft_dataset_compact_json(&s, &whole, DS, &sink, NULL, err);
    sft_sink_abandon(&sink);
    sft_buffer_free(&text);
    sft_storage_close(&s);
    return code;
}

static sft_code run_cut(const crash_scene *scene, sft_error *err) {
    int way = scene->way % CUT_NAMED;
    if (cuts[way].does) return change(cuts[way].does, err);
    return cut_compacts(way) ? run_compact(!cut_keeps(way), err) : world_run(&cuts[way].run, err);
}

static void keep_nothing(const crash_scene *scene, bool after) { (void)scene, (void)after; }

static bool is_compact(bool third) {
    size_t len;
    const char *text = os_fake_file(DS "/dataset_manifest.json", &len);
    return text && memmem(text, len, third ? "\"version\":3," : "\"version\":2,", 12) != NULL;
}

static const char *judge_cut(const crash_scene *scene, bool done) {
    const cut_scene *cut = &cuts[scene->way % CUT_NAMED];
    const char *why, *letters = world_letters(&why);
    if (!letters) return why;
    bool fresh = strcmp(letters, cut->fresh) == 0;
    if (done && !fresh) return "was committed, and is not there";
    if (done && cut_compacts(scene->way % CUT_NAMED) && !is_compact(cut->done != NULL))
        return "was not compacted";
    if (!fresh && strcmp(letters, cut->old) != 0) return "neither the old nor the new dataset";
    if (cut_keeps(scene->way % CUT_NAMED)) { /* in force or kept, at any moment */
        letters = world_letters_at(cut->done ? 2 : 1, &why);
        if (!letters || strcmp(letters, cut->old) != 0) return "the old version is not there";
        letters = cut->old;
    }
    if (strcmp(letters, "-") == 0) return NULL;
    const char *wrong = world_verify(false);
    /* The old index is renamed before the manifest is replaced: readers work without it. */
    if (wrong && !(scene->way % CUT_NAMED == CUT_INDEXED && strstr(wrong, "\"finding_count\":1,") &&
                   strstr(wrong, "expected the index that the manifest names")))
        return wrong;
    return scene->way % CUT_NAMED == CUT_INDEXED ? NULL : world_verify(true);
}

#define SCENE(what) { .name = "crash " #what, .way = what, .set = set_cut, .run = run_cut, \
    .keep = keep_nothing, .judge = judge_cut }
#define NAMED(what) { .name = "crash named " #what, .way = what + CUT_NAMED, .set = set_cut, \
    .run = run_cut, .keep = keep_nothing, .judge = judge_cut }

static const crash_scene scenes[] = {
    SCENE(CUT_NEW), SCENE(CUT_APPEND), SCENE(CUT_OVERWRITE), SCENE(CUT_INDEXED),
    SCENE(CUT_COMPACT), SCENE(CUT_SEGMENTS), SCENE(CUT_ADDED), SCENE(CUT_MERGED),
    SCENE(CUT_RENEWED), SCENE(CUT_FORMED), SCENE(CUT_DROPPED), SCENE(CUT_SHED),
    SCENE(CUT_DELETED), SCENE(CUT_DELETED_TWICE), SCENE(CUT_FOLDED), SCENE(CUT_AFTER),
    SCENE(CUT_WIDENED), SCENE(CUT_WIDENED_TWICE), SCENE(CUT_LACKING), SCENE(CUT_JOINED),
    NAMED(CUT_NEW), NAMED(CUT_APPEND), NAMED(CUT_OVERWRITE),
    NAMED(CUT_INDEXED), NAMED(CUT_COMPACT), NAMED(CUT_SEGMENTS), NAMED(CUT_ADDED),
    NAMED(CUT_MERGED), NAMED(CUT_RENEWED), NAMED(CUT_FORMED), NAMED(CUT_DROPPED),
    NAMED(CUT_DELETED_TWICE), NAMED(CUT_WIDENED), NAMED(CUT_WIDENED_TWICE),
};
#define CUT_SCENES (sizeof scenes / sizeof *scenes)

static void play_scenes(void **state) {
    size_t distinct = 0, torn = 0, most = crash_hurries() ? 100 : 300; /* a moment */
    (void)state;
    for (size_t i = 0; i < CUT_SCENES; i++) {
        crash_count count = crash_play(&scenes[i], CRASH_AS_IT_IS, most);
        printf("# %s: %zu moments, %zu states, %zu distinct, %zu torn %s\n", scenes[i].name,
               count.moments, count.states, count.distinct, count.torn, count.first);
        distinct += count.distinct;
        torn += count.torn;
    }
    printf("# %zu distinct states\n", distinct);
    assert_int_equal(torn, 0);
    assert_true(distinct >= 3000);
}

static void play_controls(void **state) {
    static const struct {
        crash_without without;
        const char *name;
    } controls[] = { { CRASH_NO_FILE_SYNC, "fsync of the files" },
                     { CRASH_NO_FOLDER_SYNC, "fsync of the folders" } };
    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < CUT_SCENES; i++) {
            crash_count count = crash_play(&scenes[i], controls[c].without, 100);
            printf("# %s without %s: %zu of %zu states torn: %.100s\n", scenes[i].name,
                   controls[c].name, count.torn, count.distinct, count.first);
            assert_true(count.torn > 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_scenes),
        cmocka_unit_test(play_controls),
    };
    return cmocka_run_group_tests_name("power cuts of datasets", tests, NULL, NULL);
}
