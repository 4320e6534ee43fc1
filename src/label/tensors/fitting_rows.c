/* Rows "modules" of the records: which of an adapter's modules each model has.
 *
 * A line of such a row is words between blanks; those that end in a dot stand before each of the
 * others:
 *   double_blocks.{0-18}. img_attn.qkv[9216,3072] img_mlp.{0,2}[12288,3072]
 * A module's sizes are out, in and, of a convolution, the size of its kernel. {0-18,20} are
 * numbers, {q,k} alternatives; "|" at the beginning of a line goes on with the one above. A word
 * stands for forms (forms.c), whose numbers are seen as sets: no name is written out. The rows are
 * read anew for each adapter, but only as far as they begin like one of its forms. */
#include "label/records/read.h"
#include "label/tensors/fitting.h"

#include "base/json_lex.h"
#include "base/number.h"

#include <string.h>

#define FIT_STATES 64 /* what the alternatives of one word, or the beginnings of a line, make */
#define FIT_SETS 2048
#define FIT_LISTS 512 /* of a form, by sizes */
#define FIT_BEGINNINGS 4096 /* bits */
#define FIT_KEPT 256        /* words, and as many states */

/* Part of a form's text: its hash, such that those of two parts make that of the whole, and the
 * numbers that each "#" may be. */
typedef struct fit_state {
    uint64_t hash, power;
    uint32_t count;
    uint64_t slots[SFTI_SIZED_SLOTS][2];
} fit_state;

/* A word that was read: lines and models have many in common. */
typedef struct fit_kept {
    sft_span word;
    const fit_state *states;
    size_t count;
} fit_kept;

typedef struct fit_reader {
    const sfti_forms *forms;
    sfti_fitting *out;
    size_t model;               /* at hand */
    const sfti_record_row *row; /* the same */
    size_t begin_count, kept_count;
    uint64_t beginnings[FIT_BEGINNINGS / 64]; /* of forms, up to each "_" */
    uint64_t initials[4];                     /* first bytes of forms */
    uint64_t line_begins[SFTI_FIT_BEGINS], line_sizes[2]; /* as of lines */
    uint64_t sizes[SFTI_FIT_SIZES / 64];      /* of modules */
    bool any_size;                            /* some are not to be seen */
    bool no_size;                             /* nor asked */
    uint16_t table[FIT_SETS]; /* form + 1 by its hash */
    fit_kept kept[FIT_KEPT];  /* by their bytes */
    size_t line_count;
    bool line_read;
    sft_span line[FIT_STATES]; /* beginnings of the line that are not read yet */
    fit_state begins[FIT_STATES], words[2 * FIT_STATES]; /* words: old, then new */
    fit_state states[FIT_KEPT]; /* of words that are kept */
} fit_reader;

/* ── Modules of the adapter ── */

void sfti_fitting_put(sfti_forms *forms, sfti_form *form, const sfti_module *module,
                      const uint64_t *numbers, size_t slots) {
    sfti_sized *one = form->sized;
    size_t met = 0;
    bool beyond = slots > SFTI_SIZED_SLOTS;
    for (size_t i = 0; i < slots && !beyond; i++) beyond = numbers[i] >= SFTI_SIZED_MODULES;
    while (!beyond && one && (one->in != module->in || one->out != module->out
                   || one->folded != module->folded
                   || (slots > 1 && one->count == SFTI_SIZED_MODULES))) {
        beyond = ++met == FIT_LISTS;
        one = one->next;
    }
    if (beyond) {
        forms->beyond += module->in > 0 && module->out > 0;
        return;
    }
    if (!one) {
        one = sfti_info_take(forms->info, sizeof *one);
        if (!one) return;
        *one = (sfti_sized){ .next = form->sized, .in = module->in, .out = module->out,
                             .folded = module->folded };
        form->sized = one;
    }
    if (slots > 1) {
        void *all = sfti_arena_grow(&forms->info->arena, one->numbers, one->count, 1, &one->cap,
                                    sizeof *one->numbers);
        if (!all) {
            forms->info->code = SFT_OUT_OF_MEMORY;
            return;
        }
        one->numbers = all;
    }
    size_t at = slots == 1 ? (size_t)numbers[0] : slots == 0 ? 0 : one->count;
    for (size_t i = 0; slots > 1 && i < slots; i++) one->numbers[at][i] = (uint8_t)numbers[i];
    one->have[at / 64] |= UINT64_C(1) << at % 64;
    one->count++;
}

