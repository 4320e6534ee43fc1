/* A folder in memory, /w, made of a fuzzed input, and what lies outside of it, /out: who may
 * change what, and what must be as it was. All files belong to the user who calls (1000) and
 * are his alone (mode 0600), a few of the input's excepted.
 *
 * Input behind the line of fuzz_command.c: a byte of options, then records of a byte (number
 * of the slot; 64: a model, header and data divided by the first NUL, gets its length in
 * front; 128: a symbolic link to the bytes), the number of bytes (16 bits, little-endian),
 * and the bytes. */
#ifndef SFT_FUZZ_FOLDER_H
#define SFT_FUZZ_FOLDER_H

#include "base/endian.h"
#include "fake_state.h"
#include "journal/journal.h"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#define FUZZ_PART(n) "part-0000" #n "-0000-11111111-2222-4333-8444-555555555555.safetensors"
#define FUZZ_JOB "_job-11111111-2222-4333-8444-555555555555"
#define FUZZ_OUTSIDE "q7Zk1-outside" /* stands in the files of /out, and nowhere else */

/* ── Slots ── */

typedef enum slot_kind {
    SLOT_FILE,
    SLOT_MODEL,
    SLOT_JOURNAL, /* of the slot before it: see place_journal */
    SLOT_CACHE,   /* bytes 1 to 4 stand for inode, size, times of the first slot's file */
    SLOT_INPUT    /* standard input */
} slot_kind;

typedef struct slot {
    const char *path;
    slot_kind kind;
    bool named; /* by lines: a link is followed, so it may only lead beside itself */
} slot;

/* Corpus files know the numbers: new ones go to the end. */
static const slot slots[] = {
    { "/w/m.safetensors", SLOT_MODEL, true },
    { "/w/.m.safetensors.sft-journal", SLOT_JOURNAL, false },
    { "/w/n.safetensors", SLOT_MODEL, true },
    { "/w/cache", SLOT_CACHE, true },
    { "/w/sums", SLOT_FILE, true },
    { "/w/m.json", SLOT_FILE, false },
    { "/w/m.civitai.info", SLOT_FILE, false },
    { "/w/m.txt", SLOT_FILE, false },
    { "/w/m.description.txt", SLOT_FILE, false },
    { "/w/m.preview.png", SLOT_FILE, true },
    { "/w/README.md", SLOT_FILE, false },
    { "/w/config.json", SLOT_FILE, false },
    { "/w/adapter_config.json", SLOT_FILE, false },
    { "/w/m.safetensors.index.json", SLOT_FILE, true },
    { "/w/s1.safetensors", SLOT_MODEL, false },
    { "/w/.s1.safetensors.sft-journal", SLOT_JOURNAL, false },
    { "/w/s2.safetensors", SLOT_MODEL, false },
    { "/w/d", SLOT_FILE, false },
    { "/w/d/s.safetensors", SLOT_MODEL, false },
    { "/w/ds/dataset_manifest.json", SLOT_FILE, false },
    { "/w/ds/" FUZZ_PART(0), SLOT_MODEL, false },
    { "/w/ds/" FUZZ_PART(1), SLOT_MODEL, false },
    { "/w/ds/_tensor_index.parquet", SLOT_FILE, false },
    { "/w/ds/.dataset.lock", SLOT_FILE, false },
    { "/w/ds/" FUZZ_JOB, SLOT_FILE, false },
    { "/w/ds/" FUZZ_JOB "/" FUZZ_PART(2), SLOT_MODEL, false },
    { "/w/ds", SLOT_FILE, true },
    { "/w/x.npy", SLOT_FILE, true },
    { "/w/pairs.json", SLOT_FILE, true },
    { "/w/o.safetensors", SLOT_FILE, false },
    { "/w/model_index.json", SLOT_FILE, false },
    { "-", SLOT_INPUT, false },
};
#define SLOTS (sizeof slots / sizeof *slots)

enum { RECORD_FRAMED = 64, RECORD_LINK = 128 };

typedef struct record {
    uint8_t mark;
    const uint8_t *bytes;
    size_t len;
} record;

/* What is left of the input. */
typedef struct rest {
    const uint8_t *at;
    size_t len;
} rest;

