add_library(quasi_worker_world STATIC support/crashing_files.cpp support/worker_world.cpp)
target_link_libraries(quasi_worker_world PUBLIC quasi_supervisor)

quasi_add_test(worker_supervisor_test
  SOURCES worker_attempt_machine_test.cpp worker_supervisor_test.cpp worker_crash_test.cpp
          worker_files_test.cpp
  LIBS quasi_worker_world quasi_daemon LABELS unit service)