/* ── Texts to states ── */

static void add_char(fit_state *state, char c) {
    state->hash = sfti_fit_hash(state->hash, c);
    state->power *= SFTI_FIT_HASH;
}

static void add_slot(fit_state *state, const uint64_t numbers[2]) {
    add_char(state, '#');
    if (state->count < SFTI_SIZED_SLOTS) memcpy(state->slots[state->count], numbers, 16);
    state->count++;
}

static bool ends_part(char c) {
    return c == '.' || c == '_';
}

/* Text without braces; begins: a part of the name begins with it. after: what follows. */
static void add_text(fit_state *state, sft_span text, bool begins, char after) {
    uint64_t hash = state->hash, power = state->power;
    for (size_t i = 0; i < text.len; i++) {
        size_t end = i;
        unsigned value = 0;
        if (begins)
            for (; end < text.len && end < i + 3 && sfti_lex_digit(text.data[end]); end++)
                value = value * 10 + (unsigned)(text.data[end] - '0');
        if (end > i && value < 128 && ends_part(end < text.len ? text.data[end] : after)) {
            uint64_t numbers[2] = { 0, 0 };
            numbers[value / 64] = UINT64_C(1) << value % 64;
            state->hash = hash, state->power = power;
            add_slot(state, numbers);
            hash = state->hash, power = state->power;
            i = end - 1;
            begins = false;
            continue;
        }
        hash = sfti_fit_hash(hash, text.data[i]);
        power *= SFTI_FIT_HASH;
        begins = ends_part(text.data[i]);
    }
    state->hash = hash, state->power = power;
}

/* "0-18,20"; false for what is none. */
static bool number_set(sft_span text, uint64_t numbers[2]) {
    unsigned value = 0, from = 128;
    bool digit = false;
    numbers[0] = numbers[1] = 0;
    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? text.data[i] : ',';
        if (sfti_lex_digit(c)) {
            value = value * 10 + (unsigned)(c - '0');
            digit = true;
            if (value > 127) return false;
            continue;
        }
        if (!digit || (c != ',' && (c != '-' || from < 128))) return false;
        digit = false;
        if (c == '-') {
            from = value;
        } else {
            for (unsigned n = from < 128 ? from : value; n <= value; n++)
                numbers[n / 64] |= UINT64_C(1) << n % 64;
            from = 128;
        }
        value = 0;
    }
    return true;
}

/* Each state becomes one for each alternative; false if they are too many. */
static bool add_alternatives(fit_state *states, size_t *count, sft_span text, bool begins,
                             char after) {
    uint64_t numbers[2];
    const size_t had = *count;
    size_t to = had;
    bool digits = number_set(text, numbers);
    sft_span rest = text, piece;
    unsigned n = 0;
    while (digits ? n < 128 : sfti_next_piece(&rest, ',', &piece)) {
        char text_of[SFTI_UINT_SIZE];
        if (digits) {
            if (!(numbers[n / 64] >> n % 64 & 1)) {
                n++;
                continue;
            }
            piece = (sft_span){ text_of, sfti_uint_text(n, 1, text_of) };
            n++;
        }
        if (to > FIT_STATES) return false;
        for (size_t i = 0; i < had; i++) {
            states[to] = states[i];
            add_text(&states[to++], piece, begins, after);
        }
    }
    *count = to - had;
    memmove(states, states + had, *count * sizeof *states);
    return *count > 0;
}

