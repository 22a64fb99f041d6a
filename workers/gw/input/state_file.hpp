#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Memory and disk for the states of WFN and WFNq.
struct StateStorage {
  /// Largest memory of the states of one file. States that need more go to a StateFile; 0: all stay
  /// in memory.
  std::int64_t memory_bytes = 0;
  /// Directory of the state file, in which a killed job finds it again. Empty: a temporary file.
  std::filesystem::path directory;
  Progress* progress = nullptr;  ///< null: silent
  std::string name = "WFN";      ///< of the states in messages and file names
  /// True: states that exceed the memory are checked and forgotten, and nothing is written. They
  /// read as 0 afterwards. For jobs that are validated only.
  bool forget = false;
};

/// States of a WFN file on their way to a file that is mapped to memory. The file holds the
/// coefficients of one k-point after the other as [spin][band][plane wave]. It counts the k-points
/// that are complete and the bands of the next one, so that a killed job goes on behind them.
class StateFile {
 public:
  /// Opens the file of an earlier attempt at the same source, or begins a new one.
  /// @param source  the file WFN or WFNq; if its size or time has changed, it is read anew
  /// @param waves   everything except `waves.waves`
  /// @param n_pw    plane waves of each k-point
  /// @throws StorageError if the disk has no room
  StateFile(const StateStorage& storage, const std::filesystem::path& source,
            const Wavefunctions& waves, std::vector<std::int64_t> n_pw);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// Returns the number of bands that an earlier attempt has written of this k-point. Each spin
  /// counts, in the order of writing, which a source always repeats.
  std::int64_t bands_written(int ik) const;
  /// Returns the number of bands of a k-point, where each spin counts.
  std::int64_t bands_of_point() const { return static_cast<std::int64_t>(n_bands_ * n_spins_); }
  /// Writes consecutive bands of one spin at one k-point.
  void write(int ik, int spin, int band, std::span<const Cplx> values);
  /// Marks the states of the next k-point as complete.
  void finish_point(int ik);
  /// Maps the complete file. @return coefficients of each spin, [n_k][n_spins]
  std::vector<std::vector<StateCoefficients>> map();

 private:
  /// Makes or finds the file on the disk, of a size.
  void open_on_disk(off_t bytes);
  std::size_t first_of(int ik, int spin) const;
  void put(const void* data, std::size_t bytes, std::size_t at);
  /// Counts bands as written, after their bytes are on the disk.
  void commit(std::int64_t points, std::int64_t bands);
  void report();
  StateStorage storage_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t n_bands_ = 0, n_spins_ = 0;
  std::vector<std::int64_t> n_pw_;
  std::vector<std::size_t> first_;  ///< number of the first coefficient of each k-point
  std::int64_t finished_ = 0;       ///< complete k-points
  std::int64_t bands_ = 0;          ///< bands of the next one that are written
  std::int64_t finished_before_ = 0, bands_before_ = 0;  ///< by an earlier attempt
  std::int64_t written_bytes_ = 0, reported_bytes_ = 0, committed_bytes_ = 0;
  Stopwatch since_;
};

/// Returns the file for the states of WFN or WFNq; null: they fit into the memory for them.
std::unique_ptr<StateFile> state_file_for(const StateStorage& storage,
                                          const std::filesystem::path& source,
                                          const Wavefunctions& waves,
                                          const std::vector<std::int64_t>& n_pw);

/// Gives every k-point of `waves` its states in a complete file.
void take_mapped(StateFile& states, Wavefunctions& waves);

/// Removes the state files of a job that will not go on.
void remove_state_files(const std::filesystem::path& directory);

}  // namespace quasi::gw
