#include "crash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS_MOST 4096
#define FILES_MOST 64
#define PIECES 12 /* a write is torn in so many */

typedef struct crash_op {
    os_fake_did did;
    uint64_t inode, at;
    unsigned char *bytes;
    size_t len;
    char *path, *to;
    bool durable; /* by the moment in hand */
} crash_op;

typedef struct crash_file {
    char *path; /* NULL: an inode without a name */
    uint64_t inode;
    unsigned char *bytes;
    size_t len;
} crash_file;

typedef struct crash_disk {
    crash_file names[FILES_MOST]; /* path and inode */
    crash_file inodes[FILES_MOST]; /* inode and bytes */
    char *folders[FILES_MOST];
    size_t name_count, inode_count, folder_count;
} crash_disk;

static crash_op ops[OPS_MOST];
static size_t op_count;
static crash_disk before;
static uint64_t dice = 88172645463325252u;

static void *need(void *memory) {
    fault_need(memory);
    return memory;
}

static char *copy_text(const char *text) {
    if (!text) return NULL;
    size_t len = strlen(text) + 1;
    return memcpy(need(malloc(len)), text, len);
}

static uint64_t roll(void) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    return dice ^= dice << 17;
}

/* ── Disks ── */

static void disk_clear(crash_disk *disk) {
    for (size_t i = 0; i < disk->name_count; i++) free(disk->names[i].path);
    for (size_t i = 0; i < disk->inode_count; i++) free(disk->inodes[i].bytes);
    for (size_t i = 0; i < disk->folder_count; i++) free(disk->folders[i]);
    memset(disk, 0, sizeof *disk);
}

static crash_file *disk_inode(crash_disk *disk, uint64_t inode) {
    for (size_t i = 0; i < disk->inode_count; i++)
        if (disk->inodes[i].inode == inode) return &disk->inodes[i];
    fault_need(disk->inode_count < FILES_MOST);
    crash_file *file = &disk->inodes[disk->inode_count++];
    file->inode = inode;
    return file;
}

static void disk_name(crash_disk *disk, const char *path, uint64_t inode) {
    size_t i = 0;
    while (i < disk->name_count && strcmp(disk->names[i].path, path) != 0) i++;
    fault_need(i < FILES_MOST);
    if (i == disk->name_count) disk->names[disk->name_count++].path = copy_text(path);
    disk->names[i].inode = inode;
}

static void disk_unname(crash_disk *disk, const char *path) {
    for (size_t i = 0; i < disk->name_count; i++) {
        if (strcmp(disk->names[i].path, path) != 0) continue;
        free(disk->names[i].path);
        disk->names[i] = disk->names[--disk->name_count];
        return;
    }
}

static void disk_folder(void *ctx, const char *path) {
    crash_disk *disk = ctx;
    fault_need(disk->folder_count < FILES_MOST);
    disk->folders[disk->folder_count++] = copy_text(path);
}

static void disk_unfolder(crash_disk *disk, const char *path) {
    for (size_t i = 0; i < disk->folder_count; i++) {
        if (strcmp(disk->folders[i], path) != 0) continue;
        free(disk->folders[i]);
        disk->folders[i] = disk->folders[--disk->folder_count];
        return;
    }
}

static void disk_copy(crash_disk *to, const crash_disk *from) {
    disk_clear(to);
    for (size_t i = 0; i < from->name_count; i++)
        disk_name(to, from->names[i].path, from->names[i].inode);
    for (size_t i = 0; i < from->inode_count; i++) {
        crash_file *file = disk_inode(to, from->inodes[i].inode);
        file->len = from->inodes[i].len;
        file->bytes = need(malloc(file->len + 1));
        memcpy(file->bytes, from->inodes[i].bytes, file->len);
    }
    for (size_t i = 0; i < from->folder_count; i++) disk_folder(to, from->folders[i]);
}

static void keep_file(void *ctx, const char *path, uint64_t inode) {
    crash_disk *disk = ctx;
    disk_name(disk, path, inode);
    crash_file *file = disk_inode(disk, inode);
    if (file->bytes) return;
    const void *bytes = os_fake_file(path, &file->len);
    file->bytes = need(malloc(file->len + 1));
    memcpy(file->bytes, bytes, file->len);
}

static void file_resize(crash_file *file, size_t len) {
    file->bytes = need(realloc(file->bytes, len + 1));
    if (len > file->len) memset(file->bytes + file->len, 0, len - file->len);
    file->len = len;
}

