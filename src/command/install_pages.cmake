# The man page and what shells complete: the command that was just built prints them from its table of options. Where it cannot run,
# as it is for another machine, there are none.
include(GNUInstallDirs)
if(NOT CMAKE_CROSSCOMPILING)
    set(pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
    file(MAKE_DIRECTORY ${pages})
    foreach(page man:hypersort.1 bash:hypersort zsh:_hypersort)
        string(REPLACE ":" ";" page ${page})
        list(GET page 0 kind)
        list(GET page 1 name)
        add_custom_command(OUTPUT ${pages}/${name} DEPENDS hypersort VERBATIM
                           COMMAND $<TARGET_FILE:hypersort> --generate ${kind} > ${pages}/${name})
        list(APPEND page_files ${pages}/${name})
    endforeach()
    # Compressed, as Debian wants it; man reads it so everywhere.
    add_custom_command(OUTPUT ${pages}/hypersort.1.gz DEPENDS ${pages}/hypersort.1 VERBATIM
                       COMMAND gzip -9nc ${pages}/hypersort.1 > ${pages}/hypersort.1.gz)
    add_custom_target(hypersort_pages ALL DEPENDS ${page_files} ${pages}/hypersort.1.gz)
    install(FILES ${pages}/hypersort.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${pages}/hypersort DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${pages}/_hypersort DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
