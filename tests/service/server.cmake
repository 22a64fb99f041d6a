# The server: its rules, its disk, its calls.
add_library(quasi_power_cut_disk STATIC support/power_cut_disk.cpp)
target_link_libraries(quasi_power_cut_disk PUBLIC quasi_service)

quasi_add_test(server_crash_test
  SOURCES server/dependencies/dependency_crash_test.cpp
          server/disk/disk_faults_test.cpp server/disk/story_checks.cpp
          server/migrations/golden_database_test.cpp server/server_crash_test.cpp
          server/server_migration_test.cpp
  LIBS quasi_power_cut_disk LABELS service faults)
quasi_add_test(server_queue_test
  SOURCES server/server_states_test.cpp server/server_triggers_test.cpp
          server/server_queue_model_test.cpp
          server/server_queue_rules_test.cpp server/server_recovery_test.cpp
          server/server_result_limits_test.cpp server/turns/server_accounts_test.cpp
          server/turns/server_choice_test.cpp server/turns/server_quotas_test.cpp
          server/turns/server_explain_test.cpp
          server/dependencies/dependencies_test.cpp
          server/dependencies/job_sets_test.cpp
          server/dependencies/random_dependencies_test.cpp
          server/dependencies/stop_rules_test.cpp
          server/orders/service_orders_test.cpp server/orders/shared_gpu_test.cpp
          server/reads/read_statements_test.cpp
          server/reads/recurring_task_test.cpp
          server/results/equal_jobs_stories_test.cpp server/results/equal_jobs_test.cpp
          server/results/long_queue_test.cpp server/results/server_results_test.cpp
          server/turns/server_turns_test.cpp
  LIBS quasi_service LABELS unit service)
quasi_add_test(server_calls_test
  SOURCES server/access/audit_test.cpp server/access/foreign_objects_test.cpp
          server/access/lost_rights_test.cpp
          server/access/stream_limits_test.cpp server/access/token_scopes_test.cpp
          server/dependencies/sweep_calls_test.cpp server/disk/damaged_blobs_test.cpp
          server/reads/shared_events_test.cpp
          server/server_access_test.cpp server/server_blobs_test.cpp server/server_calls_test.cpp
          server/server_deletion_test.cpp server/server_login_limits_test.cpp
          server/server_owners_test.cpp
          server/server_fuzz_test.cpp server/server_malformed_jobs_test.cpp
          server/server_storage_test.cpp server/server_tls_test.cpp server/server_watch_test.cpp
          server/server_worker_address_test.cpp server/turns/quota_races_test.cpp
          server/turns/server_usage_test.cpp
  LIBS quasi_server_lib LABELS service)
# Backups, restored data directories and checks of both, without a server.
quasi_add_test(server_backup_test
  SOURCES server/backup/backup_test.cpp server/backup/store_check_test.cpp
  LIBS quasi_backup LABELS service)
# Metrics and the status page over HTTP.
quasi_add_test(server_web_test
  SOURCES server/web/job_page_test.cpp server/web/metrics_test.cpp
          server/web/status_page_test.cpp server/web/http.cpp
  LIBS quasi_server_lib LABELS service)
foreach(test server_crash_test server_queue_test server_backup_test server_calls_test
        server_web_test)
  # GCC 12 sees uninitialised strings in every designated initializer that leaves one out.
  target_compile_options(${test} PRIVATE -Wno-maybe-uninitialized)
endforeach()
foreach(test server_crash_test server_backup_test)
  target_compile_definitions(${test} PRIVATE
    QUASI_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
endforeach()
# A million malformed requests in eight parts, by their seeds.
foreach(part RANGE 1 8)
  add_test(NAME server_fuzz_part_${part}
    COMMAND server_calls_test --gtest_filter=Fuzz.EveryCallRefusesWhatIsWrongByField)
  set_tests_properties(server_fuzz_part_${part} PROPERTIES LABELS nightly TIMEOUT 7200
    ENVIRONMENT "QUASI_SEED=${part};QUASI_FUZZ_RUNS=125000")
endforeach()
# 10,000 calls about foreign and about absent objects, in turn.
add_test(NAME server_foreign_objects_take_the_same_time
  COMMAND server_calls_test --gtest_filter=ForeignObjects.*)
set_tests_properties(server_foreign_objects_take_the_same_time PROPERTIES
  LABELS nightly TIMEOUT 1200 ENVIRONMENT QUASI_TIMED_CALLS=10000)
# The submission of 10,000 jobs in one sweep is on the disk within three seconds.
add_test(NAME server_sweep_of_ten_thousand_jobs
  COMMAND server_calls_test --gtest_filter=SweepCalls.TenThousandJobsGoInAtOnce)
set_tests_properties(server_sweep_of_ten_thousand_jobs PROPERTIES
  LABELS nightly TIMEOUT 600 ENVIRONMENT QUASI_SWEEP_SECONDS=3)
add_test(NAME server_crash_test_all_points COMMAND server_crash_test)
set_tests_properties(server_crash_test_all_points PROPERTIES
  LABELS nightly TIMEOUT 1200 ENVIRONMENT QUASI_ALL_POINTS=1)
