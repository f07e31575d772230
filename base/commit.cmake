# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a header with the commit of the sources in SOURCE, if it says something else than
# before. COMMIT, where it is not empty, is taken instead: for sources that are no repository. Of a
# repository that git does not read it warns.
if(NOT COMMIT)
    execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix --short=12 HEAD
                    OUTPUT_VARIABLE said ERROR_VARIABLE error RESULT_VARIABLE status
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
    # Its first line is empty where SOURCE is the top of the repository, and not a folder in that of
    # something else.
    if(status EQUAL 0 AND said MATCHES "^\n([0-9a-f]+)$")
        set(COMMIT ${CMAKE_MATCH_1})
        execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD --
                        RESULT_VARIABLE status ERROR_QUIET)
        if(NOT status EQUAL 0)
            string(APPEND COMMIT "-changed")
        endif()
    elseif(EXISTS ${SOURCE}/.git)
        # As in a container that has them from another user.
        if(NOT error)
            set(error "git cannot be run: ${status}")
        endif()
        message(WARNING "programs will not say their commit: git does not read ${SOURCE}: ${error}")
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
