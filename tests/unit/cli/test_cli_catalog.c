/* Rows of a catalogue by the facts and failures of models; places, pictures and numbers of a
 * page. */
#define _GNU_SOURCE
#include "unit/command_case.h"
#include "unit/temp_dir.h"
#include "catalog/catalog.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#define TIMES_10(text) text text text text text text text text text text
#define DAY INT64_C(86400)

static catalog_places places;
static catalog_rows rows;

static void expect(const char *asked, sft_span found, const char *wanted) {
    if (!sft_span_equal(found, sft_span_cstr(wanted)))
        fail_msg("%s: expected \"%s\", found \"%.*s\"", asked, wanted, (int)found.len, found.data);
}

static void begin_rows(const char *operand) {
    char *operands[] = { (char *)operand };
    assert_int_equal(places_begin(&places, &command, operands, 1, "-", NULL), SFT_OK);
    rows_begin(&rows, &command, &places);
}

static void end_rows(void) {
    rows_free(&rows);
    places_free(&places);
}

/* Its row; result NULL: of a model that could not be read. */
static const catalog_row *row_of(const char *path, const char *result, const sft_error *err) {
    cli_model model = { .path = path, .tree = result ? tree_of(result) : NULL };
    if (err) model.err = *err;
    assert_int_equal(rows_add(&rows, &model, NULL, 0, NULL), SFT_OK);
    sft_tree_free(model.tree);
    return rows.rows[rows.count - 1];
}

static sft_span entry_of(rows_dict which, const catalog_row *row, bool label) {
    if (row->in[which] == DICT_NONE) return (sft_span){ "", 0 };
    const dict_entry *entry = &rows.dicts[which].entries[row->in[which]];
    return label ? entry->label : entry->text;
}

/* ── Facts ── */

static void entries_of_facts(void **state) {
    static const struct { const char *result; rows_dict which; const char *text, *label; }
    cases[] = {
        { "{'model':{'kind':'adapter'},'adapter':{'type':'lora'}}", ROWS_KIND, "adapter:lora",
          "LoRA" },
        { "{'model':{'kind':'adapter'}}", ROWS_KIND, "adapter", "adapter" },
        { "{'model':{'kind':'adapter'},'adapter':{'type':'" TIMES_10("longer") "'}}", ROWS_KIND,
          "adapter", "adapter" },
        { "{'model':{'kind':'vae'},'adapter':{'type':'lora'}}", ROWS_KIND, "vae", "VAE" },
        { "{'model':{'kind':'unknown'}}", ROWS_KIND, "unknown", "unknown" },
        { "{}", ROWS_KIND, "", "" },
        { "{'model':{'precision':'fp16'}}", ROWS_PRECISION, "fp16", "FP16" },
        { "{'model':{'precision':'mixed'}}", ROWS_PRECISION, "mixed", "mixed" },
        { "{'model':{'precision':'a:b'}}", ROWS_PRECISION, "a:b", "a:b" },
        { "{'model':{'kind':'checkpoint','architecture':'sdxl'}}", ROWS_BASE, "SDXL", "SDXL" },
        { "{'model':{'kind':'checkpoint','architecture':{'value':'sdxl','trust':50}}}", ROWS_BASE,
          "SDXL", "SDXL" }, /* without the mark of doubt */
        { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_checkpoint':'x.ckpt'}}",
          ROWS_BASE, "SDXL", "SDXL" },
        { "{'model':{'kind':'checkpoint','base_checkpoint':'x.ckpt'}}", ROWS_BASE, "x", "x" },
        { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':'Pony',"
          "'base_checkpoint':'x.ckpt'}}", ROWS_BASE, "Pony", "Pony" },
        { "{'hashes':{'computed':{'sha256':'abc'}}}", ROWS_WEIGHTS, "abc", "" },
        { "{'hashes':{'computed':{'sha256':'abc','content':'def'}}}", ROWS_WEIGHTS, "def", "" },
        { "{'hashes':{}}", ROWS_WEIGHTS, "", "" },
        { "{'model':{'license':'mit','author':'me'}}", ROWS_LICENCE, "mit", "" },
        { "{'model':{'license':'mit','author':'me'}}", ROWS_AUTHOR, "me", "" },
    };
    char text[900];
    (void)state;
    begin_rows("m");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const catalog_row *row = row_of("m/a.safetensors", cases[i].result, NULL);
        expect(cases[i].result, entry_of(cases[i].which, row, false), cases[i].text);
        expect(cases[i].result, entry_of(cases[i].which, row, true), cases[i].label);
    }
    snprintf(text, sizeof text, "{'model':{'precision':'%0300d'}}", 0);
    const catalog_row *row = row_of("m/a.safetensors", text, NULL);
    sft_span cut = entry_of(ROWS_PRECISION, row, false);
    assert_int_equal(cut.len, 256);
    assert_memory_equal(cut.data + 253, "\xE2\x80\xA6", 3);
    end_rows();
}

