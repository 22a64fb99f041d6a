#include "server/web/words.hpp"

namespace quasi::server {

std::string lower_case(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string_view word_of(AttemptOutcome outcome) {
  switch (outcome) {
    case AttemptOutcome::kOpen:
      return "open";
    case AttemptOutcome::kSucceeded:
      return "succeeded";
    case AttemptOutcome::kFailed:
      return "failed";
    case AttemptOutcome::kCancelled:
      return "cancelled";
    case AttemptOutcome::kReleased:
      return "released";
    case AttemptOutcome::kExpired:
      return "expired";
  }
  return "unknown";
}

std::string_view word_of(DeviceState state) {
  switch (state) {
    case DeviceState::kUnsaid:
      return "unknown";
    case DeviceState::kReady:
      return "ready";
    case DeviceState::kBusyForeign:
      return "busy_foreign";
    case DeviceState::kQuarantined:
      return "quarantined";
    case DeviceState::kCordoned:
      return "cordoned";
    case DeviceState::kLost:
      return "lost";
  }
  return "unknown";
}

}  // namespace quasi::server
