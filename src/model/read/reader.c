/* Readers: threads that fill slots with the tasks of a plan.
 *
 * A slot is free, being filled, full or held by the caller; the mutex guards which.
 *
 *   1. sft_reader_add and sft_reader_give_back make it free, and start a thread if none is idle.
 *   2. A thread takes the free slot and the next task together, and fills the slot without the
 *      mutex. Nobody else knows of the slot then.
 *   3. It makes it full, unless the task failed: then the slot is free again, and the error is
 *      that of the reader from there on.
 *   4. sft_reader_next hands out the slot that is full the longest, if there is no error.
 *
 * Threads end when nothing is left to be taken, and after a while in which no slot was free for any
 * of them; the next slot starts them again. Only the calling thread starts and joins them. */
#include "base/error.h"
#include "os/os.h"
#include "os/io.h"
#include "read/read.h"

#include <string.h>

#define READER_THREADS 64
#define READER_THREADS_LEAST 4
#define READER_THREADS_USUAL 12
#define READER_IDLE_MS 500
#define READER_IDLE_WAITS 10 /* before an idle thread ends */
#define READER_WAIT_MS 100   /* between two questions of sft_on_wait */

typedef enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_FULL, SLOT_HELD } slot_state;

typedef struct read_slot {
    char *memory;
    sft_read_copy *copies; /* plan->most_copies of them */
    size_t copy_count;
    slot_state state;
    size_t next; /* of the slots that are full, or of those that are free: SFT_SLOT_NONE ends */
} read_slot;

typedef struct read_thread {
    sft_reader *reader;
    os_thread thread;
    char *scratch;
    bool started; /* to be joined; the calling thread's */
    bool runs;    /* guarded by the mutex */
} read_thread;

/* Slots in the order in which they came. */
typedef struct slot_queue {
    size_t first, last, count;
} slot_queue;

struct sft_reader {
    const sft_read_plan *plan;
    sft_allocator alloc;
    uint64_t process; /* a forked child has neither the threads nor, perhaps, a free mutex */
    sfti_read_access access;
    sfti_read_scratch scratch; /* of the threads, and one for the caller's */
    read_thread threads[READER_THREADS];
    size_t thread_count; /* most that run */
    os_mutex mutex;      /* guards what follows */
    os_cond freed;       /* signalled when a slot is free, and at the end */
    os_cond filled;      /* signalled when a slot is full, and on an error */
    read_slot *slots;
    size_t slot_count, slot_cap;
    slot_queue free, full;
    size_t next_task;
    size_t filling, idle, running; /* slots, threads that wait, threads */
    bool stop;
    sft_code code;
    sft_error error;
};

/* ── Queues ──────────────────────────────────────────────────────────────── */

static void slots_put(sft_reader *r, slot_queue *queue, size_t slot, slot_state state) {
    r->slots[slot].state = state;
    r->slots[slot].next = SFT_SLOT_NONE;
    if (queue->count++ > 0) r->slots[queue->last].next = slot;
    else queue->first = slot;
    queue->last = slot;
}

static size_t slots_get(sft_reader *r, slot_queue *queue, slot_state state) {
    size_t slot = queue->first;
    r->slots[slot].state = state;
    queue->first = r->slots[slot].next;
    queue->count--;
    return slot;
}

/* ── Filling ─────────────────────────────────────────────────────────────── */

/* With the mutex held. */
static bool reader_has_more(const sft_reader *r) {
    return !r->stop && !r->code && r->next_task < r->plan->task_count;
}

static bool reader_can_fill(const sft_reader *r) {
    return reader_has_more(r) && r->free.count > 0;
}

