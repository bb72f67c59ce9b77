# `cmake --install` and `cpack -G DEB`: the two programs of a machine that trains, and what muster itself says about
# its command line. The operator and the supervisor are for images, which docker/build makes.
include(GNUInstallDirs)

install(TARGETS muster muster-trainer RUNTIME)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# muster_text(FILE DESTINATION ARGUMENT...): installs as FILE what `muster ARGUMENT...` prints.
function(muster_text file destination)
  string(JOIN "\" \"" arguments ${ARGN})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:muster>\" \"${arguments}\"
                                OUTPUT_FILE \"${CMAKE_BINARY_DIR}/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${CMAKE_BINARY_DIR}/${file} DESTINATION ${destination})
endfunction()
muster_text(muster.1 ${CMAKE_INSTALL_MANDIR}/man1 manual)
muster_text(muster ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Muster's maintainers <muster@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains one TrainingJob on this machine or on Kubernetes")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
