/* Rows "layout", "suffix" and "leaf". Tests: test_info_targets.c, test_info_adapters.c. */
#include "label/layouts.h"

#include "label/records.h"
#include "os/os.h"

#include <stdatomic.h>
#include <string.h>

static sfti_name_layout layout_table[64];
static sfti_suffix suffix_rows[255];
static sft_span leaves[128];
static size_t layout_count, suffix_count, leaf_count;
static atomic_bool all_read; /* the lock of sfti_os_once is the process's */

const char *const sfti_format_names[SFTI_FORMATS] = {
    "cloneofsimo", "xlabs", "onetrainer", "kohya", "lycoris", "mlx", "bfl", "diffusers", "peft",
};

/* By sfti_adapter_type; the first of FULL is SFTI_SLOT_DIFF, all others begin at 1. */
static const char *const slot_words[SFTI_ADAPTER_TYPES] = {
    "up down mid bias", "1a 1b 2a 2b t1 t2", "1 1a 1b 2 2a 2b t2", "a1 a2 b1 b2", "factor input",
    "blocks packed rescale", "", "diff bias", "",
};

/* The other tensor of a pair has a row, too: "down,up", unless the row tells. */
static void read_suffix(const sfti_record_row *from) {
    enum { PAIR, RANK, AXIS_IN, METHOD, SLOT, WORDS };
    static const char *const words[WORDS] = { "pair", "rank", "in", "method", "slot" };
    sft_span rest = sfti_row_text(from), type, role, word, told[WORDS];
    if (!sfti_next_said(&rest, &type) || !sfti_next_said(&rest, &role)) return;
    for (size_t i = 0; i < WORDS; i++) told[i] = (sft_span){ "", 0 };
    sft_span items = rest;
    for (sfti_record_item item; sfti_next_item(&items, &item);)
        for (size_t i = 0; item.name.len > 0 && i < WORDS; i++)
            if (sfti_is(item.name, words[i])) told[i] = item.value;
    bool pair = told[PAIR].len > 0;
    const sft_span other = told[pair ? PAIR : METHOD];
    sft_span slots = pair && told[SLOT].len == 0 ? sft_span_cstr("down,up") : told[SLOT];
    sfti_suffix row = { .type = sfti_number_among(SFTI_ADAPTER_TYPE_NAMES, type),
                        .role = (sfti_role)sfti_number_among("part first alpha dora shared", role),
                        .rank = (uint8_t)(told[RANK].len ? *told[RANK].data - '0' : 0),
                        .in = (uint8_t)(told[AXIS_IN].len ? *told[AXIS_IN].data - '0' : 0) };
    if (other.len < SFTI_ADAPTER_NAME) memcpy(row.other, other.data, other.len);
    while (suffix_count < SFTI_COUNT(suffix_rows)) {
        if (!sfti_next_said(&rest, &row.end)) {
            if (!pair) break;
            row = (sfti_suffix){ .end = other, .type = row.type };
            pair = false;
        }
        int at = row.type >= 0 && row.role != SFTI_ROLE_ALPHA && row.role != SFTI_ROLE_DORA
              && sfti_next_piece(&slots, ',', &word)
               ? sfti_number_among(slot_words[row.type], word) : -1;
        row.slot = row.role == SFTI_ROLE_ALPHA  ? SFTI_SLOT_ALPHA
                 : row.role == SFTI_ROLE_DORA   ? SFTI_SLOT_MAGNITUDE
                 : at < 0                       ? SFTI_SLOT_NONE
                 : row.type == SFTI_TYPE_FULL   ? (sfti_adapter_slot)(at + (int)SFTI_SLOT_DIFF)
                                                : (sfti_adapter_slot)(at + 1);
        suffix_rows[suffix_count++] = row;
    }
}

static void read_layout_rows(void) {
    const sfti_records *records = sfti_records_built_in();
    SFTI_EACH_ROW(row, records, SFTI_LAYOUT, 0) {
        sft_span rest = sfti_row_text(row), part, format, prefix;
        if (!sfti_next_said(&rest, &part) || !sfti_next_said(&rest, &format)) continue;
        int of = sfti_number_among("main te te1 te2 te3 own", part), as = 0;
        bool own = of == SFTI_ADAPTER_PARTS;
        while (as < SFTI_FORMATS - 1 && !sfti_is(format, sfti_format_names[as])) as++;
        while (layout_count < SFTI_COUNT(layout_table) && sfti_next_said(&rest, &prefix)) {
            sfti_name_layout *to = &layout_table[layout_count++];
            *to = (sfti_name_layout){ .prefix = to->text, .format = (sfti_adapter_format)as,
                                      .own = own, .part = own ? SFTI_PART_MAIN : (sfti_part)of };
            if (prefix.len < SFTI_ADAPTER_NAME) memcpy(to->text, prefix.data, prefix.len);
        }
    }
    SFTI_EACH_ROW(row, records, SFTI_SUFFIX, 0) read_suffix(row);
    SFTI_EACH_ROW(row, records, SFTI_LEAF, 0)
        for (sft_span rest = sfti_row_text(row);
             leaf_count < SFTI_COUNT(leaves) && sfti_next_said(&rest, &leaves[leaf_count]);)
            leaf_count++;
    atomic_store_explicit(&all_read, true, memory_order_release);
}

static void rows_ready(void) {
    static bool ready;
    if (atomic_load_explicit(&all_read, memory_order_acquire)) return;
    (void)sfti_records_built_in();
    sfti_os_once(&ready, read_layout_rows);
}

const sfti_name_layout *sfti_layout_rows(size_t *count) {
    rows_ready();
    *count = layout_count;
    return layout_table;
}

const sfti_name_layout *sfti_layout_of(sft_span name) {
    rows_ready();
    for (size_t i = 0; i < layout_count; i++)
        if (sfti_begins(name, layout_table[i].prefix)) return &layout_table[i];
    return NULL;
}

const char *sfti_layout_cut(sft_span name) {
    rows_ready();
    for (size_t i = 0; i < layout_count; i++)
        if (!layout_table[i].own && sfti_begins(name, layout_table[i].prefix))
            return layout_table[i].part == SFTI_PART_MAIN ? layout_table[i].prefix : "";
    return "";
}

const sfti_suffix *sfti_suffix_rows(size_t *count) {
    rows_ready();
    *count = suffix_count;
    return suffix_rows;
}

sft_span sfti_flat_leaf(sft_span name) {
    rows_ready();
    for (size_t i = 0; i < leaf_count; i++) {
        sft_span leaf = leaves[i], colon = sfti_find_byte(leaf, ':');
        size_t len = leaf.len, k = 0;
        if (name.len <= len || name.data[name.len - len - 1] != '_') continue;
        const char *end = name.data + (name.len - len);
        while (k < len && (end[k] == leaf.data[k]
                           || (end[k] == '_' && (leaf.data[k] == '.' || leaf.data[k] == ':'))))
            k++;
        if (k == len) return colon.data ? sfti_from(colon, 1) : leaf;
    }
    return (sft_span){ NULL, 0 };
}
