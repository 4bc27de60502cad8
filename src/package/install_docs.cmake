# Installs the Slurm scripts, and the pages of the tree that are for users, in the tree's folders. What a page links to is installed,
# too, or the installed page has no link to it.
find_program(AWK awk)
if(NOT AWK)
    message(STATUS "no awk: pages and Slurm scripts are not installed")
    return()
endif()
set(pages README.md jobs/README.md mpi/README.md mpi/measured.md kernels/README.md kernels/measured.md kernels/cuda/README.md
          kernels/host/README.md src/README.md src/measured.md src/command/README.md src/library/README.md src/python/README.md
          src/examples/ten_minutes.md)
set(images src/command/timeline.png)
file(GLOB scripts RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS jobs/*.sbatch)
install(FILES ${scripts} DESTINATION ${CMAKE_INSTALL_DATADIR}/hypersort/jobs)

# seen_from_pages(FOLDER SOURCES FILE...): add lines for installed_page.awk that say where the files of SOURCES are installed, in FOLDER
# below the prefix.
set(places)
foreach(file ${pages} ${images})
    string(APPEND places "${file} ${file}\n")
endforeach()
macro(seen_from_pages folder sources)
    cmake_path(SET place NORMALIZE ${folder})
    cmake_path(RELATIVE_PATH place BASE_DIRECTORY ${to_DOC})
    foreach(file ${ARGN})
        cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${sources} OUTPUT_VARIABLE name)
        string(APPEND places "${file} ${place}/${name}\n")
    endforeach()
endmacro()
file(GLOB_RECURSE examples RELATIVE ${PROJECT_SOURCE_DIR} src/examples/*)
list(REMOVE_ITEM examples ${pages})
seen_from_pages(${to_DATA}/hypersort/examples src/examples ${examples})
seen_from_pages(${to_DATA}/hypersort/jobs jobs ${scripts})
seen_from_pages(${to_DATA}/hypersort/fortran src/fortran src/fortran/hypersort.f90)
seen_from_pages(${to_INCLUDE} src src/hypersort.h)
seen_from_pages(${to_INCLUDE} kernels/base kernels/base/hypersort_types.h)
if(HYPERSORT_PYTHON_DIR)
    file(GLOB modules RELATIVE ${PROJECT_SOURCE_DIR} src/python/hypersort/*.py)
    seen_from_pages(${to_PYTHON}/hypersort src/python/hypersort ${modules})
endif()
string(APPEND places "LICENSE copyright\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/private/places CONTENT "${places}" @ONLY)

# The pages are made when the build is configured, and again when a page changes, so they are there whichever targets were built before
# an installation.
foreach(page ${pages})
    cmake_path(GET page PARENT_PATH folder)
    set(out ${PROJECT_BINARY_DIR}/pages/doc/${page})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/pages/doc/${folder})
    execute_process(COMMAND ${AWK} -v page=${page} -f ${PROJECT_SOURCE_DIR}/src/package/installed_page.awk
                            ${PROJECT_BINARY_DIR}/private/places ${PROJECT_SOURCE_DIR}/${page}
                    OUTPUT_FILE ${out} COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    install(FILES ${out} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/package/installed_page.awk)
foreach(image ${images})
    cmake_path(GET image PARENT_PATH folder)
    install(FILES ${image} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
