# These tests start the real executables. They cover the service manager, backups and their
# restoration.
if(TARGET quasi-server)
  quasi_add_test(operations_test
    SOURCES operations/restore_drill_test.cpp operations/watchdog_test.cpp
    LIBS quasi_service_fixture quasi_service LABELS service faults)
  add_dependencies(operations_test quasi-server quasi-worker quasi-engine quasi-cage)
endif()
