#include "server/store/migrations/migrations.hpp"

namespace quasi::server {
namespace {

// The walls around the engine of an attempt. Both columns are NULL and empty until the worker
// reports the start of the engine.
constexpr char kIsolationOfAttempts[] = R"sql(
ALTER TABLE attempts ADD COLUMN isolated INTEGER CHECK (isolated IN (0, 1));
ALTER TABLE attempts ADD COLUMN walls TEXT NOT NULL DEFAULT '';
)sql";

// Listings by the beginning of a name. Labels have an index since version 1.
constexpr char kIndexOfNames[] = R"sql(
CREATE INDEX jobs_by_name ON jobs (name);
)sql";

constexpr Migration kMigrations[] = {
    {1, kVersion1},
    {2, kIsolationOfAttempts},
    {3, kIndexOfNames},
};

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

}  // namespace quasi::server
