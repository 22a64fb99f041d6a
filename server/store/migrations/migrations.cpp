#include "server/store/migrations/migrations.hpp"

namespace quasi::server {
namespace {

// The walls around the engine of an attempt. Both columns are NULL and empty until the worker
// reports the start of the engine.
constexpr char kIsolationOfAttempts[] = R"sql(
ALTER TABLE attempts ADD COLUMN isolated INTEGER CHECK (isolated IN (0, 1));
ALTER TABLE attempts ADD COLUMN walls TEXT NOT NULL DEFAULT '';
)sql";

constexpr Migration kMigrations[] = {
    {1, kVersion1},
    {2, kIsolationOfAttempts},
};

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

}  // namespace quasi::server
