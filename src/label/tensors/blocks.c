/* Which architectures have blocks and layers of a name: what a declaration is held to where the
 * tensors themselves tell no more than the commonest of several models. A record "blocks" is seen
 * where a module begins with one of its tops, at the top of the main part, or where its clauses
 * (targets.c) hold for the forms of an adapter. It lists every architecture that may have them;
 * parents and children of what is listed are meant too. */
#include "label/tensors/adapters.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS_MOST 64

/* The records of blocks, in order; the number of those behind it. */
static const sfti_record *next_blocks(const sfti_records *records, size_t *at) {
    for (; *at < sfti_record_count(records); ++*at)
        if (sfti_record_at(records, *at)->type == SFTI_BLOCKS)
            return sfti_record_at(records, (*at)++);
    return NULL;
}

static const sfti_record_row *row_in(const sfti_records *records, const sfti_record *blocks,
                                     sfti_word word) {
    return sfti_record_row_of(records, blocks, word, NULL);
}

static bool blocks_have(const sfti_records *records, const sfti_record *blocks,
                        sft_span architecture) {
    const sfti_record_row *row = NULL;
    while ((row = sfti_record_row_of(records, blocks, SFTI_MODELS, row))) {
        sft_span rest = sfti_row_text(row), id;
        while (sfti_next_said(&rest, &id))
            if (sfti_related_architectures(records, id, architecture)) return true;
    }
    return false;
}

void sfti_blocks_of_forms(const sfti_forms *forms) {
    const sfti_records *records = forms->info->records;
    const sfti_record *blocks;
    size_t at = 0;
    for (size_t i = 0; i < BLOCKS_MOST && (blocks = next_blocks(records, &at)); i++) {
        const sfti_record_row *tops = row_in(records, blocks, SFTI_TOPS);
        const sfti_record_row *holds = row_in(records, blocks, SFTI_HOLDS);
        sft_span rest = tops ? sfti_row_text(tops) : (sft_span){ "", 0 }, top;
        bool seen = holds && sfti_forms_hold(forms, sfti_row_text(holds));
        while (!seen && sfti_next_said(&rest, &top)) {
            char clause[64];
            int len = snprintf(clause, sizeof clause, "^%.*s_", (int)top.len, top.data);
            seen = len > 0 && (size_t)len < sizeof clause
                && sfti_forms_hold(forms, sft_span_cstr(clause));
        }
        if (seen) forms->info->blocks |= UINT64_C(1) << i;
    }
}

void sfti_blocks_of_model(const sfti_view *view) {
    const sfti_records *records = view->info->records;
    const sfti_record *blocks;
    size_t at = 0;
    for (size_t i = 0; i < BLOCKS_MOST && (blocks = next_blocks(records, &at)); i++) {
        const sfti_record_row *tops = row_in(records, blocks, SFTI_TOPS);
        sft_span rest = tops ? sfti_row_text(tops) : (sft_span){ "", 0 }, top;
        while (sfti_next_said(&rest, &top)) {
            sfti_view seen = sfti_view_behind(view, sft_span_cstr(view->prefix), top);
            if (sfti_view_any(&seen, ".")) view->info->blocks |= UINT64_C(1) << i;
        }
    }
}

/* Blocks that were seen lack it, and others have it. */
bool sfti_tensors_exclude(const sft_info *info, sft_span architecture) {
    const sfti_records *records = info->records;
    const sfti_record *blocks;
    bool lacks = false, known = false;
    size_t at = 0;
    if (info->blocks == 0) return false;
    for (size_t i = 0; i < BLOCKS_MOST && (blocks = next_blocks(records, &at)); i++) {
        bool has = blocks_have(records, blocks, architecture);
        lacks = lacks || (!has && info->blocks >> i & 1);
        known = known || has;
    }
    return lacks && known;
}
