# At install: the links of the documents in ${docs} that lead to the source tree. Those to a
# document that is installed beside them are kept; of the others, the words are.
cmake_path(ABSOLUTE_PATH docs BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
set(docs "$ENV{DESTDIR}${docs}")
file(GLOB pages "${docs}/*.md")
foreach(page IN LISTS pages)
    file(READ "${page}" text)
    string(REPLACE "](../SECURITY.md" "](SECURITY.md" new "${new}")
    string(REPLACE "](docs/" "](" new "${new}")
    string(REGEX REPLACE "\\[([^]\n]*)\\]\\(\\.\\./[^)\n]*\\)" "\\1" new "${new}")
    if(NOT new STREQUAL text)
        file(WRITE "${page}" "${new}")
    endif()
endforeach()
