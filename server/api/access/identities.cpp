#include "server/api/access/identities.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>

#include "proto/wire/identity.hpp"
#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kSessionMs = 15 * 60'000;

/// The role that the configuration fixes for a user; nothing for an ordinary one.
std::optional<Role> fixed_role(const ApiOptions& options, std::int64_t uid) {
  if (uid == 0 || uid == static_cast<std::int64_t>(::geteuid())) return Role::kAdmin;
  const auto& workers = options.worker_uids;
  if (std::find(workers.begin(), workers.end(), uid) != workers.end()) return Role::kWorker;
  return std::nullopt;
}

/// The login name of a user, in the form of a principal's name.
std::string name_of_uid(std::int64_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (::getpwuid_r(static_cast<uid_t>(uid), &entry, buffer, sizeof buffer, &found) != 0 ||
      found == nullptr)
    return "uid-" + std::to_string(uid);
  const std::string name = found->pw_name;
  const bool is_plain =
      !name.empty() && name.size() <= 48 && name.front() >= 'a' && name.front() <= 'z' &&
      name != "local" &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string::npos;
  return is_plain ? name : "uid-" + std::to_string(uid);
}

/// Writes the principal of a user and waits for the commit.
std::optional<Principal> enrol(Services& services, std::int64_t uid, Role role) {
  auto saved = std::make_shared<Principal>();
  auto tables = std::make_shared<AccessTables>();
  auto result = std::make_shared<std::promise<bool>>();
  auto committed = result->get_future();
  const bool posted = services.writer.post(
      {.body =
           [=](WriteContext& write) {
             Principal principal{.name = name_of_uid(uid),
                                 .role = role,
                                 .tenant = "default",
                                 .uid = uid,
                                 .created_ms = write.now.wall_ms};
             for (const Principal& known : write.access.all().principals)
               if (known.uid == uid) {
                 principal = known;
                 principal.role = role;
               }
             // An admin may have given the login name to another principal.
             if (principal.id == 0 && write.access.find(principal.name))
               principal.name = "uid-" + std::to_string(uid);
             *saved = write.access.save(principal);
             write.audit.append({.time_ms = write.now.wall_ms,
                                 .principal = saved->name,
                                 .peer = "unix:uid=" + std::to_string(uid),
                                 .method = "Enrol",
                                 .target = join_lines({saved->name}),
                                 .outcome = "OK",
                                 .detail = "role=" + std::string(word_of(role))});
             *tables = write.access.all();
           },
       .done =
           [=, &services](const std::exception_ptr& error) {
             if (!error) services.directory.replace(*tables);
             result->set_value(!error);
           }});
  if (!posted || !committed.get()) return std::nullopt;
  log(Level::kInfo, "principal_enrolled",
      {{"name", saved->name}, {"role", std::string(word_of(role))}, {"uid", std::to_string(uid)}});
  return *saved;
}

/// Returns the number that stands for every user whom the server's user namespace does not know.
std::int64_t overflow_uid() {
  std::int64_t uid = 65'534;  // Linux's own value
  std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
  return uid;
}

}  // namespace

std::string session_of_uid(Services& services, std::int64_t uid) {
  // All such users would be one principal and see the jobs of each other.
  if (uid == overflow_uid()) {
    log(Level::kWarning, "login_failed",
        {{"uid", std::to_string(uid)},
         {"reason", "UNMAPPED_UID"},
         {"message",
          "the user is unknown in the server's user namespace; run the server outside it "
          "(PrivateUsers=no in a unit), or give the user a token"}});
    return {};
  }
  std::optional<Principal> principal = services.directory.find_uid(uid);
  const std::optional<Role> fixed = fixed_role(services.options, uid);
  if (fixed && (!principal || principal->role != *fixed))
    principal = enrol(services, uid, *fixed);
  else if (!principal && services.options.enrol_users)
    principal = enrol(services, uid, Role::kUser);
  if (!principal || principal->disabled) {
    log(Level::kWarning, "login_failed", {{"uid", std::to_string(uid)}, {"reason", "UNKNOWN_UID"}});
    return {};
  }
  return services.directory.open_session(principal->id, services.clock.now().wall_ms + kSessionMs);
}

Identities::Identities(const std::vector<std::string>& addresses, bool require_tokens) {
  if (!require_tokens) return;
  for (const std::string& address : addresses)
    if (address.starts_with("unix:"))
      sockets_.push_back(std::make_unique<IdentitySocket>(wire::identity_path(address.substr(5))));
}

void Identities::serve(Services& services) {
  for (const auto& socket : sockets_)
    socket->serve([&services](std::int64_t uid) { return session_of_uid(services, uid); });
}

}  // namespace quasi::server
