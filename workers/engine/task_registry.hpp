#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workers/engine/task.hpp"

namespace quasi {

/// Returns the names of all kinds in this program.
std::vector<std::string> task_kinds();

/// @throws InvalidInput naming the kinds that exist.
std::unique_ptr<Task> make_task(std::string_view kind);

}  // namespace quasi
