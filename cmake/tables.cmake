# ${sft_tables}: what is read of ${sft_records}, by a program that the build makes and runs. Where
# nothing can be made for the system that builds, programs read the records themselves.
set(sft_reader cmake/records_tables.c src/text/text.c src/label/tensors/fitting_lines.c
    src/core/format/dtype.c)
foreach(name error guess json_lex mem number order utf8)
    list(APPEND sft_reader src/core/base/${name}.c)
endforeach()
foreach(name ask grammar read refuse words)
    list(APPEND sft_reader src/label/records/${name}.c)
endforeach()
if(NOT CMAKE_CROSSCOMPILING)
    set(sft_reads sft_records_tables)
    add_executable(sft_records_tables EXCLUDE_FROM_ALL ${sft_reader})
    target_include_directories(sft_records_tables PRIVATE include ${SFT_FOLDERS})
    target_compile_definitions(sft_records_tables PRIVATE SFT_BUILDING)
    target_compile_options(sft_records_tables PRIVATE ${SFT_WARNINGS})
else()
    find_program(SFT_BUILD_CC NAMES cc gcc clang DOC "Compiles for the system that builds")
    set(sft_reads ${CMAKE_CURRENT_BINARY_DIR}/records_tables)
    set(sft_reader_folders ${SFT_FOLDERS})
    list(TRANSFORM sft_reader_folders PREPEND -I)
    add_custom_command(OUTPUT ${sft_reads}
        COMMAND ${SFT_BUILD_CC} -std=c11 -O1 -DSFT_BUILDING -Iinclude ${sft_reader_folders}
                ${sft_reader} -o ${sft_reads}
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
        DEPENDS ${sft_reader} ${SFT_ALL_HEADERS} VERBATIM)
endif()
if(CMAKE_CROSSCOMPILING AND NOT SFT_BUILD_CC)
    file(GENERATE OUTPUT ${sft_tables} CONTENT "#include \"label/records/made.h\"
#include \"label/tensors/fitting.h\"
const sfti_made sfti_made_records = { .row_count = 0 };
const sfti_fit_lines sfti_made_fit_lines = { .count = 0 };
")
else()
    add_custom_command(OUTPUT ${sft_tables}
        COMMAND ${sft_reads} ${sft_records}.txt ${sft_tables}
        DEPENDS ${sft_reads} ${sft_records} VERBATIM)
endif()