/* A word up to its sizes. */
static bool read_name(fit_state *states, size_t *count, sft_span word) {
    bool begins = true;
    *count = 1;
    states[0] = (fit_state){ .power = 1 };
    while (word.len > 0) {
        const char *brace = *word.data == '{' ? memchr(word.data, '}', word.len) : NULL;
        if (*word.data == '{' && !brace) return false;
        if (!brace) {
            sft_span next = sfti_find_byte(word, '{');
            sft_span text = { word.data, word.len - next.len };
            for (size_t i = 0; i < *count; i++)
                add_text(&states[i], text, begins, next.len ? '{' : ']');
            begins = ends_part(text.data[text.len - 1]);
            word = sfti_from(word, text.len);
            continue;
        }
        sft_span inside = { word.data + 1, (size_t)(brace - word.data) - 1 };
        word = sfti_from(word, inside.len + 2);
        char after = word.len > 0 ? *word.data : ']';
        uint64_t numbers[2];
        if (begins && ends_part(after) && number_set(inside, numbers)) {
            for (size_t i = 0; i < *count; i++) add_slot(&states[i], numbers);
        } else if (!add_alternatives(states, count, inside, begins, after)) {
            return false;
        }
        begins = false;
    }
    return true;
}

/* The states of a word, until the next is read; NULL for what is none. */
static const fit_state *states_of(fit_reader *r, sft_span word, size_t *count) {
    uint64_t hash = word.len;
    for (size_t i = word.len; i > 0; i -= i < 3 ? i : 3)
        hash = sfti_fit_hash(hash, word.data[i - 1]);
    fit_kept *kept = &r->kept[sfti_fit_place(hash) % FIT_KEPT];
    *count = kept->count;
    if (sft_span_equal(kept->word, word)) return kept->states;
    if (!read_name(r->words, count, word)) return NULL;
    if (*count > FIT_KEPT - r->kept_count) return r->words;
    fit_state *states = &r->states[r->kept_count];
    memcpy(states, r->words, *count * sizeof *states);
    r->kept_count += *count;
    *kept = (fit_kept){ word, states, *count };
    return states;
}

/* ── Forms by their texts ── */

static void index_forms(fit_reader *r) {
    for (size_t i = 0; i < r->forms->count; i++) {
        const sfti_form *form = &r->forms->forms[i];
        fit_state state = { .power = 1 };
        bool whole = true; /* no "_" was seen */
        if (form->part != SFTI_PART_MAIN || !form->sized || form->text.len == 0) continue;
        const uint8_t initial = (uint8_t)form->text.data[0];
        r->initials[initial / 64] |= UINT64_C(1) << initial % 64;
        for (size_t k = 0; k < form->text.len; k++) {
            add_char(&state, form->text.data[k]);
            if (form->text.data[k] != '_') continue;
            whole = false;
            sfti_fit_begins_put(r->line_begins, state.hash);
            uint32_t place = sfti_fit_place(state.hash) % FIT_BEGINNINGS;
            r->beginnings[place / 64] |= UINT64_C(1) << place % 64;
        }
        if (whole) sfti_fit_begins_put(r->line_begins, state.hash);
        uint32_t at = sfti_fit_place(state.hash) % FIT_SETS;
        while (r->table[at]) at = (at + 1) % FIT_SETS;
        r->table[at] = (uint16_t)(i + 1);
        for (const sfti_sized *one = form->sized; one; one = one->next) {
            uint32_t place = sfti_fit_sizes_place(one->out, one->in);
            r->any_size = r->any_size || one->out == 0 || one->in == 0;
            r->sizes[place / 64] |= UINT64_C(1) << place % 64;
            r->line_sizes[place / 64 % 2] |= UINT64_C(1) << place % 64;
        }
        r->forms->forms[i].sized->hash = state.hash;
    }
}

static bool form_begins(const fit_reader *r, uint64_t hash) {
    uint32_t place = sfti_fit_place(hash) % FIT_BEGINNINGS;
    return r->beginnings[place / 64] >> place % 64 & 1;
}

/* ── What a model has ── */

/* What the model at hand has of a form's modules. */
static sfti_cover *cover_of(fit_reader *r, sfti_sized *sized) {
    if (sized->covers && sized->covers->model == r->model) return sized->covers;
    sfti_cover *one = sfti_info_take(r->forms->info, sizeof *one);
    if (!one) return NULL;
    *one = (sfti_cover){ .next = sized->covers, .model = r->model };
    sized->covers = one;
    return one;
}

