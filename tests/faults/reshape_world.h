/* Commands that write models anew: what may stand where their results go after a failure. A test
 * defines set_world, which ends with `before = look()`. */
#ifndef RESHAPE_WORLD_H
#define RESHAPE_WORLD_H

#include "faults.h"

#include <string.h>

static void set_world(const fault_scene *scene);

/* ── What stands where results go ── */

static const char *const places[] = {
    "/dir/o.safetensors", "/dir/old.safetensors", "/m/a.safetensors",
    "/set/m-00001-of-00003.safetensors", "/dir/link.safetensors",
    "/dir/new/model.safetensors.index.json", "/dir/new/model.safetensors",
    "/dir/new/model-00001-of-00002.safetensors", "/dir/new/model-00002-of-00002.safetensors",
    "/dir/new/model-00001-of-00003.safetensors", "/dir/new/model-00002-of-00003.safetensors",
    "/dir/new/model-00003-of-00003.safetensors",
    "/dir/new/transformer/diffusion_pytorch_model.safetensors",
    "/dir/new/vae/diffusion_pytorch_model.safetensors", "/dir/adapter_model.safetensors",
    "/dir/adapter_config.json",
};

#define PLACES (sizeof places / sizeof *places)

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

static bool same_state(const state *a, const state *b) {
    return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

static state before, done;
static const fault_scene *learned; /* of which `done` is the result */

/* An index stands there only with all its shards. */
static bool is_torn(const state *now) {
    if (!now->digest[5] || now->digest[5] == before.digest[5]) return false;
    bool two = now->digest[7] && now->digest[8];
    bool three = now->digest[9] && now->digest[10] && now->digest[11];
    return !two && !three;
}

static const char *judge_state(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    state now = look();
    if (learned != scene) {
        learned = scene;
        done = now;
        int good = scene->writes ? 0 : 1;
        if ((seen->status > good) != scene->refused) return "the scene does not go as it should";
    }
    /* The system says that there is no link: believed, and the link becomes a file. */
    if (now.digest[4] && now.digest[4] == done.digest[1]) now.digest[1] = now.digest[4];
    now.digest[4] = 0;
    if (is_torn(&now)) return "an index without its shards";
    if (seen->status == 0 && !same_state(&now, &done)) return "success, and another result";
    if (lasting) return NULL;
    bool old = same_state(&now, &before), fresh = same_state(&now, &done);
    if (!old && !fresh) return "neither the old state nor the new one";
    if (now.files > (fresh ? done.files : before.files)) return "a hidden file is left";
    return NULL;
}

/* ── Scenes ── */

#define SCENE(text, input, named) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .writes = true, \
      .mode = input, .way = named, .set = set_world, .after = judge_state }
#define WRITES(text) SCENE(text, OS_FILE, false)
#define NAMED(text) SCENE(text, OS_FILE, true)
#define PIPED(text) SCENE(text, OS_PIPE, false)
/* Refuses a file; of which a failure may hide what it really is. */
#define REFUSES(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .writes = true, \
      .refused = true, .set = set_world, .after = judge_state }
#define READS(text) \
    { .command = true, .run = fault_run, .line = "safetensors " text, .set = set_world, \
      .after = judge_state }

#endif
