# Tests the files that the programs leave after a power loss. The test replaces fsync and rename.
quasi_add_test(durability_test
  SOURCES files/chunk_queue_test.cpp files/direct_file_test.cpp files/durability_test.cpp
          files/log_syncs_test.cpp files/primitives_test.cpp
          support/sync_trace.cpp
  LIBS quasi_client quasi_daemon quasi_service quasi_io LABELS unit service)
target_compile_options(durability_test PRIVATE -Wno-restrict)

# Cuts the power under the journals of clients. The test replaces write, fsync, rename, remove and
# mkdir.
quasi_add_test(journal_crash_test
  SOURCES files/journal_crash_test.cpp files/journal_disk.cpp
  LIBS quasi_client quasi_power_cut_disk quasi_test_support LABELS service faults)
target_compile_options(journal_crash_test PRIVATE
  -Wno-restrict -Wno-maybe-uninitialized)
add_test(NAME journal_crash_test_all_points COMMAND journal_crash_test)
set_tests_properties(journal_crash_test_all_points PROPERTIES
  LABELS nightly TIMEOUT 1200 ENVIRONMENT QUASI_ALL_POINTS=1)
