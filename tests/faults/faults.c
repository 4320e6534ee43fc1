#include "faults.h"

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const sft_allocator fault_alloc = { sfti_os_resize, NULL };

/* ── malloc's family, linked with --wrap: part of the system while a scene runs ── */
/* (os_fake.c is compiled to call the real one.) */

static bool armed;
static int64_t held; /* blocks taken and not given back while armed */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void __real_free(void *ptr);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);

static bool may_allocate(const char *name) {
    return !armed || os_fake_allocate(name);
}

static void *taken(void *block) {
    if (armed) held += block != NULL;
    return block;
}

void *__wrap_malloc(size_t size) {
    return may_allocate("malloc") ? taken(__real_malloc(size)) : NULL;
}

void *__wrap_calloc(size_t count, size_t size) {
    return may_allocate("calloc") ? taken(__real_calloc(count, size)) : NULL;
}

void *__wrap_realloc(void *ptr, size_t size) {
    if (!may_allocate("realloc")) return NULL;
    return ptr ? __real_realloc(ptr, size) : taken(__real_realloc(NULL, size));
}

void __wrap_free(void *ptr) {
    if (armed) held -= ptr != NULL;
    __real_free(ptr);
}

/* ── What was seen ── */

void fault_see(fault_seen *seen, const char *format, ...) {
    size_t cap = sizeof seen->text - seen->len;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(seen->text + seen->len, cap, format, args);
    va_end(args);
    seen->overflow = seen->overflow || len < 0 || (size_t)len >= cap;
    if (!seen->overflow) seen->len += (size_t)len;
}

uint64_t fault_digest(const void *bytes, uint64_t len) {
    const unsigned char *p = bytes;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < len; i++) digest = (digest ^ p[i]) * UINT64_C(0x100000001b3);
    return digest;
}

void fault_see_bytes(fault_seen *seen, const void *bytes, uint64_t len) {
    fault_see(seen, " %" PRIu64 ":%016" PRIx64 "\n", len, fault_digest(bytes, len));
}

void fault_see_tensor(fault_seen *seen, const sft_tensor *t) {
    fault_see(seen, "%.*s %d", (int)t->name.len, t->name.data, (int)t->dtype);
    for (uint32_t d = 0; d < t->rank; d++) fault_see(seen, ",%" PRIu64, t->shape[d]);
    fault_see(seen, " %" PRIu64 "-%" PRIu64 "@%" PRIu64 "\n", t->begin, t->end, t->offset);
}

/* ── The errnos that each call may plausibly give ── */