static void disk_do(crash_disk *disk, const crash_op *op) {
    crash_file *file = op->inode ? disk_inode(disk, op->inode) : NULL;
    switch (op->did) {
    case OS_DID_WRITE:
        if (op->at + op->len > file->len) file_resize(file, (size_t)op->at + op->len);
        memcpy(file->bytes + op->at, op->bytes, op->len);
        break;
    case OS_DID_RESIZE: file_resize(file, op->len); break;
    case OS_DID_INSERT:
        file_resize(file, file->len + op->len);
        memmove(file->bytes + op->at + op->len, file->bytes + op->at,
                file->len - op->len - (size_t)op->at);
        memset(file->bytes + op->at, 0, op->len);
        break;
    case OS_DID_COLLAPSE:
        if (op->at + op->len > file->len) break; /* of what the disk never had */
        memmove(file->bytes + op->at, file->bytes + op->at + op->len,
                file->len - op->len - (size_t)op->at);
        file_resize(file, file->len - op->len);
        break;
    case OS_DID_NAME: disk_name(disk, op->path, op->inode); break;
    case OS_DID_UNNAME: disk_unname(disk, op->path); break;
    case OS_DID_RENAME:
        disk_unname(disk, op->path);
        disk_name(disk, op->to, op->inode);
        break;
    case OS_DID_FOLDER: disk_folder(disk, op->path); break;
    case OS_DID_UNFOLDER: disk_unfolder(disk, op->path); break;
    case OS_DID_MODE:
    case OS_DID_SYNC:
    case OS_DID_SYNC_FOLDER: break;
    }
}

/* Is the folder of path there? (Those of the folder itself are looked at by themselves.) */
static bool has_folder(const crash_disk *disk, const char *path) {
    size_t len = (size_t)(strrchr(path, '/') - path);
    bool found = len == 0;
    for (size_t i = 0; i < disk->folder_count && !found; i++)
        found = strlen(disk->folders[i]) == len && memcmp(disk->folders[i], path, len) == 0;
    return found;
}

/* What stands in a folder that the disk has lost is lost. */
static void disk_prune(crash_disk *disk) {
    for (size_t i = 0; i < disk->folder_count;) {
        if (has_folder(disk, disk->folders[i])) {
            i++;
            continue;
        }
        disk_unfolder(disk, disk->folders[i]);
        i = 0;
    }
    for (size_t i = 0; i < disk->name_count;)
        if (has_folder(disk, disk->names[i].path)) i++;
        else disk_unname(disk, disk->names[i].path);
}

static uint64_t digest(uint64_t sum, const void *bytes, size_t len) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return (sum ^ len) * UINT64_C(0x9E3779B97F4A7C15);
}

/* The same whatever the order of names. */
static uint64_t disk_digest(crash_disk *disk) {
    uint64_t sum = 0;
    for (size_t i = 0; i < disk->name_count; i++) {
        const crash_file *name = &disk->names[i], *file = disk_inode(disk, name->inode);
        uint64_t one = digest(UINT64_C(0xcbf29ce484222325), name->path, strlen(name->path));
        sum += digest(one ^ file->inode, file->bytes, file->len);
    }
    for (size_t i = 0; i < disk->folder_count; i++)
        sum += digest(2, disk->folders[i], strlen(disk->folders[i]));
    return sum;
}

static void disk_mount(crash_disk *disk) {
    os_fake_reset();
    for (size_t i = 0; i < disk->folder_count; i++)
        if (!os_fake_exists(disk->folders[i])) os_fake_add_dir(disk->folders[i]);
    for (size_t i = 0; i < disk->name_count; i++) {
        const crash_file *name = &disk->names[i], *file = disk_inode(disk, name->inode);
        os_fake_add_inode(name->path, name->inode, file->len ? (void *)file->bytes : "",
                          file->len);
    }
}

/* ── Recording ── */

static crash_op *op_new(const os_fake_op *from) {
    fault_need(op_count < OPS_MOST);
    crash_op *op = &ops[op_count++];
    memset(op, 0, sizeof *op);
    op->did = from->did;
    op->inode = from->inode;
    op->at = from->at;
    op->len = from->len;
    op->path = copy_text(from->path);
    op->to = copy_text(from->to);
    return op;
}

