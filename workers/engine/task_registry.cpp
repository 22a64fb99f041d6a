#include "workers/engine/task_registry.hpp"

#include "workers/backend/error.hpp"
#include "workers/gw/gw_task.hpp"
#include "workers/mosfet/mosfet_task.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi {
namespace {

struct Entry {
  std::string_view kind;
  std::unique_ptr<Task> (*make)();
};

// The table is explicit, because linkers may drop static initialisers and no file would list them
// all.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> table{
      {"gw", make_gw_task},
      {"mosfet", make_mosfet_task},
      {"thermal", make_thermal_task},
  };
  return table;
}

}  // namespace

std::vector<std::string> task_kinds() {
  std::vector<std::string> kinds;
  for (const Entry& entry : entries()) kinds.emplace_back(entry.kind);
  return kinds;
}

std::unique_ptr<Task> make_task(std::string_view kind) {
  for (const Entry& entry : entries())
    if (entry.kind == kind) return entry.make();
  std::string known;
  for (const auto& name : task_kinds()) known += (known.empty() ? "" : ", ") + name;
  throw InvalidInput("unknown kind '" + std::string(kind) + "'; known: " + known);
}

}  // namespace quasi