/* Modules of a form that the model at hand has under these numbers and sizes. */
static void fit_form(fit_reader *r, const fit_state *begin, const fit_state *word,
                     const sfti_fit_sizes *sizes) {
    const uint64_t hash = begin->hash * word->power + word->hash;
    const sfti_form *form = NULL;
    const size_t count = (size_t)begin->count + word->count;
    const uint64_t *slots[SFTI_SIZED_SLOTS];
    uint64_t fitting = 0, all = 1;
    for (uint32_t at = sfti_fit_place(hash) % FIT_SETS; r->table[at]; at = (at + 1) % FIT_SETS) {
        form = &r->forms->forms[r->table[at] - 1];
        if (form->sized->hash == hash) break;
        form = NULL;
    }
    /* two texts may have one hash */
    if (!form || form->numbers.count != count || count > SFTI_SIZED_SLOTS) return;
    for (size_t i = 0; i < count; i++)
        slots[i] = i < begin->count ? begin->slots[i] : word->slots[i - begin->count];
    for (sfti_sized *sized = form->sized; sized; sized = sized->next) {
        bool in = sized->in == 0 || sized->in == sizes->in
               || (sized->folded && sized->in == sizes->in * sizes->kernel);
        if (!r->no_size && !(in && (sized->out == 0 || sized->out == sizes->out))) continue;
        uint64_t bits[2] = { sized->have[0], sized->have[1] };
        for (size_t i = 0; i < 2 && count == 1; i++) bits[i] &= slots[0][i];
        for (size_t i = 0; i < sized->count && count > 1; i++) {
            const uint8_t *n = sized->numbers[i];
            size_t k = 0;
            while (k < count && slots[k][n[k] / 64] >> n[k] % 64 & 1) k++;
            if (k < count) bits[i / 64] &= ~(UINT64_C(1) << i % 64);
        }
        sfti_cover *cover = bits[0] || bits[1] ? cover_of(r, sized) : NULL;
        for (size_t i = 0; cover && i < 2; i++) {
            bool more = (bits[i] & ~cover->bits[i]) != 0;
            if (more && r->row->text > 0) r->out->models[r->model].said = r->row;
            cover->bits[i] |= bits[i];
        }
        fitting += sfti_count_bits(bits);
    }
    if (fitting == 0) return;
    for (size_t i = 0; i < count; i++) all *= sfti_count_bits(slots[i]);
    if (fitting != all) return;
    r->out->models[r->model].covered += all;
    r->out->models[r->model].stacks |= sfti_fit_bit(begin->hash);
}

/* ── Rows ── */

/* Whether a form begins as the first part of a word. */
static bool may_begin(const fit_reader *r, sft_span word) {
    uint64_t hash = 0;
    if (*word.data == '{' || sfti_lex_digit(*word.data)) return true;
    if (!(r->initials[(uint8_t)*word.data / 64] >> (uint8_t)*word.data % 64 & 1)) return false;
    for (size_t i = 0; i < word.len && word.data[i] != '{' && word.data[i] != '['; i++) {
        hash = sfti_fit_hash(hash, word.data[i]);
        if (ends_part(word.data[i])) return form_begins(r, hash);
    }
    return true;
}

/* A word with sizes that a module of the adapter may have, behind each beginning of its line. */
static void read_word(fit_reader *r, sft_span word) {
    sfti_fit_sizes sizes;
    size_t len = sfti_fit_read_sizes(word, &sizes), count;
    if (len == 0) return;
    uint32_t place = sfti_fit_sizes_place(sizes.out, sizes.in);
    uint32_t folded = sfti_fit_sizes_place(sizes.out, sizes.in * sizes.kernel);
    if (!r->any_size && !(r->sizes[place / 64] >> place % 64 & 1)
        && !(r->sizes[folded / 64] >> folded % 64 & 1))
        return;
    if (r->line_count > 0) { /* the states of the beginnings that forms have */
        r->begin_count = 0;
        for (size_t b = 0; b < r->line_count; b++) {
            const fit_state *states = states_of(r, r->line[b], &count);
            for (size_t i = 0; states && i < count && r->begin_count < FIT_STATES; i++)
                if (form_begins(r, states[i].hash)) r->begins[r->begin_count++] = states[i];
        }
        r->line_count = 0;
        r->line_read = r->begin_count > 0;
    }
    word.len = len;
    const fit_state *states = r->begin_count > 0 ? states_of(r, word, &count) : NULL;
    for (size_t i = 0; states && i < r->begin_count; i++)
        for (size_t k = 0; k < count; k++) fit_form(r, &r->begins[i], &states[k], &sizes);
}