static void facts_of_rows(void **state) {
    static const struct { const char *result; uint32_t flags, words, tags; const char *name, *date,
                          *rating, *first, *hash[2]; } cases[] = {
        { "{}", 0, 0, 0, "a", "", "", "", { "", "" } },
        { "{'model':{'name':'N','date':'2024-05-31T10:00:00Z','rating':4.5,'favourite':true}}",
          ROW_FAVOURITE, 0, 0, "N", "2024-05-31", "4.5", "", { "", "" } },
        { "{'training':{'finished_at':'2023-01'},'conflicts':[{'field':'name'}],"
          "'civitai':{'model_id':7}}", ROW_CONFLICTS | ROW_ON_CIVITAI, 0, 0, "a", "2023-01", "", "",
          { "", "" } },
        { "{'conflicts':[],'hashes':{'mismatches':[{'known':'pruned'},{'known':null}]},'sidecars':"
          "[{'kind':'civitai.info'},{'kind':'own.json'}]}", ROW_DIFFERS | ROW_NOTED, 0, 0, "a", "",
          "", "", { "", "" } },
        { "{'hashes':{'mismatches':[{'known':'pruned'}]},'sidecars':[{'kind':'readme'}]}", 0, 0, 0,
          "a", "", "", "", { "", "" } },
        { "{'hashes':{'computed':{'sha256':'0123456789abcdef','autov3':'fed'}}}", ROW_HASHED, 0, 0,
          "a", "", "", "", { "0123456789ab", "fed" } },
        { "{'hashes':{'recorded':[{'algo':'sha256','value':'aa'},{'algo':'autov3','value':'bb'}]}}",
          0, 0, 0, "a", "", "", "", { "", "bb" } },
        { "{'hashes':{'recorded':[{'algo':'crc32','value':'aa'}]}}", 0, 0, 0, "a", "", "", "",
          { "", "" } },
        /* declared words, or else those of captions */
        { "{'trigger_words':[{'text':'c','coverage':0.5},{'text':'d','coverage':null},"
          "{'text':'e'}]}", 0, 2, 0, "a", "", "", "d", { "", "" } },
        { "{'trigger_words':[{'text':'c','coverage':0.5},{'text':'e','coverage':1}]}", 0, 2, 0, "a",
          "", "", "c", { "", "" } },
        { "{'trigger_words':[{'text':'1'},{'text':'2'},{'text':'3'},{'text':'4'}]}", 0, 4, 0, "a",
          "", "", "1", { "", "" } },
        { "{'model':{'tags':{'value':['x','','y']}}}", 0, 0, 2, "a", "", "", "", { "", "" } },
    };
    char many[1024] = "{'model':{'tags':{'value':['t'";
    (void)state;
    begin_rows("m");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const catalog_row *row = row_of("m/a.safetensors", cases[i].result, NULL);
        const char *asked = cases[i].result;
        if (row->flags != cases[i].flags) fail_msg("%s: flags %u", asked, (unsigned)row->flags);
        assert_int_equal(row->word_count, cases[i].words);
        assert_int_equal(row->tag_count, cases[i].tags);
        expect(asked, row->name, cases[i].name);
        expect(asked, row->date, cases[i].date);
        expect(asked, row->rating, cases[i].rating);
        if (row->word_count) expect(asked, row->words[0], cases[i].first);
        for (size_t k = 0; k < 2; k++)
            expect(asked, sft_span_cstr(row->hash[k]), cases[i].hash[k]);
        assert_true(row->bytes == UINT64_MAX && row->rank == UINT64_MAX);
    }
    for (size_t i = 0, len = strlen(many); i < 40; i++)
        len += (size_t)snprintf(many + len, sizeof many - len, ",'t%zu'", i);
    strcat(many, "]}}}");
    assert_int_equal(row_of("m/a.safetensors", many, NULL)->tag_count, ROW_TAGS);
    end_rows();
}

