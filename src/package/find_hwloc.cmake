# hwloc as the target hypersort::hwloc, found by pkg-config, which knows an hwloc in an unusual place, or else by the names of its files.
# The build includes this, and so does a project that finds the installed static library: hwloc may lie elsewhere there.
if(NOT TARGET hypersort::hwloc)
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(HWLOC QUIET hwloc)
    endif()
    find_path(HWLOC_INCLUDE_DIR hwloc.h HINTS ${HWLOC_INCLUDE_DIRS})
    find_library(HWLOC_LIBRARY hwloc HINTS ${HWLOC_LIBRARY_DIRS})
    if(HWLOC_INCLUDE_DIR AND HWLOC_LIBRARY)
        add_library(hypersort::hwloc UNKNOWN IMPORTED)
        set_target_properties(hypersort::hwloc PROPERTIES IMPORTED_LOCATION "${HWLOC_LIBRARY}"
                              INTERFACE_INCLUDE_DIRECTORIES "${HWLOC_INCLUDE_DIR}")
    endif()
endif()
