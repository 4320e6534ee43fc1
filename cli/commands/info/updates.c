/* info --updates: what became of a model on CivitAI since it was downloaded. */
#include "commands/info/online.h"
#include "support/models.h"
#include "support/raw.h"
#include "support/words.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

#define TRUST_LEAST 60 /* of recorded ids; the file's digest tells the others */
#define NEWER_MOST 10
#define USES_MOST 16
#define NAME_MOST 512
#define SECONDS 19 /* "2024-05-01T10:00:00" */

typedef struct newer {
    uint64_t id;
    sft_span date, name, base; /* or empty */
    sft_span have;             /* the path of a file beside the model that is this version */
    sft_span entry;            /* what the server says of it, while it is at hand */
} newer;

typedef struct uses {
    sft_span items[USES_MOST];
    size_t count;
} uses;

/* How one permission changed; told 0 or 1. */
typedef struct change {
    const char *what;
    int was, now;
} change;

typedef struct cli_update {
    uint64_t model_id, version_id;
    sft_span mode;
    bool is_known, is_answered, is_model_gone, is_version_gone;
    newer newer[NEWER_MOST]; /* newest first */
    size_t kept, total, had;
    bool is_compared;        /* permissions are recorded and told */
    change changes[3];
    size_t change_count;
    bool is_use_changed;
    uses was, now;
} cli_update;

/* ── Ids ── */

bool cli_update_ids(const cli_model *model, cli_ask *ask) {
    const sft_node *ids = model->tree ? sft_node_get(sft_tree_root(model->tree), "civitai") : NULL;
    uint64_t trust, model_id, version_id;
    if (!sft_node_uint(ids, "trust", &trust) || trust < TRUST_LEAST) return false;
    if (!sft_node_uint(ids, "model_id", &model_id)
        || !sft_node_uint(ids, "version_id", &version_id))
        return false;
    ask->state = CLI_ASK_KNOWN;
    ask->model_id = model_id;
    ask->version_id = version_id;
    return true;
}

/* ── Versions ── */

static bool is_time(sft_span text) {
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    if (text.len < SECONDS || text.len > 40) return false;
    for (size_t i = 0; i < SECONDS; i++) {
        char c = text.data[i];
        if (shape[i] == 'd' ? c < '0' || c > '9' : c != shape[i]) return false;
    }
    return true;
}

static sft_span date_of(sft_span version) {
    sft_span date;
    if (cli_raw_string(version, "publishedAt", &date) && is_time(date)) return date;
    if (cli_raw_string(version, "createdAt", &date) && is_time(date)) return date;
    return (sft_span){ "", 0 };
}

/* Compares two versions of a model: by their dates, else by their ids, which grow. */
static bool is_newer(uint64_t id, sft_span date, uint64_t than_id, sft_span than) {
    int order = date.len && than.len ? memcmp(date.data, than.data, SECONDS) : 0;
    return order > 0 || (order == 0 && id > than_id);
}

/* A copy for the model's batch; where there is no memory, model->err says so. */
static sft_span copied(cli_model *model, sft_span text) {
    char *copy = text.data ? sfti_arena_copy(&model->arena, text.data, text.len) : NULL;
    if (!copy) sfti_fail_memory(&model->err, text.len);
    return copy ? (sft_span){ copy, text.len } : (sft_span){ "", 0 };
}

static sft_span copy_text(cli_model *model, sft_span version, const char *key) {
    sft_span text = { "", 0 };
    (void)cli_raw_text(version, key, &model->arena, &text); /* NULL: no memory */
    if (text.data) text.len = sfti_utf8_cut(text, NAME_MOST);
    return copied(model, text);
}

