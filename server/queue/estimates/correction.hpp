#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// Begin here: server/queue/estimates corrects the memory that submitters state by the memory that
/// was measured.
namespace quasi::server {

/// Measured over stated memory of the newest jobs of one kind in one pool.
struct EstimateRatios {
  std::string kind;
  std::string pool;
  std::vector<double> ratios;
};

/// Ratios that are kept of one kind in one pool. The oldest give way.
constexpr std::size_t kKeptRatios = 64;
/// Fewer ratios than these correct nothing.
constexpr std::size_t kLeastRatios = 5;
constexpr double kLeastCorrection = 0.5, kMostCorrection = 2.0;
/// Ratio that stands for a job that ran out of memory, whose need was not measured.
constexpr double kRatioOfOom = 1.5;

/// Factor by which stated memory is multiplied: the 95th percentile of the ratios by the nearest
/// rank, within kLeastCorrection and kMostCorrection; 1 for fewer than kLeastRatios. A rank does
/// not follow single outliers.
double correction_of(std::vector<double> ratios);

/// The corrections in effect, by kind and pool.
class Corrections {
 public:
  void set(const EstimateRatios& measured) {
    factors_[{measured.kind, measured.pool}] = correction_of(measured.ratios);
  }
  void clear() { factors_.clear(); }
  /// 1 for a kind without measurements.
  double factor(const std::string& kind, const std::string& pool) const {
    const auto found = factors_.find({kind, pool});
    return found == factors_.end() ? 1.0 : found->second;
  }
  /// Stated bytes times the factor.
  std::int64_t corrected(std::int64_t bytes, const std::string& kind,
                         const std::string& pool) const {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * factor(kind, pool));
  }

 private:
  std::map<std::pair<std::string, std::string>, double> factors_;
};

}  // namespace quasi::server
