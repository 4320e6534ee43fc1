/* Names out of a listing, kept until it has ended. */
#include "base/error.h"
#include "dataset/dataset.h"

#include <string.h>

bool sfti_ds_listing_put(sfti_ds_listing *l, const char *folder, const char *name,
                         int64_t mtime_s) {
    size_t above = *folder ? strlen(folder) + 1 : 0, len = strlen(name) + 1;
    sfti_ds_listed *one = sfti_arena_take(&l->arena, sizeof *one + above + len);
    if (!one) {
        l->full = true; /* from now on, even if the storage goes on */
        return false;
    }
    one->next = NULL;
    one->mtime_s = mtime_s;
    if (above) {
        memcpy(one->name, folder, above - 1);
        one->name[above - 1] = '/';
    }
    memcpy(one->name + above, name, len);
    if (l->last) l->last->next = one;
    else l->first = one;
    l->last = one;
    return true;
}

sft_code sfti_ds_listing_fill(sfti_ds_listing *l, const sft_storage *storage, const char *folder,
                              sft_stored_fn each, void *ctx, sft_error *err) {
    sft_code code = sfti_call(storage, list, folder, each, ctx, err);
    return code || !l->full ? code : sfti_fail_memory(err, sizeof(sfti_ds_listed));
}
