add_library(quasi_worker_world STATIC support/crashing_files.cpp support/worker_world.cpp
  support/worker_world_server.cpp)
target_link_libraries(quasi_worker_world PUBLIC quasi_supervisor)

quasi_add_test(worker_supervisor_test
  SOURCES worker/attempt_machine_events_test.cpp worker/engine_facts_test.cpp
          worker/worker_attempt_machine_test.cpp
          worker/worker_supervisor_test.cpp
          worker/worker_strays_test.cpp worker/worker_crash_test.cpp
          worker/worker_self_test_test.cpp worker/worker_files_test.cpp
          worker/worker_launch_test.cpp
  LIBS quasi_worker_world quasi_daemon LABELS unit service)

add_library(quasi_tls_door STATIC support/people/tls_door.cpp)
target_link_libraries(quasi_tls_door PUBLIC quasi_wire PRIVATE quasi_access)

# These tests start the real executables from the build folder.
add_library(quasi_service_fixture STATIC support/program.cpp support/service_fixture.cpp)
target_link_libraries(quasi_service_fixture PUBLIC quasi_tls_door quasi_test_support GTest::gtest)
target_compile_definitions(quasi_service_fixture PRIVATE
  QUASI_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")

quasi_add_test(worker_process_test SOURCES worker/worker_process_test.cpp
  LIBS quasi_service_fixture quasi_daemon LABELS service)
add_dependencies(worker_process_test quasi-cage quasi-engine)

if(TARGET quasi-server)
  quasi_add_test(worker_faults_test SOURCES worker/worker_faults_test.cpp
    LIBS quasi_service_fixture LABELS service faults TIMEOUT 600)
  add_dependencies(worker_faults_test quasi-server quasi-worker quasi-engine quasi-cage)

  quasi_add_test(kill_test
    SOURCES jobs/kill_test.cpp support/history.cpp support/people/turns_history.cpp
    LIBS quasi_service_fixture quasi_service quasi_json LABELS service faults TIMEOUT 900)
  add_dependencies(kill_test quasi-server quasi-worker quasi-engine quasi-cage)
  add_library(quasi_deck_jobs STATIC support/deck_jobs.cpp)
  target_link_libraries(quasi_deck_jobs PUBLIC quasi_service_fixture quasi_io quasi_test_support)
  quasi_add_test(job_kill_test SOURCES jobs/job_kill_test.cpp LIBS quasi_deck_jobs LABELS service
    faults TIMEOUT 900)
  add_dependencies(job_kill_test quasi-server quasi-worker quasi-engine quasi-cage)

  # Tests of hostile decks, files and engines.
  add_executable(hostile_engine jobs/hostile_engine.cpp
    ${PROJECT_SOURCE_DIR}/tests/cage/escapes.cpp)
  target_link_libraries(hostile_engine PRIVATE quasi_cage)
  quasi_add_test(escape_test SOURCES jobs/escape_test.cpp support/hostile_decks.cpp
    LIBS quasi_deck_jobs LABELS service TIMEOUT 900)
  add_dependencies(escape_test quasi-server quasi-worker quasi-engine quasi-cage hostile_engine)

  # Tests of one attempt on several slots, as one process and as several.
  quasi_add_test(job_ranks_test SOURCES jobs/job_ranks_test.cpp LIBS quasi_deck_jobs LABELS service
    faults TIMEOUT 900)
  add_dependencies(job_ranks_test quasi-server quasi-worker quasi-engine quasi-cage)
  if(quasi_mpi_enabled)
    target_compile_definitions(job_ranks_test PRIVATE QUASI_MPIEXEC="${MPIEXEC_EXECUTABLE}")
  endif()

  # A worker on a real GPU. Its engine is quasi-engine with test work that brings real trouble.
  if(quasi_cuda_enabled)
    find_package(CLI11 REQUIRED)
    set(engine ${PROJECT_SOURCE_DIR}/workers/engine)
    add_executable(troubled_engine gpu/troubled_work.cpp gpu/gpu_trouble.cu
      ${engine}/main.cpp ${engine}/structure/structure_commands.cpp
      ${engine}/terminal_progress.cpp ${engine}/exec_ipc.cpp
      ${engine}/rank_launch$<$<NOT:$<BOOL:${quasi_mpi_enabled}>>:_absent>.cpp)
    target_link_libraries(troubled_engine PRIVATE quasi_engine quasi_thermal_task quasi_ipc
      quasi_cage CLI11::CLI11)
    if(quasi_mpi_enabled)
      target_compile_definitions(troubled_engine PRIVATE QUASI_MPIEXEC="${MPIEXEC_EXECUTABLE}")
    endif()
    quasi_add_test(worker_gpu_test SOURCES gpu/worker_gpu_test.cpp
      LIBS quasi_deck_jobs quasi_backend LABELS service faults TIMEOUT 600)
    add_dependencies(worker_gpu_test quasi-server quasi-worker quasi-cage troubled_engine)
  endif()

  # The full size takes minutes and runs with `ctest -L nightly`.
  add_test(NAME kill_test_full COMMAND kill_test --gtest_filter=Kill.LosesNothing)
  add_test(NAME kill_test_tls_full
    COMMAND kill_test --gtest_filter=Kill.LosesNothingOfTwentyUsersOverTls)
  set_tests_properties(kill_test_full kill_test_tls_full PROPERTIES LABELS nightly TIMEOUT 3600
    ENVIRONMENT QUASI_KILL_JOBS=2000)
  add_test(NAME kill_test_ten_thousand COMMAND kill_test --gtest_filter=Kill.LosesNothing)
  set_tests_properties(kill_test_ten_thousand PROPERTIES LABELS nightly TIMEOUT 7200
    ENVIRONMENT QUASI_KILL_JOBS=10000)
endif()