static const struct plausible {
    const char *call;
    int errors[6];
} plausible[] = {
    { "sfti_os_open_read", { ENOENT, EACCES, EMFILE, EIO, ELOOP, ENOMEM } },
    { "sfti_os_close", { EIO, EINTR, ENOSPC } },
    { "sfti_os_path_in", { EOPNOTSUPP, ENAMETOOLONG } },
    { "sfti_os_info_fd", { EIO, EBADF, ENOMEM } },
    { "sfti_os_open_beneath", { ENOENT, EACCES, EMFILE, EIO, ENOMEM } },
    { "sfti_os_info_path", { ENOENT, EACCES, EIO, ELOOP, ENOTDIR } },
    { "sfti_os_pread", { EIO, EISDIR, EAGAIN, EACCES } },
    { "sfti_os_open_direct", { EOPNOTSUPP, EMFILE, EACCES } },
    { "sfti_os_cached", { EOPNOTSUPP, EBADF } },
    { "sfti_os_read", { EIO, EINTR, EAGAIN } },
    { "sfti_os_map", { ENODEV, ENOMEM, EACCES, EPERM, EAGAIN } },
    { "sfti_os_gather", { EOPNOTSUPP, EMFILE, EFAULT } },
    { "sfti_os_real_path", { ENOENT, EACCES, ENAMETOOLONG, ELOOP } },
    { "sfti_os_read_link", { ENOENT, EACCES, EINVAL, EIO } },
    { "sfti_os_list", { EACCES, EIO, ENOENT, EMFILE, ENOMEM } },
    { "sfti_os_open_unnamed", { EOPNOTSUPP, EACCES, EROFS, ENOSPC, EMFILE } },
    { "sfti_os_open_new", { EACCES, EROFS, ENOSPC, EMFILE, EEXIST } },
    { "sfti_os_link", { EXDEV, EPERM, EOPNOTSUPP, EACCES, ENOSPC, EIO } },
    { "sfti_os_link_unnamed", { EIO, ENOSPC, EACCES, ENOENT, EPERM } },
    { "sfti_os_pwrite", { ENOSPC, EIO, EDQUOT, EFBIG } },
    { "sfti_os_write", { ENOSPC, EIO, EPIPE, EAGAIN, EBADF } },
    { "sfti_os_preallocate", { EOPNOTSUPP, ENOSPC, EIO, EFBIG } },
    { "sfti_os_truncate", { EIO, ENOSPC } },
    { "sfti_os_copy_range", { EOPNOTSUPP, EIO, ENOSPC } },
    { "sfti_os_open_write", { EACCES, EROFS, ETXTBSY, EMFILE, EIO } },
    { "sfti_os_clone_range", { EOPNOTSUPP, EIO, ENOSPC } },
    { "sfti_os_insert_range", { EOPNOTSUPP, EIO, ENOSPC } },
    { "sfti_os_collapse_range", { EOPNOTSUPP, EIO } },
    { "sfti_os_find_hole", { EOPNOTSUPP, EIO } },
    { "sfti_os_lease", { EAGAIN, EOPNOTSUPP } },
    { "sfti_os_lock", { EAGAIN, EOPNOTSUPP } },
    { "sfti_os_set_direct", { EOPNOTSUPP, EIO } },
    { "sfti_os_set_mtime", { EPERM, EIO } },
    { "sfti_os_make_folder", { EACCES, ENOSPC, EROFS, EEXIST } },
    { "sfti_os_remove_folder", { EACCES, EIO, EBUSY } },
    { "sfti_os_set_mode", { EPERM, EIO } },
    { "sfti_os_sync", { EIO, ENOSPC, EDQUOT } },
    { "sfti_os_open_folder", { EMFILE, EINVAL, EACCES, EIO } },
    { "sfti_os_open_no_link", { ENOENT, EACCES, EMFILE, EIO, ELOOP, EROFS } },
    { "sfti_os_sync_folder", { EIO, EINVAL, EOPNOTSUPP, EACCES } },
    { "sfti_os_rename", { EIO, EACCES, ENOSPC, EROFS, ENOSYS, EPERM } },
    { "sfti_os_unlink_beneath", { EIO, EACCES, EBUSY } },
    { "sfti_os_unlink", { EIO, EACCES, EBUSY } },
    { "sfti_os_random", { EIO, ENOSYS, EAGAIN } },
    { "sfti_os_thread_start", { EAGAIN, ENOMEM, EPERM } },
    { "sfti_os_mutex_init", { ENOMEM, EAGAIN } },
    { "sfti_os_cond_init", { ENOMEM, EAGAIN } },
};

static const int *plausible_errors(const char *call, size_t *count) {
    for (size_t i = 0; i < sizeof plausible / sizeof *plausible; i++) {
        if (strcmp(plausible[i].call, call) != 0) continue;
        for (*count = 0; *count < 6 && plausible[i].errors[*count];) ++*count;
        return plausible[i].errors;
    }
    fprintf(stderr, "no errnos are known for %s\n", call);
    abort();
}

/* ── One run ── */

typedef enum fault_span { ONCE, THIS_CALL, EVERYTHING } fault_span;
static const char *const span_words[] = { "once", "and this call from then on",
                                          "and everything from then on" };

typedef struct fault {
    bool memory;
    size_t nth; /* among allocations, or among the other calls; 0: nothing fails */
    fault_span span;
    int error;
    const char *call;   /* which it is */
    size_t nth_of_call; /* among calls of that name */
    size_t short_reads;
    size_t stop; /* a signal has come by the call of that number; 0: never */
} fault;

static fault_seen wanted, seen;
static size_t failures, run_calls, run_allocations; /* of the last run */

#define STOP_SIGNAL 15

static void start_failing(const fault *f) {
    bool forever = f->span != ONCE;
    if (!f->nth) os_fake_fail(0, 0, false);
    else if (f->memory) os_fake_fail_memory(f->nth, forever);
    else if (f->span == THIS_CALL) os_fake_fail_call(f->call, f->nth_of_call, f->error, true);
    else os_fake_fail_system(f->nth, f->error, forever);
}

