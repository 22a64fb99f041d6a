#include "server/api/access/act.hpp"

#include <algorithm>

#include "server/service/log.hpp"

namespace quasi::server {

Act::Act(const grpc::CallbackServerContext& context, std::string_view event,
         std::string_view method)
    : event_(event), method_(method), peer_(context.peer()) {}

void Act::record(WriteContext& write, const std::string& principal, const Target& target) {
  principal_ = principal;
  target_ = target;
  is_recorded_ = true;
  write.audit.append({.time_ms = write.now.wall_ms,
                      .principal = principal,
                      .peer = peer_,
                      .method = method_,
                      .target = join_lines(target.names),
                      .outcome = "OK",
                      .detail = target.detail});
}

void Act::log_committed() const {
  if (!is_recorded_) return;
  constexpr std::size_t kNamesShown = 8;
  const std::vector<std::string>& names = target_.names;
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i)
    shown += (i > 0 ? " " : "") + names[i];
  log(Level::kInfo, event_,
      {{"method", method_},
       {"by", principal_},
       {"peer", peer_},
       {"target", shown},
       {"count", std::to_string(names.size())}});
}

void record_failed_login(Writer& writer, const std::string& peer, std::string_view method,
                         const std::string& reason) {
  writer.post({.body =
                   [peer, reason, method = std::string(method)](WriteContext& write) {
                     write.audit.append({.time_ms = write.now.wall_ms,
                                         .principal = {},
                                         .peer = peer,
                                         .method = method,
                                         .target = {},
                                         .outcome = reason,
                                         .detail = {}});
                   },
               .done = {}});
}

}  // namespace quasi::server