/* A write in pieces. */
static void record(const os_fake_op *op) {
    size_t piece = op->did == OS_DID_WRITE ? (op->len + PIECES - 1) / PIECES : 0;
    if (op->did != OS_DID_WRITE) (void)op_new(op);
    for (size_t at = 0; piece && at < op->len; at += piece) {
        os_fake_op one = *op;
        one.at += at;
        one.len = op->len - at < piece ? op->len - at : piece;
        crash_op *made = op_new(&one);
        made->bytes = need(malloc(one.len));
        memcpy(made->bytes, (const char *)op->bytes + at, one.len);
    }
}

static void forget_ops(void) {
    for (size_t i = 0; i < op_count; i++) {
        free(ops[i].bytes);
        free(ops[i].path);
        free(ops[i].to);
    }
    op_count = 0;
}

static bool is_journal(const char *path) {
    return path && strstr(path, ".sft-journal") != NULL;
}

static bool is_missing(const crash_op *op, crash_without without) {
    switch (without) {
    case CRASH_NO_FILE_SYNC: return op->did == OS_DID_SYNC;
    case CRASH_NO_FOLDER_SYNC: return op->did == OS_DID_SYNC_FOLDER;
    case CRASH_NO_JOURNAL: return is_journal(op->path) || is_journal(op->to);
    case CRASH_AS_IT_IS: break;
    }
    return false;
}

static size_t take_away(crash_without without) {
    size_t kept = 0, all = op_count;
    for (size_t i = 0; i < op_count; i++) {
        if (!is_missing(&ops[i], without)) {
            ops[kept++] = ops[i];
            continue;
        }
        free(ops[i].bytes);
        free(ops[i].path);
        free(ops[i].to);
    }
    op_count = kept;
    return all - kept;
}

/* ── Moments ── */

static bool is_in_folder(const char *path, const char *folder) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    size_t len = strlen(folder);
    return slash && (size_t)(slash - path) == len && memcmp(path, folder, len) == 0;
}

static bool is_data(os_fake_did did) {
    return did <= OS_DID_MODE;
}

static bool is_synced_by(const crash_op *op, const crash_op *sync) {
    if (is_data(op->did)) return sync->did == OS_DID_SYNC && sync->inode == op->inode;
    /* A rename is there when its new name is. */
    const char *path = op->did == OS_DID_RENAME ? op->to : op->path;
    return sync->did == OS_DID_SYNC_FOLDER && is_in_folder(path, sync->path);
}

/* The first `moment` of ops are done: which of them the disk has for sure. Returns how many it
 * need not have. */
static size_t mark_durable(size_t moment) {
    size_t loose = 0;
    for (size_t i = 0; i < moment; i++) {
        crash_op *op = &ops[i];
        op->durable = op->did >= OS_DID_SYNC;
        for (size_t j = i + 1; j < moment && !op->durable; j++)
            op->durable = is_synced_by(op, &ops[j]);
        loose += !op->durable;
    }
    return loose;
}

static void build(crash_disk *disk, size_t moment, const bool *chosen) {
    size_t at = 0;
    disk_copy(disk, &before);
    for (size_t i = 0; i < moment; i++)
        if (ops[i].durable || chosen[at++]) disk_do(disk, &ops[i]);
    disk_prune(disk);
}

/* Which of the loose ones: all subsets if they are few; else none, all, beginnings and dice. */
static bool choose(bool *chosen, size_t loose, size_t nth, size_t most) {
    if (loose < 20 && ((size_t)1 << loose) <= most) {
        if (nth >> loose) return false;
        for (size_t i = 0; i < loose; i++) chosen[i] = nth >> i & 1;
        return true;
    }
    uint64_t density = roll() % 8 + 1;
    for (size_t i = 0; i < loose; i++)
        chosen[i] = nth <= loose ? i < nth : nth <= 2 * loose ? i != nth - loose - 1
                                                              : roll() % 9 < density;
    return nth < most;
}

#define SEEN_SLOTS (1u << 18)
static uint64_t seen_disks[SEEN_SLOTS];

static bool is_new_disk(uint64_t sum) {
    size_t at = (size_t)(sum % SEEN_SLOTS);
    if (sum == 0) sum = 1;
    while (seen_disks[at] && seen_disks[at] != sum) at = (at + 1) % SEEN_SLOTS;
    bool fresh = seen_disks[at] == 0;
    seen_disks[at] = sum;
    return fresh;
}

