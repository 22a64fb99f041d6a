#include "workers/daemon/worker_log.hpp"

namespace quasi {

void StderrLog::event(Level level, std::string_view name, const nlohmann::json& facts) {
  if (level < least_) return;
  wire::write_log_line(wire::log_line(level, name, nlohmann::ordered_json(facts),
                                      text_ ? wire::LogForm::kText : wire::LogForm::kJson));
}

}  // namespace quasi
