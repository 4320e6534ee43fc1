/* Comparing names, and sorting numbers that stand for things. */
#ifndef SFTI_ORDER_H
#define SFTI_ORDER_H

#include "base/mem.h"
#include "safetensors.h"

/* By bytes. */
int sfti_bytes_compare(sft_span a, sft_span b);
/* "layer.2" < "layer.10": numbers inside by value; ties by bytes. */
int sfti_natural_compare(sft_span a, sft_span b);
/* Stable, without recursion; scratch is as long as order. One pass when sorted already. */
void sfti_sort(uint32_t *order, uint32_t *scratch, size_t count,
               int (*compare)(const void *ctx, uint32_t a, uint32_t b), const void *ctx);
/* The numbers 0 to count - 1, sorted, and room for as many behind them; NULL when out of memory. */
uint32_t *sfti_arena_sorted(sfti_arena *arena, size_t count,
                            int (*compare)(const void *ctx, uint32_t a, uint32_t b),
                            const void *ctx);

#endif
