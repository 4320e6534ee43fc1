/* Conditions of --where over results, and the names of fields. */
#include "unit/command_case.h"
#include "support/where.h"

/* ── Conditions ── */

static const char result[] =
    "{'path':'a/neon.safetensors','file':{'bytes':6740000000},'model':{'kind':'adapter',"
    "'architecture':{'value':'sdxl','trust':90},'variant':{'value':'14b+high-noise+i2v'},"
    "'name':{'value':'Neon City'},'date':{'value':'2024-05-31T12:30:00.5Z'},'nsfw':{'value':true},"
    "'tags':{'value':['rain','street level']},'parameters':6740000000,'size':'full',"
    "'notes':[{'text':'wet','source':null}],'evidence':[]},'adapter':{'rank':{'mode':16}},"
    "'training':{'started_at':'2024-05','finished_at':'not a day'},"
    "'trigger_words':[{'text':'neoncty'},{'text':'lights'}],"
    "'prompts':{'a1111':null},'metadata':{'n':'-5','p':'+1e3','m':'2.5E-1','e':'1e','t':'x','z':'',"
    "'12a':'odd','d':'2024-05-31 12:30','a.b':{'c':'dots'},'l':[['in'],[]],"
      "'big':'18446744073709551617',"
    "'deep':[[[[[[[[[[[[[[[[[[{'k':'v'}]]]]]]]]]]]]]]]]]],'near':[[{'k':'v'}]]}}";

typedef struct where_case {
    const char *condition;
    bool fits;
} where_case;

static const where_case wheres[] = {
    { "variant=i2v", true }, { "variant=I2V+14b", true }, { "variant=t2v", false },
    { "variant=i2v+t2v", false }, { "variant!=t2v", true }, { "variant~noise", true },
    { "name= neon city ", true }, { "name==Neon City", true }, { "name=Neon", false },
    { "name~CITY", true }, { "name~cities of all kinds", false }, { "name=", false },
    { "name!=", true }, { "author=", true }, { "author!=x", true }, { "author=x", false },
    { "tags=rain", true }, { "tags~street", true }, { "tags=sun", false }, { "tags!=rain", false },
    /* numbers: with a unit, what rounds to it */
    { "parameters=7B", true }, { "parameters=6.7B", true }, { "parameters=6.8B", false },
    { "parameters=6.74B", true }, { "parameters>=7B", true }, { "parameters<=7B", true },
    { "parameters<7B", true }, { "parameters>7B", false }, { "parameters<6.7B", false },
    { "parameters>6700 M", true }, { "parameters=6740000000", true }, { "parameters=6.74e9", true },
    { "parameters=6740000001", false }, { "bytes>6GiB", true }, { "bytes=6.74gb", true },
    { "bytes<1 EB", true }, { "rank=16", true }, { "rank=+16", true }, { "rank>-1", true },
    { "rank<1.6e1", false }, { "rank<=1.6E+1", true }, { "rank>=1600e-2", true },
    { "rank>=17", false },
    { "rank<=15", false }, { "trigger_words.group>0", false },
    /* dates: what is less exact cannot be told apart */
    { "date=2024", true }, { "date=2024-05-31T12:30Z", true }, { "date>2024-05", false },
    { "date>=2024-05", true }, { "date<2024-06", true }, { "date<=2024-05-31 12:29", false },
    { "date>2023-12-31", true }, { "training.started_at=2024-05-31", false },
    { "training.started_at<2024-06-01", true }, { "training.started_at>=2024-05-31", false },
    { "training.finished_at>2000", false }, { "training.finished_at=2000", false },
    { "nsfw=yes", true }, { "nsfw=1", true }, { "nsfw=No", false }, { "nsfw!=false", true },
    { "size=FULL", true }, { "size=pruned", false }, { "size!=pruned", true },
    /* metadata: each value says what it is */
    { "metadata.n<0", true }, { "metadata.n=-5.0", true }, { "metadata.n>-1K", true },
    { "metadata.p=1000", true }, { "metadata.p>=1K", true }, { "metadata.m<0.3", true },
    { "metadata.m=.25", true }, { "metadata.e<5", false }, { "metadata.e=1e", true },
    { "metadata.t<5", false }, { "metadata.t=X", true }, { "metadata.t~5", false },
    { "metadata.z=5", false }, { "metadata.z>2023", false },
    { "metadata.d=2024-05-31T12:30", true },
    { "metadata.d>2024-05-31 12:29", true }, { "metadata.d<2024-05-30", false },
    { "metadata.12a=odd", true }, { "metadata.a.b.c=dots", true }, { "metadata.a.c=dots", false },
    { "metadata.l.0.0=in", true }, { "metadata.l.0.4294967296000=in", false },
    { "metadata.l.0.1=in", false }, { "metadata.near.k=v", true },
    { "metadata.deep.k=v", false /* lists in lists in lists: not entered */ },
    { "metadata.t.u=x", false }, { "prompts.a1111=", true }, { "notes=wet", true },
    { "model.notes.text=wet", true }, { "evidence=", true },
    { "trigger_words.1.text=lights", true },
    { "trigger_words.0.text=lights", false }, { "trigger_words=lights", true },
    { "file~6740000000", true },
};

