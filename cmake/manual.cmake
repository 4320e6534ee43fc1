# Man pages and completions, written by the command from its own tables.
# cmake -DCOMMAND=build/safetensors -DOUT=build -DNAMES="cat;check" -P cmake/manual.cmake
function(write what name file)
    execute_process(COMMAND ${COMMAND} ${what} ${name} OUTPUT_VARIABLE text ERROR_VARIABLE said
                    RESULT_VARIABLE status)
    if(status EQUAL 0)
        file(WRITE ${OUT}/${file} "${text}")
    elseif(NOT ARGN STREQUAL "MAYBE")
        message(FATAL_ERROR "safetensors ${what} ${name}: ${said}")
    endif()
endfunction()

file(REMOVE_RECURSE ${OUT}/man ${OUT}/completions)
write(__man safetensors man/safetensors.1)
foreach(name ${NAMES})
    write(__man safetensors-${name} man/safetensors-${name}.1 MAYBE)
endforeach()
write(__completion bash completions/safetensors)
write(__completion zsh completions/_safetensors)
write(__completion fish completions/safetensors.fish)
file(WRITE ${OUT}/man/made "")
