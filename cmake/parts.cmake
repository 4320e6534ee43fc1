# The parts of the library above its core, an option each: SFT_WITH_EDIT, SFT_WITH_SET, ... A row
# names the part, its folders in src, its public headers, and the parts that it needs; tests/layers.py
# has the same for calls. src/without has a stand-in where others ask a part that may be left out.
set(SFT_PARTS
    "EDIT    model/edit,model/journal  edit                   -"
    "SET     model/set                 set,index,report,diff  -"
    "STATS   model/stats               stats                  -"
    "READ    model/read                read                   -"
    "HASH    model/hash                hash                   SET"
    "CONVERT model/convert,model/quant cast,convert           SET"
    "LABEL   label,lint,text,model/packed info                 SET,HASH"
    "FORMATS formats                   import                 SET,CONVERT"
    "REMOTE  remote                    remote                 HASH"
    "DATASET dataset                   dataset                HASH,CONVERT"
    "LAYOUT  layout                    layout                 SET,HASH,LABEL"
    "ADAPTER adapter                   adapter                CONVERT,LABEL,LAYOUT"
    "MERGE   merge                     merge                  HASH,CONVERT,LABEL,LAYOUT")

set(SFT_ALL_PARTS ON)
set(sft_left_out "")
set(sft_headers_left_out "")
foreach(row IN LISTS SFT_PARTS)
    string(REGEX MATCHALL "[^ ]+" row "${row}")
    list(GET row 0 part)
    get_property(given CACHE SFT_WITH_${part} PROPERTY HELPSTRING)
    if(SFT_CORE_ONLY AND SFT_WITH_${part} AND (given MATCHES "specified on the command line"
                                               OR NOT DEFINED CACHE{SFT_WITH_${part}}))
        message(FATAL_ERROR "SFT_CORE_ONLY=ON leaves out every part: turn it off for "
                            "SFT_WITH_${part}=ON")
    endif()
    option(SFT_WITH_${part} "The library has its part ${part}" ON)
    if(SFT_CORE_ONLY)
        set(SFT_WITH_${part} OFF)
    endif()
endforeach()
foreach(row IN LISTS SFT_PARTS)
    string(REGEX MATCHALL "[^ ]+" row "${row}")
    list(POP_FRONT row part folders public needs)
    if(SFT_WITH_${part})
        string(REPLACE "," ";" needs "${needs}")
        foreach(other IN LISTS needs)
            if(NOT other STREQUAL "-" AND NOT SFT_WITH_${other})
                message(FATAL_ERROR "SFT_WITH_${part}=ON needs SFT_WITH_${other}=ON: turn "
                                    "SFT_WITH_${other} on, or SFT_WITH_${part} off, too")
            endif()
        endforeach()
    else()
        set(SFT_ALL_PARTS OFF)
        string(REPLACE "," ";" folders "${folders}")
        list(APPEND sft_left_out ${folders})
        string(REPLACE "," ";" public "${public}")
        list(TRANSFORM public PREPEND safetensors_)
        list(APPEND sft_headers_left_out ${public})
    endif()
endforeach()
if(NOT SFT_ALL_PARTS AND SFT_EXTENSION)
    message(FATAL_ERROR "SFT_EXTENSION=ON needs every SFT_WITH_ part")
endif()

# Removes from lists of sources and headers what belongs to parts that are left out, and adds their
# stand-ins.
function(sft_leave_out sources headers)
    set(left ${${sources}})
    list(FILTER left EXCLUDE REGEX "/src/without/")
    # The command defines it itself: a program takes this one where no other is linked.
    list(APPEND left ${CMAKE_CURRENT_SOURCE_DIR}/src/without/command.c)
    foreach(folder IN LISTS sft_left_out)
        list(FILTER left EXCLUDE REGEX "/src/${folder}/")
    endforeach()
    foreach(part EDIT LABEL REMOTE)
        string(TOLOWER ${part} lower)
        if(NOT SFT_WITH_${part} AND (NOT part STREQUAL "LABEL" OR SFT_WITH_CONVERT))
            list(APPEND left ${CMAKE_CURRENT_SOURCE_DIR}/src/without/${lower}.c)
        endif()
    endforeach()
    if(NOT SFT_WITH_EDIT AND NOT SFT_WITH_HASH AND NOT SFT_WITH_CONVERT)
        list(FILTER left EXCLUDE REGEX "/src/model/keys/")
    endif()
    set(public ${${headers}})
    foreach(header IN LISTS sft_headers_left_out)
        list(FILTER public EXCLUDE REGEX "/${header}\\.h$")
    endforeach()
    set(${sources} ${left} PARENT_SCOPE)
    set(${headers} ${public} PARENT_SCOPE)
endfunction()