static inline bool take_record(rest *r, record *out) {
    if (r->len < 3) return false;
    size_t len = (size_t)r->at[1] | (size_t)r->at[2] << 8;
    if (len > r->len - 3) len = r->len - 3;
    *out = (record){ r->at[0], r->at + 3, len };
    *r = (rest){ r->at + 3 + len, r->len - 3 - len };
    return true;
}

/* ── Placing ── */

/* All folders above it are folders or not there, and it is no folder itself. */
static inline bool can_place(const char *path) {
    char above[128];
    fake_node *node;
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        memcpy(above, path, (size_t)(at - path));
        above[at - path] = '\0';
        if (fake_path_find(above, false, &node) == 0 && node->kind != OS_DIR) return false;
    }
    return fake_path_find(path, false, &node) != 0 || node->kind != OS_DIR;
}

static inline void place_file(const char *path, const void *bytes, size_t len) {
    os_fake_add_file(path, bytes, len);
    os_fake_set_mode(path, 0600);
}

static inline void place_link(const slot *s, const record *r) {
    char target[256];
    size_t len = r->len < sizeof target - 1 ? r->len : sizeof target - 1;
    memcpy(target, r->bytes, len);
    target[len] = '\0';
    if (!target[0] || (s->named && (strchr(target, '/') || target[0] == '.'))) return;
    os_fake_add_link(s->path, target);
}

static inline void place_framed(const char *path, const record *r) {
    const uint8_t *end = r->len ? memchr(r->bytes, 0, r->len) : NULL;
    size_t head = end ? (size_t)(end - r->bytes) : r->len;
    size_t data = end ? r->len - head - 1 : 0;
    uint8_t *bytes = malloc(8 + r->len);
    FUZZ_CHECK(bytes);
    sfti_put_u64(bytes, head);
    if (head > 0) memcpy(bytes + 8, r->bytes, head);
    if (data > 0) memcpy(bytes + 8 + head, end + 1, data);
    place_file(path, bytes, 8 + head + data);
    free(bytes);
}

/* What its first byte asks for is made right in the rest. */
enum {
    JOURNAL_FILE = 1,   /* device and inode of the model */
    JOURNAL_SIZE = 2,   /* its length */
    JOURNAL_FIRST = 4,  /* magic and version */
    JOURNAL_SUM = 8,    /* checksum of all */
    JOURNAL_OTHERS = 16, /* another user's */
    JOURNAL_OPEN = 32   /* others may write it */
};

static inline void set_word(uint8_t *bytes, sfti_journal_word word, uint64_t value) {
    sfti_put_u64(bytes + 8 * (size_t)word, value);
}

static inline void fix_checksum(const char *model, unsigned how, uint8_t *bytes, size_t len) {
    sfti_crc32_table table;
    size_t size;
    if (len < SFTI_JOURNAL_FIXED + 8) return;
    if (how & JOURNAL_FIRST) {
        memcpy(bytes, sfti_journal_magic, sizeof sfti_journal_magic);
        set_word(bytes, SFTI_JW_VERSION, SFTI_JOURNAL_VERSION);
    }
    if (how & JOURNAL_FILE) {
        set_word(bytes, SFTI_JW_DEVICE, 1);
        set_word(bytes, SFTI_JW_INODE, os_fake_inode(model));
    }
    if (how & JOURNAL_SIZE && os_fake_file(model, &size)) set_word(bytes, SFTI_JW_SIZE, size);
    if (!(how & JOURNAL_SUM)) return;
    sfti_crc32_begin(&table, false);
    sfti_put_u64(bytes + len - 8, sfti_crc32_add(&table, 0, bytes, len - 8));
}

static inline void place_journal(const slot *s, const record *r) {
    if (r->len == 0) return;
    unsigned how = r->bytes[0];
    uint8_t *bytes = malloc(r->len);
    FUZZ_CHECK(bytes);
    memcpy(bytes, r->bytes + 1, r->len - 1);
    fix_checksum(s[-1].path, how, bytes, r->len - 1);
    place_file(s->path, bytes, r->len - 1);
    if (how & JOURNAL_OTHERS) os_fake_set_owner(s->path, 1001);
    if (how & JOURNAL_OPEN) os_fake_set_mode(s->path, 0666);
    free(bytes);
}

