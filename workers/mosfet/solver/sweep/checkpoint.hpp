#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// The pdf of a bias point at one of `output.pdf_at_fs`, in single precision, in the order of
/// PointState.
struct PdfSnapshot {
  double time_fs = 0.0;
  std::vector<float> pdf;  ///< nm⁻² eV⁻¹ rad⁻¹
};

/// What a sweep has done so far.
struct SweepSnapshot {
  std::map<int, PointResult> finished;    ///< by point
  std::map<int, PointProgress> running;   ///< by chain
  std::map<int, PointState> chain_state;  ///< last finished state of a chain that waits
  /// By point and number among `output.pdf_at_fs`: the files of an attempt that was lost are lost
  /// with it.
  std::map<std::pair<int, int>, PdfSnapshot> pdfs;
};

/// A text that two decks share if and only if one may resume the other's sweep.
std::string resume_key(const Deck& deck);

void write_checkpoint(const std::filesystem::path& path, const std::string& key,
                      const SweepSnapshot& snapshot);
/// @return nothing if the file is damaged or belongs to another deck or version.
std::optional<SweepSnapshot> read_checkpoint(const std::filesystem::path& path,
                                             const std::string& key);

}  // namespace quasi::mosfet
