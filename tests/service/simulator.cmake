# The whole service in one thread, on a clock of its own, with faults from a seed.
quasi_add_test(simulator_test
  SOURCES simulator/client_process.cpp simulator/judge.cpp simulator/judge_events.cpp
          simulator/judge_orders.cpp simulator/judge_rows.cpp simulator/judge_sets.cpp
          simulator/operator_process.cpp
          simulator/server_process.cpp simulator/simulator_test.cpp
          simulator/story.cpp simulator/timeline.cpp simulator/worker_machine.cpp
          files/journal_disk.cpp
  LIBS quasi_client quasi_messages quasi_power_cut_disk quasi_worker_world quasi_test_support
  LABELS service faults)
target_compile_options(simulator_test PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
# One compilation reads the headers of gRPC and protobuf for all files.
set_target_properties(simulator_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
add_test(NAME simulator_thousand_seeds COMMAND simulator_test --gtest_filter=*Stories*)
set_tests_properties(simulator_thousand_seeds PROPERTIES
  LABELS nightly TIMEOUT 7200 ENVIRONMENT QUASI_SEEDS=1000)
