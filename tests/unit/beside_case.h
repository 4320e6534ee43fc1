/* One case of files beside a model: files are written into a folder of their own, one model
 * is asked for, and what was collected becomes lines of text that must hold some parts and
 * must not hold others.
 *   name=VALUE|TRUST|SOURCE   every candidate of every fact (lists joined with " + ")
 *   trigger=TEXT|TRUST|GROUP|SOURCE     civitai=MODEL/VERSION|TRUST|SOURCE|AIR|PUBLISHED
 *   claim=ALGO:HEX|SOURCE     sidecar=KIND|MATCH|ERROR|NAME      note=TEXT|SOURCE
 *   prompt=POSITIVE|NEGATIVE|SEED|STEPS|SAMPLER|CFG|SOURCE
 *   preview=NAME|TYPE|BYTES|WIDTHxHEIGHT   may=CREDIT/DERIVE/RELICENSE USE…   link=URL
 *   rank= alpha= level= negative= llm= one_model=
 */
#ifndef BESIDE_CASE_H
#define BESIDE_CASE_H

#include "label/sidecars/sidecars.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "digests.h"
#include "temp_model.h"

#define CASE_FILES 8
#define CASE_PARTS 10
#define CASE_TEXT ((size_t)256 << 10)

typedef struct case_file {
    const char *name; /* ends with '/': a folder; "a->b": a link named a; *.safetensors: a model */
    const char *text;
} case_file;

typedef struct beside_case {
    const char *title;
    const char *model;                /* NULL: x.safetensors */
    case_file files[CASE_FILES];
    const char *with[CASE_PARTS];     /* each must be there */
    const char *without[CASE_PARTS];  /* none may be there */
    const char *computed;             /* digests known later, or NULL */
    bool adapter;                     /* the tensors said it is one */
} beside_case;

static char case_text[CASE_TEXT];
static size_t case_len;

static inline void case_put(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int len = vsnprintf(case_text + case_len, sizeof case_text - case_len, format, args);
    va_end(args);
    temp_must(len >= 0 && (size_t)len < sizeof case_text - case_len, "case_put");
    case_len += (size_t)len;
}

#define SPAN(s) (int)(s).len, (s).data ? (s).data : ""

static inline const char *case_base(sft_span path) {
    const char *last = path.data ? path.data : "";
    for (size_t i = 0; i < path.len; i++)
        if (path.data[i] == '/') last = path.data + i + 1;
    return last;
}

static inline void case_facts(const sft_info *info) {
    for (int f = 0; f < SFT_FACT_COUNT; f++)
        for (const sfti_fact *fact = info->facts[f]; fact; fact = fact->next) {
            case_put("%s=", sft_fact_name((sft_fact)f));
            for (size_t i = 0; i < fact->value.count; i++)
                case_put("%s%.*s", i ? " + " : "", SPAN(fact->value.items[i]));
            case_put("%.*s|%d|%.*s\n", SPAN(fact->value.text), fact->trust, SPAN(fact->source));
        }
    for (const sfti_fact *fact = info->declared_rank; fact; fact = fact->next)
        case_put("rank=%.*s|%d\n", SPAN(fact->value.text), fact->trust);
    for (const sfti_fact *fact = info->declared_alpha; fact; fact = fact->next)
        case_put("alpha=%.*s|%d\n", SPAN(fact->value.text), fact->trust);
}

static inline void case_records(const sft_info *info) {
    for (const sfti_trigger *t = info->triggers.first; t; t = t->next)
        case_put("trigger=%.*s|%d|%d|%.*s\n", SPAN(t->text), t->trust, t->group,
                 SPAN(t->source));
    for (const sfti_civitai *c = info->civitai.first; c; c = c->next)
        case_put("civitai=%llu/%llu|%d|%.*s|%.*s|%.*s\n", (unsigned long long)c->model_id,
                 (unsigned long long)c->version_id, c->trust, SPAN(c->source), SPAN(c->air),
                 SPAN(c->published_at));
    for (const sfti_claim *c = info->claims.first; c; c = c->next)
        case_put("claim=%s:%.*s|%.*s\n", c->algo, SPAN(c->value), SPAN(c->source));
    for (const sfti_sidecar *s = info->sidecars.first; s; s = s->next)
        case_put("sidecar=%s|%s|%.*s|%s\n", s->kind, s->match ? s->match : "null",
                 SPAN(s->error), case_base(s->path));
    for (const sfti_note *n = info->notes.first; n; n = n->next)
        case_put("note=%.*s|%.*s\n", SPAN(n->text), SPAN(n->source));
    for (const sfti_prompt *p = info->prompts.first; p; p = p->next)
        case_put("prompt=%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s\n", SPAN(p->positive),
                 SPAN(p->negative), SPAN(p->seed), SPAN(p->steps), SPAN(p->sampler),
                 SPAN(p->cfg), SPAN(p->source));
    for (const sfti_preview *p = info->previews.first; p; p = p->next)
        case_put("preview=%s|%s|%llu|%ux%u|%.*s\n", case_base(p->path), p->media_type,
                 (unsigned long long)p->bytes, p->width, p->height, SPAN(p->source));
    for (const sfti_link *l = info->links.first; l; l = l->next)
        case_put("link=%.*s\n", SPAN(l->url));
}

