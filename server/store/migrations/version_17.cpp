#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// Measured over stated values are kept of times, too. `quantity` is that of
// server/queue/estimates/correction.hpp, and all older rows are of memory.
const char kVersion17[] = R"sql(
ALTER TABLE estimate_ratios
  ADD COLUMN quantity INTEGER NOT NULL DEFAULT 1 CHECK (quantity IN (1, 2));
DROP INDEX estimate_ratios_of_kinds;
CREATE INDEX estimate_ratios_of_kinds ON estimate_ratios (quantity, kind, pool, id);
)sql";

}  // namespace quasi::server
