#include "workers/thermal/solver/three_phonon/recomputed_sums_3ph.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

/// Progress of the parts of one application: it reports nothing, and it ends when the job ends.
class PartProgress : public SilentProgress {
 public:
  explicit PartProgress(const Progress* job) : job_(job) {}
  bool cancelled() const override { return job_ != nullptr && job_->cancelled(); }

 private:
  const Progress* job_;
};

class RecomputedSums3ph : public ThreePhononSums {
 public:
  explicit RecomputedSums3ph(const Device& device) : kernels_(make_three_phonon_kernels(device)) {}

  void load(const ThreePhononProblem& problem) override {
    whole_ = &problem;
    recomputes_ = false;
    parts_ = {{0, problem.rows.size()}};
    part_problem_ = {};
    kernels_->load(problem);
  }

  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override {
    if (recomputes_) kernels_->load(*whole_);
    recomputes_ = false;
    job_ = &progress;
    if (keep_processes) {
      try {
        return kernels_->rates(temperatures_k, true, progress);
      } catch (const OutOfMemory& why) {
        require_one_point_at_a_time(temperatures_k);
        recomputes_ = true;
        progress.log(std::string("every iteration computes the three-phonon processes again: ") +
                     why.what());
      }
      kernels_->load(*whole_);
    }
    return kernels_->rates(temperatures_k, false, progress);
  }

  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override {
    if (!recomputes_) return kernels_->apply_collision(temperature_k, form, f);
    return by_parts(temperature_k,
                    [&] { return kernels_->apply_collision(temperature_k, form, f); });
  }

  std::vector<double> row_rates(double temperature_k, OccupationForm form) override {
    if (!recomputes_) return kernels_->row_rates(temperature_k, form);
    return by_parts(temperature_k, [&] { return kernels_->row_rates(temperature_k, form); });
  }

 private:
  using Part = std::pair<std::size_t, std::size_t>;  ///< of the points

  /// @throws OutOfMemory if the point of most processes cannot be kept.
  void require_one_point_at_a_time(const std::vector<double>& temperatures_k) {
    const auto nb = static_cast<std::size_t>(whole_->n_branches());
    std::vector<std::int64_t> rows(static_cast<std::size_t>(whole_->n_rows()));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    kernels_->load(*whole_);
    const std::vector<std::int64_t> counts = kernels_->count(rows);
    std::size_t fullest = 0;
    std::int64_t most = -1;
    for (std::size_t point = 0; point < whole_->rows.size(); ++point) {
      const auto first = counts.begin() + static_cast<std::ptrdiff_t>(2 * nb * point);
      const std::int64_t n =
          std::accumulate(first, first + static_cast<std::ptrdiff_t>(2 * nb), std::int64_t{0});
      if (n > most) fullest = point;
      most = std::max(most, n);
    }
    load_part({fullest, fullest + 1});
    PartProgress quiet(job_);
    kernels_->rates({temperatures_k.front()}, true, quiet);
  }

  void load_part(const Part& part) {
    if (part_problem_.rows.empty()) part_problem_ = *whole_;
    part_problem_.rows.assign(whole_->rows.begin() + static_cast<std::ptrdiff_t>(part.first),
                              whole_->rows.begin() + static_cast<std::ptrdiff_t>(part.second));
    kernels_->load(part_problem_);
  }

  /// Calls sum() for every part in order, with its processes listed. A part that does not fit is
  /// halved and stays so.
  template <typename Sum>
  std::vector<double> by_parts(double temperature_k, const Sum& sum) {
    std::vector<double> result;
    PartProgress quiet(job_);
    for (std::size_t i = 0; i < parts_.size();) {
      const Part part = parts_[i];
      quiet.throw_if_cancelled();
      try {
        load_part(part);
        kernels_->rates({temperature_k}, true, quiet);
      } catch (const OutOfMemory&) {
        if (part.second - part.first < 2) throw;
        const std::size_t middle = (part.first + part.second) / 2;
        parts_[i].second = middle;
        parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(i) + 1, {middle, part.second});
        continue;
      }
      const std::vector<double> rows = sum();
      result.insert(result.end(), rows.begin(), rows.end());
      ++i;
    }
    return result;
  }

  std::unique_ptr<ThreePhononKernels> kernels_;
  const ThreePhononProblem* whole_ = nullptr;
  const Progress* job_ = nullptr;  ///< of the newest rates()
  bool recomputes_ = false;
  std::vector<Part> parts_;
  ThreePhononProblem part_problem_;
};

}  // namespace

std::unique_ptr<ThreePhononSums> make_three_phonon_sums(const Device& device) {
  return std::make_unique<RecomputedSums3ph>(device);
}

}  // namespace quasi::thermal
