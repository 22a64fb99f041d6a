#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

/// Packs parts of a sweep as lists of numbers for the checkpoint and for messages between ranks.
namespace quasi::mosfet {

/// The pdf of a bias point at one of the times `output.pdf_at_fs`, in single precision, in the
/// order of PointState.
struct PdfSnapshot {
  double time_fs = 0.0;
  std::vector<float> pdf;  ///< nm⁻² eV⁻¹ rad⁻¹
};

/// Names of the pieces of a sweep in the checkpoint.
struct SweepPieces {
  static std::string finished(int point);  ///< name of a PointResult
  static std::string running(int chain);   ///< name of the PointProgress of the chain's present
                                           ///< point
  static std::string waiting(int chain);   ///< name of the last PointState of a chain between two
                                           ///< points
  /// Returns the name of a PdfSnapshot. The checkpoint keeps it because the file of a lost attempt
  /// is lost too. @param number  index into `output.pdf_at_fs`
  static std::string snapshot(int point, int number);
};

/// One change of a sweep's pieces, with a line for the log of the job.
struct SweepNews {
  std::vector<std::string> old;                                    ///< names to forget
  std::vector<std::pair<std::string, std::vector<double>>> fresh;  ///< names and packed values
  std::string log;                                                 ///< empty: none
};

/// Each of these functions packs one object as a list of numbers.
std::vector<double> pack(const PointState& state);
std::vector<double> pack(const PointProgress& progress);
std::vector<double> pack(const PointResult& point);
std::vector<double> pack(const PdfSnapshot& snapshot);
std::vector<double> pack(const SweepNews& news);
/// Each of these functions reads a list that `pack` made, with the same bits. @throws StorageError
/// for a damaged list
PointState unpack_state(const Piece& piece);
PointProgress unpack_progress(const Piece& piece);
PointResult unpack_result(const Piece& piece);
PdfSnapshot unpack_snapshot(const Piece& piece);
SweepNews unpack_news(const std::vector<double>& message);

/// Lists every setting that affects the numbers of a sweep, and the program's version. Two decks
/// have equal texts if and only if one may resume the sweep of the other.
std::string resume_key(const Deck& deck);
/// Returns the digest of resume_key.
std::uint64_t resume_digest(const Deck& deck);

}  // namespace quasi::mosfet