static void find_newer(cli_online *online, cli_model *model, cli_update *update, sft_span told) {
    sft_span own, versions, date = { "", 0 }, base = { "", 0 };
    cli_raw one;
    uint64_t id;
    const sft_node *root = sft_tree_root(model->tree);
    bool has_own = cli_civitai_version_of(told, update->version_id, &own);
    if (has_own) date = date_of(own);
    else date = sft_node_text(root, "civitai.published_at");
    if (!has_own || !cli_raw_string(own, "baseModel", &base))
        base = sft_node_text(root, "model.base_model");
    if (!is_time(date)) date = (sft_span){ "", 0 };
    if (!cli_raw_member(told, "modelVersions", &versions)) return;
    for (cli_raw_begin(&one, versions); cli_raw_next(&one);) {
        sft_span status, other;
        bool published = !cli_raw_string(one.value, "status", &status)
                         || cli_is(status, "Published");
        bool same_base = !online->c->set.same_base || base.len == 0
                         || !cli_raw_string(one.value, "baseModel", &other)
                         || cli_same_letters(other, base);
        sft_span day = date_of(one.value);
        if (!cli_raw_uint(one.value, "id", &id) || id == update->version_id || !published
            || !same_base || !is_newer(id, day, update->version_id, date))
            continue;
        /* among the newest, which stay in order */
        newer *list = update->newer;
        size_t at = update->kept;
        update->total++;
        while (at > 0 && is_newer(id, day, list[at - 1].id, list[at - 1].date)) at--;
        if (at == NEWER_MOST) continue;
        size_t last = update->kept < NEWER_MOST ? update->kept++ : NEWER_MOST - 1;
        memmove(&list[at + 1], &list[at], (last - at) * sizeof *list);
        list[at] = (newer){ .id = id, .date = day, .entry = one.value };
    }
    for (size_t i = 0; i < update->kept; i++) {
        newer *kept = &update->newer[i];
        kept->have = cli_have_version(online, model, kept->id, kept->entry);
        kept->date = copied(model, kept->date);
        kept->name = copy_text(model, kept->entry, "name");
        kept->base = copy_text(model, kept->entry, "baseModel");
        update->had += kept->have.len > 0;
    }
}

/* ── Permissions ── */

static void put_use(cli_model *model, uses *out, sft_span use) {
    while (use.len > 0 && strchr(" {\"", *use.data)) use = (sft_span){ use.data + 1, use.len - 1 };
    while (use.len > 0 && strchr(" }\"", use.data[use.len - 1])) use.len--;
    if (use.len == 0 || use.len > 40 || cli_same_letters(use, sft_span_cstr("None"))) return;
    if (out->count == USES_MOST) return;
    out->items[out->count++] = copied(model, use);
}

static bool has_use(const uses *all, sft_span use) {
    for (size_t i = 0; i < all->count; i++)
        if (cli_same_letters(all->items[i], use)) return true;
    return false;
}

/* The farthest-reaching one; once it stood alone, and those before were implied. */
static size_t level_of(const uses *all) {
    static const char *const levels[] = { "Image", "RentCivit", "Rent", "Sell" };
    size_t level = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (has_use(all, sft_span_cstr(levels[i]))) level = i + 1;
    return level;
}

static void compare_uses(cli_model *model, cli_update *update, const sft_node *recorded,
                         sft_span told) {
    sft_span value;
    const sft_node *list = sft_node_get(recorded, "commercial");
    if (!list || !cli_raw_member(told, "allowCommercialUse", &value)) return;
    if (*value.data != '[' && *value.data != '"') return;
    for (const sft_node *one = list->first; one; one = one->next)
        put_use(model, &update->was, one->text);
    /* "Sell", "{Image,Sell}" or ["Image", "Sell"] */
    cli_raw item;
    bool is_list = *value.data == '[';
    if (is_list) cli_raw_begin(&item, value);
    while (is_list && cli_raw_next(&item)) put_use(model, &update->now, item.value);
    for (size_t i = 0, from = 0; !is_list && i <= value.len; i++) {
        if (i < value.len && value.data[i] != ',') continue;
        put_use(model, &update->now, (sft_span){ value.data + from, i - from });
        from = i + 1;
    }
    const uses *a = &update->was, *b = &update->now;
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count; i++) same = same && has_use(b, a->items[i]);
    if (a->count == 1 || b->count == 1) same = level_of(a) == level_of(b);
    update->is_use_changed = !same;
    update->is_compared = true;
}

static void compare_permissions(cli_model *model, cli_update *update, sft_span told) {
    static const struct permission { const char *what, *key; bool is_reverse; } rows[] = {
        { "credit", "allowNoCredit", true }, { "derivatives", "allowDerivatives", false },
        { "relicense", "allowDifferentLicense", false },
    };
    const sft_node *recorded = sft_node_find(sft_tree_root(model->tree), "civitai.permissions");
    sft_span value;
    if (!recorded || recorded->type != SFT_NODE_OBJECT) return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_span was = sft_node_text(recorded, rows[i].what);
        if (was.len == 0 || !cli_raw_member(told, rows[i].key, &value)) continue;
        if (!cli_is(value, "true") && !cli_is(value, "false")) continue;
        int now = cli_is(value, "true") != rows[i].is_reverse, before = cli_is(was, "true");
        update->is_compared = true;
        if (now != before)
            update->changes[update->change_count++] = (change){ rows[i].what, before, now };
    }
    compare_uses(model, update, recorded, told);
}

