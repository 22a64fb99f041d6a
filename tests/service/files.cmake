# Tests the files that the programs leave after a power loss. The test replaces fsync and rename.
quasi_add_test(durability_test
  SOURCES files/durability_test.cpp files/log_syncs_test.cpp support/sync_trace.cpp
  LIBS quasi_client quasi_daemon quasi_service quasi_io LABELS unit service)
target_compile_options(durability_test PRIVATE -Wno-restrict $<$<CONFIG:Release>:-O1>)
