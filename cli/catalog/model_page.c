/* A page about one model. */
#include "base/error.h"
#include "catalog/catalog.h"
#include "catalog/dict.h"
#include "catalog/model_page.h"
#include "catalog/text.h"
#include "support/files.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

#define VALUE_MOST ((size_t)1 << 20) /* bytes of a metadata value */

typedef struct model_page {
    catalog_run *run;
    char title[CLI_TITLE_SIZE];
    size_t models;       /* that the path names */
    sfti_arena arena;    /* of what follows, and of the facts */
    catalog_picture *pictures;
    size_t picture_count;
    sft_code code;       /* the first failure, with err */
    sft_error *err;
} model_page;

/* ── Facts ── */

/* Members of the result object that a page has no use for, or has in another form. */
static const char *const without[] = { "path", "ok", "complete", "previews" };

static sft_node_keep keep_known(void *ctx, const sft_node *node) {
    (void)ctx;
    if (node->type == SFT_NODE_NULL) return SFT_NODE_DROP;
    if (node->type != SFT_NODE_LIST && node->type != SFT_NODE_OBJECT) return SFT_NODE_ALL;
    return node->first ? SFT_NODE_SOME : SFT_NODE_DROP;
}

static sft_code put_fact_member(sfti_json_writer *w, const sft_node *node, sft_buffer *text,
                                sft_error *err) {
    sft_sink sink = sft_sink_memory(text);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (cli_is(node->key, without[i])) return SFT_OK;
    if (keep_known(NULL, node) == SFT_NODE_DROP) return SFT_OK;
    text->len = 0;
    sft_code code = sft_node_json(node, keep_known, NULL, &sink, 0, NULL, err);
    if (code) return code;
    sfti_json_key_span(w, node->key);
    sfti_json_raw(w, (sft_span){ text->data, text->len });
    return SFT_OK;
}

/* The pairs of all shards: in a tree they would take many times the memory of the header. Of keys
 * that are there again the first value counts. */
static sft_code put_page_metadata(const sft_set *set, sfti_json_writer *w, sfti_arena *arena,
                                  sft_error *err) {
    size_t shards = sft_set_shard_count(set);
    catalog_dict seen;
    bool has_empty = false, is_cut = false;
    char *buffer = NULL;
    sft_code code = SFT_OK;
    dict_begin(&seen, arena);
    sfti_json_put_open(w, "metadata", '{');
    for (size_t s = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        for (size_t i = 0; !code && i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            uint32_t number;
            bool again = shards > 1 && pair.key.len == 0 && has_empty;
            has_empty = has_empty || pair.key.len == 0;
            if (shards > 1 && pair.key.len > 0) {
                if (!dict_put(&seen, pair.key, (sft_span){ "", 0 }, &number))
                    code = sfti_fail_memory(err, pair.key.len);
                else
                    again = seen.entries[number].uses > 1;
            }
            if (code || again) continue;
            if (pair.value.len > VALUE_MOST) {
                if (!buffer) buffer = sfti_arena_take(arena, VALUE_MOST);
                if (!buffer) code = sfti_fail_memory(err, VALUE_MOST);
                if (code) break;
                pair.value = text_cut(pair.value, VALUE_MOST, buffer);
                is_cut = true;
            }
            sfti_json_key_span(w, pair.key);
            sfti_json_span(w, pair.value);
        }
    }
    dict_free(&seen);
    if (code) return code;
    sfti_json_close(w, '}');
    if (!is_cut) return SFT_OK;
    sfti_json_put_open(w, "cut", '[');
    sfti_json_cstr(w, "metadata");
    sfti_json_close(w, ']');
    return SFT_OK;
}