static void forget(fault_seen *s) {
    s->status = 0;
    s->err = (sft_error)SFT_ERROR_INIT;
    s->overflow = false;
    s->len = s->err_len = 0;
}

static const char *left_behind(void) {
    if (os_fake_open_fds()) return "descriptors are left open";
    if (os_fake_maps()) return "maps are left";
    if (os_fake_blocks()) return "blocks of sfti_os_resize are left";
    if (os_fake_mutexes()) return "mutexes are left";
    return held ? "blocks of malloc are left" : NULL;
}

/* NULL, or what is wrong with what is left. */
static const char *play(const fault_scene *scene, const fault *f, fault_seen *into) {
    fault_world();
    if (scene->set) scene->set(scene);
    os_fake_short_reads(f->short_reads);
    forget(into);
    held = 0;
    start_failing(f);
    os_fake_stop_at(f->stop, f->stop ? STOP_SIGNAL : 0);
    armed = true;
    scene->run(scene, into);
    armed = false;
    size_t failed = os_fake_failed();
    os_fake_short_reads(0);
    run_calls = os_fake_calls();
    run_allocations = os_fake_allocations();
    if (into->overflow) return "the scene says more than there is room for";
    if (f->nth && !failed) return "nothing failed: the run differs from the first";
    bool unlinks = f->nth && !f->memory && strncmp(f->call, "sfti_os_unlink", 9) == 0;
    bool lasting = f->nth && !f->memory && (f->span != ONCE || unlinks);
    const char *wrong = scene->after ? scene->after(scene, into, lasting) : NULL;
    return wrong ? wrong : left_behind();
}

/* ── The verdict on a run ── */

static bool is_same_text(void) {
    return seen.len == wanted.len && memcmp(seen.text, wanted.text, seen.len) == 0;
}

static bool is_family(sft_class cls) {
    return cls == SFT_CLASS_INVALID || cls == SFT_CLASS_UNSUPPORTED || cls == SFT_CLASS_LIMIT;
}

static const char *judge_system_code(const fault *f) {
    sft_class cls = sft_code_describe((sft_code)seen.status)->cls;
    if (seen.err.os_errno != f->error) return "expected the errno in the error";
    if (cls == SFT_CLASS_IO) return NULL;
    /* The system says that it is not there, or is: believed. */
    if (f->error == ENOENT && seen.status == SFT_INDEX_SHARD_MISSING) return NULL;
    if (f->error == EEXIST && seen.status == SFT_EXISTS) return NULL;
    if (f->error == EAGAIN && seen.status == SFT_EDIT_BUSY) return NULL;
    if (f->error == ENOMEM && seen.status == SFT_OUT_OF_MEMORY) return NULL;
    bool lockless = strcmp(f->call, "sfti_os_lock") == 0 && f->error == EOPNOTSUPP;
    if (lockless && seen.status == SFT_EDIT_BUSY) return NULL;
    return "expected a code of class io";
}

/* Imports need their mutexes: any number of threads may read them. */
static bool is_import(const fault_scene *scene) {
    static const char *const endings[] = { ".npy", ".npz", ".pt" };
    if (scene->imports) return true;
    for (size_t i = 0; scene->line && i < sizeof endings / sizeof *endings; i++)
        if (strstr(scene->line, endings[i])) return true;
    return false;
}

/* What the code can do without: the result must not change at all. (A writer needs its
 * random numbers, for names that nobody can guess.) */
static bool is_dispensable(const fault_scene *scene, const fault *f) {
    if (f->memory || f->span == EVERYTHING) return false;
    if (strcmp(f->call, "sfti_os_random") == 0) return !scene->writes;
    if (strcmp(f->call, "sfti_os_thread_start") == 0) return true;
    if (strcmp(f->call, "sfti_os_path_in") == 0) return true;
    if (strcmp(f->call, "sfti_os_open_direct") == 0) return true;
    if (strcmp(f->call, "sfti_os_cached") == 0) return true;
    if (strcmp(f->call, "sfti_os_mutex_init") == 0) return !is_import(scene);
    if (strcmp(f->call, "sfti_os_cond_init") == 0) return !scene->imports;
    if (strcmp(f->call, "sfti_os_close") == 0) return !scene->writes;
    if (strcmp(f->call, "sfti_os_copy_range") == 0) return true;
    if (strcmp(f->call, "sfti_os_preallocate") == 0) return f->error == EOPNOTSUPP;
    if (strcmp(f->call, "sfti_os_open_unnamed") == 0) return f->error == EOPNOTSUPP;
    if (strcmp(f->call, "sfti_os_sync_folder") == 0)
        return f->error == EINVAL || f->error == EOPNOTSUPP;
    if (strcmp(f->call, "sfti_os_open_folder") == 0) return f->error == EINVAL;
    return strcmp(f->call, "sfti_os_map") == 0 && scene->mode == SFT_AUTO;
}

