/* Layers by their names, in which a dot is as good as '_'. Tests: test_info_fits.c. */
#include "label/tensors/adapters.h"

#include "os/os.h"

#define LAYER_NAME 512 /* what is longer is not found */

static sft_span layer_name_at(const void *ctx, uint32_t entry) {
    return ((const sfti_layers *)ctx)->at[entry].name;
}

bool sfti_layers_open(sfti_layers *table, sfti_arena *arena, size_t most) {
    uint64_t seed[2];
    if (sfti_os_random(seed, sizeof seed)) seed[0] = seed[1] = 1;
    *table = (sfti_layers){ .arena = arena };
    table->at = sfti_arena_array(arena, (uint64_t)most + 1, sizeof *table->at);
    return table->at
        && sfti_names_begin(&table->names, most + 1, seed, layer_name_at, table, arena);
}

/* The folded name in a buffer; empty if it is too long. */
static sft_span fold(sft_span before, sft_span name, char buffer[LAYER_NAME]) {
    size_t len = before.len + name.len;
    for (size_t i = 0; len <= LAYER_NAME && i < len; i++) {
        char c = i < before.len ? before.data[i] : name.data[i - before.len];
        buffer[i] = c == '.' ? '_' : c;
    }
    return (sft_span){ buffer, len <= LAYER_NAME ? len : 0 };
}

bool sfti_layers_put(sfti_layers *table, const sfti_layer *layer) {
    char buffer[LAYER_NAME];
    sft_span name = fold((sft_span){ "", 0 }, layer->name, buffer);
    const char *copy = sfti_arena_copy(table->arena, name.data, name.len);
    if (!copy) return false;
    name.data = copy;
    table->at[table->count] = *layer;
    table->at[table->count].name = name;
    table->at[table->count].written = layer->name;
    uint32_t entry = (uint32_t)table->count;
    table->count += name.len > 0 && sfti_names_add(&table->names, name, entry) == entry;
    return true;
}

sfti_layer *sfti_layers_find(const sfti_layers *table, sft_span before, sft_span name) {
    char buffer[LAYER_NAME];
    uint32_t entry = sfti_names_find(&table->names, fold(before, name, buffer));
    return entry == SFTI_NO_NAME ? NULL : &table->at[entry];
}
