/* lora info. Tests: tests/cli/lora, tests/adapter/run.py. */
#include "adapter/lowrank.h"
#include "base/number.h"
#include "commands/lora/lora.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define BARS 32

/* Modules whose names differ in their numbers only. */
typedef struct lora_group {
    sft_span name; /* with '#' for numbers */
    const char *method;
    size_t modules;
    uint64_t rank_low, rank_high;
    double alpha_low, alpha_high;
    bool has_alpha, dora, all_normed;
    double squares; /* of the norms */
    /* singular values, each to the greatest of its module, summed by place */
    double bars[BARS];
    size_t spectra;
} lora_group;

typedef struct lora_told {
    cli *c;
    lora_adapter adapter;
    sfti_arena arena;
    double *norms; /* of modules; -1: not known */
    sfti_spectrum *spectra; /* of modules, with --spectrum; of no values: not known */
    lora_group *groups;
    size_t count, capacity;
} lora_told;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_edge(sft_span name, size_t i) {
    return i >= name.len || name.data[i] == '.' || name.data[i] == '_';
}

/* A number between dots or underscores becomes '#'. */
static sft_span group_name(lora_told *told, sft_span name) {
    char *text = sfti_arena_array(&told->arena, name.len + 1, 1);
    size_t len = 0, end;
    for (size_t i = 0; text && i < name.len; i = end) {
        for (end = i; end < name.len && is_digit(name.data[end]);) end++;
        bool number = end > i && is_edge(name, end) && (i == 0 || is_edge(name, i - 1));
        if (end == i) end = i + 1;
        if (number) text[len++] = '#';
        else for (size_t k = i; k < end; k++) text[len++] = name.data[k];
    }
    return (sft_span){ text, text ? len : 0 };
}

static void widen(lora_group *group, const sfti_lora_module *m, double norm) {
    bool first = group->modules++ == 0;
    if (first || m->rank < group->rank_low) group->rank_low = m->rank;
    if (first || m->rank > group->rank_high) group->rank_high = m->rank;
    if (m->has_alpha) {
        if (!group->has_alpha || m->alpha < group->alpha_low) group->alpha_low = m->alpha;
        if (!group->has_alpha || m->alpha > group->alpha_high) group->alpha_high = m->alpha;
        group->has_alpha = true;
    }
    group->dora = group->dora || m->slot[SFTI_SLOT_MAGNITUDE];
    group->all_normed = group->all_normed && norm >= 0;
    group->squares += norm * norm;
}

static void widen_bars(lora_group *group, const sfti_spectrum *s) {
    if (s->count == 0 || !(s->at[0] > 0)) return;
    group->spectra++;
    for (size_t i = 0; i < BARS; i++) {
        size_t at = s->count <= BARS ? i : i * s->count / BARS;
        if (at < s->count) group->bars[i] += s->at[at] / s->at[0];
    }
}

static sft_code gather(lora_told *told, sft_error *err) {
    const sfti_lora *lora = &told->adapter.lora;
    told->spectra = sfti_arena_array(&told->arena, lora->count, sizeof *told->spectra);
    if (!told->spectra) return sfti_fail_memory(err, lora->count * sizeof *told->spectra);
    memset(told->spectra, 0, lora->count * sizeof *told->spectra);
    told->norms = sfti_arena_array(&told->arena, lora->count, sizeof *told->norms);
    if (!told->norms) return sfti_fail_memory(err, lora->count * sizeof *told->norms);
    for (size_t i = 0; i < lora->count; i++) {
        const sfti_lora_module *m = &lora->modules[i];
        sft_code code = sfti_lora_norm(lora, m, &told->norms[i], err);
        if (!code && told->c->set.spectrum)
            code = sfti_lora_spectrum(lora, m, &told->arena, &told->spectra[i], err);
        if (code) return code;
        sft_span name = group_name(told, m->name);
        const char *method = sfti_lora_method(lora, m);
        size_t k = told->count < 64 ? 0 : told->count - 64; /* modules of a group are close */
        while (k < told->count && !(sft_span_equal(told->groups[k].name, name)
                                    && strcmp(told->groups[k].method, method) == 0))
            k++;
        if (k == told->count) {
            lora_group *grown = sfti_arena_grow(&told->arena, told->groups, told->count, 1,
                                                &told->capacity, sizeof *grown);
            if (grown) told->groups = grown;
            if (!grown || !name.data) return sfti_fail_memory(err, sizeof *grown);
            grown[told->count++] = (lora_group){ .name = name, .method = method,
                                                 .all_normed = true };
        }
        widen(&told->groups[k], m, told->norms[i]);
        widen_bars(&told->groups[k], &told->spectra[i]);
    }
    return SFT_OK;
}

/* The mean of the group's modules. */
static void print_bars(cli_out *out, const lora_group *group) {
    size_t width = group->rank_high < BARS ? (size_t)group->rank_high : BARS;
    if (group->spectra == 0) return;
    cli_text(out, "\n    ");
    for (size_t i = 0; i < width; i++) {
        double mean = group->bars[i] / (double)group->spectra;
        cli_text(out, cli_bar(mean < 1 ? mean : 1));
    }
}

