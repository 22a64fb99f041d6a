#pragma once

#include <string>

#include "client/session/session.hpp"

namespace quasi::client {

struct UsageOptions {
  bool all = false;  ///< the accounts of all users and tenants
};

/// `quasi usage` shows how much of the machines and of the disk accounts use, beside their quotas.
ExitStatus usage(Session& session, const UsageOptions& options);

struct QuotaOptions {
  std::string kind;  ///< "user" or "tenant"
  std::string name;
  /// New values: a number, "default", or "" for no change.
  std::string shares, jobs, gpus, gpu_hours, bytes;
};

/// `quasi admin quota` shows and sets the shares and quotas of a user or a tenant.
ExitStatus quota(Session& session, const QuotaOptions& options);

}  // namespace quasi::client