/* With the mutex held, which is given up meanwhile: fill a free slot with the next task. */
static void reader_fill(sft_reader *r, char *scratch) {
    size_t slot = slots_get(r, &r->free, SLOT_FILLING), task = r->next_task++;
    read_slot own = r->slots[slot]; /* the array may move */
    sft_error error = SFT_ERROR_INIT;
    r->filling++;
    sfti_os_mutex_unlock(&r->mutex);
    sft_code code = sfti_read_task(&r->access, task, own.memory, scratch, &error);
    if (!code) own.copy_count = sfti_read_copies(r->plan, task, own.copies);
    sfti_os_mutex_lock(&r->mutex);
    r->filling--;
    r->slots[slot].copy_count = own.copy_count;
    slots_put(r, code ? &r->free : &r->full, slot, code ? SLOT_FREE : SLOT_FULL);
    if (code && !r->code) {
        r->code = code;
        r->error = error;
    }
    if (!reader_has_more(r)) sfti_os_cond_wake(&r->freed);
    sfti_os_cond_wake(&r->filled);
}

static void thread_run(void *ctx) {
    read_thread *thread = ctx;
    sft_reader *r = thread->reader;
    sfti_os_mutex_lock(&r->mutex);
    for (unsigned waits = 0; reader_can_fill(r) || waits < READER_IDLE_WAITS;) {
        if (!reader_has_more(r)) break;
        if (reader_can_fill(r)) {
            reader_fill(r, thread->scratch);
            waits = 0;
            continue;
        }
        size_t task = r->next_task;
        r->idle++;
        sfti_os_cond_wait_for(&r->freed, &r->mutex, READER_IDLE_MS);
        r->idle--;
        waits = r->next_task == task ? waits + 1 : 0;
    }
    r->running--;
    thread->runs = false;
    sfti_os_cond_wake(&r->filled);
    sfti_os_mutex_unlock(&r->mutex);
}

/* With the mutex held, which is given up meanwhile: one more thread if one is of use. */
static void reader_start_thread(sft_reader *r) {
    if (!reader_can_fill(r) || r->idle >= r->free.count || r->running == r->thread_count) return;
    size_t i = 0;
    while (r->threads[i].runs) i++;
    read_thread *thread = &r->threads[i];
    thread->runs = true;
    r->running++;
    sfti_os_mutex_unlock(&r->mutex);
    if (thread->started) sfti_os_thread_join(&thread->thread);
    thread->started = sfti_os_thread_start(&thread->thread, thread_run, thread) == 0;
    sfti_os_mutex_lock(&r->mutex);
    if (thread->started) return;
    thread->runs = false;
    r->running--;
}

/* ── Start and end ───────────────────────────────────────────────────────── */

static sft_code reader_share(sft_reader *r, sft_error *err) {
    int error = sfti_os_mutex_init(&r->mutex);
    if (error) goto no_mutex;
    if ((error = sfti_os_cond_init(&r->freed)) != 0) goto no_freed;
    if ((error = sfti_os_cond_init(&r->filled)) != 0) goto no_filled;
    return SFT_OK;
no_filled:
    sfti_os_cond_free(&r->freed);
no_freed:
    sfti_os_mutex_free(&r->mutex);
no_mutex:
    (void)sfti_fail_memory(err, sizeof r->mutex);
    if (err) err->os_errno = error;
    return SFT_OUT_OF_MEMORY;
}

static void reader_release(sft_reader *r) {
    sft_allocator alloc = r->alloc;
    for (size_t i = 0; i < r->slot_count; i++)
        sfti_release(&alloc, r->slots[i].copies, r->plan->most_copies * sizeof(sft_read_copy));
    sfti_release(&alloc, r->slots, r->slot_cap * sizeof *r->slots);
    sfti_read_scratch_free(&alloc, &r->scratch);
    sfti_read_access_end(&r->access);
    sfti_release(&alloc, r, sizeof *r);
}

static bool reader_forked(const sft_reader *r) {
    return r->process != sfti_os_process();
}