static void print_groups(const lora_told *told) {
    cli_out *out = &told->c->out;
    const sfti_lora *lora = &told->adapter.lora;
    cli_path(out, told->adapter.path, ": %zu module%s in %zu group%s", lora->count,
             lora->count == 1 ? "" : "s", told->count, told->count == 1 ? "" : "s");
    if (lora->unread_count)
        cli_printf(out, ", %zu other tensor%s", lora->unread_count,
                   lora->unread_count == 1 ? "" : "s");
    if (lora->base_count)
        cli_printf(out, ", %zu of the base model", lora->base_count);
    cli_text(out, "\n");
    for (size_t i = 0; i < told->count; i++) {
        const lora_group *group = &told->groups[i];
        cli_text(out, "  ");
        cli_escaped(out, group->name);
        cli_printf(out, ": %zu x %s%s", group->modules, group->method,
                   group->dora ? " (DoRA)" : "");
        if (group->rank_high > 0 && group->rank_low < group->rank_high)
            cli_printf(out, ", rank %" PRIu64 " to %" PRIu64, group->rank_low, group->rank_high);
        else if (group->rank_high > 0)
            cli_printf(out, ", rank %" PRIu64, group->rank_high);
        if (group->has_alpha && group->alpha_low < group->alpha_high)
            cli_printf(out, ", alpha %g to %g", group->alpha_low, group->alpha_high);
        else if (group->has_alpha)
            cli_printf(out, ", alpha %g", group->alpha_low);
        if (group->all_normed) cli_printf(out, ", norm %.4g", sfti_root(group->squares));
        print_bars(out, group);
        cli_text(out, "\n");
    }
}

static void put_known(sfti_json_writer *w, const char *key, bool known, double value) {
    if (known) sfti_json_put_double(w, key, value);
    else sfti_json_put_null(w, key);
}

static void put_number(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_put_known(w, key, value ? value : UINT64_MAX);
}

static void print_json(const lora_told *told) {
    const sfti_lora *lora = &told->adapter.lora;
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, told->c, told->adapter.path);
    sfti_json_put_open(w, "groups", '[');
    for (size_t i = 0; i < told->count; i++) {
        const lora_group *group = &told->groups[i];
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", group->name);
        sfti_json_put_cstr(w, "method", group->method);
        sfti_json_put_bool(w, "dora", group->dora);
        sfti_json_put_uint(w, "modules", group->modules);
        put_number(w, "rank_min", group->rank_low);
        put_number(w, "rank_max", group->rank_high);
        put_known(w, "alpha_min", group->has_alpha, group->alpha_low);
        put_known(w, "alpha_max", group->has_alpha, group->alpha_high);
        put_known(w, "norm", group->all_normed, sfti_root(group->squares));
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "modules", '[');
    for (size_t i = 0; i < lora->count; i++) {
        const sfti_lora_module *m = &lora->modules[i];
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", m->name);
        sfti_json_put_cstr(w, "method", sfti_lora_method(lora, m));
        put_number(w, "rank", m->rank);
        put_known(w, "alpha", m->has_alpha, m->alpha);
        sfti_json_put_double(w, "scale", m->scale);
        put_number(w, "out", m->out);
        put_number(w, "in", m->in);
        put_known(w, "norm", told->norms[i] >= 0, told->norms[i]);
        if (told->c->set.spectrum) {
            const sfti_spectrum *s = &told->spectra[i];
            double ratio = s->count && s->at[0] > 0 ? s->norm / s->at[0] : 0;
            put_known(w, "stable_rank", s->count > 0, ratio * ratio);
            sfti_json_put_open(w, "spectrum", '[');
            for (size_t k = 0; k < s->count; k++) {
                char digits[SFTI_DOUBLE_SIZE];
                sfti_json_raw(w, (sft_span){ digits, sfti_double_text(s->at[k], digits) });
            }
            sfti_json_close(w, ']');
        }
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "other_tensors", '[');
    for (size_t i = 0; i < lora->unread_count; i++)
        sfti_json_span(w, sft_set_tensor_at(lora->set, lora->unread[i])->name);
    sfti_json_close(w, ']');
    cli_object_end(&object);
}

static void tell_one(cli *c, char *operand) {
    sft_error err = SFT_ERROR_INIT;
    sft_error other = SFT_ERROR_INIT;
    lora_told told = { .c = c, .arena = { .alloc = c->alloc }, .adapter = { .describes = true } };
    sft_code code = lora_open(c, operand, false, &told.adapter, &err);
    if (!code) code = gather(&told, &err);
    if (code) lora_fail(c, told.adapter.path, &err);
    else if (cli_is_json(c)) print_json(&told);
    else print_groups(&told);
    if (!code && sfti_lora_check_components(&told.adapter.lora, &other))
        cli_warn(c, told.adapter.path, &other);
    sfti_arena_free(&told.arena);
    lora_close(&told.adapter);
}

void lora_info(cli *c, char **operands, size_t count) {
    for (size_t i = 0; i < count && !cli_is_over(c); i++) tell_one(c, operands[i]);
}
