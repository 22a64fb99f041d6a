#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string request_key(const Scope& scope, const std::string& request_id) {
  if (request_id.empty() || scope.principal_id == 0) return request_id;
  return std::to_string(scope.principal_id) + "/" + request_id;
}

std::optional<std::string> replay(Store& store, const std::string& key, const std::string& method,
                                  const std::string& body_sha256) {
  if (key.empty()) return std::nullopt;
  const auto known = store.find_request(key);
  if (!known) return std::nullopt;
  if (known->method != method || known->body_sha256 != body_sha256)
    throw Refused(Refusal::kAlreadyExists, "REQUEST_ID_REUSED",
                  "request_id " + key.substr(key.find('/') + 1) +
                      " was used for another request; take a new one for each request");
  return known->response;
}

void require_owner(const Scope& scope, const JobRow& job) {
  if (scope.is_everything || job.owner_id == scope.principal_id) return;
  throw Refused(Refusal::kPermissionDenied, "ROLE_REQUIRED",
                "job " + job.uid +
                    " belongs to another member of your group; only its owner or an operator may "
                    "change it");
}

Refused wrong_state(const JobRow& job, const std::string& rule) {
  return Refused(Refusal::kFailedPrecondition, "WRONG_STATE",
                 "job " + job.uid + " is " + std::string(name_of(job.state)) + "; " + rule)
      .with("state", std::string(name_of(job.state)));
}

}  // namespace quasi::server