void sft_reader_close(sft_reader *reader) {
    if (!reader) return;
    if (reader_forked(reader)) {
        reader_release(reader);
        return;
    }
    sfti_os_mutex_lock(&reader->mutex);
    reader->stop = true;
    sfti_os_cond_wake(&reader->freed);
    sfti_os_mutex_unlock(&reader->mutex);
    for (size_t i = 0; i < reader->thread_count; i++)
        if (reader->threads[i].started) sfti_os_thread_join(&reader->threads[i].thread);
    sfti_os_cond_free(&reader->filled);
    sfti_os_cond_free(&reader->freed);
    sfti_os_mutex_free(&reader->mutex);
    reader_release(reader);
}

sft_code sft_reader_start(const sft_read_plan *plan, uint32_t threads, sft_reader **out,
                          sft_error *err) {
    if (out) *out = NULL;
    if (!plan || !out || plan->based > 0)
        return sfti_misuse(err, "expected a plan of blocks without a base and a place for the "
                           "reader, found %s", plan && out ? "a block with one" : "NULL");
    const sft_allocator *alloc = &plan->arena.alloc;
    sft_reader *r = sfti_take(alloc, sizeof *r);
    if (!r) return sfti_fail_memory(err, sizeof *r);
    memset(r, 0, sizeof *r);
    r->plan = plan;
    r->alloc = *alloc;
    r->process = sfti_os_process();
    size_t usual = sfti_os_cpu_count();
    if (usual > READER_THREADS_USUAL) usual = READER_THREADS_USUAL;
    if (usual < READER_THREADS_LEAST) usual = READER_THREADS_LEAST;
    r->thread_count = threads ? threads : usual;
    if (r->thread_count > READER_THREADS) r->thread_count = READER_THREADS;
    if (plan->forward) r->thread_count = 1;
    sft_code code = reader_share(r, err);
    if (code) {
        reader_release(r);
        return code;
    }
    code = sfti_read_access_begin(&r->access, plan, err);
    if (!code && !sfti_read_scratch_take(alloc, r->thread_count + 1, &r->scratch))
        code = sfti_fail_memory(err, r->scratch.bytes);
    if (code) {
        sft_reader_close(r);
        return code;
    }
    for (size_t i = 0; i < r->thread_count; i++) {
        r->threads[i].reader = r;
        r->threads[i].scratch = sfti_read_scratch_of(&r->scratch, i);
    }
    sfti_read_announce(plan);
    *out = r;
    return SFT_OK;
}

/* ── Slots ───────────────────────────────────────────────────────────────── */

static sft_code reader_fail_forked(sft_error *err) {
    return sfti_misuse(err, "expected a reader that this process started, found one from before "
                       "fork()");
}

sft_code sft_reader_add(sft_reader *reader, void *memory, sft_error *err) {
    if (!reader || !memory || (uintptr_t)memory % SFTI_READ_PAGE)
        return sfti_misuse(err, "expected a reader and memory at a multiple of 4096, found %s",
                           reader && memory ? "other memory" : "NULL");
    if (reader_forked(reader)) return reader_fail_forked(err);
    size_t bytes = reader->plan->most_copies * sizeof(sft_read_copy);
    read_slot slot = { .memory = memory };
    sfti_os_mutex_lock(&reader->mutex);
    slot.copies = bytes ? sfti_take(&reader->alloc, bytes) : NULL;
    bool fine = slot.copies || !bytes;
    read_slot *slots = fine ? sfti_grow(&reader->alloc, reader->slots, reader->slot_count, 1,
                                        &reader->slot_cap, sizeof *slots)
                            : NULL;
    if (slots) {
        reader->slots = slots;
        slots[reader->slot_count] = slot;
        slots_put(reader, &reader->free, reader->slot_count++, SLOT_FREE);
        sfti_os_cond_wake(&reader->freed);
        reader_start_thread(reader);
    } else {
        sfti_release(&reader->alloc, slot.copies, bytes);
        sfti_fail_memory(err, fine ? (reader->slot_count + 1) * sizeof *slots : bytes);
    }
    sfti_os_mutex_unlock(&reader->mutex);
    return slots ? SFT_OK : SFT_OUT_OF_MEMORY;
}

