# What the library knows of models (data/), as one read-only text, without comments and most of
# its indentation; a row is one line. cmake -DDATA=data -DOUT=build/records.c -P cmake/records.cmake
cmake_minimum_required(VERSION 3.22)
file(GLOB_RECURSE files RELATIVE ${DATA} ${DATA}/*.txt)
list(FILTER files EXCLUDE REGEX "^layouts/") # of a language of their own
list(SORT files)
set(joined "\n")
foreach(name IN LISTS files)
    file(READ ${DATA}/${name} text)
    string(APPEND joined "${text}\n")
endforeach()
string(REGEX REPLACE "\r" "" joined "${joined}")
string(REPLACE "#\n" "# \n" joined "${joined}")
string(REGEX REPLACE "\n *# [^\n]*" "\n" joined "${joined}")
string(REGEX REPLACE "\n +[|] " " | " joined "${joined}")
string(ASCII 11 joint) # a line's end within a row, so that rows are found sooner
string(REGEX REPLACE "\n        +" "${joint}" joined "${joined}")
string(REGEX REPLACE "\n    +" "\n " joined "${joined}")
string(REGEX REPLACE "\n( *\n)+" "\n" joined "${joined}")
string(REGEX REPLACE "([^\n ])  +" "\\1 " joined "${joined}")
string(REPLACE ", " "," joined "${joined}") # words of lists are trimmed
string(REGEX MATCHALL "\n modules[^\n]*" rows "${joined}")
foreach(row IN LISTS rows) # in one line "|" says nothing there
    string(REPLACE " | " " " short "${row}")
    string(REPLACE "${row}" "${short}" joined "${joined}")
endforeach()
string(REGEX MATCHALL "\n" lines "${joined}")
list(LENGTH lines lines)
file(WRITE ${OUT}.txt "${joined}")
file(SIZE ${OUT}.txt size)
file(READ ${OUT}.txt bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* Made by cmake/records.cmake. */
#include <stddef.h>

extern const unsigned char sfti_built_in_text[];
extern const size_t sfti_built_in_size, sfti_built_in_lines;
const unsigned char sfti_built_in_text[] = {
    ${bytes}
};
const size_t sfti_built_in_size = ${size}, sfti_built_in_lines = ${lines};
")
