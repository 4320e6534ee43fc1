/* What a power cut leaves. A scene is run once, and all it does to the disk is recorded; then,
 * for each moment, every disk is built that a cut at that moment could have left: what was
 * synced is there; of the rest any part may be, in any order, writes torn in pieces. */
#ifndef CRASH_H
#define CRASH_H

#include "faults.h"

typedef struct crash_scene crash_scene;
struct crash_scene {
    const char *name;
    int way; /* whatever set, run and judge make of it */
    void (*set)(const crash_scene *scene); /* the disk before, all of it synced */
    sft_code (*run)(const crash_scene *scene, sft_error *err);
    /* Before `run` is recorded, and after it: keep what the files were and are. */
    void (*keep)(const crash_scene *scene, bool after);
    /* On a disk as it was left, nothing failing: NULL, or what is wrong. done: run had
     * returned. May change the disk (recover it). */
    const char *(*judge)(const crash_scene *scene, bool done);
};

/* What is taken away, to see that it is missed. */
typedef enum crash_without {
    CRASH_AS_IT_IS,
    CRASH_NO_FILE_SYNC,
    CRASH_NO_FOLDER_SYNC,
    CRASH_NO_JOURNAL /* no file whose name has ".sft-journal" */
} crash_without;

typedef struct crash_count {
    size_t taken; /* operations that were taken away */
    size_t moments, states, distinct, torn;
    char first[256]; /* what was wrong first */
} crash_count;

/* FAULTS_EVERY is 100 or more, as in make test. */
bool crash_hurries(void);

/* At most `most` disks a moment: all subsets where there are so few, else some at random. */
crash_count crash_play(const crash_scene *scene, crash_without without, size_t most);

/* Plays all scenes and prints what came of them: how many disks were left that differ, 0 if
 * any was wrong. With FAULTS_EVERY (faults.h) and under ASan `most` is 1,000 at most, where
 * crash_hurries 400. */
size_t crash_play_all(const crash_scene *scenes, size_t count, size_t most);
/* Plays all without the syncs of files, without those of folders, and without the journal:
 * false if something was taken away (or there were no syncs to take) and not missed.
 * *journals (or NULL): scenes that had one. */
bool crash_play_controls(const crash_scene *scenes, size_t count, size_t most,
                         size_t *journals);

/* keep and judge for scenes that write whole files, in any number: each visible file is the one
 * that stood there before or the one that stands there after (once recovered, if it is told to
 * be interrupted), an index names whole files, once it is done the new files are there, and
 * nothing is left but one hidden file that sft_sweep removes. */
void crash_keep(const crash_scene *scene, bool after);
const char *crash_judge(const crash_scene *scene, bool done);

#endif
