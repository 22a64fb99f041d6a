#pragma once

// The tenants of the kill test: their shares, their quotas, and the check of both.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "tests/service/support/people/turns_history.hpp"

namespace quasi::test {

// Tenants have 100, 200, 300 and 400 shares of the workers' ten GPUs, and jobs in these parts.
inline constexpr int kTenants = 4, kSumOfParts = 10;
inline constexpr std::int64_t kGpusOfWorker = 2;
// The quotas leave each tenant room for its share. They bind submitters all the time, and running
// jobs once the other tenants have none left.
inline constexpr std::int64_t kUserJobs = 10, kUserGpus = 3, kTenantJobs = 40, kTenantGpus = 6;
// A grant charges the time limit until the attempt has ended. The use of a tenant over its share
// therefore differs from that of the others by some seconds at any time, however long they contest.
inline constexpr std::int64_t kMaxRuntimeS = 10;
inline constexpr double kMostDeviation = 0.05;  ///< of the GPU time of a tenant from its share
inline constexpr std::uint64_t kFullSize = 2'000;

inline std::string tenant_name(std::size_t tenant) { return "tenant" + std::to_string(tenant); }

/// Expects that the users of each tenant, who have equal shares, got equal GPU time while all of
/// them waited. The charge of one grant is beyond the deviation, because it is taken back only when
/// the attempt ends.
inline void expect_equal_users(const TurnsHistory& turns, bool is_full) {
  for (const auto& [tenant, users] : turns.user_gpu_s_in_contest) {
    double sum_s = 0.0;
    for (const auto& [user, gpu_s] : users) sum_s += gpu_s;
    const double share_s = sum_s / static_cast<double>(users.size());
    std::cout << "  users of " << tenant << ", share " << share_s << " GPU-s:";
    for (const auto& [user, gpu_s] : users) {
      std::cout << ' ' << gpu_s;
      if (is_full) {
        EXPECT_LE(std::abs(gpu_s - share_s), kMostDeviation * share_s + kMaxRuntimeS)
            << "user " << user << " of " << tenant;
      }
    }
    std::cout << '\n';
  }
}

/// Expects that no quota was exceeded at any time, and that full runs kept the shares.
inline void expect_fair_turns(const TurnsHistory& turns, bool is_full) {
  std::int64_t most_of_users = 0;
  for (const auto& [user, peak] : turns.of_user) {
    EXPECT_LE(peak.unfinished_jobs, kUserJobs) << "user " << user;
    EXPECT_LE(peak.running_gpus, kUserGpus) << "user " << user;
    most_of_users = std::max(most_of_users, peak.running_gpus);
  }
  double sum = 0.0;
  for (const auto& [tenant, gpu_s] : turns.gpu_s_in_contest) sum += gpu_s;
  EXPECT_EQ(turns.of_tenant.size(), static_cast<std::size_t>(kTenants));
  std::cout << "all tenants waited for " << turns.contest_s << " s; most GPUs of a user "
            << most_of_users << '\n';
  for (std::size_t i = 0; i < kTenants; ++i) {
    const std::string tenant = tenant_name(i);
    const PeakUse& peak = turns.of_tenant.at(tenant);
    EXPECT_LE(peak.unfinished_jobs, kTenantJobs) << tenant;
    EXPECT_LE(peak.running_gpus, kTenantGpus) << tenant;
    std::cout << "  " << tenant << ": at most " << peak.unfinished_jobs << " jobs and "
              << peak.running_gpus << " GPUs";
    if (turns.gpu_s_in_contest.contains(tenant) && sum > 0.0) {
      const double ratio =
          turns.gpu_s_in_contest.at(tenant) / sum * kSumOfParts / static_cast<double>(i + 1);
      std::cout << "; " << turns.gpu_s_in_contest.at(tenant) << " GPU-s, " << ratio
                << " of its share";
      if (is_full) {
        EXPECT_LE(std::abs(ratio - 1.0), kMostDeviation) << tenant;
      }
    }
    std::cout << '\n';
  }
  expect_equal_users(turns, is_full);
  if (is_full) {
    EXPECT_GT(sum, 0.0) << "the tenants never waited together";
  }
}

}  // namespace quasi::test
