#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/gw/solver/ordered_sum.hpp"

namespace quasi::gw {

/// One portion of χ of one q, or a sum of portions that the checkpoint holds.
struct ChiItem {
  std::int64_t begin = 0, count = 1;  ///< portions
  Piece kept;                         ///< without data if the portion is to be calculated
};

/// Lists the items of one q in order, so that they cover all portions once. Every rank calls this
/// function at the same time.
/// @param prefix  of the names of this q in the checkpoint
std::vector<ChiItem> chi_items(const std::string& prefix, std::int64_t n_portions, Ranks& ranks,
                               const Checkpoint& checkpoint);

/// The sums of one device for one q. They are stored in the checkpoint whenever it is due.
class CheckpointedSums {
 public:
  CheckpointedSums(std::string prefix, Checkpoint& checkpoint)
      : prefix_(std::move(prefix)), checkpoint_(checkpoint) {}
  /// Adds the sum of an item.
  /// @param from_checkpoint  true if the checkpoint holds this sum already
  void push(ChiNode node, bool from_checkpoint);
  std::vector<ChiNode> take() { return std::move(nodes_); }

 private:
  std::string prefix_;
  Checkpoint& checkpoint_;
  Checkpoint::Turn turn_;
  std::vector<ChiNode> nodes_;
  std::vector<std::string> names_;  ///< of the sums of this device in the checkpoint
};

}  // namespace quasi::gw