static sft_code read_where(const char *condition, cli_wheres *out, sft_error *err) {
    command.set.where = (cli_words){ 1, { condition } };
    return cli_where_read(&command, out, err);
}

static void conditions_hold(void **state) {
    size_t wrong = 0;
    (void)state;
    sft_tree *tree = tree_of(result);
    for (size_t i = 0; i < sizeof wheres / sizeof *wheres; i++) {
        cli_wheres all;
        sft_error err = SFT_ERROR_INIT;
        if (read_where(wheres[i].condition, &all, &err)) {
            print_error("%s: %s\n", wheres[i].condition, err.message);
            wrong++;
        } else if (cli_wheres_fit(&command, &all, sft_tree_root(tree)) != wheres[i].fits) {
            print_error("%s: expected %s\n", wheres[i].condition, wheres[i].fits ? "yes" : "no");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    sft_tree_free(tree);
}

typedef struct refused_case {
    const char *condition, *says;
} refused_case;

static const refused_case refused[] = {
    { "bytes>", "a size such as" }, { "bytes>5XB", "a size such as" },
    { "bytes>1e308EB", "a size such as" }, { "bytes>1e30EB", "below 2^64" },
    { "rank>-1e30", "below 2^64" }, { "metadata.x=1e20", "below 2^64" },
    { "rank>1111111111222222222233333333334444444444555555555566666666667777",
      "a number such as" },
    { "rank>-", "a number such as" }, { "rank>.", "a number such as" },
    { "rank>e5", "a number such as" }, { "rank=5e", "a number such as" },
    { "date>2024-05Z", "a date such as" }, { "date=2024-05-31T12:30+02:00", "a date such as" },
    { "date>2024-05-31T12:61", "a date such as" }, { "date>2024/05", "a date such as" },
    { "date=2024-02-00", "a date such as" }, { "date=2024-05-31Z", "a date such as" },
    { "date=2024-05-31x12:30", "a date such as" }, { "nsfw=maybe", "true or false" },
    { "nsfw<true", "= or !=" }, { "rank~1", "=, !=, <" }, { "name<x", "=, != or ~" },
    { "size>1GB", "did you mean bytes?" }, { "size=big", "one of full, pruned" },
    { "name~", "a part of a text" }, { "name", "FIELD=VALUE" },
    { "nmae", "did you mean \"name\"?" },
    { "nmae=x", "did you mean \"name\"?" }, { "=x", "a field such as" },
    { "metadata.x<y", "=, != or ~" }, { "metadata.x>", "=, != or ~" },
    { "path.x=1", "a field such as" }, { "trigger_words.0a=x", "a field such as" },
    { "trigger_words.0.1=x", "a field such as" }, { "base=x", "did you mean \"base_model\"?" },
    { "rank.max=1", "did you mean \"adapter.rank.max\"?" },
    { "training.epoc=1", "did you mean \"training.epoch\"?" },
    { "model.=x", "a field such as" },
};

static void conditions_refused(void **state) {
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cli_wheres all;
        sft_error err = SFT_ERROR_INIT;
        sft_code code = read_where(refused[i].condition, &all, &err);
        if (code == SFT_BAD_ARGUMENT && strstr(err.message, refused[i].says)) continue;
        print_error("%s: expected \"%s\", found %d \"%s\"\n", refused[i].condition, refused[i].says,
                    code, err.message);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* All must hold; metadata is asked for by any of them. */
static void conditions_together(void **state) {
    static const char *const pairs[][2] = { { "name~neon", "rank=16" }, { "metadata.t=x",
      "rank=17" } };
    (void)state;
    sft_tree *tree = tree_of(result);
    for (size_t i = 0; i < 2; i++) {
        cli_wheres all;
        command.wants_metadata = false;
        command.set.where = (cli_words){ 2, { pairs[i][0], pairs[i][1] } };
        assert_int_equal(cli_where_read(&command, &all, NULL), SFT_OK);
        assert_int_equal(cli_wheres_fit(&command, &all, sft_tree_root(tree)), i == 0);
        assert_int_equal(command.wants_metadata, i == 1);
    }
    sft_tree_free(tree);
}

/* A value that the field is not known to have is noted once it is like a known one. */
static void values_unknown(void **state) {
    static const refused_case cases[] = {
        { "architecture=sdxll",
      "no known architecture is called \"sdxll\": did you mean \"sdxl\"?" },
        { "architecture=noobai", "did you mean \"base_model=NoobAI\"?" },
        { "architecture=animagine", "" }, { "architecture=SDXL", "" }, { "architecture=qqqqqq",
      "" },
        { "base_model=whatever", "" }, { "name=whatever", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_wheres all;
        assert_int_equal(read_where(cases[i].condition, &all, NULL), SFT_OK);
        const char *note = text_of(&command.err);
        if (*cases[i].says ? !strstr(note, cases[i].says) : *note)
            fail_msg("%s: expected \"%s\", found \"%s\"", cases[i].condition, cases[i].says, note);
    }
}

/* ── Fields ── */

static void lists_of_fields(void **state) {
    static const char long_index[] = "conflicts.0.candidates."
        "00000000000000000000000000000000000000000000000000.nosuch";
    char many[CLI_FIELDS_MOST * 5 + 8] = "";
    cli_fields fields;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < CLI_FIELDS_MOST; i++) strcat(many, i ? ",name" : "name");
    assert_int_equal(cli_fields_parse(many, &fields, &err), SFT_OK);
    assert_int_equal(fields.count, CLI_FIELDS_MOST);
    strcat(many, ",rank");
    assert_int_equal(cli_fields_parse(many, &fields, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected at most 64 fields");
    assert_int_equal(cli_fields_parse("name,", &fields, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(cli_fields_parse(long_index, &fields, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "nosuch\""));
    assert_null(strstr(err.message, "did you mean")); /* its path would not fit */
}

/* Lists with | between, objects as JSON, what pastes into a prompt as it is. */
static void lines_of_fields(void **state) {
    static const char text[] =
        "{'path':'=x\\ty','model':{'tags':{'value':['a','b\\\\\\n']},'alpha':null},"
        "'file':{'dtypes':{'F16':{'tensors':1}}},'civitai':{'permissions':{}},"
        "'links':[{'source':null,'model_id':7},{'url':'http://x/'}],'parts':[{'ok':true}],"
        "'prompts':{'a1111':'(a\\\\)','comfy':'c'}}";
    static const struct { const char *fields; bool safe, table; const char *line; size_t known; }
    cases[] = {
        { "path,tags", false, false, "=x\\ty\ta | b\\\\\\n\n", 2 },
        { "path", true, false, "'=x\\ty\n", 1 }, { "path", true, true, "'=x\\ty\n", 1 },
        { "name,rank", false, false, "\t\n", 0 },
        { "file.dtypes,links", false, false, "{\"F16\":{\"tensors\":1}}\t{\"source\":null,"
          "\"model_id\":7} | http://x/\n", 2 },
        { "a1111,comfy", false, false, "(a\\)\tc\n", 2 }, { "a1111", false, true, "(a\\\\)\n", 1 },
        { "metadata,civitai.permissions", false, false, "\t{}\n", 1 },
        { "parts", false, false, "{\"ok\":true}\n", 1 },
    };
    (void)state;
    sft_tree *tree = tree_of(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_fields fields;
        assert_int_equal(cli_fields_parse(cases[i].fields, &fields, NULL), SFT_OK);
        command.set.format = cases[i].table ? CLI_TSV : CLI_HUMAN;
        assert_int_equal(cli_fields_line(&command, sft_tree_root(tree), &fields, cases[i].safe),
                         cases[i].known);
        assert_string_equal(text_of(&command.out), cases[i].line);
    }
    command.set.format = CLI_HUMAN;
    sft_tree_free(tree);
}

static int set_up(void **state) {
    (void)state;
    begin_command();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    end_command();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_hold),     cmocka_unit_test(conditions_refused),
        cmocka_unit_test(conditions_together), cmocka_unit_test(values_unknown),
        cmocka_unit_test(lists_of_fields),     cmocka_unit_test(lines_of_fields),
    };
    return cmocka_run_group_tests_name("--where and fields", tests, set_up, tear_down);
}
