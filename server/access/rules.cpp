#include "server/access/rules.hpp"

#include <algorithm>

namespace quasi::server {
namespace {

constexpr Rule kRules[] = {
    // JobService.
    {"GetCapabilities", Role::kViewer, true},
    {"SubmitJobs", Role::kUser, false},
    {"ValidateJobs", Role::kUser, false},
    {"GetJob", Role::kViewer, false},
    {"ListJobs", Role::kViewer, false},
    {"CancelJobs", Role::kUser, false},
    {"DeleteJobs", Role::kUser, false},
    {"HoldJobs", Role::kUser, false},
    {"ReleaseJobs", Role::kUser, false},
    {"ReprioritiseJobs", Role::kUser, false},
    {"ExplainJob", Role::kViewer, false},
    {"GetUsage", Role::kViewer, false},
    {"WatchJobs", Role::kViewer, false},
    {"ReadLogs", Role::kViewer, false},
    {"ListArtifacts", Role::kViewer, false},
    {"ListPools", Role::kViewer, false},
    // BlobService: users send inputs and fetch results, workers do the opposite.
    {"FindMissingBlobs", Role::kUser, true},
    {"WriteBlob", Role::kUser, true},
    {"QueryUpload", Role::kUser, true},
    {"ReadBlob", Role::kViewer, true},
    // WorkerService. An admin could give the role to himself, so he may call it, too.
    {"Register", Role::kAdmin, true},
    {"AcquireLeases", Role::kAdmin, true},
    {"Heartbeat", Role::kAdmin, true},
    {"StartAttempt", Role::kAdmin, true},
    {"AppendLog", Role::kAdmin, true},
    {"RecordCheckpoint", Role::kAdmin, true},
    {"CompleteAttempt", Role::kAdmin, true},
    {"ReleaseLease", Role::kAdmin, true},
    // AccessService. A code is exchanged before there is a token.
    {"RedeemCode", Role::kViewer, true},
    {"RenewToken", Role::kViewer, true},
    {"CreateCode", Role::kAdmin, false},
    // AdminService.
    {"SavePrincipal", Role::kAdmin, false},
    {"ListPrincipals", Role::kAdmin, false},
    {"CreateToken", Role::kAdmin, false},
    {"RevokeToken", Role::kAdmin, false},
    {"SaveQuotas", Role::kAdmin, false},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

bool needs_no_token(std::string_view method) { return method == "RedeemCode"; }

bool may_call(Role role, std::string_view method) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& each) { return each.method == method; });
  if (rule == std::end(kRules)) return false;
  return role == Role::kWorker ? rule->workers : role >= rule->least;
}

}  // namespace quasi::server