static inline void place_cache(const slot *s, const record *r) {
    fake_node *node = NULL;
    (void)fake_path_find(slots[0].path, true, &node);
    char *text = malloc(20 * r->len + 1);
    size_t len = 0;
    FUZZ_CHECK(text);
    for (size_t i = 0; i < r->len; i++) {
        char c = (char)r->bytes[i];
        uint64_t facts[] = { node ? node->inode : 0, node ? node->len : 0,
                             node ? (uint64_t)node->mtime : 0, node ? (uint64_t)node->ctime : 0 };
        if (c >= 1 && c <= 4)
            len += (size_t)snprintf(text + len, 21, "%llu", (unsigned long long)facts[c - 1]);
        else text[len++] = c;
    }
    place_file(s->path, text, len);
    free(text);
}

static inline void place(const record *r) {
    const slot *s = &slots[(r->mark & 63) % SLOTS];
    if (s->kind == SLOT_INPUT) os_fake_set_input(OS_PIPE, r->bytes, r->len);
    else if (!can_place(s->path)) return;
    else if (r->mark & RECORD_LINK) place_link(s, r);
    else if (s->kind == SLOT_JOURNAL) place_journal(s, r);
    else if (s->kind == SLOT_CACHE) place_cache(s, r);
    else if (s->kind == SLOT_MODEL && r->mark & RECORD_FRAMED) place_framed(s->path, r);
    else place_file(s->path, r->bytes, r->len);
}

/* Journals and caches tell of models: they come last. */
static inline void place_all(rest r, bool last) {
    record one;
    while (take_record(&r, &one)) {
        slot_kind kind = slots[(one.mark & 63) % SLOTS].kind;
        if ((kind == SLOT_JOURNAL || kind == SLOT_CACHE) == last) place(&one);
    }
}

/* ── Outside ── */

static inline void place_outside(void) {
    static const char header[] =
        "{\"__metadata__\":{\"title\":\"" FUZZ_OUTSIDE "\"},"
        "\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}";
    record model = { 0, (const uint8_t *)header, sizeof header - 1 };
    place_framed("/out/s.safetensors", &model);
    os_fake_set_size("/out/s.safetensors", 8 + sizeof header - 1 + 8);
    place_file("/out/m.txt", FUZZ_OUTSIDE, sizeof FUZZ_OUTSIDE - 1);
    place_file("/out/" FUZZ_PART(2), FUZZ_OUTSIDE, sizeof FUZZ_OUTSIDE - 1);
}

static inline bool is_inside(const char *path) {
    return strcmp(path, "/w") == 0 || strncmp(path, "/w/", 3) == 0;
}

/* ── As it was ── */

typedef struct was {
    char *path;
    os_kind kind;
    char *bytes;
    size_t len;
    uint64_t inode;
    uint32_t mode, owner;
} was;

typedef struct picture {
    was *all;
    size_t count;
} picture;

static inline char *copy_bytes(const char *bytes, size_t len) {
    char *copy = malloc(len + 1);
    FUZZ_CHECK(copy);
    if (len > 0) memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

static inline picture take_picture(void) {
    picture p = { malloc((fake.name_count + 1) * sizeof *p.all), fake.name_count };
    FUZZ_CHECK(p.all);
    for (size_t i = 0; i < p.count; i++) {
        const fake_name *name = &fake.names[i];
        const fake_node *node = name->node;
        p.all[i] = (was){ copy_bytes(name->path, strlen(name->path)), node->kind,
                          copy_bytes(node->data, node->len), node->len, node->inode,
                          node->mode, node->owner };
    }
    return p;
}

static inline void free_picture(picture *p) {
    for (size_t i = 0; i < p->count; i++) {
        free(p->all[i].path);
        free(p->all[i].bytes);
    }
    free(p->all);
}

static inline const was *picture_find(const picture *p, const char *path) {
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->all[i].path, path) == 0) return &p->all[i];
    return NULL;
}

/* Whether a name of the picture is there with the same bytes. */
static inline bool is_as_it_was(const was *w) {
    const fake_name *name = fake_name_find(w->path);
    return name && name->node->kind == w->kind && name->node->len == w->len &&
           (w->len == 0 || memcmp(name->node->data, w->bytes, w->len) == 0);
}

#endif
