#include "workers/thermal/solver/three_phonon/shared_sums_3ph.hpp"

#include <algorithm>
#include <atomic>

#include "workers/backend/team/every_device.hpp"
#include "workers/backend/team/team_layout.hpp"
#include "workers/thermal/solver/three_phonon/recomputed_sums_3ph.hpp"

namespace quasi::thermal {
namespace {

/// Progress of all devices but the first: it reports nothing, and it ends when the job ends.
class QuietProgress : public SilentProgress {
 public:
  explicit QuietProgress(const Progress& job) : job_(job) {}
  bool cancelled() const override { return job_.cancelled(); }

 private:
  const Progress& job_;
};

constexpr auto kPerTemperature = {
    &ThreePhononRates::absorption_per_ps,        &ThreePhononRates::emission_per_ps,
    &ThreePhononRates::normal_absorption_per_ps, &ThreePhononRates::normal_emission_per_ps,
    &ThreePhononRates::weighted_absorption_ps4,  &ThreePhononRates::weighted_emission_ps4};
constexpr auto kOfRows = {&ThreePhononRates::phase_space_absorption_ps,
                          &ThreePhononRates::phase_space_emission_ps};

class SharedSums3ph : public ThreePhononSums {
 public:
  SharedSums3ph(const std::vector<Device>& devices, Ranks& ranks)
      : ranks_(ranks), layout_(devices.size(), ranks) {
    for (const Device& device : devices) own_.push_back({make_three_phonon_sums(device), {}});
  }

  void load(const ThreePhononProblem& problem) override {
    n_points_ = problem.rows.size();
    n_branches_ = static_cast<std::size_t>(problem.n_branches());
    on_own([&](std::size_t i, Own& own) {
      own.problem = problem;
      own.problem.rows.clear();
      for (std::size_t point = share_of(i); point < n_points_; point += n_shares())
        own.problem.rows.push_back(problem.rows[point]);
      if (!own.problem.rows.empty()) own.kernels->load(own.problem);
    });
  }

  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override {
    std::vector<ThreePhononRates> mine(own_.size());
    on_own([&](std::size_t i, Own& own) {
      QuietProgress quiet(progress);
      if (!own.problem.rows.empty())
        mine[i] = own.kernels->rates(temperatures_k, keep_processes, i == 0 ? progress : quiet);
    });
    // Each device sends counts and seconds, then its rows, which have one width.
    const std::size_t n_t = temperatures_k.size(),
                      width = kPerTemperature.size() * n_t + kOfRows.size();
    std::vector<double> rows, heads;
    for (const ThreePhononRates& part : mine) {
      for (const double value :
           {static_cast<double>(part.n_absorption), static_cast<double>(part.n_emission),
            part.seconds_enumerate, part.seconds_evaluate})
        heads.push_back(value);
      const std::size_t n = part.phase_space_absorption_ps.size();
      for (std::size_t row = 0; row < n; ++row) {
        for (const auto array : kPerTemperature)
          for (std::size_t t = 0; t < n_t; ++t) rows.push_back((part.*array)[t * n + row]);
        for (const auto array : kOfRows) rows.push_back((part.*array)[row]);
      }
    }
    ThreePhononRates result;
    result.n_temperatures = static_cast<std::int64_t>(n_t);
    const std::size_t n_rows = n_points_ * n_branches_;
    for (const auto array : kPerTemperature) (result.*array).resize(n_t * n_rows);
    for (const auto array : kOfRows) (result.*array).resize(n_rows);
    for (const auto& of_rank : ranks_.gather(heads))
      for (std::size_t at = 0; at < of_rank.size(); at += 4) {
        result.n_absorption += static_cast<std::int64_t>(of_rank[at]);
        result.n_emission += static_cast<std::int64_t>(of_rank[at + 1]);
        result.seconds_enumerate = std::max(result.seconds_enumerate, of_rank[at + 2]);
        result.seconds_evaluate = std::max(result.seconds_evaluate, of_rank[at + 3]);
      }
    const std::vector<double> all = all_rows(rows, width);
    for (std::size_t row = 0; row < n_rows; ++row) {
      const double* value = &all[row * width];
      for (const auto array : kPerTemperature)
        for (std::size_t t = 0; t < n_t; ++t) (result.*array)[t * n_rows + row] = *value++;
      for (const auto array : kOfRows) (result.*array)[row] = *value++;
    }
    return result;
  }

  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override {
    return by_rows(3, [&](ThreePhononSums& kernels) {
      return kernels.apply_collision(temperature_k, form, f);
    });
  }
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override {
    return by_rows(
        1, [&](ThreePhononSums& kernels) { return kernels.row_rates(temperature_k, form); });
  }

 private:
  struct Own {
    std::unique_ptr<ThreePhononSums> kernels;
    ThreePhononProblem problem;
  };
  std::size_t n_shares() const { return static_cast<std::size_t>(layout_.size()); }
  std::size_t share_of(std::size_t own) const {
    return static_cast<std::size_t>(layout_.first_own()) + own;
  }

  template <typename Work>
  void on_own(const Work& work) {
    std::atomic<bool> stop{false};
    on_every_device(own_.size(), stop, [&](std::size_t i) { work(i, own_[i]); });
  }
  template <typename Sum>
  std::vector<double> by_rows(std::size_t width, const Sum& sum) {
    std::vector<std::vector<double>> parts(own_.size());
    on_own([&](std::size_t i, Own& own) {
      if (!own.problem.rows.empty()) parts[i] = sum(*own.kernels);
    });
    std::vector<double> rows;
    for (const auto& part : parts) rows.insert(rows.end(), part.begin(), part.end());
    return all_rows(rows, width);
  }

  /// Rows in their own order from those of this rank, device by device; [n_rows][width].
  std::vector<double> all_rows(const std::vector<double>& mine, std::size_t width) {
    std::vector<double> all(n_points_ * n_branches_ * width);
    const std::size_t of_point = n_branches_ * width;
    const auto gathered = ranks_.gather(mine);
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      auto from = gathered[static_cast<std::size_t>(rank)].begin();
      for (std::int64_t share = layout_.first_of(rank); share < layout_.first_of(rank + 1); ++share)
        for (auto point = static_cast<std::size_t>(share); point < n_points_;
             point += n_shares(), from += static_cast<std::ptrdiff_t>(of_point))
          std::copy_n(from, of_point, all.begin() + static_cast<std::ptrdiff_t>(point * of_point));
    }
    return all;
  }

  Ranks& ranks_;
  TeamLayout layout_;
  std::vector<Own> own_;
  std::size_t n_points_ = 0, n_branches_ = 0;
};

}  // namespace

std::unique_ptr<ThreePhononSums> share_three_phonons(const std::vector<Device>& devices,
                                                     Ranks& ranks) {
  // cuBLAS chooses its kernels, and so the last bits, by the number of points in a batch: a GPU
  // keeps all rows.
  const bool by_batches = devices.front().backend == Backend::kCuda;
  if (by_batches || (devices.size() == 1 && ranks.size() == 1))
    return make_three_phonon_sums(devices.front());
  return std::make_unique<SharedSums3ph>(devices, ranks);
}

}  // namespace quasi::thermal