static inline void case_dump(const sft_info *info) {
    case_len = 0;
    case_text[0] = '\0';
    case_facts(info);
    case_records(info);
    if (info->permissions.known) {
        case_put("may=%d/%d/%d", info->permissions.credit, info->permissions.derivatives,
                 info->permissions.relicense);
        for (const sfti_note *n = info->permissions.commercial.first; n; n = n->next)
            case_put(" %.*s", SPAN(n->text));
        case_put("\n");
    }
    if (info->nsfw_level >= 0) case_put("level=%lld\n", (long long)info->nsfw_level);
    if (info->negative >= 0) case_put("negative=%d\n", info->negative);
    if (info->has_llm)
        case_put("llm=%llu/%llu/%llu/%llu/%llu\n", (unsigned long long)info->llm.layers,
                 (unsigned long long)info->llm.hidden, (unsigned long long)info->llm.heads,
                 (unsigned long long)info->llm.kv_heads, (unsigned long long)info->llm.vocab);
    case_put("one_model=%d\n", info->one_model);
    if (info->adapter.dora) case_put("dora\n");
    if (info->adapter.rslora) case_put("rslora\n");
}

static inline void case_write(temp_folder *temp, const case_file *file) {
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}";
    size_t len = strlen(file->name);
    const char *arrow = strstr(file->name, "->");
    if (arrow) {
        char from[128];
        snprintf(from, sizeof from, "%.*s", (int)(arrow - file->name), file->name);
        temp_must(symlink(arrow + 2, temp_path(temp, from)) == 0, "symlink");
    } else if (file->name[len - 1] == '/') {
        char folder[128];
        snprintf(folder, sizeof folder, "%.*s", (int)len - 1, file->name);
        (void)temp_subfolder(temp, folder);
    } else if (file->text) {
        (void)temp_text(temp, file->name, file->text);
    } else {
        (void)temp_model(temp, file->name, header, "12345678", 8);
    }
}

/* What sft_info_open does before and around sfti_info_sidecars. */
static inline void case_begin(sft_info *info, const sft_set *set, const char *path,
                              bool adapter) {
    sft_info_options defaults = SFT_INFO_OPTIONS_INIT;
    const char *slash = strrchr(path, '/');
    memset(info, 0, sizeof *info);
    info->options = defaults;
    info->arena.alloc = (sft_allocator){ sfti_os_resize, NULL };
    info->records = sfti_records_built_in();
    info->set = set;
    info->path = sft_span_cstr(path);
    info->folder = (sft_span){ path, (size_t)(slash - path) };
    info->stem = sfti_stem(sft_span_cstr(slash + 1));
    info->rating = -1;
    info->nsfw_level = -1;
    info->negative = -1;
    info->adapter.scale = -1;
    info->adapter.present = adapter;
}

/* How many parts are not as they must be; each is printed. */
static inline int case_check(const beside_case *c, const char *const *with, bool there) {
    int wrong = 0;
    for (size_t i = 0; i < CASE_PARTS && with[i]; i++) {
        if ((strstr(case_text, with[i]) != NULL) == there) continue;
        print_error("%s: %s\n  %s\nin\n%s", c->title, there ? "expected" : "did not expect",
                    with[i], case_text);
        wrong++;
    }
    return wrong;
}

/* Digests as JSON text held against the sidecars; they live as long as the program. */
static inline void case_match(sft_info *info, const char *computed) {
    static sft_hashes hashes;
    sfti_digests digests = { 0 };
    hashes = digests_of(computed);
    for (size_t i = 0; i < SFT_HASH_COUNT; i++)
        if (hashes.known >> i & 1) digests.text[i] = sft_span_cstr(sft_hashes_get(&hashes, i));
    sfti_info_match_sidecars(info, &digests);
}

/* 0 when the case is as it must be. */
static inline int case_run(const beside_case *c) {
    temp_folder temp;
    sft_info info;
    sft_set *set = NULL;
    temp_begin(&temp);
    const char *model = c->model ? c->model : "x.safetensors";
    bool made = false;
    for (size_t i = 0; i < CASE_FILES && c->files[i].name; i++) {
        case_write(&temp, &c->files[i]);
        size_t len = strcspn(c->files[i].name, "-");
        made = made || strcmp(c->files[i].name, model) == 0
            || (c->files[i].name[len] && c->files[i].name[len + 1] == '>'
                && strncmp(c->files[i].name, model, len) == 0);
    }
    if (!made) case_write(&temp, &(case_file){ model, NULL });
    const char *path = temp_path(&temp, model);
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    case_begin(&info, set, path, c->adapter);
    sfti_info_sidecars(&info, NULL);
    if (c->computed) case_match(&info, c->computed);
    assert_int_equal(info.code, SFT_OK);
    case_dump(&info);
    int wrong = case_check(c, c->with, true) + case_check(c, c->without, false);
    sfti_arena_free(&info.arena);
    sft_set_close(set);
    temp_end(&temp);
    return wrong;
}

#endif
