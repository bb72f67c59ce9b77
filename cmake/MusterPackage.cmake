# `cmake --install` and `cpack -G DEB`: the two programs of a machine that trains, and what they say about
# their command lines. The operator and the supervisor are for images, which docker/build makes.
include(GNUInstallDirs)

install(TARGETS muster muster-trainer RUNTIME)
# What muster-trainer opens if a job has tables, if it was built; with Apache Arrow and its licence.
set(arrow ${CMAKE_SOURCE_DIR}/build/arrow)
install(TARGETS muster_tables LIBRARY DESTINATION lib/muster OPTIONAL)
install(DIRECTORY ${arrow}/pyarrow/ DESTINATION lib/muster OPTIONAL
        FILES_MATCHING REGEX "/lib[^/]*\\.so\\.[0-9]+$" PATTERN include EXCLUDE)
install(DIRECTORY ${arrow}/licenses/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/arrow OPTIONAL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# muster_text(PROGRAM FILE DESTINATION ARGUMENT...): installs as FILE what `PROGRAM ARGUMENT...` prints.
function(muster_text program file destination)
  string(JOIN "\" \"" arguments ${ARGN})
  set(text ${CMAKE_BINARY_DIR}/installed/${file})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/installed)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:${program}>\" \"${arguments}\"
                                OUTPUT_FILE \"${text}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${text} DESTINATION ${destination})
endfunction()
foreach(program muster muster-trainer)
  muster_text(${program} ${program}.1 ${CMAKE_INSTALL_MANDIR}/man1 manual)
  muster_text(${program} ${program} ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
  muster_text(${program} ${program}.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
  muster_text(${program} _${program} ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions completion zsh)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Muster's maintainers <muster@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains one TrainingJob on this machine or on Kubernetes")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${arrow}/pyarrow)
include(CPack)