/* The words of a line; begins: it has beginnings, maybe in the line that it goes on with. */
static void read_line(fit_reader *r, const char *at, const char *stop, bool *begins) {
    while (at < stop) {
        const char *end = *at == ' ' ? at : memchr(at, ' ', (size_t)(stop - at));
        if (!end) end = stop;
        sft_span word = { at, (size_t)(end - at) };
        at = end + 1;
        if (word.len < 2) continue; /* also "|" */
        char last = word.data[word.len - 1];
        if (last == '.') {
            *begins = true;
            if (may_begin(r, word) && r->line_count < FIT_STATES) r->line[r->line_count++] = word;
        } else if (*begins && r->line_count == 0 && !r->line_read) {
            return;
        } else if (last == ']' && (*begins || may_begin(r, word))) {
            read_word(r, word);
        }
    }
}

/* A line of a row, and those that go on with it. */
static void read_lines_of(fit_reader *r, const sfti_fit_line *line) {
    bool begins = false;
    r->model = line->model;
    r->row = &r->forms->info->records->rows[line->row];
    const char *at = sfti_row_text(r->row).data + line->at, *end = at + line->len;
    r->begins[0].hash = r->begins[0].count = 0;
    r->begins[0].power = r->begin_count = 1;
    r->line_count = 0;
    r->line_read = false;
    while (at < end) {
        const char *stop = sfti_row_line_end(at, (size_t)(end - at));
        if (!stop) stop = end;
        while (at < stop && (uint8_t)*at <= ' ') at++;
        read_line(r, at, stop > at && stop[-1] == '\r' ? stop - 1 : stop, &begins);
        at = stop + 1;
    }
}

/* Models whose modules one of that architecture may have: itself, what it descends from, what
 * descends from it, siblings, and what these say that they have, too. */
static void keep_kin(const sfti_records *records, sft_span architecture, sfti_fitting *out) {
    for (size_t i = 0; i < out->count; i++) {
        sft_span id = sft_span_cstr(out->models[i].record->id);
        if (!sfti_architecture_within(records, id, architecture)
            && !sfti_architecture_within(records, architecture, id)
            && !sfti_are_siblings(records, id, architecture))
            continue;
        for (size_t n = 0, m = i; n < 3 && m < out->count; n++, m = out->models[m].of)
            out->fits[m / 64] |= UINT64_C(1) << m % 64;
    }
}

void sfti_fitting_read(const sfti_forms *forms, bool any_size, const char *kin,
                       sfti_fitting *out) {
    sft_info *info = forms->info;
    const sfti_records *records = info->records;
    fit_reader *r = sfti_info_take(info, sizeof *r);
    const sfti_fit_lines *lines = &sfti_made_fit_lines;
    if (lines->count == 0 || records != sfti_records_built_in())
        lines = sfti_fit_lines_cut(&info->arena, records, false);
    if (!lines) info->code = SFT_OUT_OF_MEMORY;
    if (!r || !lines) return;
    memset(r, 0, offsetof(fit_reader, line));
    r->forms = forms;
    r->out = out;
    r->any_size = r->no_size = any_size;
    out->count = lines->model_count;
    out->heirs = lines->heirs;
    out->heir_count = lines->heir_count;
    for (size_t i = 0; i < out->count; i++)
        out->models[i] = (sfti_fit_model){ .record = &records->records[lines->models[i].record],
                                           .of = lines->models[i].of };
    index_forms(r);
    if (kin) keep_kin(records, sft_span_cstr(kin), out);
    for (size_t i = 0; i < lines->count; i++) {
        const sfti_fit_line *line = &lines->lines[i];
        if (kin && !(out->fits[line->model / 64] >> line->model % 64 & 1)) continue;
        bool sizes = r->any_size || (line->sizes[0] & r->line_sizes[0])
                  || (line->sizes[1] & r->line_sizes[1]);
        for (size_t b = 0; sizes && b < SFTI_FIT_BEGINS; b++) {
            if (!(line->begins[b] & r->line_begins[b])) continue;
            read_lines_of(r, line);
            break;
        }
    }
}