static void judge_disk(const crash_scene *scene, crash_disk *disk, bool done,
                       crash_count *count) {
    count->states++;
    if (!is_new_disk(disk_digest(disk) + done)) return;
    count->distinct++;
    disk_mount(disk);
    const char *wrong = scene->judge(scene, done);
    if (!wrong) return;
    if (count->torn++ == 0) (void)snprintf(count->first, sizeof count->first, "%s", wrong);
}

crash_count crash_play(const crash_scene *scene, crash_without without, size_t most) {
    static bool chosen[OPS_MOST];
    static crash_disk disk;
    crash_count count = { 0, 0, 0, 0, 0, { 0 } };
    sft_error err = SFT_ERROR_INIT;
    memset(seen_disks, 0, sizeof seen_disks);
    os_fake_reset();
    scene->set(scene);
    scene->keep(scene, false);
    disk_clear(&before);
    os_fake_each_folder(disk_folder, &before);
    os_fake_each(keep_file, &before);
    os_fake_watch(record);
    sft_code code = scene->run(scene, &err);
    os_fake_watch(NULL);
    if (code) fprintf(stderr, "%s: %s\n", scene->name, err.message);
    fault_need(code == SFT_OK);
    scene->keep(scene, true);
    count.taken = take_away(without);
    for (size_t moment = 0; moment <= op_count; moment++) {
        size_t loose = mark_durable(moment);
        for (size_t nth = 0; choose(chosen, loose, nth, most); nth++) {
            build(&disk, moment, chosen);
            judge_disk(scene, &disk, moment == op_count, &count);
        }
        count.moments++;
    }
    forget_ops();
    disk_clear(&disk);
    disk_clear(&before);
    os_fake_reset();
    return count;
}

/* ── All of them ── */

/* Where time is short: under a sanitizer each disk takes five times as long. */
#define CRASH_FEW 1000
#if defined(__SANITIZE_ADDRESS__)
#define CRASH_MOST CRASH_FEW
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CRASH_MOST CRASH_FEW
#endif
#endif
#ifndef CRASH_MOST
#define CRASH_MOST SIZE_MAX
#endif

bool crash_hurries(void) {
    const char *every = getenv("FAULTS_EVERY");
    return every && strtoul(every, NULL, 10) >= 100;
}

size_t crash_play_all(const crash_scene *scenes, size_t count, size_t most) {
    size_t distinct = 0, torn = 0;
    size_t limit = crash_hurries() ? 400 : getenv("FAULTS_EVERY") ? CRASH_FEW : CRASH_MOST;
    if (most > limit) most = limit;
    for (size_t i = 0; i < count; i++) {
        crash_count c = crash_play(&scenes[i], CRASH_AS_IT_IS, most);
        printf("# %s: %zu moments, %zu states, %zu distinct, %zu torn %s\n", scenes[i].name,
               c.moments, c.states, c.distinct, c.torn, c.first);
        distinct += c.distinct;
        torn += c.torn;
    }
    printf("# %zu scenes: %zu distinct states, %zu torn\n", count, distinct, torn);
    return torn ? 0 : distinct;
}

static bool play_control(const crash_scene *scene, crash_without without, size_t most,
                         size_t *taken) {
    static const char *const names[] = { "", "fsync of the file", "fsync of the folder",
                                         "the journal" };
    crash_count c = crash_play(scene, without, most);
    bool none = c.taken == 0 && without == CRASH_NO_JOURNAL;
    bool missed = none ? c.torn == 0 : c.taken > 0 && c.torn > 0;
    *taken = c.taken;
    if (!none || !missed)
        printf("# %s without %s: %zu of %zu states torn: %s%s\n", scene->name, names[without],
               c.torn, c.distinct, c.first, missed ? "" : " <- NOT AS EXPECTED");
    return missed;
}

bool crash_play_controls(const crash_scene *scenes, size_t count, size_t most,
                         size_t *journals) {
    bool all = true;
    size_t with_journal = 0;
    for (size_t i = 0; i < count; i++) {
        size_t taken = 0;
        for (int w = CRASH_NO_FILE_SYNC; w <= CRASH_NO_JOURNAL; w++)
            all = play_control(&scenes[i], (crash_without)w, most, &taken) && all;
        with_journal += taken > 0;
    }
    if (journals) *journals = with_journal;
    return all;
}
