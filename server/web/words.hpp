#pragma once

#include <string>
#include <string_view>

#include "server/queue/commands.hpp"
#include "server/queue/rows.hpp"

namespace quasi::server {

/// Words of enumerations, in lower case, as labels of metrics and as text.
std::string lower_case(std::string_view name);
std::string_view word_of(AttemptOutcome outcome);
std::string_view word_of(DeviceState state);

}  // namespace quasi::server
