# Tests of words, tables, documents, flags, files and journal without a server.
quasi_add_test(client_test
  SOURCES client/client_answers_test.cpp client/client_arguments_test.cpp
          client/client_axes_test.cpp client/client_config_test.cpp client/client_decks_test.cpp
          client/client_documents_test.cpp client/client_job_files_test.cpp
          client/client_key_help_test.cpp client/client_stop_rules_test.cpp
          client/client_text_test.cpp client/log_line_test.cpp
          server/results/action_test.cpp server/wire_golden_test.cpp
  LIBS quasi_client LABELS service)
# The tests ask the engine beside them which files a deck reads.
add_dependencies(client_test quasi-engine)
# Tests of the real programs with a real server and a real worker.
quasi_add_test(client_end_to_end_test
  SOURCES client/client_access_test.cpp client/client_commands_test.cpp
          client/client_end_to_end_test.cpp
          client/client_frictions_test.cpp client/client_interrupted_test.cpp
          client/client_login_test.cpp client/client_orders_test.cpp
          client/client_results_test.cpp client/client_sweeps_test.cpp
          jobs/deploy_files_test.cpp worker/worker_commands_test.cpp
  LIBS quasi_json quasi_access LABELS service TIMEOUT 600)
add_dependencies(client_end_to_end_test quasi quasi-server quasi-worker quasi-engine quasi-cage)
foreach(test client_test client_end_to_end_test)
  target_compile_options(${test} PRIVATE -Wno-restrict)
  target_compile_definitions(${test} PRIVATE
    QUASI_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    QUASI_EXAMPLES_DIR="${PROJECT_SOURCE_DIR}/examples"
    QUASI_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
  if(QUASI_SANITIZE)
    target_compile_definitions(${test} PRIVATE QUASI_SANITIZED)
  endif()
endforeach()

add_test(NAME quickstart.first_and_second_run
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/quickstart_twice ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(quickstart.first_and_second_run PROPERTIES LABELS service TIMEOUT 600)
