#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi {

/// Returns how many items of a work list fit into the memory budget at once.
///
/// @param budget_bytes  memory that the task may use on the device
/// @param fixed_bytes   memory that is needed for any number of items
/// @param item_bytes    memory for each item, > 0
/// @throws OutOfMemory if not even one item fits, with need and budget in the message.
inline std::int64_t items_that_fit(std::int64_t budget_bytes, std::int64_t fixed_bytes,
                                   std::int64_t item_bytes, const std::string& what) {
  const std::int64_t items = (budget_bytes - fixed_bytes) / item_bytes;
  if (items < 1)
    throw OutOfMemory(what + " needs " + std::to_string((fixed_bytes + item_bytes) >> 20) +
                      " MiB of device memory but the budget is " +
                      std::to_string(budget_bytes >> 20) +
                      " MiB; raise the budget, use a smaller problem or another device");
  return items;
}

/// Returns the budget of a work list beside data that must lie whole on the device: the budget of
/// the task, or, where the data leave no room in it for 64 items, what data and 64 items take. The
/// memory that is free does not count, so that blocks and bits do not depend on it.
///
/// @param limit_bytes  memory that the device can give; 0: not known, the budget holds
inline std::int64_t budget_beside(std::int64_t budget_bytes, std::int64_t limit_bytes,
                                  std::int64_t fixed_bytes, std::int64_t item_bytes) {
  constexpr std::int64_t kLeastItems = 64;
  const std::int64_t need = fixed_bytes + kLeastItems * item_bytes;
  return need <= limit_bytes ? std::max(budget_bytes, need) : budget_bytes;
}

}  // namespace quasi
