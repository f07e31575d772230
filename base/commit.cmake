# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a header with the commit of the sources in SOURCE, if it says something else than
# before. COMMIT, where it is not empty, is taken instead: for sources that are no repository.
if(NOT COMMIT)
    execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix --short=12 HEAD
                    OUTPUT_VARIABLE said RESULT_VARIABLE status
                    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    # Its first line is empty where SOURCE is the top of the repository, and not a folder in that of
    # something else.
    if(status EQUAL 0 AND said MATCHES "^\n([0-9a-f]+)$")
        set(COMMIT ${CMAKE_MATCH_1})
        execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD --
                        RESULT_VARIABLE status ERROR_QUIET)
        if(NOT status EQUAL 0)
            string(APPEND COMMIT "-changed")
        endif()
    endif()
endif()
set(text "#define KEDGE_COMMIT \"${COMMIT}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
    file(WRITE ${OUTPUT} "${text}")
endif()
