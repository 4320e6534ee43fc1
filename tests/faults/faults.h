/* Scenes over the platform in memory, played once as they should go, then again and again
 * while something fails: every allocation, every call of os.h; once, and from then on.
 * Each time the scene must end as it should (what failed could be done without) or with the
 * right failure and a message, and leave nothing behind. */
#ifndef FAULTS_H
#define FAULTS_H

#include "base/error.h"
#include "os_fake.h"
#include "safetensors_set.h"

/* Everything from sfti_os_resize: counted and failed by os_fake. */
extern const sft_allocator fault_alloc;

/* What a scene did, to be compared. */
typedef struct fault_seen {
    int status;    /* code of the library, or exit status of the command */
    sft_error err; /* of the library */
    bool overflow; /* a text was longer than its buffer: the scene is too big */
    size_t len, err_len;
    char text[1 << 19], err_text[1 << 14];
} fault_seen;

void fault_see(fault_seen *seen, const char *format, ...) SFTI_FORMAT(2, 3);
/* Of bytes (FNV-1a): whether they are the same as before. */
uint64_t fault_digest(const void *bytes, uint64_t len);
/* Length and digest of bytes. */
void fault_see_bytes(fault_seen *seen, const void *bytes, uint64_t len);
void fault_see_tensor(fault_seen *seen, const sft_tensor *tensor);

typedef struct fault_scene fault_scene;
struct fault_scene {
    const char *name;
    /* Runs while things fail; ends in seen->status and ->err. Allocates nothing that is not
     * under test. */
    void (*run)(const fault_scene *scene, fault_seen *seen);
    const char *path;
    int mode, way; /* whatever run makes of them */
    bool command;      /* judged as one: exit status, stdout (text), stderr (err_text) */
    const char *line;  /* of a command: words with spaces between */
    bool refused; /* goes well when it refuses: may then say less of why */
    bool beside;  /* tells less, and not why, when what lies beside a model cannot be read */
    bool partial; /* says with status 1 what could not be read, and does the rest */
    bool believes; /* what the system says is not there is missing: another answer */
    bool writes;  /* a failed close is then a failure */
    bool imports; /* through the library, or remote: needs its mutexes and conditions */
    /* After fault_world, before things fail; and after the run: NULL, or what is wrong.
     * lasting: removing a file may have failed too. Either may be NULL. */
    void (*set)(const fault_scene *scene);
    const char *(*after)(const fault_scene *scene, const fault_seen *seen, bool lasting);
};

/* What a test itself cannot do without, also where assert() is nothing: else it aborts. */
#define fault_need(what) \
    do { \
        if (!(what)) fault_die(__FILE__, __LINE__, #what); \
    } while (0)
_Noreturn void fault_die(const char *file, int line, const char *what);

/* The command in this process: words with spaces between. Its exit status. */
int fault_command(const char *line);
/* A scene's `run`, for its line. */
void fault_run(const fault_scene *scene, fault_seen *seen);

/* The world of all scenes:
 *   /m/a.safetensors       five tensors, metadata, NaN
 *   /m/many.safetensors    300 tensors
 *   /m/big.safetensors     400 KB of data, metadata
 *   /m/bad.safetensors     two rules broken    /m/cut.safetensors  data cut short
 *   /m/page.safetensors    an HTML page        /m/twice.safetensors  a name twice
 *   /set/m.safetensors.index.json  and its three shards; /set/plain.json the same
 *   /gap/m.safetensors.index.json  names a shard that is not there
 *   /odd/m.safetensors.index.json  names a tensor in the wrong shard
 *   /tree                  folders of models, a link, an index with its shards
 *   /wide                  40 models           /dir                 empty
 *   /m/pipe                a.safetensors from a FIFO */
void fault_world(void);
const void *fault_model(size_t *len); /* the bytes of /m/a.safetensors */

/* Plays all scenes in all ways and prints what it did; false if any failed. least_...: of
 * all points, so that scenes cannot silently come to nothing. With FAULTS_EVERY=n in the
 * environment one point of n fails, others in each scene. */
bool fault_play(const fault_scene *scenes, size_t count, size_t least_allocations,
                size_t least_calls);

#endif
