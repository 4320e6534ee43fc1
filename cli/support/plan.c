#include "support/parts.h"

static sft_pair picked_pair(const cli_parts *p, cli_pick pick) {
    return sft_file_metadata_at(p->files[pick.file], pick.pair);
}

sft_pair cli_parts_pair(const void *parts, size_t i) {
    const cli_parts *p = parts;
    if (p->pairs) return p->pairs[i];
    return p->picks ? picked_pair(p, p->picks[i]) : sft_file_metadata_at(p->files[p->only], i);
}

sft_plan_options cli_parts_plan(const cli *c, const cli_parts *parts) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    plan.has_metadata = parts->has_metadata;
    plan.level = (sft_level)c->set.level;
    plan.alloc = &c->alloc;
    plan.pair_at = cli_parts_pair;
    plan.pair_ctx = parts;
    return plan;
}

uint64_t cli_spec_bytes(const sft_spec *spec) {
    uint64_t bytes = 0;
    return sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL) ? 0 : bytes;
}
