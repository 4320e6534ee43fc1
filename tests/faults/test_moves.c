/* mv, trash, dup --remove, note and thumbnail over a system of which the nth allocation or call
 * fails: a model is whole, with all that is its own, in its old place or in the new one; what the
 * user wrote is somewhere; no half file is left. */
#include "faults.h"
#include "unit/make_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define LORA "lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k"
#define SITE "{\"id\":7,\"modelId\":70,\"trainedWords\":[\"neon\"]}"
#define MANAGER "{\"file_path\":\"/s/neon.safetensors\",\"file_name\":\"neon\",\"notes\":\"mine\"}"
#define KEPT "{\"rating\":1}"
#define OWN "{\"rating\":4,\"tags\":[\"mine alone\"]}"

enum { MOVES, UNDOES, TO_BIN, ENDS, NOTES, DRAWS };

static test_file lora;
static const char *const ends[] = { ".safetensors", ".civitai.info", ".metadata.json",
                                    ".own.json" };
static size_t hidden, found_notes;
static unsigned in_bin; /* bits: which of the files a trash has, wherever it is */

static void add(const char *stem, const char *end, const void *bytes, size_t len) {
    char path[64];
    snprintf(path, sizeof path, "%s%s", stem, end);
    os_fake_add_file(path, bytes, len);
}

static void set_world(const fault_scene *scene) {
    if (!lora.bytes)
        lora = make_file("{\"" LORA ".lora_down.weight\":{\"dtype\":\"U8\",\"shape\":[4,2048],"
                         "\"data_offsets\":[0,8192]},"
                         "\"" LORA ".lora_up.weight\":{\"dtype\":\"U8\",\"shape\":[640,4],"
                         "\"data_offsets\":[8192,10752]}}", NULL, 10752);
    os_fake_one_name(scene->way);
    os_fake_set_env("HOME", "/h");
    os_fake_set_env("LOCALAPPDATA", "/h");
    os_fake_add_dir("/h");
    os_fake_add_dir("/t");
    add("/s/neon", ends[0], lora.bytes, lora.len);
    add("/s/neon", ends[1], SITE, sizeof SITE - 1);
    add("/s/neon", ends[2], MANAGER, sizeof MANAGER - 1);
    add("/s/neon", ends[3], OWN, sizeof OWN - 1);
    if (scene->mode == ENDS) {
        os_fake_add_file("/d/kept.safetensors", lora.bytes, lora.len);
        add("/d/kept", ends[3], KEPT, sizeof KEPT - 1);
    }
    if (scene->mode == UNDOES) (void)fault_command("safetensors mv /s/neon.safetensors /t/");
    os_fake_fail(0, 0, false);
}

static bool is_there(const char *stem, const char *end) {
    char path[96];
    size_t len;
    snprintf(path, sizeof path, "%s%s", stem, end);
    const void *bytes = os_fake_file(path, &len);
    if (bytes && strcmp(end, ends[0]) == 0)
        return len == lora.len && memcmp(bytes, lora.bytes, len) == 0;
    /* A note that was merged ends with a line. */
    return bytes && len > 2 && strchr("}\n", ((const char *)bytes)[len - 1]);
}

static bool is_whole(const char *stem) {
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!is_there(stem, ends[i])) return false;
    return true;
}

static void look_at(void *ctx, const char *path, uint64_t inode) {
    size_t len;
    const char *bytes = os_fake_file(path, &len);
    (void)ctx, (void)inode;
    hidden += strstr(path, ".sft-") != NULL;
    const char *name = strstr(path, "rash") ? strstr(path, "/files/neon") : NULL;
    for (unsigned i = 0; name && i < sizeof ends / sizeof *ends; i++)
        in_bin |= (strcmp(name + 11, ends[i]) == 0) << i;
    for (size_t i = 0; bytes && i + 10 <= len; i++)
        if (memcmp(bytes + i, "mine alone", 10) == 0) found_notes++;
}