static void rows_are_written(void **state) {
    static const char *const parts[] = {
        ("<tr><td><bdi>N &amp; M</bdi><td><bdi>m/sub/a.safetensors</bdi><td><bdi></bdi><td>"
         "<bdi>1</bdi>, <bdi>2</bdi>, <bdi>3</bdi>\n"), /* the fourth is only counted */
        "<bdi>m/b.safetensors</bdi><td><bdi></bdi><td>damaged\n",
        "\"count\":2,", "\"kind\":[[\"adapter:lora\",\"LoRA\"]]", "\"folder\":[\"m\",\"m/sub\"]",
        "\"name\":[\"N \\u0026 M\",\"b\"]", "\"words\":[[\"1\",\"2\",\"3\"],[]]",
        "\"word_count\":[4,0]", "\"rating\":[4.5,-1]", "\"rank\":[8,-1]", "\"kind\":[0,-1]",
        "\"what\":[\"LoRA r8\",\"\"]", "\"error\":{\"1\":\"it says\"}",
        "\"fault\":{\"1\":[\"warn\",\"damaged\"]}",
    };
    sft_error err = { .code = SFT_JSON_SYNTAX };
    html_page page;
    (void)state;
    begin_rows("m");
    row_of("m/sub/a.safetensors",
           "{'model':{'name':'N & M','kind':'adapter','rating':4.5},'adapter':{'type':'lora',"
      "'rank':"
           "{'min':8,'max':8}},"
      "'trigger_words':[{'text':'1'},{'text':'2'},{'text':'3'},{'text':'4'}]}",
           NULL);
    strcpy(err.message, "it says");
    row_of("m/b.safetensors", NULL, &err);
    html_begin(&page, HTML_CATALOG, sft_sink_memory(&printed), "T", &command.alloc, &err);
    assert_int_equal(rows_write(&rows, &page, "T", DETAILS_MODELS, &err), SFT_OK);
    assert_int_equal(html_end(&page), SFT_OK);
    const char *text = text_of(&command.out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("%s is not in the page: %.900s", parts[i], strstr(text, "<noscript>"));
    end_rows();
}

/* ── Details ── */

typedef struct detail_case {
    const char *result; /* of d/neon.safetensors */
    const char *has[4], *lacks; /* in its block; NULL: nothing more */
} detail_case;

/* Facts without what is empty, bounded; what was cut is named. */
static void details_of_models(void **state) {
    static const detail_case cases[] = {
        { "{'trigger_words':[{'text':'','group':1},{'text':'neon','folder':'f'},{'text':'x',"
      "'words':"
          "['y']}]}", { "\"neon\"", "[\"text\",\"folder\"]", "[\"text\"]" }, "group" },
        { "{'frequent_tags':[{'tag':null},{'tag':'rain','count':2}]}", { "\"rain\"",
          "[\"tag\",\"count\"]" }, NULL },
        { "{'file':{'bytes':7,'header_bytes':3},'model':null,'links':[],'metadata':{'k':'v'}}",
          { "[\"path\",\"file\",\"cut\"]", "[\"bytes\"]" }, "header_bytes" },
        { "{'merge':{'recipe':{'" TIMES_10("longer-key") "':1,'k':'short'},'tool':'t'}}",
          { "\"short\"", "[-1,\"recipe\"]", "\"t\"" }, "longer-key" },
        { "{'merge':{'recipe':[[[[[[[[['deep']]]]]]]]],'tool':'t'}}",
          { "[-1,\"recipe\"]", "\"t\"" }, "deep" },
        { "{'merge':{'recipe':[" TIMES_10("1,2,3,") "4]}}",
          { "[-1,1,2,3,1,2,3,1,2,3,1,2,3]", "[-1,\"recipe\"]" }, NULL },
        { "{'merge':{'recipe':{'a':" TIMES_10("[[") "1" TIMES_10("]]") "}}}",
          { "[-1,\"recipe\"]" }, NULL },
        { "{'model':{'name':{'value':'N','source':'sidecar:neon.json:/x','trust':90},'author':"
          "{'value':'A','source':'sidecar:neonx.json:/x','trust':80},'license':{'value':'mit',"
          "'source':'','trust':70}}}", { "\"sources\":[\"sidecar:*.json:/x\","
          "\"sidecar:neonx.json:/x\",\"?\"]", "[-1,\"N\",0,90]", "[-1,\"A\",1,80]",
          "[-1,\"mit\",2,70]" }, NULL },
        { "{'model':{'name':{'value':'N','source':'a','trust':90,'others':[{'value':'M','source':"
          "'b','trust':50},{'value':null,'source':'c','trust':5},{'value':'K','source':'d','trust':"
          "4},{'value':'L','source':'e','trust':3}]}}}",
          { "[-1,\"N\",0,90,[-1,[-1,\"M\",1,50],[-1,\"K\",2,4]]]" }, "\"L\"" },
        { "{'sidecars':[{'path':'d/e/neon.json','kind':'own.json'}]}", { "\"neon.json\"" }, "d/e" },
        { "{'model':{'description':{'value':'" TIMES_10(TIMES_10(TIMES_10("abc ")))
          "','source':'s','trust':9}}}", { "abc a\xE2\x80\xA6\"", "[-1,\"description\"]" }, NULL },
        { "{'model':{'evidence':[],'notes':[{'text':'wet'}]}}", { "\"wet\"" }, "evidence" },
        { "{'model':{'tags':{'value':[],'source':'s','trust':9}}}", { "[-1,[-1],0,9]" }, NULL },
        { "{'trigger_words':[{'group':null,'text':'neon'},{'group':'','words':[]}]}",
          { "[[0,\"d/neon.safetensors\",[-1,[1,\"neon\"]],[-1]]]" }, NULL },
    };
    char many[4000] = "{'merge':{'recipe':{'n':[0", json[20000];
    (void)state;
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        const bool last = i == sizeof cases / sizeof *cases;
        const detail_case *one = &cases[last ? 0 : i];
        catalog_details *details = calloc(1, sizeof *details);
        html_page page;
        sft_error err = SFT_ERROR_INIT;
        if (last) { /* 60 lists of 11 are more values than are looked at */
            for (int k = 0; k < 9; k++) strcat(many, ",0");
            snprintf(json, sizeof json, "%s]", many);
            for (int k = 0; k < 47; k++)
                sprintf(json + strlen(json), ",'n%d':[1,2,3,4,5,6,7,8,9,10,11]", k);
            strcat(json, "}}}");
        }
        cli_model model = { .path = "d/neon.safetensors",
                            .tree = tree_of(last ? json : one->result) };
        html_begin(&page, HTML_CATALOG, sft_sink_memory(&printed), "T", &command.alloc, &err);
        details_begin(details, &page, &command.alloc, &err);
        assert_int_equal(details_add(details, &model, sft_span_cstr(model.path), NULL, 0, 0),
                         SFT_OK);
        assert_int_equal(details_end(details), SFT_OK);
        assert_int_equal(html_end(&page), SFT_OK);
        const char *block = strstr(text_of(&command.out), "id=\"more-0\"");
        assert_non_null(block);
        printed.data[strstr(block, "</script>") - printed.data] = '\0';
        if (last && !strstr(block, "[1],[-1,\"merge\"]]")) fail_msg("%.600s", block);
        for (size_t k = 0; !last && k < 4 && one->has[k]; k++)
            if (!strstr(block, one->has[k]))
                fail_msg("%s: expected %s, found %.1500s", one->result, one->has[k], block);
        if (!last && one->lacks && strstr(block, one->lacks))
            fail_msg("%s: found %s: %.1500s", one->result, one->lacks, block);
        details_free(details);
        free(details);
        sft_tree_free(model.tree);
    }
}

