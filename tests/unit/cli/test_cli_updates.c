/* What info --updates keeps of an answer, where memory runs out in the middle: all, or an error. */
#define _GNU_SOURCE
#include "unit/command_case.h"
#include "unit/make_file.h"
#include "unit/temp_dir.h"
#include "commands/info/online.h"

#define VERSIONS 10

static char here[512], answer[16384];

/* The nth piece is refused. */
typedef struct scarce {
    sft_allocator whole;
    size_t left;
    bool refused;
} scarce;

static void *resize_scarce(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    scarce *s = ctx;
    if (new_size > old_size && s->left-- == 0) {
        s->refused = true;
        return NULL;
    }
    return s->whole.resize(s->whole.ctx, ptr, old_size, new_size);
}

static int set_up(void **state) {
    test_file model = make_file("{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                                NULL, 1);
    if (!getcwd(here, sizeof here) || temp_dir_make(state) || chdir(temp_dir)) return 1;
    temp_write("a.safetensors", model.bytes, model.len);
    temp_write("b.safetensors", model.bytes, model.len);
    free(model.bytes);
    size_t len = (size_t)snprintf(answer, sizeof answer, "{'mode':'Archived','modelVersions':[");
    for (int i = 0; i < VERSIONS; i++)
        len += (size_t)snprintf(answer + len, sizeof answer - len,
                                "%s{'id':%d,'publishedAt':'2024-05-0%dT10:00:00','name':'%0400d'"
                                ",'baseModel':'%0300d'}", i ? "," : "", i + 2, i % 9 + 1, i, i);
    snprintf(answer + len, sizeof answer - len, "]}");
    return 0;
}

static int tear_down(void **state) { return chdir(here) || temp_dir_remove(state); }

/* What --json tells; empty: the model has an error. */
static void tell(scarce *memory, bool *failed, sft_buffer *out) {
    cli_update_counts counts = { 0 };
    cli_lookup lookup = { .is_pending = false };
    cli_online online = { .c = &command };
    cli_ask ask = { .state = CLI_ASK_KNOWN, .model_id = 1, .version_id = 1, .is_answered = true };
    sft_allocator own = { resize_scarce, memory };
    cli_model model = { .path = "a.safetensors", .found = &lookup, .arena.alloc = own };
    begin_command();
    command.set.format = CLI_JSON;
    command.wrapped = true;
    ask.model = json_of(answer);
    assert_int_equal(sft_set_open(model.path, NULL, &model.set, &model.err), SFT_OK);
    assert_int_equal(sft_info_open(model.set, model.path, NULL, NULL, &model.info, &model.err),
                     SFT_OK);
    assert_int_equal(cli_render_model(&command, &model), SFT_OK);
    cli_update_learn(&online, &model, &ask);
    *failed = model.err.code != SFT_OK;
    if (*failed) assert_int_equal(model.err.code, SFT_OUT_OF_MEMORY);
    else cli_update_show(&online, &model, &counts);
    const char *text = text_of(&command.out);
    out->len = 0;
    assert_true(sfti_buffer_put(out, text, strlen(text) + 1));
    cli_have_free(&online);
    sft_info_close(model.info);
    sft_set_close(model.set);
    sft_tree_free(model.tree);
    sfti_arena_free(&model.arena);
    end_command();
}

static void nothing_is_lost(void **state) {
    scarce memory = { sfti_allocator(NULL), SIZE_MAX, false };
    sft_buffer all = { .alloc = memory.whole }, some = { .alloc = memory.whole };
    bool failed;
    size_t n = 0;
    (void)state;
    tell(&memory, &failed, &all);
    assert_false(failed);
    assert_non_null(strstr(all.data, "Archived"));
    assert_non_null(strstr(all.data, "\"newer_count\":10"));
    for (memory.refused = true; memory.refused; n++) {
        memory.left = n;
        memory.refused = false;
        tell(&memory, &failed, &some);
        if (!failed) assert_string_equal(some.data, all.data);
        assert_true(failed == memory.refused);
    }
    assert_true(n > 2);
    sft_buffer_free(&all);
    sft_buffer_free(&some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_lost, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("info --updates without memory", tests, NULL, NULL);
}
