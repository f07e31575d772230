# SPDX-License-Identifier: Apache-2.0
# Writes the documents as they are installed, to KEDGE_WRITTEN: links to man pages, openapi.yaml,
# kedge.h and examples lead to where these are then (KEDGE_DOCDIR, KEDGE_MANDIR, KEDGE_INCLUDEDIR),
# from each document's own place.
file(REMOVE_RECURSE "${KEDGE_WRITTEN}")
file(GLOB_RECURSE documents RELATIVE "${KEDGE_SOURCE}" "${KEDGE_SOURCE}/docs/*.md")
foreach(document README.md CHANGELOG.md ${documents})
    file(READ "${KEDGE_SOURCE}/${document}" text)
    get_filename_component(place "${KEDGE_DOCDIR}/${document}" DIRECTORY)
    file(RELATIVE_PATH man "${place}" "${KEDGE_MANDIR}")
    file(RELATIVE_PATH include "${place}" "${KEDGE_INCLUDEDIR}")
    string(REGEX REPLACE "\\]\\(((\\.\\./)*)(docs/)?man/([a-z_-]+)\\.([a-z.-]*)([1-8])\\)"
                         "](${man}/man\\6/\\4.\\5\\6)" text "${text}")
    string(REGEX REPLACE "\\]\\((\\.\\./)*libclient/include/" "](${include}/" text "${text}")
    string(REGEX REPLACE "\\]\\(((\\.\\./)*)(schema|libclient)/" "](\\1" text "${text}")
    # Of sources the name is left.
    string(REGEX REPLACE
           "\\[([^]]*)\\]\\((\\.\\./)*(agent|base|ctl|fabric|metaserver|ops|tests)/[^)]*\\)"
           "\\1" text "${text}")
    file(WRITE "${KEDGE_WRITTEN}/${document}" "${text}")
endforeach()
