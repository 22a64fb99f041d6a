#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "workers/backend/device/launch_cpu.hpp"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/thermal/kernels/four_phonon/evaluate_4ph_cpu.hpp"
#include "workers/thermal/kernels/four_phonon/process_finder_4ph_cpu.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

namespace {

class CpuScatteringKernels4ph : public ScatteringKernels4ph {
 public:
  explicit CpuScatteringKernels4ph(std::int64_t memory_budget_bytes)
      : budget_bytes_(memory_budget_bytes) {}

  void load(const Problem4ph& problem) override {
    problem_ = &problem;
    tables_ = host_tables(problem);
    contracted_.resize(static_cast<std::size_t>(tables_.n_rows() * tables_.n_triples * 27));
    cpu::for_each_index(static_cast<std::int64_t>(contracted_.size()),
                        ContractFirst4ph{tables_, contracted_.data()});
    tables_.contracted = contracted_.data();
    finder_ = ProcessFinder4phCpu(tables_);
  }

  std::string sums_form(const Problem4ph& /*problem*/) const override { return "processes once"; }

  std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) override {
    const SumLayout4ph layout{tables_.n_temperatures};
    return sums_by_total({first_total, last_total, layout.size(), tables_, problem_->precision},
                         [&](const ModePair4ph& pair, Worker& worker, double* sums) {
                           evaluate(pair, worker);
                           accumulate(pair, worker, layout, sums);
                         });
  }

  std::vector<double> sample_uniform(std::uint64_t seed, std::int64_t first_draw,
                                     std::int64_t last_draw, bool elements) override {
    const int size = UniformLayout4ph{tables_.n_temperatures}.size();
    const std::int64_t n = tables_.n_rows() * kChannels4ph;
    constexpr int kChunks = 4;
    std::vector<double> chunks(static_cast<std::size_t>(n * kChunks * size));
    std::vector<double> total(static_cast<std::size_t>(n * size));
    cpu::for_each_index(n * kChunks, SampleUniform4ph{tables_, seed, first_draw, last_draw, kChunks,
                                                      elements, chunks.data()});
    cpu::for_each_index(n, AddChunks4ph{chunks.data(), kChunks, size, total.data()});
    return total;
  }

  std::vector<double> thinned_sums(const Thinning4ph& thinning, std::int32_t first_total,
                                   std::int32_t last_total) override {
    const int size = ThinnedLayout4ph{tables_.n_temperatures}.size();
    return sums_by_total(
        {first_total, last_total, size, tables_.without_exchange(), Precision::kDouble},
        [&](const ModePair4ph& pair, Worker& worker, double* sums) {
          thin(pair, thinning, worker,
               sums + (pair.row * kChannels4ph + static_cast<int>(pair.channel)) * size);
        });
  }

  std::int64_t collision_points_that_fit() const override {
    const std::int64_t budget = budget_bytes_ > 0 ? budget_bytes_ : free_memory_bytes(Device{}) / 2;
    return items_that_fit(budget, memory_bytes(*problem_),
                          tables_.n_branches * tables_.n_modes() * 8,
                          "the collision operator of four phonons");
  }

  void begin_collision(const CollisionRequest4ph& request) override {
    collision_ = request;
    matrix_.assign(static_cast<std::size_t>(collision_rows() * tables_.n_modes()), 0.0);
    out_scattering_.assign(static_cast<std::size_t>(collision_rows()), 0.0);
  }

