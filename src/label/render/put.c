/* Members of a record from a table, as JSON or into a tree. */
#include "label/render/render.h"

#include <stddef.h>

/* ── Members ── */

static void put_span(sfti_json_writer *w, const char *key, sfti_put_as as, sft_span text) {
    sfti_json_key(w, key);
    if (text.len == 0 && as != AS_SPAN) sfti_json_null(w);
    else if (as == AS_NUMBER && sfti_is_number(text)) sfti_json_raw(w, text);
    else sfti_json_span(w, text);
}

void sfti_put_members(sfti_json_writer *w, const sfti_member *members, size_t count,
                      const void *record) {
    for (const sfti_member *m = members; m < members + count; m++) {
        const void *at = (const char *)record + m->at;
        uint64_t count;
        int whole;
        switch (m->as) {
        case AS_TEXT: case AS_SPAN: case AS_NUMBER:
            put_span(w, m->key, m->as, *(const sft_span *)at);
            break;
        case AS_CSTR: sfti_json_put_cstr(w, m->key, *(const char *const *)at); break;
        case AS_UINT: case AS_SOME: case AS_SOME32: case AS_COUNT:
            count = m->as == AS_SOME32 ? *(const uint32_t *)at : *(const uint64_t *)at;
            if (m->as == AS_COUNT) sfti_json_put_known(w, m->key, count);
            else if (count == 0 && m->as != AS_UINT) sfti_json_put_null(w, m->key);
            else sfti_json_put_uint(w, m->key, count);
            break;
        case AS_INDEX: case AS_TRUST: case AS_ANSWER:
            whole = *(const int *)at;
            if (m->as == AS_TRUST && whole < 0) whole = 0;
            if (whole < 0) sfti_json_put_null(w, m->key);
            else if (m->as == AS_ANSWER) sfti_json_put_bool(w, m->key, whole != 0);
            else sfti_json_put_uint(w, m->key, (uint64_t)whole);
            break;
        case AS_BOOL: sfti_json_put_bool(w, m->key, *(const bool *)at); break;
        case AS_DOUBLE: sfti_put_double(w, m->key, *(const double *)at, true); break;
        case AS_POSITIVE: sfti_put_double(w, m->key, *(const double *)at, false); break;
        }
    }
}

bool sfti_put_open(sfti_json_writer *w, const char *key, char bracket, bool known) {
    sfti_json_key(w, key);
    if (known) sfti_json_open(w, bracket);
    else sfti_json_null(w);
    return known;
}

void sfti_put_record(sfti_json_writer *w, const char *key, const sfti_member *members,
                     size_t count, const void *record) {
    sfti_json_put_open(w, key, '{');
    sfti_put_members(w, members, count, record);
    sfti_json_close(w, '}');
}

/* The first member of a record in a list is the link to the next. */
void sfti_put_list(sfti_json_writer *w, const char *key, const sfti_list *list,
                   const sfti_member *members, size_t count) {
    sfti_json_put_open(w, key, '[');
    for (const void *one = list->first; one; one = *(const void *const *)one) {
        sfti_json_open(w, '{');
        sfti_put_members(w, members, count, one);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

/* ── Values ── */

void sfti_put_text(sfti_json_writer *w, const char *key, sft_span text) {
    put_span(w, key, AS_TEXT, text);
}

void sfti_put_double(sfti_json_writer *w, const char *key, double value, bool negative) {
    char digits[SFTI_DECIMALS_SIZE];
    size_t len = negative || value >= 0 ? sfti_decimals(value, digits) : 0;
    sfti_json_key(w, key);
    if (len > 0) sfti_json_raw(w, (sft_span){ digits, len });
    else sfti_json_null(w);
}

void sfti_put_value(sfti_json_writer *w, const sfti_fact_value *value) {
    switch (value->type) {
    case SFTI_TEXT: sfti_json_span(w, value->text); break;
    case SFTI_BOOL: sfti_json_raw(w, value->text); break;
    case SFTI_NUMBER:
        if (sfti_is_number(value->text)) sfti_json_raw(w, value->text);
        else sfti_json_span(w, value->text);
        break;
    case SFTI_LIST:
        sfti_json_open(w, '[');
        for (size_t i = 0; i < value->count; i++) sfti_json_span(w, value->items[i]);
        sfti_json_close(w, ']');
    }
}

void sfti_put_candidate(sfti_json_writer *w, const sfti_fact *fact) {
    sfti_json_key(w, "value");
    sfti_put_value(w, &fact->value);
    sfti_json_key(w, "source");
    sfti_json_span(w, sfti_fact_source(fact));
    sfti_json_put_uint(w, "trust", (uint64_t)(fact->trust > 0 ? fact->trust : 0));
}

void sfti_put_candidates(sfti_json_writer *w, const char *key, const sfti_fact *facts) {
    sfti_json_put_open(w, key, '[');
    for (; facts; facts = facts->next) {
        sfti_json_open(w, '{');
        sfti_put_candidate(w, facts);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_put_texts(sfti_json_writer *w, const char *key, const sfti_list *notes) {
    sfti_json_put_open(w, key, '[');
    for (const sfti_note *note = notes->first; note; note = note->next)
        sfti_json_span(w, note->text);
    sfti_json_close(w, ']');
}
