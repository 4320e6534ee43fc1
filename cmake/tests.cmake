# What only the project itself builds. Nothing here is part of `all`: name a target.
#   tests      unit tests, against the library and against the two-file bundle
#   examples   examples/*.c, and the program of docs/c.md
#   short_tests   of them the unit tests against the library, those with faults, and verdict
#   fuzzers, benches   filled by fuzz/ and bench/
# Other folders add their own: add_dependencies(tests my_target).
foreach(group tests short_tests examples fuzzers benches)
    add_custom_target(${group})
endforeach()

# ── Examples ─────────────────────────────────────────────────────────────────
file(GLOB sft_examples CONFIGURE_DEPENDS examples/*.c examples/ports/*.c)
foreach(source ${sft_examples})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_compile_options(${name} PRIVATE ${SFT_WARNINGS})
    target_link_libraries(${name} PRIVATE safetensors_static sft_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                          ${CMAKE_CURRENT_BINARY_DIR}/examples)
    add_dependencies(examples ${name})
endforeach()
find_program(SFT_PYTHON NAMES python3 python)
if(SFT_PYTHON)
    set(sft_guide ${CMAKE_CURRENT_BINARY_DIR}/examples/guide)
    add_custom_command(
        OUTPUT ${sft_guide}/guide_blocks.h
        COMMAND ${CMAKE_COMMAND} -E make_directory ${sft_guide}
        COMMAND ${SFT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tests/examples/guide.py
                ${sft_guide}/guide_blocks.h
        DEPENDS tests/examples/guide.py docs/c.md VERBATIM)
    add_executable(guide EXCLUDE_FROM_ALL tests/examples/guide.c ${sft_guide}/guide_blocks.h)
    target_include_directories(guide PRIVATE ${sft_guide})
    target_compile_options(guide PRIVATE ${SFT_WARNINGS} -Wconversion)
    target_link_libraries(guide PRIVATE safetensors_static sft_flags)
    set_target_properties(guide PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${sft_guide})
    add_dependencies(examples guide)
endif()

# What is compiled more often than its loops are long needs little optimising.
set(sft_quick "")
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(sft_quick -O1 -Wno-format-truncation) # gcc knows no ranges there
endif()

# ── The two-file bundle ──────────────────────────────────────────────────────
# The unit tests use the largest, with all that its folders have; tests/bundle.py tries the small one.
set(sft_bundle ${CMAKE_CURRENT_BINARY_DIR}/tests/bundle)
if(SFT_PYTHON)
    add_custom_command(
        OUTPUT ${sft_bundle}/safetensors.c ${sft_bundle}/safetensors.h
        COMMAND ${SFT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/bundle.py ${sft_bundle}
                --with edit,set,convert,read,stats --all-hosts --whole
        DEPENDS tools/bundle.py tests/layers.py data/quantised.layouts ${SFT_CORE_SOURCES} ${SFT_OS_SOURCES} ${SFT_ALL_HEADERS}
                ${SFT_PUBLIC_HEADERS}
        VERBATIM)
    add_custom_target(bundle DEPENDS ${sft_bundle}/safetensors.c)
    add_library(safetensors_bundle STATIC EXCLUDE_FROM_ALL ${sft_bundle}/safetensors.c)
    target_compile_options(safetensors_bundle PRIVATE ${SFT_WARNINGS} -Wconversion ${sft_quick})
    target_link_libraries(safetensors_bundle PUBLIC ${sft_threads} ${sft_host_libraries}
                          PRIVATE sft_flags)
    set_target_properties(safetensors_bundle PROPERTIES
                          ARCHIVE_OUTPUT_DIRECTORY ${sft_bundle})
endif()

# ── Unit tests: tests/unit/<folder of src>/test_<module>.c, one program each ─────────────────
# tests/unit/cli: of the sources of the command.
# build/tests/unit.txt and unit-bundle.txt list the programs for tests/unit.py.
if(NOT CMAKE_CROSSCOMPILING AND NOT SFT_FOREIGN)
    find_path(SFT_CMOCKA_INCLUDE cmocka.h)
    find_library(SFT_CMOCKA_LIBRARY cmocka)
endif()
file(GLOB_RECURSE sft_units CONFIGURE_DEPENDS tests/unit/test_*.c)
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    list(FILTER sft_units EXCLUDE REGEX "/test_(beneath|os_linux|cli_(progress|moves|catalog|updates))\\.c$")
endif()
if(NOT TARGET sft_cli)
    list(FILTER sft_units EXCLUDE REGEX "/unit/cli/")
endif()
add_library(sft_unit_host INTERFACE)
set(sft_unit_host_objects "")
set(sft_tool_objects "")
if(WIN32)
    include(tests/windows/CMakeLists.txt)
endif()
set(sft_unit_options ${SFT_WARNINGS} ${sft_quick})
if(SFT_SANITIZE)
    list(APPEND sft_unit_options -O0)
endif()
set(sft_unit_list "")
set(sft_bundle_list "")
if(SFT_CMOCKA_INCLUDE AND SFT_CMOCKA_LIBRARY)
    foreach(source ${sft_units})
        get_filename_component(name ${source} NAME_WE)
        add_library(object_${name} OBJECT EXCLUDE_FROM_ALL ${source})
        target_include_directories(object_${name} PRIVATE include ${SFT_FOLDERS} tests
                                   ${SFT_CMOCKA_INCLUDE})
        target_compile_options(object_${name} PRIVATE ${sft_unit_options})
        if(name MATCHES "^test_(records|torn)$")
            target_compile_definitions(object_${name} PRIVATE
                                       SFT_TEST_INCLUDE="${CMAKE_CURRENT_SOURCE_DIR}/include")
        endif()
        target_link_libraries(object_${name} PRIVATE sft_flags sft_unit_host)
        set(command "")
        if(source MATCHES "/unit/cli/")
            target_include_directories(object_${name} PRIVATE cli)
            set(command $<TARGET_OBJECTS:sft_cli>)
        endif()
        # What the bundle does not hold; kept.c is the Python package's.
        set(beyond FALSE)
        if(name STREQUAL "test_kept" OR source MATCHES "/unit/(label|adapter|merge|text|layout|cli)/" OR
           name MATCHES "^test_(hash|convert|quant|stats|import|export|dataset|remote|read_|options|torn|vtables|refused)")
            set(beyond TRUE)
        endif()
        foreach(kind static bundle)
            if(TARGET safetensors_${kind} AND NOT (kind STREQUAL "bundle" AND beyond))
                set(program ${kind}_${name})
                set(folder unit$<$<STREQUAL:${kind},bundle>:-bundle>)
                add_executable(${program} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:object_${name}>
                               ${command} ${sft_unit_host_objects})
                target_link_libraries(${program} PRIVATE safetensors_${kind} sft_flags
                                      ${SFT_CMOCKA_LIBRARY} m)
                set_target_properties(${program} PROPERTIES LINKER_LANGUAGE C
                    OUTPUT_NAME ${name}
                    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/tests/${folder})
                add_dependencies(tests ${program})
            endif()
        endforeach()
        add_dependencies(short_tests static_${name})
        add_test(NAME ${name} COMMAND static_${name}
                 WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
        string(APPEND sft_unit_list "tests/unit/${name}${CMAKE_EXECUTABLE_SUFFIX}\n")
        if(NOT beyond)
            string(APPEND sft_bundle_list "tests/unit-bundle/${name}${CMAKE_EXECUTABLE_SUFFIX}\n")
        endif()
    endforeach()
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tests/unit.txt "${sft_unit_list}")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tests/unit-bundle.txt "${sft_bundle_list}")

# Each of these adds programs to the groups above; paths are from the project's root.
foreach(folder tests/tools tests/hostile tests/faults tests/macos fuzz bench)
    include(${folder}/CMakeLists.txt OPTIONAL)
endforeach()
