# The Python extension libsafetensors/_core and what goes into the wheel. `pip install .` sets
# SKBUILD and SFT_EXTENSION; built by hand, the package is importable from
# <build folder>/python: PYTHONPATH=build/python python3.
#
# One extension serves CPython 3.11 and every later version (abi3). CPython 3.10 and
# free-threaded builds get one of their own, from the same sources.
#
# A build for another system names SFT_PYTHON_INCLUDE, a folder of headers whose pyconfig.h is that
# system's, and for one version only SFT_PYTHON_SUFFIX, of its extensions.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)

option(SFT_EXTENSION_SHARED "Link the extension with the shared library, for distributions" OFF)
set(SFT_PYTHON_DIR "" CACHE STRING
    "Where `cmake --install` puts the package, e.g. lib/python3/dist-packages")

if(WIN32 AND CMAKE_CROSSCOMPILING)
    include(cmake/python_windows.cmake)
elseif(SFT_PYTHON_INCLUDE)
    set(sft_python_include ${SFT_PYTHON_INCLUDE})
    set(sft_python_suffix "${SFT_PYTHON_SUFFIX}")
    string(COMPARE EQUAL "${SFT_PYTHON_SUFFIX}" "" sft_python_abi3)
else()
    # The interpreter knows its headers better than FindPython, which before CMake 3.30 has not
    # heard of free-threaded builds.
    execute_process(
        COMMAND ${Python_EXECUTABLE} -c "if True:
            import sys, sysconfig
            print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'),
                  sys.version_info >= (3, 11) and sys.implementation.name == 'cpython'
                  and not sysconfig.get_config_var('Py_GIL_DISABLED'), sep=';', end='')"
        OUTPUT_VARIABLE sft_python COMMAND_ERROR_IS_FATAL ANY)
    list(GET sft_python 0 sft_python_include)
    list(GET sft_python 1 sft_python_suffix)
    list(GET sft_python 2 sft_python_abi3)
    if(NOT EXISTS ${sft_python_include}/Python.h)
        message(FATAL_ERROR "no Python.h in ${sft_python_include}: the headers of "
                            "${Python_EXECUTABLE} are missing (Debian: python3-dev)")
    endif()
endif()
set(sft_python_abi3_suffix .abi3.so)
if(WIN32)
    set(sft_python_abi3_suffix .pyd)
endif()
# The wheel's tag and the extension must agree.
if(DEFINED SKBUILD AND SKBUILD_SABI_VERSION STREQUAL "")
    set(sft_python_abi3 False)
endif()

file(GLOB sft_extension_sources CONFIGURE_DEPENDS bindings/python/src/*.c)
if(WIN32)
    list(FILTER sft_extension_sources EXCLUDE REGEX "/host_posix\\.c$")
else()
    list(FILTER sft_extension_sources EXCLUDE REGEX "/host_win32\\.c$")
endif()
add_library(sft_extension MODULE ${sft_extension_sources})
target_include_directories(sft_extension SYSTEM PRIVATE ${sft_python_include})
target_compile_options(sft_extension PRIVATE -fvisibility=hidden ${SFT_WARNINGS} -Wconversion)
if(SFT_EXTENSION_SHARED)
    target_link_libraries(sft_extension PRIVATE safetensors_shared sft_flags)
else()
    target_link_libraries(sft_extension PRIVATE safetensors_static sft_flags)
endif()
set_target_properties(sft_extension PROPERTIES PREFIX "" OUTPUT_NAME _core
                      SUFFIX "${sft_python_suffix}"
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/python/libsafetensors)
if(sft_python_abi3)
    target_compile_definitions(sft_extension PRIVATE Py_LIMITED_API=0x030B0000)
    set_target_properties(sft_extension PROPERTIES SUFFIX ${sft_python_abi3_suffix})
endif()
if(WIN32)
    target_link_libraries(sft_extension PRIVATE sft_python3)
elseif(APPLE)
    target_link_options(sft_extension PRIVATE -undefined dynamic_lookup)
    if(CMAKE_CROSSCOMPILING)
        # zig links no bundles; Python loads libraries as well.
        set(CMAKE_SHARED_MODULE_CREATE_C_FLAGS -shared)
        target_link_options(sft_extension PRIVATE -Wl,-install_name,_core.abi3.so)
    endif()
else()
    # PyInit__core is all that it shows.
    set(sft_python_map ${CMAKE_CURRENT_SOURCE_DIR}/cmake/python.map)
    target_link_options(sft_extension PRIVATE -Wl,--version-script=${sft_python_map})
    set_target_properties(sft_extension PROPERTIES LINK_DEPENDS ${sft_python_map})
endif()

# The modules beside the extension, as links.
file(GLOB sft_modules CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/bindings/python
     bindings/python/libsafetensors/*.py bindings/python/libsafetensors/*.pyi
     bindings/python/libsafetensors/py.typed
     bindings/python/libsafetensors/_startup/*.py)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/python/libsafetensors/_startup)
foreach(module ${sft_modules})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/bindings/python/${module}
         ${CMAKE_CURRENT_BINARY_DIR}/python/${module} SYMBOLIC)
endforeach()

if(DEFINED SKBUILD)
    install(TARGETS sft_extension DESTINATION libsafetensors COMPONENT python)
    install(TARGETS safetensors_command DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
elseif(SFT_PYTHON_DIR)
    set(sft_metadata ${CMAKE_CURRENT_BINARY_DIR}/libsafetensors-${PROJECT_VERSION}.dist-info)
    execute_process(
        COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/metadata.py
                ${PROJECT_VERSION} ${sft_metadata} COMMAND_ERROR_IS_FATAL ANY)
    install(DIRECTORY bindings/python/libsafetensors bindings/python/pyspark_libsafetensors
            DESTINATION ${SFT_PYTHON_DIR}
            FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
    install(TARGETS sft_extension DESTINATION ${SFT_PYTHON_DIR}/libsafetensors)
    install(DIRECTORY ${sft_metadata} DESTINATION ${SFT_PYTHON_DIR})
endif()
