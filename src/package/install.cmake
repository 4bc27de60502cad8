# What is installed, and how others find it: the CMake package, hypersort.pc. The root's CMakeLists.txt includes this file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hypersort)
# Run paths name the folders of libraries that the loader would not find by itself. Paths that it knows anyway are left out: they would
# tie the binaries to this machine.
find_program(LDCONFIG ldconfig PATHS /usr/sbin /sbin)
set(known)
if(LDCONFIG)
    execute_process(COMMAND ${LDCONFIG} -p OUTPUT_VARIABLE known ERROR_QUIET)
    string(REGEX MATCHALL "=> [^\n]*/" known "${known}") # the folders
endif()
function(hypersort_set_rpath target)
    set(rpath ${CMAKE_INSTALL_RPATH}) # what a packager says comes first
    foreach(library ${ARGN})
        cmake_path(GET library PARENT_PATH link_dir)
        file(REAL_PATH ${library} library)
        cmake_path(GET library PARENT_PATH dir)
        string(REGEX REPLACE "^/usr/lib" "/lib" short_dir ${dir}) # ldconfig may name the folder behind the link /lib either way
        if(NOT ("=> ${dir}/" IN_LIST known OR "=> ${short_dir}/" IN_LIST known))
            list(APPEND rpath ${link_dir})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES rpath)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${rpath}")
endfunction()
set(linked ${MPI_C_LIBRARIES} ${HWLOC_LIBRARY})
if(with_cuda)
    get_target_property(cudart CUDA::cudart IMPORTED_LOCATION)
    list(APPEND linked ${cudart})
endif()
hypersort_set_rpath(hypersort_shared ${linked})
if(TARGET hypersort_hdf5)
    list(FILTER hdf5_libraries INCLUDE REGEX "^/")
    list(APPEND linked ${hdf5_libraries})
endif()
hypersort_set_rpath(hypersort ${linked})
install(TARGETS hypersort)
install(FILES ${public_headers} TYPE INCLUDE)

# These files have the names that Debian gives them.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${PROJECT_BINARY_DIR}/private/changelog.gz
                COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS CHANGELOG.md)
install(FILES ${PROJECT_BINARY_DIR}/private/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The Fortran module is installed as source, because module files differ between compilers.
set(fortran_dir ${CMAKE_INSTALL_DATADIR}/hypersort/fortran)
install(FILES src/fortran/hypersort.f90 DESTINATION ${fortran_dir})
install(DIRECTORY src/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/hypersort
        PATTERN ten_minutes.md EXCLUDE PATTERN __pycache__ EXCLUDE) # the page is with the others
set(hypersort_FORTRAN_SOURCE ${PROJECT_SOURCE_DIR}/src/fortran/hypersort.f90 CACHE INTERNAL "For projects that include this one")

# There are two export sets, because a project that takes the shared library needs nothing of what the static one needs.
foreach(kind Shared Static)
    string(TOLOWER ${kind} target)
    install(TARGETS hypersort_${target} EXPORT hypersort${kind} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT hypersort${kind} NAMESPACE hypersort:: DESTINATION ${cmake_dir})
endforeach()

# mpi_soname, such as "libmpi.so.40", is for a project that finds another MPI than ours; it is "" if the compiler is MPI's own wrapper,
# which names no library.
set(mpi_library)
set(mpi_soname)
if(MPI_C_LIBRARIES)
    list(GET MPI_C_LIBRARIES 0 mpi_library)
    file(REAL_PATH ${mpi_library} mpi_library)
    cmake_path(GET mpi_library FILENAME mpi_soname)
    string(REGEX MATCH "^[^.]*\\.so\\.[0-9]+" mpi_soname ${mpi_soname})
endif()
set(needs_cuda FALSE)
set(needs_cuda_text "")
if(with_cuda)
    set(needs_cuda TRUE)
    set(needs_cuda_text ", the CUDA Toolkit")
endif()
configure_package_config_file(src/package/hypersortConfig.cmake.in ${PROJECT_BINARY_DIR}/private/hypersortConfig.cmake
                              INSTALL_DESTINATION ${cmake_dir} PATH_VARS fortran_dir NO_SET_AND_CHECK_MACRO)
# Versions are compatible like the soname: until 1.0, another minor version is another interface.
set(compatible SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatible SameMinorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/private/hypersortConfigVersion.cmake COMPATIBILITY ${compatible})
install(FILES ${PROJECT_BINARY_DIR}/private/hypersortConfig.cmake ${PROJECT_BINARY_DIR}/private/hypersortConfigVersion.cmake
              src/package/find_hwloc.cmake DESTINATION ${cmake_dir})

# A caller must have our MPI: hypersort.pc names the pkg-config module of the same library, or else the library's path.
# It names nothing if the compiler is MPI's own wrapper; then a caller must use that wrapper, too.
set(pc_requires)
if(PkgConfig_FOUND AND MPI_C_LIBRARIES)
    foreach(module ompi-c mpich)
        pkg_check_modules(PC_${module} QUIET ${module})
        foreach(library ${PC_${module}_LINK_LIBRARIES})
            file(REAL_PATH ${library} library)
            if(library STREQUAL mpi_library)
                set(pc_requires ${module})
            endif()
        endforeach()
    endforeach()
endif()
set(pc_cflags)
set(pc_libs)
if(NOT pc_requires)
    list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE pc_cflags)
    list(JOIN pc_cflags " " pc_cflags)
    list(JOIN MPI_C_LIBRARIES " " pc_libs)
endif()

# What the static library takes besides are shared libraries, so they are given by name. With `Requires.private: hwloc` a caller would
# need what only a static hwloc needs.
set(pc_libs_private)
cmake_path(GET HWLOC_LIBRARY PARENT_PATH hwloc_dir)
if(NOT hwloc_dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    set(pc_libs_private -L${hwloc_dir})
endif()
list(APPEND pc_libs_private -lhwloc)
list(TRANSFORM OpenMP_C_LIB_NAMES PREPEND -l OUTPUT_VARIABLE openmp_libraries)
list(APPEND pc_libs_private ${openmp_libraries} -lm -lrt)
if(with_cuda)
    list(APPEND pc_libs_private ${cudart} -lstdc++)
endif()
list(JOIN pc_libs_private " " pc_libs_private)

# Some packagers give absolute folders, but everything that names a folder from the prefix on needs a relative one.
foreach(kind LIB INCLUDE DATA BIN DOC)
    set(to_${kind} ${CMAKE_INSTALL_${kind}DIR})
endforeach()
set(to_PYTHON "${HYPERSORT_PYTHON_DIR}") # perhaps empty, which is not unset
foreach(kind LIB INCLUDE DATA BIN DOC PYTHON)
    cmake_path(ABSOLUTE_PATH to_${kind} BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
    cmake_path(RELATIVE_PATH to_${kind} BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
endforeach()
set(pc_dir ${to_LIB}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pc_dir} OUTPUT_VARIABLE pc_to_prefix)
configure_file(src/package/hypersort.pc.in ${PROJECT_BINARY_DIR}/private/hypersort.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/private/hypersort.pc DESTINATION ${pc_dir})

# For Lmod; the recipes beside it are for those who build packages, and are not installed.
set(module_dir ${to_DATA}/hypersort/modulefiles/hypersort)
string(REGEX REPLACE "[^A-Za-z0-9/]" "%\\0" module_pattern ${module_dir}) # a Lua pattern
configure_file(jobs/packaging/hypersort.lua.in ${PROJECT_BINARY_DIR}/private/hypersort.lua @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/private/hypersort.lua DESTINATION ${module_dir} RENAME ${PROJECT_VERSION}.lua)
