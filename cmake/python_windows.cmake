# Headers and import library for an extension of CPython on Windows, made without a file of a
# Windows CPython: the headers of a CPython for Linux with a pyconfig.h of our own, and a library
# of the names that python3.dll of 3.11 exports. A newer name does not link.
set(sft_python_include ${CMAKE_CURRENT_BINARY_DIR}/python-headers)
set(sft_python_suffix .pyd)
set(sft_python_abi3 True)

set(sft_python_own "${SFT_PYTHON_INCLUDE}")
if(NOT SFT_PYTHON_INCLUDE)
    execute_process(
        COMMAND ${Python_EXECUTABLE} -c
                "import sysconfig; print(sysconfig.get_path('include'), end='')"
        OUTPUT_VARIABLE sft_python_own COMMAND_ERROR_IS_FATAL ANY)
endif()
if(NOT EXISTS ${sft_python_own}/Python.h)
    message(FATAL_ERROR "no Python.h in ${sft_python_own}: the headers of ${Python_EXECUTABLE} "
                        "are missing (Debian: python3-dev)")
endif()
# Python.h includes the pyconfig.h of its own folder.
file(COPY ${sft_python_own}/ DESTINATION ${sft_python_include}
     FILES_MATCHING PATTERN "*.h" PATTERN pyconfig.h EXCLUDE)
file(COPY bindings/python/windows/pyconfig.h DESTINATION ${sft_python_include})

set(sft_python_machine i386:x86-64)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "arm64|aarch64|ARM64")
    set(sft_python_machine arm64)
endif()
set(sft_python_library ${CMAKE_CURRENT_BINARY_DIR}/libpython3.a)
set(sft_python_def ${CMAKE_CURRENT_SOURCE_DIR}/bindings/python/windows/python3.def)
add_custom_command(
    OUTPUT ${sft_python_library}
    COMMAND ${CMAKE_DLLTOOL} -d ${sft_python_def} -l ${sft_python_library} -m ${sft_python_machine}
    DEPENDS ${sft_python_def} VERBATIM)
add_custom_target(sft_python3_library DEPENDS ${sft_python_library})
add_library(sft_python3 INTERFACE)
target_link_libraries(sft_python3 INTERFACE ${sft_python_library})
add_dependencies(sft_python3 sft_python3_library)