static const char *judge(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    bool fine = seen->status == 0 && !os_fake_failed(), no_memory = os_fake_failed_memory();
    os_fake_heal();
    hidden = found_notes = in_bin = 0;
    os_fake_each(look_at, NULL);
    if (hidden > lasting) return "a hidden file is left";
    if (found_notes == 0) return "what the user wrote is lost";
    bool old = is_whole("/s/neon"), moved = is_whole("/t/neon");
    if (scene->mode == UNDOES && !old && seen->status == 2) { /* what it began is ended */
        (void)fault_command("safetensors mv --undo");
        old = is_whole("/s/neon");
    }
    bool apart = lasting; /* where the folder is never listed, it is as if nothing lay beside it */
    for (size_t i = 0; apart && i < sizeof ends / sizeof *ends; i++)
        apart = is_there("/s/neon", ends[i]) || is_there("/t/neon", ends[i]) || in_bin >> i & 1;
    if ((scene->mode == MOVES || scene->mode == UNDOES) && !old && !moved && !apart)
        return "the model is in neither place";
    if (scene->mode == MOVES && fine && !moved) return "it did not move";
    bool failed = scene->mode == ENDS && !lasting && seen->status == 2;
    if (failed && is_there("/s/neon", ends[0]) && !old)
        return "the model stays without what is its own";
    size_t len;
    const char *kept = os_fake_file("/d/kept.own.json", &len);
    bool as_it_was = kept && len == sizeof KEPT - 1 && memcmp(kept, KEPT, len) == 0;
    if (failed && !no_memory && old && !as_it_was)
        return "a note has more than it had";
    const char *moved_manager = os_fake_file("/t/neon.metadata.json", &len);
    if (scene->mode == MOVES && seen->status == 0 && no_memory && moved_manager
        && (len < 16 || memcmp(moved_manager + 14, "/t", 2) != 0))
        return "a sidecar has the old path";
    if (scene->mode == UNDOES && fine && !old) return "it did not move back";
    if (scene->mode == TO_BIN && !old && in_bin != 15 && !apart) return "it is nowhere";
    if (scene->mode == ENDS && !is_there("/d/kept", ends[0]) && !old) return "all copies are gone";
    if ((scene->mode == NOTES || scene->mode == DRAWS) && !is_there("/s/neon", ends[0]))
        return "the model was changed";
    const char *picture = os_fake_file("/t/x.png", &len);
    if (picture && (len < 9000 || memcmp(picture + len - 8, "IEND\xAE\x42\x60\x82", 8) != 0))
        return "half a picture";
    return NULL;
}

#define PARTS(what, text) \
    .command = true, .run = fault_run, .line = "safetensors " text, .writes = true, \
    .beside = true, .believes = what == UNDOES, .set = set_world, .after = judge, .mode = what
#define SCENE(what, text) { PARTS(what, text) }
#define ON_FAT(what, text) { PARTS(what, text), .way = 1 }

static const fault_scene moves[] = {
    SCENE(MOVES, "mv /s/neon.safetensors /t/"),
    SCENE(MOVES, "mv --copy --json /s/neon.safetensors /t/"),
    SCENE(MOVES, "mv --link /s/neon.safetensors /t/neon.safetensors"),
    SCENE(UNDOES, "mv --undo"),
};

/* On FAT, where a file can have one name only. */
static const fault_scene by_name[] = {
    ON_FAT(MOVES, "mv /s/neon.safetensors /t/"),
    ON_FAT(UNDOES, "mv --undo"),
    ON_FAT(TO_BIN, "trash /s/neon.safetensors"),
};

static const fault_scene bins[] = {
    SCENE(TO_BIN, "trash /s/neon.safetensors"),
    SCENE(TO_BIN, "trash --json /s/neon.safetensors"),
    SCENE(ENDS, "dup -r /s /d --remove --yes --keep /d --threads 1"),
    SCENE(ENDS, "dup -r /s /d --remove --delete --yes --keep /d --threads 1 --json"),
    SCENE(ENDS, "dup -r /s /d --link --yes --keep /d --threads 1"),
};

static const fault_scene others[] = {
    SCENE(NOTES, "note /s/neon.safetensors tags+=x"),
    SCENE(NOTES, "note --json /s/neon.safetensors words=a,b weight=0.5"),
    SCENE(NOTES, "note /s/neon.safetensors"),
    SCENE(DRAWS, "thumbnail -s 48 /s/neon.safetensors /t/x.png"),
    SCENE(DRAWS, "thumbnail -s 48 --json /s/neon.safetensors /t/x.png"),
};

static void play_moves(void **state) {
    (void)state;
    assert_true(fault_play(moves, sizeof moves / sizeof *moves, 100, 300));
}

static void play_by_name(void **state) {
    (void)state;
    assert_true(fault_play(by_name, sizeof by_name / sizeof *by_name, 50, 200));
}

static void play_bins(void **state) {
    (void)state;
    assert_true(fault_play(bins, sizeof bins / sizeof *bins, 100, 300));
}

static void play_others(void **state) {
    (void)state;
    assert_true(fault_play(others, sizeof others / sizeof *others, 100, 150));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_moves),
        cmocka_unit_test(play_by_name),
        cmocka_unit_test(play_bins),
        cmocka_unit_test(play_others),
    };
    return cmocka_run_group_tests_name("models that move over a failing system", tests, NULL, NULL);
}
