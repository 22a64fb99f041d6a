#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/// Begin here: server/queue/estimates corrects the memory and the time that submitters state by
/// what was measured.
namespace quasi::server {

/// Values that submitters state of their jobs. The numbers are in the database.
enum class Quantity : std::uint8_t {
  kGpuMemory = 1,  ///< `gpu_mem_bytes` on each GPU, against the measured peak
  kTime = 2,       ///< `max_runtime`, against the time of a job that ended in its first attempt
};

/// Measured over stated values of the newest jobs of one kind in one pool.
struct EstimateRatios {
  Quantity quantity = Quantity::kGpuMemory;
  std::string kind;
  std::string pool;
  std::vector<double> ratios;
};

/// Ratios that are kept of one quantity of one kind in one pool. The oldest give way.
constexpr std::size_t kKeptRatios = 64;
/// Fewer ratios than these correct nothing.
constexpr std::size_t kLeastRatios = 5;
/// Bounds of a correction.
struct CorrectionBounds {
  double least, most;
};
constexpr CorrectionBounds kMemoryBounds{0.5, 2.0};
/// An attempt ends at its time limit, so that no job takes longer.
constexpr CorrectionBounds kTimeBounds{0.01, 1.0};
/// Ratio that stands for a job that ran out of memory, whose need was not measured.
constexpr double kRatioOfOom = 1.5;

/// Factor by which the stated value is multiplied: the 95th percentile of the ratios by the nearest
/// rank, within the bounds; 1 for fewer than kLeastRatios. A rank does not follow single outliers.
double correction_of(std::vector<double> ratios, const CorrectionBounds& bounds);

/// The corrections in effect, by quantity, kind and pool.
class Corrections {
 public:
  void set(const EstimateRatios& measured);
  void clear() { factors_.clear(); }
  /// 1 for a kind without measurements.
  double factor(Quantity quantity, const std::string& kind, const std::string& pool) const;
  /// Stated value times the factor.
  std::int64_t corrected(Quantity quantity, std::int64_t stated, const std::string& kind,
                         const std::string& pool) const {
    return static_cast<std::int64_t>(static_cast<double>(stated) * factor(quantity, kind, pool));
  }

 private:
  std::map<std::tuple<Quantity, std::string, std::string>, double> factors_;
};

}  // namespace quasi::server