/* ── Failures ── */

static void faults_of_rows(void **state) {
    static const struct { sft_error err; const char *id, *label; bool empty; } cases[] = {
        { { .code = SFT_HEADER_TOO_SMALL }, "file", "empty", true },
        { { .code = SFT_EDIT_BUSY }, "warn", "half edited", true },
        { { .code = SFT_HEADER_TOO_SMALL }, "cut", "cut short", false },
        { { .code = SFT_JSON_SYNTAX, .needed = 99 }, "cut", "cut short", false },
        { { .code = SFT_IO_OPEN, .os_errno = EACCES }, "hidden", "no access", false },
        { { .code = SFT_IO_OPEN, .os_errno = EPERM }, "hidden", "no access", false },
        { { .code = SFT_IO_OPEN, .os_errno = ENOENT }, "help", "gone", false },
        { { .code = SFT_INDEX_SHARD_MISSING, .os_errno = ENOENT }, "help", "incomplete", false },
        { { .code = SFT_IO_OPEN, .os_errno = EIO }, "warn", "unreadable", false },
        { { .code = SFT_HEADER_TRUNCATED, .offset = 2 }, "warn", "damaged", false },
        { { .code = SFT_HEADER_TRUNCATED, .offset = 3 }, "cut", "cut short", false },
        { { .code = SFT_JSON_SYNTAX, .hint = SFT_HINT_DOWNLOAD_AGAIN }, "cut", "never filled",
          false },
        { { .code = SFT_JSON_SYNTAX }, "warn", "damaged", false },
        { { .code = SFT_FOUND_HTML }, "page", "web page", false },
        { { .code = SFT_REMOTE_DENIED }, "hidden", "no access", false },
        { { .code = SFT_EDIT_BUSY }, "warn", "half edited", false },
    };
    (void)state;
    temp_write("empty.safetensors", "", 0);
    temp_write("full.safetensors", "abc", 3);
    begin_rows(temp_dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_error err = cases[i].err;
        strcpy(err.message, "what it says");
        const char *path = temp_path(cases[i].empty ? "empty.safetensors" : "full.safetensors");
        const catalog_row *row = row_of(path, i % 2 ? "{}" : NULL, &err);
        assert_string_equal(row->fault->id, cases[i].id);
        assert_string_equal(row->fault->label, cases[i].label);
        assert_int_equal(row->bytes, cases[i].empty ? 0 : 3);
        assert_int_equal(row->flags, ROW_BROKEN);
        assert_int_equal(row->in[ROWS_KIND], DICT_NONE);
        expect("error", row->error, "what it says");
        expect("name", row->name, cases[i].empty ? "empty" : "full");
    }
    sft_error cut = { .code = SFT_HEADER_TRUNCATED, .offset = 2 };
    assert_string_equal(row_of(temp_path("gone.safetensors"), NULL, &cut)->fault->label,
                        "cut short"); /* of how many bytes is not known */
    end_rows();
}

