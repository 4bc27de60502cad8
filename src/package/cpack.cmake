# `cpack -G DEB` and `cpack -G TGZ`, run in the build folder: one package with the command, the library and everything to build with it.
set(CPACK_PACKAGE_NAME hypersort)
set(CPACK_PACKAGE_VENDOR "the hypersort authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed multi-GPU sorting over MPI")
set(CPACK_PACKAGE_DESCRIPTION
"hypersort sorts arrays of numbers and records that are spread over the
ranks of an MPI program, one GPU or some CPU cores for each rank. This
package has the command, which sorts files, and the library with its headers.")
if(HYPERSORT_PYTHON_DIR)
    # The Python package has a folder of its own: if it lay in Python's, Debian would want this package to depend on Python.
    set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-mpi4py, python3-numpy")
    set(python_place ${to_PYTHON})
    cmake_path(ABSOLUTE_PATH python_place BASE_DIRECTORY /usr NORMALIZE)
    string(APPEND CPACK_PACKAGE_DESCRIPTION "
Python with NumPy and mpi4py finds the package hypersort by
PYTHONPATH=${python_place}.")
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${PROJECT_BINARY_DIR}/private/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/private/triggers)
# For mpirun; for mpi.h, which the header includes; for hwloc, which the static library takes.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin, libopenmpi-dev, libhwloc-dev")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "hypersort authors <maintainers@hypersort.example>" CACHE STRING
    "Who answers for the .deb: name and address")

# Debian's own changelog says which package this is; the other one (changelog.gz) says what changed.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/private/changelog.Debian
     "hypersort (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
     "  * Made by CPack; what changed is in changelog.gz.\n\n"
     " -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/private/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${PROJECT_BINARY_DIR}/private/changelog.Debian.gz DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT debian EXCLUDE_FROM_ALL)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};hypersort;ALL;/")
file(WRITE ${PROJECT_BINARY_DIR}/private/cpack_generator.cmake
     "if(CPACK_GENERATOR STREQUAL DEB)
    list(APPEND CPACK_INSTALL_CMAKE_PROJECTS \"${PROJECT_BINARY_DIR};hypersort;debian;/\")
endif()
")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/private/cpack_generator.cmake)
include(CPack)
