/* Reads the text that records.cmake made of data/ and writes what was read as C:
 * records_tables TEXT OUT. Of a text that is wrong nothing is written: test_records tells where. */
#include "label/records/made.h"
#include "label/tensors/fitting.h"

#include <stdio.h>
#include <stdlib.h>

static char text[4 << 20];
const unsigned char sfti_built_in_text[] = { 0 }; /* no row here is read from it */

static void put_numbers(FILE *out, const char *type, const char *name, const void *numbers,
                        size_t each, size_t count) {
    fprintf(out, "static const %s %s[] = {", type, name);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = each == 2 ? ((const uint16_t *)numbers)[i]
                                    : ((const uint32_t *)numbers)[i];
        fprintf(out, "%s%lu,", i % 16 ? "" : "\n    ", (unsigned long)number);
    }
    fprintf(out, "\n};\n");
}

static void put_records(FILE *out, const sfti_records *records) {
    unsigned long at = 0;
    fprintf(out, "static const char made_ids[] = {");
    for (size_t i = 0; i < records->record_count; i++) {
        if (i % 4 == 0) fprintf(out, "\n    ");
        for (const char *id = records->records[i].id; id; id = *id ? id + 1 : NULL)
            fprintf(out, "%d,", *id);
    }
    fprintf(out, "\n};\nstatic const sfti_made_record made_list[] = {\n");
    for (size_t i = 0; i < records->record_count; i++) {
        const sfti_record *one = &records->records[i];
        fprintf(out, "    { %lu, %ld, %d, %d, %d, %d, %d, %d },\n", one->id ? at : 0xFFFFFFFF,
                one->label.len ? (long)(one->label.data - text) : 0, (int)one->label.len,
                one->parent ? (int)(one->parent - records->records) + 1 : 0, one->first,
                one->count, (int)one->type, (int)one->kin);
        at += one->id ? (unsigned long)strlen(one->id) + 1 : 0;
    }
    fprintf(out, "};\n");
}

static void put_lines(FILE *out, const sfti_fit_lines *cut) {
    fprintf(out, "static const sfti_fit_line made_lines[] = {\n");
    for (size_t i = 0; i < cut->count; i++) {
        const sfti_fit_line *one = &cut->lines[i];
        fprintf(out, "    { {");
        for (size_t b = 0; b < SFTI_FIT_BEGINS; b++)
            fprintf(out, " %lluu,", (unsigned long long)one->begins[b]);
        fprintf(out, " }, { %lluu, %lluu }, %d, %d, %d, %d },\n",
                (unsigned long long)one->sizes[0], (unsigned long long)one->sizes[1], one->at,
                one->len, one->row, one->model);
    }
    fprintf(out, "};\nstatic const sfti_fit_base made_models[] = {\n");
    for (size_t i = 0; i < cut->model_count; i++)
        fprintf(out, "    { %d, %d },\n", cut->models[i].record, cut->models[i].of);
    fprintf(out, "};\n");
    put_numbers(out, "uint16_t", "made_heirs", cut->heirs, sizeof *cut->heirs, cut->heir_count);
    fprintf(out, "\nconst sfti_fit_lines sfti_made_fit_lines = {\n    made_lines, made_models, "
            "made_heirs, %d, %d, %d\n};\n", cut->count, cut->model_count, cut->heir_count);
}

static void put_rows(FILE *out, const sfti_records *records) {
    static uint16_t tables[UINT16_MAX];
    static uint32_t bits[SFTI_MADE_KEY_BITS / 32];
    size_t count = 0;
    put_records(out, records);
    fprintf(out, "static const sfti_record_row made_rows[] = {\n");
    for (size_t i = 0; i < records->row_count; i++) {
        const sfti_record_row *row = &records->rows[i];
        fprintf(out, "    { 0, %ld, %lu, %d, %d, %d, %d, %d, %d, 0, %lu },\n",
                (long)(row->at - text), (unsigned long)row->len, row->record, row->next,
                row->kind, row->word, row->sub, row->trust, (unsigned long)row->firsts);
    }
    fprintf(out, "};\n");
    for (size_t t = 0; t < SFTI_TABLES; t++)
        for (size_t i = 0; i < records->table_counts[t]; i++)
            tables[count++] = records->tables[t][i];
    put_numbers(out, "uint16_t", "made_tables", tables, sizeof *tables, count);
    put_numbers(out, "uint32_t", "made_slots", records->slots, sizeof *records->slots,
                records->slot_mask + (size_t)1);
    sfti_made_key_bits(records, bits);
    put_numbers(out, "uint32_t", "made_keys", bits, sizeof *bits, SFTI_COUNT(bits));
    fprintf(out, "\nconst sfti_made sfti_made_records = {\n    made_list, made_rows, made_ids, "
            "made_slots, made_tables, made_keys, %lu, %d, %d,\n    {",
            (unsigned long)records->slot_mask, records->record_count, records->row_count);
    for (size_t i = 0; i < SFTI_ROW_LISTS; i++) fprintf(out, " %d,", records->heads[i]);
    fprintf(out, " },\n    {");
    for (size_t i = 0; i < SFTI_TABLES; i++) fprintf(out, " %d,", records->table_counts[i]);
    fprintf(out, " },\n};\n");
}

int main(int argc, char **argv) {
    sft_error err = SFT_ERROR_INIT;
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_records_text data = { { text, 0 }, "data", 0 };
    const sfti_records *records;
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!in) return EXIT_FAILURE;
    data.text.len = fread(text, 1, sizeof text, in);
    (void)fclose(in);
    for (size_t i = 0; i < data.text.len; i++) data.lines += text[i] == '\n';
    FILE *out = fopen(argv[2], "w");
    if (!out) return EXIT_FAILURE;
    fprintf(out, "/* Made by cmake/records_tables.c. */\n#include \"label/records/made.h\"\n"
            "#include \"label/tensors/fitting.h\"\n\n");
    if (sfti_records_read(&arena, &data, 1, &records, &err)) {
        fprintf(stderr, "%s\n", err.message);
        fprintf(out, "const sfti_made sfti_made_records = { .row_count = 0 };\n"
                "const sfti_fit_lines sfti_made_fit_lines = { .count = 0 };\n");
    } else {
        const sfti_fit_lines *lines = sfti_fit_lines_cut(&arena, records, true);
        if (!lines) return EXIT_FAILURE;
        put_rows(out, records);
        put_lines(out, lines);
    }
    return fclose(out) ? EXIT_FAILURE : EXIT_SUCCESS;
}