void cli_update_learn(cli_online *online, cli_model *model, const cli_ask *ask) {
    cli_lookup *lookup = model->found;
    cli_update *update = sfti_arena_take(&model->arena, sizeof *update);
    lookup->update = update;
    if (!update) {
        sfti_fail_memory(&model->err, sizeof *update);
        return;
    }
    memset(update, 0, sizeof *update);
    update->mode = (sft_span){ "", 0 };
    update->is_known = ask->state == CLI_ASK_KNOWN;
    update->is_answered = ask->state == CLI_ASK_UNKNOWN || lookup->is_skipped
                       || (update->is_known && ask->is_answered);
    update->model_id = ask->model_id;
    update->version_id = ask->version_id;
    update->is_model_gone = ask->is_model_gone;
    update->is_version_gone = ask->is_version_gone;
    if (!update->is_known || !update->is_answered || ask->model.len == 0) return;
    if (cli_render_model(online->c, model)) return;
    model->err.code = SFT_OK;
    update->mode = copy_text(model, ask->model, "mode");
    find_newer(online, model, update, ask->model);
    compare_permissions(model, update, ask->model);
}

/* ── Results ── */

static bool is_changed(const cli_update *update) {
    return update->change_count > 0 || update->is_use_changed;
}

/* Whether a newer version is not in the folder. */
static bool is_missing(const cli_update *update) {
    return update->total > update->had;
}

static const char *status_of(const cli_update *update) {
    if (!update) return "unknown";
    if (!update->is_answered) return "unanswered";
    if (!update->is_known) return "unknown";
    if (update->is_model_gone) return "deleted";
    if (update->is_version_gone) return "removed";
    return is_missing(update) ? "newer" : "current";
}

static void put_uses(sfti_json_writer *w, const char *key, const uses *all) {
    sfti_json_put_open(w, key, '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_span(w, all->items[i]);
    sfti_json_close(w, ']');
}

static void put_permissions(sfti_json_writer *w, const cli_update *update) {
    sfti_json_key(w, "permissions");
    if (!update->is_compared) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '[');
    for (size_t i = 0; i < update->change_count; i++) {
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "what", update->changes[i].what);
        sfti_json_put_bool(w, "recorded", update->changes[i].was == 1);
        sfti_json_put_bool(w, "now", update->changes[i].now == 1);
        sfti_json_close(w, '}');
    }
    if (update->is_use_changed) {
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "what", "commercial");
        put_uses(w, "recorded", &update->was);
        put_uses(w, "now", &update->now);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void show_json(cli *c, const cli_model *model, const cli_update *update) {
    static const cli_update unknown = { .mode = { "", 0 } };
    const sft_span none = { NULL, 0 };
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, c, model->path);
    const cli_update *it = update ? update : &unknown;
    sfti_json_put_open(w, "updates", '{');
    sfti_json_put_cstr(w, "status", status_of(update));
    sfti_json_put_known(w, "model_id", it->model_id ? it->model_id : UINT64_MAX);
    sfti_json_put_known(w, "version_id", it->version_id ? it->version_id : UINT64_MAX);
    sfti_json_put_text(w, "mode", it->mode.len ? it->mode : none);
    sfti_json_put_open(w, "newer", '[');
    for (size_t i = 0; i < it->kept; i++) {
        const newer *one = &it->newer[i];
        sfti_json_open(w, '{');
        sfti_json_put_uint(w, "version_id", one->id);
        sfti_json_put_text(w, "name", one->name.len ? one->name : none);
        sfti_json_put_text(w, "base_model", one->base.len ? one->base : none);
        sfti_json_put_text(w, "published_at", one->date.len ? one->date : none);
        sfti_json_put_text(w, "have", one->have.len ? one->have : none);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_uint(w, "newer_count", it->total);
    put_permissions(w, it);
    sfti_json_close(w, '}');
    cli_object_end(&object);
}

/* ── For people ── */