static void times_of_rows(void **state) {
    static const struct { int64_t seconds, day; } cases[] = {
        { 0, 0 }, { DAY - 1, 0 }, { 19874 * DAY + 5, 19874 }, { -1, -1 },
    };
    (void)state;
    temp_write("a.safetensors", "abc", 3);
    begin_rows(temp_dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct timespec times[2] = { { .tv_sec = 0 }, { .tv_sec = cases[i].seconds } };
        assert_int_equal(utimensat(AT_FDCWD, temp_path("a.safetensors"), times, 0), 0);
        assert_int_equal(row_of(temp_path("a.safetensors"), "{}", NULL)->modified, cases[i].day);
    }
    assert_int_equal(row_of(temp_path("none.safetensors"), "{}", NULL)->modified, -1);
    assert_int_equal(row_of(temp_dir, "{}", NULL)->modified, -1); /* a folder's says nothing */
    assert_int_equal(rows.newest, 19874);
    end_rows();
}

/* ── Places ── */

/* Of several roots: the models' folders begin with how they are told apart. */
static void folders_of_rows(void **state) {
    static const struct { const char *path, *folder; } cases[] = {
        { "one/a.safetensors", "one" }, { "one/x/y/a.safetensors", "one/x/y" },
        { "far/one/a.safetensors", "far/one" }, { "far/one/z/a.safetensors", "far/one/z" },
        { "far/a.safetensors", "far" }, { "one", "one" },
    };
    char here[512], long_path[5000] = "one/";
    char *operands[] = { "one", "one/", "far/one", "-", "far/b.safetensors" };
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(temp_dir), 0);
    assert_int_equal(mkdir("one", 0777) | mkdir("far", 0777) | mkdir("far/one", 0777), 0);
    assert_int_equal(places_begin(&places, &command, operands, 5, "one/page.html", NULL), SFT_OK);
    assert_int_equal(places.count, 3);
    assert_int_equal(places.labels, 3);
    expect("label", places_label(&places, 0), "one");
    expect("label", places_label(&places, 1), "far/one");
    expect("label", places_label(&places, 2), "far");
    rows_begin(&rows, &command, &places);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i].path, entry_of(ROWS_FOLDER, row_of(cases[i].path, "{}", NULL), false),
               cases[i].folder);
    memset(long_path + 4, 'x', sizeof long_path - 6);
    strcpy(long_path + sizeof long_path - 3, "/a"); /* without the label that has no room */
    sft_span folder = entry_of(ROWS_FOLDER, row_of(long_path, "{}", NULL), false);
    assert_int_equal(folder.len, sizeof long_path - 7);

    static const struct { const char *path, *from_page; } links[] = {
        { "one/a.safetensors", "a.safetensors" }, { "far/one/b.x", "../far/one/b.x" },
        { "c.x", "../c.x" }, { "none/c.x", "none/c.x" }, { "one/", "one/" },
    };
    char real[CLI_REAL_SIZE];
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        sft_span out;
        assert_int_equal(catalog_path(&places, links[i].path, &rows.arena, &out, NULL), SFT_OK);
        expect(links[i].path, out, links[i].from_page);
    }
    temp_write("one/a", "x", 1);
    assert_int_equal(symlink("one/a", "link") | symlink("nowhere", "torn"), 0);
    assert_true(places_real(&places, "link", real));
    assert_true(places_has(&places, real));
    assert_true(places_real(&places, "one/a", real));
    assert_true(places_has(&places, real));
    assert_false(places_real(&places, "torn", real));
    assert_false(places_real(&places, "none", real));
    assert_false(places_has(&places, places.roots[0].real)); /* a root is not below itself */
    assert_false(places_has(&places, "/"));
    end_rows();

    /* One folder by two ways has one label; a file of the current folder. */
    char *same[] = { "one", "./one", "c.x", "far/none/x" };
    assert_int_equal(places_begin(&places, &command, same, 4, "none/page.html", NULL), SFT_OK);
    assert_int_equal(places.count, 4);
    assert_int_equal(places.labels, 3);
    expect("label", places.roots[1].label, "one");
    assert_string_equal(places.roots[2].given, ".");
    assert_null(places.page);
    sft_span out;
    sfti_arena arena = { .alloc = command.alloc };
    assert_int_equal(catalog_path(&places, "one/a", &arena, &out, NULL), SFT_OK);
    assert_memory_equal(out.data, temp_dir + 1, strlen(temp_dir) - 1); /* from the root on */
    sfti_arena_free(&arena);
    places_free(&places);
    assert_int_equal(unlink("link") | unlink("torn") | unlink("one/a") | rmdir("far/one"), 0);
    assert_int_equal(chdir(here), 0);
}

