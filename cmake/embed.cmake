# A file as the bytes of a C array: cmake -DIN=file -DOUT=file.c -DNAME=prefix -P cmake/embed.cmake
file(READ ${IN} bytes HEX)
file(SIZE ${IN} size)
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
