#pragma once

#include <cstdint>
#include <span>

namespace quasi::server {

/// One numbered step of the schema. It leads from version `version - 1` to `version`.
struct Migration {
  std::int32_t version;
  const char* sql;
};

/// Begin here: server/store/migrations holds the schema of the database as a list of steps. Step 1
/// makes the tables in an empty database. A new database runs all steps, and an older one the steps
/// that it lacks. A released step never changes, because databases of its version exist. A change
/// of the schema is a new step at the end of the list in migrations.cpp.
std::span<const Migration> migrations();

extern const char kVersion1[];
extern const char kVersion10[];
extern const char kVersion12[];
extern const char kVersion13[];
extern const char kVersion14[];
extern const char kVersion15[];
extern const char kVersion16[];
extern const char kVersion17[];

}  // namespace quasi::server
