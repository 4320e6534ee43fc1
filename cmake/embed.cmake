# Files, one after the other, as the bytes of a C array:
# cmake -DIN=file,file -DOUT=file.c -DNAME=prefix -P cmake/embed.cmake
string(REPLACE "," ";" files "${IN}")
set(bytes "")
set(size 0)
foreach(name IN LISTS files)
    file(READ ${name} more HEX)
    file(SIZE ${name} some)
    string(APPEND bytes "${more}")
    math(EXPR size "${size} + ${some}")
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* Made by cmake/embed.cmake. */
#include <stddef.h>

extern const unsigned char ${NAME}_text[];
extern const size_t ${NAME}_size;
const unsigned char ${NAME}_text[] = {
    ${bytes}
};
const size_t ${NAME}_size = ${size};
")
