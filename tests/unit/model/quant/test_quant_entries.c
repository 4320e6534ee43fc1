/* What bitsandbytes and HQQ keep of a tensor beside its codes: it has to say what they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant_case.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

#define CODES "w U8 4,1 #16;w.absmax F32 1 #2;"
#define NF4 CODES "w.quant_map F32 16 #-1,-0.6961928009986877,-0.5250730514526367," \
    "-0.39491748809814453,-0.28444138169288635,-0.18477343022823334,-0.09105003625154495,0," \
    "0.07958029955625534,0.16093020141124725,0.24611230194568634,0.33791524171829224," \
    "0.44070982933044434,0.5626170039176941,0.7229568362236023,1"
#define FP4 CODES "w.quant_map F32 16 #0,0.0052083335,0.6666667,1,0.33333334,0.5,0.16666667,0.25," \
    "0,-0.0052083335,-0.6666667,-1,-0.33333334,-0.5,-0.16666667,-0.25"
#define STATE(name, type) ";w.quant_state.bitsandbytes__" name " U8 ? =" \
    "{\"blocksize\":8,\"shape\":[8],\"quant_type\":" type "}"

static void checks_types(void **unused) {
    static const quant_case cases[] = {
        { NF4 STATE("nf4", "\"nf4\""), NULL, "w", "=-1.3923856019973754883,-2" },
        { FP4 STATE("fp4", "\"fp4\""), NULL, "w", "=0.010416667,0" },
        { NF4 STATE("nf4", "\"fp4\""), NULL, "w.quant_state.bitsandbytes__nf4",
          "expected the quant_type of its name, found \"fp4\"" },
        { NF4 STATE("nf4", "\"int4\""), NULL, "w.quant_state.bitsandbytes__nf4", "found \"int4\"" },
        { NF4 STATE("nf4", "4"), NULL, "w", "=-1.3923856019973754883,-2" },
        { FP4 STATE("nf4", "\"nf4\""), NULL, "w.quant_map",
          "expected the values of nf4, as the quant_type says, found 0 as number 0" },
        { NF4 STATE("fp4", "\"fp4\""), NULL, "w.quant_map", "found -1 as number 0" },
        { CODES "w.quant_map F32 15" STATE("nf4", "\"nf4\""), NULL, "w.quant_map",
          "expected the shape [16], found [15]" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

#define HQQ(more) \
    "m.W_q U8 1,2 #33,67;m.zero F32 2,1 #1,0;m.scale F32 2,1 #1,2;m.shape I64 2 #2,2;" more
#define ACROSS(more) \
    "m.W_q U8 1,2 #33,67;m.zero F32 1,2 #1,0;m.scale F32 1,2 #1,2;m.shape I64 2 #2,2;" more

static void checks_entries(void **unused) {
    static const quant_case cases[] = {
        { HQQ("m.nbits I32 - #4;m.group_size I32 - #2;m.axis I32 - #1"), NULL, "m.weight", "=1,3" },
        { ACROSS("m.nbits F32 - #4;m.group_size I64 - #2;m.axis U8 - #0"), NULL, "m.weight",
          "=1,8" },
        { HQQ("m.nbits I32 2 #8;m.packing U8 7 =4bit_u8"), NULL, "m.weight", "=1,3" },
        { HQQ("m.nbits I32 - #8"), NULL, "m.nbits", "expected 4, as shapes tell, found 8" },
        { HQQ("m.nbits F32 - #1.5"), NULL, "m.nbits", "expected 4, as shapes tell, found 1.5" },
        { HQQ("m.axis I32 - #0"), NULL, "m.axis", "expected 1, as shapes tell, found 0" },
        { ACROSS("m.axis I32 - #1"), NULL, "m.axis", "expected 0, as shapes tell, found 1" },
        { HQQ("m.group_size I32 - #64"), NULL, "m.group_size", "expected 2, as shapes tell" },
        { HQQ("m.packing U8 7 =2bit_u8"), NULL, "m.packing", "expected 4bit_u8, found another" },
        { HQQ("m.packing U8 6 =4bit_u"), NULL, "m.packing", "expected 4bit_u8, found another" },
        { "m.W_q U8 2,1 #1,2;m.zero F32 2,1 #0;m.scale F32 2,1 #3;m.shape I64 2 #2,1;"
          "m.nbits I32 - #5;m.packing U8 7 =8bit_u8", NULL, "m.weight", "=3" },
        { "m.W_q U8 2,1 #1,2;m.zero F32 2,1 #0;m.scale F32 2,1 #3;m.shape I64 2 #2,1;"
          "m.nbits I32 - #4", NULL, "m.nbits", "expected 8, as shapes tell, found 4" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_types), cmocka_unit_test(checks_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
