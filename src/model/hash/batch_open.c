/* Opening the models of a batch, as many as there are descriptors for, and handing out units. */
#include "base/error.h"
#include "base/files.h"
#include "hash/batch.h"

#include <errno.h>

void sfti_batch_close(batch *b, sfti_hash_model *model) {
    sfti_hash_model_finish(model, &b->how);
    sfti_hash_model_close(model);
    batch_lock(b, &b->state);
    model->done = true;
    if (!model->is_borrowed) b->opened--;
    batch_unlock(b, &b->state);
}

void sfti_batch_publish(batch *b, sfti_hash_model *model) {
    batch_lock(b, &b->state);
    for (size_t i = 0; i < model->unit_count; i++) b->total += batch_unit_cost(&model->units[i]);
    b->unclaimed += model->unit_count;
    batch_unlock(b, &b->state);
    model->next = b->waiting;
    b->waiting = model;
}

static size_t batch_opened(batch *b) {
    batch_lock(b, &b->state);
    size_t opened = b->opened;
    batch_unlock(b, &b->state);
    return opened;
}

bool sfti_batch_may_open(batch *b) {
    batch_lock(b, &b->state);
    bool may = b->opened < b->most_opened;
    batch_unlock(b, &b->state);
    return may;
}

/* False if descriptors have run out, and models that are open will give some back: *out is NULL
 * then, and also if memory has run out. */
static bool batch_open_model(batch *b, const sft_hash_request *request, sfti_hash_model **out) {
    for (size_t before = batch_opened(b);; before = 0) {
        sfti_hash_model *model = *out = sfti_take(&b->work, sizeof *model);
        if (!model) return true;
        sfti_hash_model_open(model, *request, &b->how);
        bool ran_out = model->error.os_errno == EMFILE || model->error.os_errno == ENFILE;
        if (!ran_out || before == 0) return true;
        sfti_hash_model_free(model);
        *out = NULL;
        batch_lock(b, &b->state);
        bool wait = b->opened > 0;
        b->most_opened = wait ? b->opened : 1;
        batch_unlock(b, &b->state);
        if (wait) return false;
    }
}

/* False if that has to wait until a model is closed. */
static bool batch_open_next(batch *b) {
    sfti_hash_model *model;
    size_t index = b->next_request;
    if (!sfti_batch_may_open(b) || !batch_open_model(b, &b->requests[index], &model)) return false;
    b->next_request++;
    if (model && model->error.code) model->unit_count = 0;
    batch_lock(b, &b->state);
    if (model) b->opened++;
    bool was_counted = model && !model->is_many
                       && !sfti_files_claim(b->open.files, b->requests[index].path, NULL);
    if (was_counted && model->bytes <= b->total) b->total -= model->bytes;
    b->models[index] = model;
    if (!model) b->code = sfti_fail_memory(b->err, sizeof *model);
    batch_unlock(b, &b->state);
    if (model && model->unit_count > 0) sfti_batch_publish(b, model);
    else if (model) sfti_batch_close(b, model);
    return true;
}

bool sfti_batch_is_over(batch *b) {
    batch_lock(b, &b->state);
    bool over = b->stop || b->code != SFT_OK;
    batch_unlock(b, &b->state);
    return over;
}

bool sfti_batch_has_more(batch *b) {
    return b->next_request < b->count && !sfti_batch_is_over(b);
}

bool sfti_batch_wants_more(batch *b, size_t busy) {
    batch_lock(b, &b->state);
    size_t all = b->unclaimed + b->active + (b->count - b->next_request);
    batch_unlock(b, &b->state);
    return busy < (all + b->worker_count - 1) / b->worker_count;
}

sfti_hash_unit *sfti_batch_take_unit(batch *b, sfti_hash_model **model) {
    for (size_t i = 0; i < BATCH_OPENED && !b->waiting && sfti_batch_has_more(b); i++)
        if (!batch_open_next(b)) break;
    *model = b->waiting;
    if (!*model) return NULL;
    sfti_hash_unit *unit = &(*model)->units[(*model)->claimed++];
    if ((*model)->claimed == (*model)->unit_count) b->waiting = (*model)->next;
    batch_lock(b, &b->state);
    b->unclaimed--;
    b->active++;
    batch_unlock(b, &b->state);
    return unit;
}