/* Info of page/types.d.ts. */
static sft_code put_info(model_page *page, const cli_model *model, sfti_json_writer *w) {
    sfti_arena *arena = &page->arena;
    sft_buffer text = { .alloc = page->run->c->alloc };
    sft_span path;
    sft_code code = catalog_path(&page->run->places, model->path, arena, &path, page->err);
    if (code) return code;
    sfti_json_put_open(w, "info", '{');
    sfti_json_put_text(w, "path", path);
    const sft_node *one = sft_tree_root(model->tree)->first;
    for (; !code && one; one = one->next) code = put_fact_member(w, one, &text, page->err);
    if (!code && model->set) code = put_page_metadata(model->set, w, arena, page->err);
    if (page->picture_count > 0 && !code) {
        sfti_json_put_open(w, "pictures", '[');
        for (size_t i = 0; i < page->picture_count; i++) picture_json(w, &page->pictures[i]);
        sfti_json_close(w, ']');
    }
    sfti_json_close(w, '}');
    sft_buffer_free(&text);
    return code;
}

/* ── The page ── */

static sft_code write_model(model_page *page, const cli_model *model) {
    html_page *html = &page->run->page;
    cli *c = page->run->c;
    const sft_allocator *alloc = &c->alloc;
    char cut[CLI_TITLE_SIZE];
    model_tensors tensors;
    page->arena.alloc = *alloc;
    page->run->pictures.page = html;
    sft_span title = text_stem(cli_name_of(model->path));
    if (page->run->title) title = sft_span_cstr(page->run->title);
    else (void)sft_info_fact(model->info, SFT_FACT_NAME, &title, NULL, NULL);
    title = text_cut(title, sizeof page->title - 1, cut);
    memcpy(page->title, title.data, title.len);
    page->title[title.len] = 0;
    html_begin(html, HTML_MODEL, page->run->sink, page->title, alloc, page->err);
    sft_code code = model_tensors_list(&tensors, model, alloc, page->err);
    if (!code)
        code = pictures_of(&page->run->pictures, model, &page->arena, &page->pictures,
                           &page->picture_count, page->err);
    if (!code) {
        sfti_json_writer *w = html_block_begin(html, "model");
        sfti_json_open(w, '{');
        sfti_json_put_uint(w, "format", 1);
        sfti_json_put_cstr(w, "title", page->title);
        code = catalog_put_id(w, &page->run->places, page->title, alloc, page->err);
        if (!code) code = put_info(page, model, w);
        if (!code) code = model_tensors_write(&tensors, w, page->err);
        if (!code && c->set.deep) code = model_stats_write(&tensors, c, model->path, w, page->err);
        if (!code && c->set.deep) code = model_norms_write(model, c, w, page->err);
        sfti_json_close(w, '}');
    }
    if (!code) {
        html_block_end(html);
        html_markup(html, "<noscript><p>This page needs JavaScript.</p></noscript>\n");
        code = html_end(html);
    }
    model_tensors_free(&tensors);
    sfti_arena_free(&page->arena);
    return code;
}

static void take_model(void *ctx, cli_model *model) {
    model_page *page = ctx;
    if (page->code) return;
    bool is_empty = model->input->kind == CLI_EMPTY && !model->is_dataset;
    if (page->models != 1 || is_empty) {
        page->code = cli_not_one(is_empty ? 0 : page->models, page->err);
    } else if (model->is_dataset) {
        page->code = sfti_misuse(page->err, "expected a model, found a dataset");
    } else if (model->err.code || !model->info) {
        *page->err = model->input->err ? *model->input->err : model->err;
        page->code = page->err->code;
    } else {
        page->code = sft_sink_limit_mode(&page->run->sink, cli_output_mode_of_model(model),
                                         page->err);
        if (!page->code) page->code = write_model(page, model);
    }
}

sft_code catalog_write_model(catalog_run *run, const char *path, sft_error *err) {
    model_page *page = sfti_take(&run->c->alloc, sizeof *page);
    char *operand = (char *)path;
    if (!page) return sfti_fail_memory(err, sizeof *page);
    memset(page, 0, sizeof *page);
    page->run = run;
    page->err = err;
    run->c->set.recursive = 0;
    cli_each_model(run->c, &operand, 1, &page->models, NULL, take_model, page);
    sft_code code = page->code;
    if (!code && run->page.at == 0)
        code = sfti_fail(err, SFT_CANCELLED, "cancelled");
    sfti_release(&run->c->alloc, page, sizeof *page);
    return code;
}
