#pragma once

#include <cstdint>
#include <string>

namespace quasi::server {

class Database;

inline constexpr std::int32_t kSchemaVersion = 1;
inline constexpr std::int32_t kApplicationId = 0x51554153;  ///< "QUAS"

/// Creates the tables in an empty database, or checks that the schema has the version of this
/// program. It sets WAL mode first.
/// @throws std::runtime_error if the file belongs to another program or to a newer version.
void prepare_schema(Database& database);

}  // namespace quasi::server
