# SPDX-License-Identifier: Apache-2.0
# cmake -D OUTPUT=file.c -D INPUT=openapi.yaml -P schemas.cmake: its schemas as a C string.
file(READ ${INPUT} text)
string(FIND "${text}" "\n  schemas:\n" begin)
if(begin EQUAL -1)
    message(FATAL_ERROR "${INPUT} has no components/schemas")
endif()
string(SUBSTRING "${text}" ${begin} -1 text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "/* Made from schema/openapi.yaml by schemas.cmake. */
#include \"ctl/shown.h\"

const char ctl_schemas[] =
    \"${text}\";
")
