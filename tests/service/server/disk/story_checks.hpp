#pragma once

// Checks of the invariants of docs/invariants.md on a server whose disk failed.

#include <gtest/gtest.h>

#include "tests/service/server/server_story.hpp"

namespace quasi::server::test {

/// First number of the first row of a query; −1 without a row.
std::int64_t number(Database& database, const char* sql);

/// I1 to I4, I12: acknowledged jobs, final states, artefacts and cancels are still there, and no
/// fence is larger than the newest one that the store knows.
void expect_promises_kept(ServerStory& story);

/// After the work is finished, a deleted job has neither artefacts nor logs on the disk.
void expect_nothing_left_of_deleted(ServerStory& story);

/// Checks the invariants that hold after any restart, before and after the work is finished.
void check(ServerStory& story);

}  // namespace quasi::server::test