static void show_newer(cli *c, const cli_online *online, const cli_model *model,
                       const cli_update *update) {
    size_t at = 0;
    while (is_missing(update) && at + 1 < update->kept && update->newer[at].have.len > 0) at++;
    const newer *one = &update->newer[at];
    sft_span day = { one->date.data, one->date.len ? 10 : 0 };
    if (update->total == 0) return;
    cli_path(&c->out, model->path, ": newer version ");
    cli_escaped_cut(&c->out, one->name, 60);
    if (day.len > 0) cli_fill(&c->out, " of %", day);
    if (one->base.len > 0) cli_text(&c->out, " for ");
    cli_escaped_cut(&c->out, one->base, 40);
    if (one->have.len > 0) {
        cli_text(&c->out, ": you have it, ");
        cli_path_text(&c->out, one->have);
        cli_text(&c->out, "\n");
        return;
    }
    if (update->total - update->had > 1)
        cli_printf(&c->out, ", and %zu more", update->total - update->had - 1);
    cli_text(&c->out, ": ");
    cli_path(&c->out, online->site.url, "/models/%" PRIu64 "?modelVersionId=%" PRIu64 "\n",
             update->model_id, one->id);
}

static void show_uses(cli *c, const uses *all) {
    for (size_t i = 0; i < all->count; i++) {
        cli_text(&c->out, i ? ", " : "");
        cli_escaped(&c->out, all->items[i]);
    }
    if (all->count == 0) cli_text(&c->out, "none");
}

static void show_changes(cli *c, const cli_model *model, const cli_update *update) {
    static const char *const words[][3] = { /* what, no, yes */
        { "credit", "credit not required", "credit required" },
        { "derivatives", "no derivatives", "derivatives allowed" },
        { "relicense", "same licence", "other licences allowed" },
    };
    for (size_t i = 0; i < update->change_count; i++) {
        const change *one = &update->changes[i];
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
            if (strcmp(words[j][0], one->what) != 0) continue;
            cli_path(&c->out, model->path, ": permission changed: %s, was: %s\n",
                     words[j][1 + one->now], words[j][1 + one->was]);
        }
    }
    if (!update->is_use_changed) return;
    cli_path(&c->out, model->path, ": permission changed: commercial use ");
    show_uses(c, &update->now);
    cli_text(&c->out, ", was: ");
    show_uses(c, &update->was);
    cli_text(&c->out, "\n");
}

static void show_human(cli *c, const cli_online *online, const cli_model *model,
                       const cli_update *update) {
    if (update && update->is_known && update->is_answered) {
        if (update->is_model_gone)
            cli_path(&c->out, model->path, ": model %" PRIu64 " is no longer there\n",
                     update->model_id);
        else if (update->is_version_gone)
            cli_path(&c->out, model->path,
                     ": version %" PRIu64 " of model %" PRIu64 " is no longer there\n",
                     update->version_id, update->model_id);
        if (update->mode.len > 0) {
            cli_path(&c->out, model->path, ": ");
            cli_escaped_cut(&c->out, update->mode, 40);
            cli_text(&c->out, "\n");
        }
        show_newer(c, online, model, update);
        show_changes(c, model, update);
    }
    if (!c->set.verbose || (update && (update->total > 0 || is_changed(update)))) return;
    cli_path(&c->out, model->path, ": %s\n", status_of(update));
}

void cli_update_show(const cli_online *online, const cli_model *model,
                     cli_update_counts *counts) {
    cli *c = online->c;
    const cli_lookup *lookup = model->found;
    const cli_update *update = lookup ? lookup->update : NULL;
    bool known = update && update->is_known && update->is_answered;
    counts->models++;
    counts->unanswered += update && !update->is_answered;
    counts->unknown += !update || (update->is_answered && !update->is_known);
    counts->deleted += known && update->is_model_gone;
    counts->removed += known && !update->is_model_gone && update->is_version_gone;
    counts->newer += known && is_missing(update);
    counts->changed += known && is_changed(update);
    if (cli_is_json(c)) show_json(c, model, update);
    else show_human(c, online, model, update);
}

void cli_update_total(cli *c, const cli_update_counts *counts) {
    const struct { uint64_t count; const char *words; } rows[] = {
        { counts->newer, "with a newer version" }, { counts->removed, "with a removed version" },
        { counts->deleted, "deleted" }, { counts->changed, "with changed permissions" },
        { counts->unknown, "unknown to the server" }, { counts->unanswered, "unanswered" },
    };
    uint64_t news = counts->newer + counts->removed + counts->deleted + counts->changed;
    if (news > 0) cli_status(c, CLI_NO);
    if (counts->unanswered > 0) cli_status(c, CLI_FAILED);
    if (cli_is_json(c) || cli_is_over(c)) return;
    cli_printf(&c->out, "%" PRIu64 " model%s", counts->models, counts->models == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].count > 0)
            cli_printf(&c->out, ", %" PRIu64 " %s", rows[i].count, rows[i].words);
    cli_text(&c->out, news + counts->unknown + counts->unanswered ? "\n" : ", all current\n");
}