bool sft_reader_starved(const sft_reader *reader) {
    sft_reader *r = (sft_reader *)(uintptr_t)reader; /* the mutex alone changes */
    if (reader_forked(r)) return false;
    sfti_os_mutex_lock(&r->mutex);
    bool starved = reader_has_more(r) && r->free.count == 0 && r->filling < r->thread_count;
    sfti_os_mutex_unlock(&r->mutex);
    return starved;
}

void sft_reader_give_back(sft_reader *reader, size_t slot) {
    if (reader_forked(reader)) return;
    sfti_os_mutex_lock(&reader->mutex);
    if (slot < reader->slot_count && reader->slots[slot].state == SLOT_HELD) {
        slots_put(reader, &reader->free, slot, SLOT_FREE);
        sfti_os_cond_wake(&reader->freed);
        reader_start_thread(reader);
    }
    sfti_os_mutex_unlock(&reader->mutex);
}

/* ── The next slot ───────────────────────────────────────────────────────── */

typedef enum next_answer { NEXT_WAIT, NEXT_SLOT, NEXT_END, NEXT_NONE, NEXT_ERROR } next_answer;

/* With the mutex held. */
static next_answer reader_look(sft_reader *r) {
    for (;;) {
        if (r->code) return NEXT_ERROR;
        if (r->full.count > 0) return NEXT_SLOT;
        if (r->filling > 0) return NEXT_WAIT;
        if (!reader_has_more(r)) return NEXT_END;
        if (r->free.count == 0) return NEXT_NONE;
        if (r->running > 0) return NEXT_WAIT;
        reader_start_thread(r); /* all had ended, or could not be started */
        if (r->running == 0 && reader_can_fill(r))
            reader_fill(r, sfti_read_scratch_of(&r->scratch, r->thread_count));
    }
}

/* With the mutex held, which is given up meanwhile. False: the wait is over. */
static bool reader_wait(sft_reader *r, int32_t milliseconds, uint64_t begin) {
    uint64_t most = READER_WAIT_MS;
    if (milliseconds >= 0) {
        uint64_t passed = (sfti_os_now_ns() - begin) / 1000000, all = (uint64_t)milliseconds;
        if (passed >= all) return false;
        if (all - passed < most) most = all - passed;
    }
    sfti_os_cond_wait_for(&r->filled, &r->mutex, (uint32_t)most);
    sfti_os_mutex_unlock(&r->mutex);
    bool over = sfti_wait_over(r->plan->options.wait);
    sfti_os_mutex_lock(&r->mutex);
    return !over || reader_look(r) != NEXT_WAIT;
}

sft_code sft_reader_next(sft_reader *reader, int32_t milliseconds, sft_filled *out,
                         sft_error *err) {
    if (out) *out = (sft_filled){ NULL, SFT_SLOT_NONE, NULL, 0 };
    if (!reader || !out)
        return sfti_misuse(err, "expected a reader and a place for the slot, found NULL");
    if (reader_forked(reader)) return reader_fail_forked(err);
    uint64_t begin = milliseconds > 0 ? sfti_os_now_ns() : 0;
    sft_code code = SFT_OK;
    sfti_os_mutex_lock(&reader->mutex);
    next_answer answer = reader_look(reader);
    while (answer == NEXT_WAIT && reader_wait(reader, milliseconds, begin))
        answer = reader_look(reader);
    if (answer == NEXT_SLOT) {
        size_t slot = slots_get(reader, &reader->full, SLOT_HELD);
        const read_slot *s = &reader->slots[slot];
        *out = (sft_filled){ s->memory, slot, s->copies, s->copy_count };
    }
    if (answer == NEXT_END) out->slot = SFT_SLOT_END;
    if (answer == NEXT_ERROR) {
        code = reader->code;
        if (err) *err = reader->error;
    }
    sfti_os_mutex_unlock(&reader->mutex);
    return code;
}
