#pragma once

namespace quasi::client {

/// Exit statuses of `quasi`. Scripts rely on these numbers. They are part of the interface
/// (docs/reference/cli.md) and never change their meaning.
enum class ExitStatus : int {
  kOk = 0,
  kUnexpected = 1,
  kUsage = 2,
  kJobFailed = 3,
  kJobCancelled = 4,
  kNotFound = 5,
  kNotAllowed = 6,
  kQuota = 7,
  kUnreachable = 8,
  kInvalidInput = 9,
  kConflict = 10,
  kDataIntegrity = 11,
  kLocalFile = 12,
  kEngineUnavailable = 13,
  kPartial = 14,
  kTimedOut = 124,
  kInterrupted = 130,
  kTerminated = 143,
};

}  // namespace quasi::client