static const char *judge_call(const fault_scene *scene, const fault *f) {
    if (seen.status == wanted.status && is_same_text()) return NULL;
    if (seen.status == SFT_OK) return "succeeds with another result";
    if (is_dispensable(scene, f)) return "could have been done without";
    if ((int)seen.err.code != seen.status) return "the error holds another code";
    if (!seen.err.message[0]) return "there is no message";
    sft_class cls = sft_code_describe(seen.err.code)->cls;
    if (scene->refused && is_family(cls)) return NULL;
    bool mutex = scene->imports && (strcmp(f->call, "sfti_os_mutex_init") == 0 ||
                                    strcmp(f->call, "sfti_os_cond_init") == 0);
    bool later = scene->imports && f->span == EVERYTHING
              && strstr(seen.err.message, "create a mutex");
    if (!f->memory && !mutex && !later) return judge_system_code(f);
    return seen.status == SFT_OUT_OF_MEMORY ? NULL : "expected out_of_memory";
}

/* ── Commands: exit status, stdout, stderr ── */

static bool is_json(const char *text, size_t len) {
    sfti_json json;
    sfti_json_begin(&json, text, len);
    while (sfti_json_next(&json) > SFTI_JSON_END) continue;
    return json.type == SFTI_JSON_END;
}

static bool are_json_lines(const char *text, size_t len) {
    while (len) {
        const char *end = memchr(text, '\n', len);
        if (!end || !is_json(text, (size_t)(end - text))) return false;
        len -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return true;
}

static const char *judge_json(const char *line) {
    if (strstr(line, "--jsonl"))
        return are_json_lines(seen.text, seen.len) ? NULL : "stdout is not JSON lines";
    if (!strstr(line, "--json") && !strstr(line, "--as json")) return NULL;
    return is_json(seen.text, seen.len) ? NULL : "stdout is not JSON";
}

static bool is_shard_missing(void) {
    return strstr(seen.text, "what is missing") || strstr(seen.text, "this shard");
}

/* A folder or a file beside a model that cannot be read is told in the model's label, which
 * is right without it. */
static bool is_beside_told(void) {
    return seen.status == wanted.status
           && (strstr(seen.text, "\"error\":\"cannot") || strstr(seen.text, "! sidecar"));
}

/* Of models found in folders those that cannot be read are a line, and no failure. */
static bool is_unread_told(const char *line, bool writes) {
    static const char *const counting[] = { "info ", "find ", "ls ", "dup ", "meta list ",
                                            "catalog " };
    const char *command = strchr(line, ' ');
    bool counts = false;
    for (size_t i = 0; command && i < sizeof counting / sizeof *counting; i++)
        if (strncmp(command + 1, counting[i], strlen(counting[i])) == 0) counts = true;
    bool is_folder = !strstr(line, ".safetensors");
    return counts && is_folder && seen.status <= 1
        && (writes || strstr(seen.err_text, ": cannot ")
            || strstr(seen.err_text, " could not be read (-v lists them)"));
}

static const char *judge_command(const fault_scene *scene, const fault *f) {
    bool same_out = seen.status == wanted.status && is_same_text();
    bool same_err = seen.err_len == wanted.err_len
                    && memcmp(seen.err_text, wanted.err_text, seen.err_len) == 0;
    bool writes = !f->memory && (f->span == EVERYTHING || strcmp(f->call, "sfti_os_write") == 0);
    bool ends_early = seen.len <= wanted.len && memcmp(seen.text, wanted.text, seen.len) == 0;
    if (same_out && (same_err || writes)) return NULL;
    /* After the point of no return there are warnings only. */
    if (same_out && scene->writes && strstr(seen.err_text, ": warning: ")) return NULL;
    if (is_dispensable(scene, f)) return "could have been done without";
    if (writes && f->error == EPIPE && ends_early) return NULL; /* ends quietly */
    /* Where blocks are not shared they are copied, and it says so. */
    if (!f->memory && strcmp(f->call, "sfti_os_clone_range") == 0 && seen.status == wanted.status)
        return NULL;
    /* The system says that a shard is not there: believed. */
    if (seen.status == 1 && f->error == ENOENT && is_shard_missing()) return NULL;
    if (!f->memory && is_beside_told()) return judge_json(scene->line);
    bool is_cut = writes && ends_early && seen.status == 2;
    if (!f->memory && scene->beside && seen.status == wanted.status && !is_cut)
        return judge_json(scene->line);
    if (!f->memory && scene->partial && seen.status == 1) return judge_json(scene->line);
    if (!f->memory && scene->believes && f->error == ENOENT && seen.status <= 1)
        return judge_json(scene->line);
    if ((same_out || !f->memory) && is_unread_told(scene->line, writes))
        return judge_json(scene->line);
    bool less = scene->refused && seen.status == wanted.status;
    if (seen.status != 2 && !less) return "expected exit status 2, or the same output";
    if (writes) return NULL;
    if (!seen.err_len) return "expected a message on stderr";
    if (f->memory && !less && !strstr(seen.err_text, "memory"))
        return "expected memory in the message";
    return judge_json(scene->line);
}

/* ── All runs of a scene ── */

static const char *title(const fault_scene *scene) {
    return scene->command ? scene->line : scene->name;
}

static void complain(const fault_scene *scene, const fault *f, const char *wrong) {
    if (++failures > 400) return;
    fprintf(stderr, "%s: %s\n", title(scene), wrong);
    if (f->short_reads) fprintf(stderr, "    reads of %zu bytes\n", f->short_reads);
    if (f->stop) fprintf(stderr, "    stopped at call %zu\n", f->stop);
    if (f->nth) {
        fprintf(stderr, "    %s %zu (%s), errno %d, %s\n", f->memory ? "allocation" : "call",
                f->nth, f->memory ? "-" : f->call, f->error, span_words[f->span]);
    }
    fprintf(stderr, "    %d, expected %d; code %d errno %d: %s\n", seen.status, wanted.status,
            (int)seen.err.code, (int)seen.err.os_errno, seen.err.message);
    fprintf(stderr, "    stderr: %.*s\n", (int)seen.err_len, seen.err_text);
    if (getenv("FAULTS_VERBOSE"))
        fprintf(stderr, "    stdout: %.*s\n", (int)seen.len, seen.text);
}

static void replay(const fault_scene *scene, const fault *f) {
    const char *wrong = play(scene, f, &seen);
    if (!wrong && f->nth) {
        wrong = scene->command ? judge_command(scene, f) : judge_call(scene, f);
    } else if (!wrong && (seen.status != wanted.status || !is_same_text())) {
        wrong = "another result";
    }
    if (wrong) complain(scene, f, wrong);
}

#define MOST_CALLS 65536

typedef struct fault_plan {
    size_t allocations, calls, all_calls, runs, short_reads;
    const char *names[MOST_CALLS]; /* of the calls that are no allocations */
} fault_plan;

static bool is_memory_name(const char *name) {
    static const char *const names[] = { "sfti_os_resize", "malloc", "calloc", "realloc" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* A run in which nothing fails tells where things can. */
static bool make_plan(const fault_scene *scene, size_t short_reads, fault_plan *plan) {
    fault none = { .short_reads = short_reads };
    size_t count = 0;
    const char *wrong = play(scene, &none, &wanted);
    if (wrong) {
        seen.status = wanted.status;
        seen.err = wanted.err;
        complain(scene, &none, wrong);
    }
    plan->allocations = run_allocations;
    plan->short_reads = short_reads;
    plan->all_calls = run_calls;
    for (size_t n = 1; n <= run_calls && n <= MOST_CALLS; n++) {
        const char *name = os_fake_call_name(n);
        if (is_memory_name(name)) continue;
        plan->names[count++] = name;
    }
    plan->calls = count;
    plan->runs++;
    return !wrong;
}

static size_t nth_of_name(const fault_plan *plan, size_t n) {
    size_t nth = 0;
    for (size_t i = 0; i < n; i++) nth += strcmp(plan->names[i], plan->names[n - 1]) == 0;
    return nth;
}

/* Where only every so many points are to fail (FAULTS_EVERY), others from scene to scene. */
static size_t points_every = 1, points_turn;

static void choose_points(void) {
    const char *text = getenv("FAULTS_EVERY");
    unsigned long every = text ? strtoul(text, NULL, 10) : 1;
    points_every = every > 0 ? every : 1;
    points_turn = 0;
}

static bool is_left_out(size_t n) { return (n + points_turn) % points_every != 0; }

static void fail_memory(const fault_scene *scene, fault_plan *plan) {
    for (size_t n = 1; n <= plan->allocations; n++) {
        if (is_left_out(n)) continue;
        fault once = { .memory = true, .nth = n, .error = ENOMEM, .call = "memory" };
        fault on = once;
        on.span = EVERYTHING;
        replay(scene, &once);
        replay(scene, &on);
        plan->runs += 2;
    }
}

#define BIG_SCENE 100 /* calls: not every errno in every span any more */

static void fail_call(const fault_scene *scene, fault_plan *plan, size_t n) {
    size_t errors;
    const int *error = plausible_errors(plan->names[n - 1], &errors);
    fault f = { .nth = n, .call = plan->names[n - 1], .nth_of_call = nth_of_name(plan, n),
                .short_reads = plan->short_reads };
    for (size_t e = 0; e < errors; e++) {
        for (int span = ONCE; span <= EVERYTHING; span++) {
            if (plan->calls > BIG_SCENE && (n + (size_t)span) % errors != e) continue;
            f.error = error[e];
            f.span = (fault_span)span;
            replay(scene, &f);
            plan->runs++;
        }
    }
}

/* Short reads change nothing. */
static void read_shortly(const fault_scene *scene, fault_plan *plan) {
    static const size_t most[] = { 1, 7, 4096 };
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        fault none = { .short_reads = most[i] };
        replay(scene, &none);
        plan->runs++;
    }
}

static void fail_calls(const fault_scene *scene, fault_plan *plan) {
    for (size_t n = 1; n <= plan->calls; n++)
        if (!is_left_out(n)) fail_call(scene, plan, n);
}

/* A command that is stopped ends with 128 and the signal, having cleaned up. */
static void stop_command(const fault_scene *scene, fault_plan *plan) {
    for (size_t n = 1; n <= plan->all_calls; n++) {
        if (is_left_out(n)) continue;
        fault f = { .stop = n };
        const char *wrong = play(scene, &f, &seen);
        if (!wrong && seen.status != 128 + STOP_SIGNAL) wrong = "expected 128 and the signal";
        if (wrong) complain(scene, &f, wrong);
        plan->runs++;
    }
}

#define SMALL_SCENE 60 /* calls: failures in the middle of what is read in pieces, too */
#define SMALL_READ 50

/* Everything that can be done with one scene. */
static bool play_scene(const fault_scene *scene, fault_plan *plan) {
    plan->runs = 0;
    /* What is kept once a process is asked for by now: runs are alike. */
    if (!make_plan(scene, 0, plan) || !make_plan(scene, 0, plan)) return false;
    read_shortly(scene, plan);
    fail_memory(scene, plan);
    fail_calls(scene, plan);
    if (scene->command && plan->calls <= BIG_SCENE) stop_command(scene, plan);
    if (plan->calls > SMALL_SCENE) return true;
    size_t calls = plan->calls;
    if (!make_plan(scene, SMALL_READ, plan)) return false;
    if (plan->calls > calls && plan->calls <= 2 * BIG_SCENE) fail_calls(scene, plan);
    else plan->calls = calls;
    return true;
}

bool fault_play(const fault_scene *scenes, size_t count, size_t least_allocations,
                size_t least_calls) {
    static fault_plan plan;
    size_t allocations = 0, calls = 0, runs = 0;
    failures = 0;
    choose_points();
    for (size_t i = 0; i < count; i++, points_turn++) {
        if (!play_scene(&scenes[i], &plan)) continue;
        allocations += plan.allocations;
        calls += plan.calls;
        runs += plan.runs;
        printf("# %s: %zu allocations, %zu calls, %zu runs\n",
               title(&scenes[i]), plan.allocations, plan.calls,
               plan.runs);
    }
    os_fake_reset();
    printf("# %zu scenes: %zu points (%zu allocations, %zu calls), %zu runs, %zu failures\n",
           count, allocations + calls, allocations, calls, runs, failures);
    return failures == 0 && allocations >= least_allocations && calls >= least_calls;
}
