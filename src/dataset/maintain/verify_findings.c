/* What a verification finds. Tests: test_dataset_maintain.c. */
#include "base/error.h"
#include "dataset/maintain/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERIFY_MOST 1000 /* findings that are listed; more are counted */

void sfti_verify_put(verification *v, verify_list *to, const char *shard,
                     const sft_error *what) {
    const char *message = what->message;
    size_t len = strlen(shard);
    if (to->count++ >= VERIFY_MOST || v->code) return;
    /* The shard is a member of its own. */
    if (strncmp(message, shard, len) == 0 && strncmp(message + len, ": ", 2) == 0)
        message += len + 2;
    verify_finding *one = sfti_arena_take(&v->arena, sizeof *one);
    if (one) *one = (verify_finding){ NULL, what->code, sfti_arena_copy(&v->arena, shard, len),
                                      sfti_arena_copy(&v->arena, message, strlen(message)) };
    if (!one || !one->shard || !one->message) {
        v->code = sfti_fail_memory(v->err, sizeof *one);
        return;
    }
    if (to->last) to->last->next = one;
    else to->first = one;
    to->last = one;
}

void sfti_verify_find(verification *v, const char *shard, const sft_error *what) {
    if (what->code == SFT_OUT_OF_MEMORY || what->code == SFT_CANCELLED) {
        v->code = what->code;
        if (v->err) *v->err = *what;
        return;
    }
    sfti_verify_put(v, &v->findings, shard, what);
}

void sfti_verify_tell(verification *v, const char *shard, const char *format, ...) {
    sft_error e = SFT_ERROR_INIT;
    char text[sizeof e.message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)sfti_fail(&e, SFT_DATASET_SHARD, "%s", text);
    sfti_verify_put(v, &v->findings, shard, &e);
}

bool sfti_verify_names(verification *v, const char *name) {
    bool has = true;
    sft_code code = sfti_ds_names_has(&v->names, name, &has, v->code ? NULL : v->err);
    if (!v->code) v->code = code;
    return has || code;
}
