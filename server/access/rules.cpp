#include "server/access/rules.hpp"

#include <algorithm>

namespace quasi::server {
namespace {

constexpr TokenScopes kRead{TokenScope::kRead};
constexpr TokenScopes kSubmit{TokenScope::kSubmit};
constexpr TokenScopes kCancel{TokenScope::kCancel};
constexpr TokenScopes kAdmin{TokenScope::kAdmin};
constexpr TokenScopes kEvery = TokenScopes::every();

constexpr Rule kRules[] = {
    // JobService.
    {"GetCapabilities", Role::kViewer, true, kEvery},
    {"SubmitJobs", Role::kUser, false, kSubmit},
    {"ValidateJobs", Role::kUser, false, kSubmit},
    {"GetJob", Role::kViewer, false, kRead},
    {"ListJobs", Role::kViewer, false, kRead},
    {"GetJobSet", Role::kViewer, false, kRead},
    {"ListJobSets", Role::kViewer, false, kRead},
    {"CancelJobs", Role::kUser, false, kCancel},
    {"DeleteJobs", Role::kUser, false, kCancel},
    {"HoldJobs", Role::kUser, false, kCancel},
    {"ReleaseJobs", Role::kUser, false, kCancel},
    {"ReprioritiseJobs", Role::kUser, false, kCancel},
    {"ExplainJob", Role::kViewer, false, kRead},
    {"GetUsage", Role::kViewer, false, kRead},
    {"WatchJobs", Role::kViewer, false, kRead},
    {"ReadLogs", Role::kViewer, false, kRead},
    {"ListArtifacts", Role::kViewer, false, kRead},
    {"ListPools", Role::kViewer, false, kRead},
    // BlobService: users send inputs and fetch results, workers do the opposite.
    {"FindMissingBlobs", Role::kUser, true, kSubmit},
    {"WriteBlob", Role::kUser, true, kSubmit},
    {"QueryUpload", Role::kUser, true, kSubmit},
    {"ReadBlob", Role::kViewer, true, kRead},
    // WorkerService. An admin could give the role to himself, so he may call it, too. The tokens of
    // workers are not narrowed.
    {"Register", Role::kAdmin, true, kAdmin},
    {"AcquireLeases", Role::kAdmin, true, kAdmin},
    {"Heartbeat", Role::kAdmin, true, kAdmin},
    {"StartAttempt", Role::kAdmin, true, kAdmin},
    {"AppendLog", Role::kAdmin, true, kAdmin},
    {"RecordCheckpoint", Role::kAdmin, true, kAdmin},
    {"CompleteAttempt", Role::kAdmin, true, kAdmin},
    {"ReleaseLease", Role::kAdmin, true, kAdmin},
    // AccessService. A code is exchanged before there is a token.
    {"RedeemCode", Role::kViewer, true, kEvery},
    {"RenewToken", Role::kViewer, true, kEvery},
    {"CreateCode", Role::kAdmin, false, kAdmin},
    // AdminService.
    {"SavePrincipal", Role::kAdmin, false, kAdmin},
    {"ListPrincipals", Role::kAdmin, false, kAdmin},
    {"CreateToken", Role::kAdmin, false, kAdmin},
    {"RevokeToken", Role::kAdmin, false, kAdmin},
    {"SaveQuotas", Role::kAdmin, false, kAdmin},
    {"DrainWorker", Role::kOperator, false, kAdmin},
    {"CordonDevice", Role::kOperator, false, kAdmin},
    {"PreemptJobs", Role::kOperator, false, kCancel},
};

static_assert(std::none_of(std::begin(kRules), std::end(kRules),
                           [](const Rule& rule) { return rule.scopes.is_empty(); }),
              "each rule names the scopes whose tokens open its method");

const Rule* find_rule(std::string_view method) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& each) { return each.method == method; });
  return rule == std::end(kRules) ? nullptr : rule;
}

}  // namespace

std::span<const Rule> rules() { return kRules; }

bool needs_no_token(std::string_view method) { return method == "RedeemCode"; }

bool may_call(Role role, std::string_view method) {
  const Rule* rule = find_rule(method);
  if (rule == nullptr) return false;
  return role == Role::kWorker ? rule->workers : role >= rule->least;
}

TokenScopes scopes_for(std::string_view method) {
  const Rule* rule = find_rule(method);
  return rule == nullptr ? TokenScopes() : rule->scopes;
}

}  // namespace quasi::server