  /// A row belongs to one thread for all total momenta of the batch, so that its sums have one
  /// order.
  void add_collision(std::int32_t first_total, std::int32_t last_total) override {
    const std::int32_t n_totals = last_total - first_total;
    finder_.prepare(first_total, n_totals);
    const CollisionForm4ph form{tables_.occupation + collision_.temperature * tables_.n_modes(),
                                collision_.symmetric};
    const std::int64_t first_row =
        static_cast<std::int64_t>(collision_.first_point) * tables_.n_branches;
    const Tables4ph whole = tables_.without_exchange();
#pragma omp parallel
    {
      Worker worker(tables_);
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t row = 0; row < collision_rows(); ++row) {
        double* matrix = matrix_.data() + row * tables_.n_modes();
        double& out = out_scattering_[static_cast<std::size_t>(row)];
        for (std::int32_t i = 0; i < n_totals; ++i)
          finder_.for_each_pair(whole, first_total + i, first_row + row, worker.found,
                                [&](const ModePair4ph& pair) {
                                  evaluate(pair, worker);
                                  add_to_matrix(pair, worker, form, matrix, out);
                                });
      }
    }
  }

  std::vector<double> collision_state() const override {
    std::vector<double> state{kCollisionState};
    state.reserve(1 + out_scattering_.size() + matrix_.size());
    state.insert(state.end(), out_scattering_.begin(), out_scattering_.end());
    state.insert(state.end(), matrix_.begin(), matrix_.end());
    return state;
  }

  bool restore_collision(const double* state, std::size_t count) override {
    if (count != 1 + out_scattering_.size() + matrix_.size() || state[0] != kCollisionState)
      return false;
    std::copy_n(state + 1, out_scattering_.size(), out_scattering_.begin());
    std::copy_n(state + 1 + out_scattering_.size(), matrix_.size(), matrix_.begin());
    return true;
  }

  std::vector<double> finish_collision() override { return out_scattering_; }

  std::vector<double> apply_collision(const std::vector<double>& f) const override {
    std::vector<double> result(static_cast<std::size_t>(3 * collision_rows()));
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < collision_rows(); ++row) {
      const double* m = matrix_.data() + row * tables_.n_modes();
      double x = 0.0, y = 0.0, z = 0.0;
      for (std::int64_t mode = 0; mode < tables_.n_modes(); ++mode) {
        x += m[mode] * f[static_cast<std::size_t>(3 * mode)];
        y += m[mode] * f[static_cast<std::size_t>(3 * mode + 1)];
        z += m[mode] * f[static_cast<std::size_t>(3 * mode + 2)];
      }
      result[static_cast<std::size_t>(3 * row)] = x;
      result[static_cast<std::size_t>(3 * row + 1)] = y;
      result[static_cast<std::size_t>(3 * row + 2)] = z;
    }
    return result;
  }

  std::int64_t multiply_adds_per_process() const override {
    return 12LL * tables_.n_pairs + 3LL * tables_.n_atoms;
  }

  std::int64_t memory_bytes(const Problem4ph& problem) const override {
    const std::int64_t rows = static_cast<std::int64_t>(problem.point.size()) * problem.n_branches;
    const std::int64_t pairs = problem.mesh.size() * problem.n_branches * problem.n_branches;
    return rows * problem.plan.n_triples * 27 * 16 +
           static_cast<std::int64_t>(problem.phase.size()) * 8 + pairs * 16 * 8;
  }

 private:
  static constexpr double kCollisionState = 1.0;  ///< sums as numbers
  /// State of one thread.
  struct Worker {
    explicit Worker(const Tables4ph& tables, Precision precision = Precision::kDouble)
        : evaluator(tables, precision) {}
    Evaluator4phCpu evaluator;
    std::int64_t row_set = -1;  ///< of the evaluator's (λ, λ')
    std::int32_t mode1_set = -1;
    std::vector<Found4ph> found;  ///< the processes of the pair
    std::vector<double> squared;  ///< |V|² of found, once evaluated
    std::vector<Found4ph> drawn;
    std::vector<double> probability;  ///< of found
  };
  /// Sums over total momenta [first, last).
  struct SumsByTotal {
    std::int32_t first_total, last_total;
    int size;          ///< values of a row and channel
    Tables4ph tables;  ///< with or without exchange
    Precision precision;
  };

  /// Number of parts into which the rows of one total momentum are cut. One thread sums a part. A
  /// process adds to the rows of other parts too, so that each part has sums for all rows.
  static constexpr int kParts = 8;
  static constexpr std::int64_t kPartBytes = std::int64_t{64} << 20;  ///< bytes of parts at work

  /// Values of each row and channel. Total momenta are added in rising position, and for each the
  /// parts in their order. Calls sink(pair, worker, sums) for every pair with processes.
  template <typename Sink>
  std::vector<double> sums_by_total(const SumsByTotal& request, const Sink& sink) {
    const auto& [first_total, last_total, size, tables, precision] = request;
    const std::int64_t values = tables_.n_rows() * kChannels4ph * size;
    const std::int32_t n_totals = last_total - first_total;
    const auto at_once = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(kPartBytes / (kParts * values * 8), 1, n_totals));
    std::vector<double> total(static_cast<std::size_t>(values), 0.0);
    std::vector<double> parts(static_cast<std::size_t>(at_once * kParts * values));
    finder_.prepare(first_total, n_totals);