/* ── Texts, numbers, pictures ── */

static void small_texts(void **state) {
    static const struct { double value; const char *json; } numbers[] = {
        { 0.1, "0.1" }, { NAN, "\"NaN\"" }, { INFINITY, "\"Infinity\"" },
        { -INFINITY, "\"-Infinity\"" }, { 1e300, "1e+300" }, { 123456789.5, "123456790" },
    };
    static const struct { const char *name, *stem; } stems[] = {
        { "a.b.c", "a.b" }, { "a", "a" }, { ".hidden", ".hidden" }, { "", "" }, { "a.", "a" },
    };
    static const struct { catalog_picture picture; const char *json; } pictures[] = {
        { { .href = "a.png", .width = 3, .height = 4, .level = 2, .bytes = 99 },
          "{'href':'a.png','width':3,'height':4,'level':2,'bytes':99}" },
        { { .number = 5 }, "{'href':5}" },
        { { .href = "a.mp4", .is_video = true }, "{'href':'a.mp4','video':true}" },
        { { .href = "a.png", .why = "too large", .bytes = 7 },
          "{'href':'','bytes':7,'why':'too large'}" },
    };
    static const struct { const char *asked; uint64_t most; } embeds[] = {
        { NULL, PICTURES_EMBED }, { "", PICTURES_EMBED }, { "1", 1024 }, { "0", 0 },
        { "65536", UINT64_C(65536) << 10 }, { "65537", 0 }, { "x", 0 },
    };
    sft_sink sink = sft_sink_memory(&printed);
    sfti_json_writer w;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sfti_json_write(&w, &sink, 0, NULL);
        catalog_double(&w, numbers[i].value);
        assert_int_equal(sfti_json_done(&w), SFT_OK);
        assert_string_equal(text_of(&command.out), numbers[i].json);
    }
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        sfti_json_write(&w, &sink, 0, NULL);
        picture_json(&w, &pictures[i].picture);
        assert_int_equal(sfti_json_done(&w), SFT_OK);
        assert_string_equal(text_of(&command.out), json_of(pictures[i].json).data);
    }
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        expect(stems[i].name, text_stem(sft_span_cstr(stems[i].name)), stems[i].stem);
    for (size_t i = 0; i < sizeof embeds / sizeof *embeds; i++) {
        catalog_pictures all;
        bool refused = i >= 5;
        command.set.embed = embeds[i].asked;
        assert_int_equal(pictures_begin(&all, &command, NULL), refused ? SFT_BAD_ARGUMENT : SFT_OK);
        if (!refused) assert_int_equal(all.most, embeds[i].most);
        assert_int_equal(all.embeds, i > 0);
    }
    command.set.embed = NULL;
}

static int set_up(void **state) {
    begin_command();
    return temp_dir_make(state);
}

static int tear_down(void **state) {
    end_command();
    return temp_dir_remove(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(entries_of_facts), TEST(facts_of_rows), TEST(faults_of_rows),
        TEST(times_of_rows),    TEST(small_texts),   TEST(folders_of_rows),
        TEST(rows_are_written), TEST(details_of_models),
    };
    return cmocka_run_group_tests_name("rows and places of a catalogue", tests, NULL, NULL);
}
