/* Writes the tensors of an import, and compares its records with their checksums. */
#include "base/announce.h"
#include "base/job.h"
#include "base/options.h"
#include "formats/parts/state.h"
#include "safetensors_io.h"

/* Announces records that are read for their checksum alone. */
static uint64_t announce_records(const sft_import *import) {
    sfti_announcement all = { .count = 0 };
    const sfti_checksum *last = NULL;
    uint64_t total = 0;
    for (size_t i = 0; i < import->parts.count; i++) {
        const sfti_checksum *record = sfti_checks_left(import, i);
        if (!record || record == last) continue;
        sfti_announce(&all, record->source, record->begin, record->len);
        sfti_total_add(&total, record->len);
        last = record;
    }
    sfti_announce_end(&all);
    return total;
}

sft_code sft_import_verify(const sft_import *import, const sft_job *job, sft_error *err) {
    sft_job own;
    uint64_t at = 0;
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    uint64_t total = announce_records(import);
    for (size_t i = 0; !code && i < import->parts.count; i++) {
        const sfti_checksum *record = sfti_checks_left(import, i);
        if (!record) continue;
        code = sfti_job_tick(&own, at, total, err);
        if (!code) code = sfti_checks_compare(import, i, err);
        sfti_total_add(&at, record->len);
    }
    return code;
}

sft_code sft_import_save(const sft_import *import, sft_sink sink, const sft_plan_options *plan,
                         const sft_job *job, sft_error *err) {
    sft_code code = sft_sink_limit_mode(&sink, sfti_import_mode(import), err);
    if (!code)
        return sft_save_parts(import->parts.at, import->parts.count, import->metadata.at,
                              import->metadata.count, plan, sink, job, err);
    sft_sink_abandon(&sink);
    return code;
}
