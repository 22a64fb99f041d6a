# Tests of the reference pages of keys against the parsers.
quasi_add_test(reference_pages_test
  SOURCES reference/parser_keys.cpp reference/reference_pages_test.cpp
  LIBS quasi_gw quasi_mosfet quasi_thermal quasi_server_lib quasi_daemon LABELS tidy)