#pragma omp parallel
    {
      Worker worker(tables_, precision);
      for (std::int32_t first = 0; first < n_totals; first += at_once) {
        const std::int32_t n = std::min(at_once, n_totals - first);
#pragma omp for schedule(dynamic, 1)
        for (std::int32_t item = 0; item < n * kParts; ++item) {
          double* part = parts.data() + item * values;
          std::fill_n(part, values, 0.0);
          for (std::int64_t row = item % kParts; row < tables_.n_rows(); row += kParts)
            finder_.for_each_pair(tables, first_total + first + item / kParts, row, worker.found,
                                  [&](const ModePair4ph& pair) { sink(pair, worker, part); });
        }
#pragma omp for schedule(static)
        for (std::int64_t v = 0; v < values; ++v)
          for (std::int32_t i = 0; i < n; ++i) {
            double sum = 0.0;
            for (int part = 0; part < kParts; ++part)
              sum += parts[static_cast<std::size_t>((i * kParts + part) * values + v)];
            total[static_cast<std::size_t>(v)] += sum;
          }
      }
    }
    return total;
  }

  void evaluate(const ModePair4ph& pair, Worker& worker) const {
    set_pair(pair, worker);
    worker.squared.resize(worker.found.size());
    worker.evaluator.squared_elements(worker.found.data(),
                                      static_cast<std::int64_t>(worker.found.size()),
                                      sign_third(pair.channel) < 0, worker.squared.data());
  }
  void set_pair(const ModePair4ph& pair, Worker& worker) const {
    if (worker.row_set == pair.row &&
        worker.mode1_set == pair.mode1 * 2 + (sign_second(pair.channel) < 0))
      return;
    worker.evaluator.set_pair(pair.row, pair.mode1, sign_second(pair.channel) < 0);
    worker.row_set = pair.row;
    worker.mode1_set = pair.mode1 * 2 + (sign_second(pair.channel) < 0);
  }

  double density(const ModePair4ph& pair, const Found4ph& f) const {
    const double omega[4] = {tables_.omega[pair.mode0], tables_.omega[pair.mode1],
                             tables_.omega[f.mode2], tables_.omega[f.mode3]};
    return f.multiplicity * f.delta_ps * inverse_omega_product_4ph(tables_.rules, omega);
  }
  bool normal(const ModePair4ph& pair, const Found4ph& f) const {
    const int nb = tables_.n_branches;
    return is_normal_4ph(tables_, pair.channel, pair.mode0 / nb, pair.mode1 / nb, f.mode2 / nb,
                         f.mode3 / nb);
  }

  void thin(const ModePair4ph& pair, const Thinning4ph& thinning, Worker& worker,
            double* out) const {
    worker.drawn.clear();
    worker.probability.clear();
    for (const Found4ph& f : worker.found) {
      worker.probability.push_back(
          thinning.draw(tables_, pair.row, {pair.channel, pair.mode0, pair.mode1, f.mode2, f.mode3},
                        f.multiplicity * f.delta_ps));
      if (worker.probability.back() > 0.0) worker.drawn.push_back(f);
    }
    worker.squared.resize(worker.drawn.size());
    if (!worker.drawn.empty()) {
      set_pair(pair, worker);
      worker.evaluator.squared_elements(worker.drawn.data(),
                                        static_cast<std::int64_t>(worker.drawn.size()),
                                        sign_third(pair.channel) < 0, worker.squared.data());
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double p = worker.probability[i];
      const double squared = p > 0.0 ? worker.squared[next++] : 0.0;
      add_thinned(tables_,
                  {.channel = pair.channel,
                   .mode1 = pair.mode1,
                   .mode2 = f.mode2,
                   .mode3 = f.mode3,
                   .multiplicity = f.multiplicity,
                   .delta_ps = f.multiplicity * f.delta_ps,
                   .density = density(pair, f),
                   .normal = normal(pair, f),
                   .probability = p,
                   .squared = squared,
                   .weights_only = !(thinning.draws > 0.0)},
                  [&](int slot, double value) { out[slot] += value; });
    }
  }

  std::int64_t collision_rows() const {
    return static_cast<std::int64_t>(collision_.last_point - collision_.first_point) *
           tables_.n_branches;
  }

  /// Adds the processes of a pair to the sums of all rows that get them.
  void accumulate(const ModePair4ph& pair, const Worker& worker, const SumLayout4ph& layout,
                  double* sums) const {
    const Tables4ph& t = tables_;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double of_lambda = density(pair, f), squared = worker.squared[i];
      const bool is_normal = normal(pair, f);
      for_each_row_4ph(
          t, {pair.channel, pair.mode0, pair.mode1, f.mode2, f.mode3}, pair.row, pair.both,
          [&](std::int64_t row, Channel4ph channel, double ratio, std::int32_t p1, std::int32_t p2,
              std::int32_t p3) {
            double* out = sums + (row * kChannels4ph + static_cast<int>(channel)) * layout.size();
            for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
              const double* n = t.occupation + temperature * t.n_modes();
              const double w = ratio * of_lambda * bose_factor_4ph(channel, n[p1], n[p2], n[p3]);
              out[is_normal ? layout.normal(temperature) : layout.umklapp(temperature)] +=
                  w * squared;
              out[layout.weighted_phase_space(temperature)] += w;
            }
            out[layout.phase_space()] += ratio * f.multiplicity * f.delta_ps;
            out[layout.six_count()] += 6.0 * ratio * f.multiplicity;
          });
    }
    double* own = sums + (pair.row * kChannels4ph + static_cast<int>(pair.channel)) * layout.size();
    own[layout.evaluations()] += static_cast<double>(worker.found.size());
  }

  void add_to_matrix(const ModePair4ph& pair, const Worker& worker, const CollisionForm4ph& form,
                     double* matrix, double& out_scattering) const {
    const double sign1 = CollisionForm4ph::sign_of_second(pair.channel);
    const double sign2 = CollisionForm4ph::sign_of_third(pair.channel);
    double sum = 0.0;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double gamma = density(pair, f) *
                           form.bose(pair.channel, pair.mode0, pair.mode1, f.mode2, f.mode3) *
                           worker.squared[i];
      sum += gamma;
      matrix[f.mode2] += sign2 * gamma;
      matrix[f.mode3] += gamma;
    }
    matrix[pair.mode1] += sign1 * sum;
    out_scattering += sum;
  }

  std::int64_t budget_bytes_;
  const Problem4ph* problem_ = nullptr;
  Tables4ph tables_{};
  ProcessFinder4phCpu finder_;
  CollisionRequest4ph collision_;
  std::vector<double> matrix_;  ///< M of the request
  std::vector<double> out_scattering_;
  std::vector<Complex<double>> contracted_;
};

}  // namespace

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cpu(
    std::int64_t memory_budget_bytes) {
  return std::make_unique<CpuScatteringKernels4ph>(memory_budget_bytes);
}

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph(
    const Device& device, std::int64_t memory_budget_bytes) {
  return device.backend == Backend::kCuda
             ? make_scattering_kernels_4ph_cuda(device, memory_budget_bytes)
             : make_scattering_kernels_4ph_cpu(memory_budget_bytes);
}

}  // namespace quasi::thermal
