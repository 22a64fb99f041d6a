#include <algorithm>
#include <cmath>
#include <cstring>

#include "workers/backend/launch_cpu.hpp"
#include "workers/backend/memory_budget.hpp"
#include "workers/thermal/kernels/evaluate_4ph_cpu.hpp"
#include "workers/thermal/kernels/pair_key_4ph.hpp"
#include "workers/thermal/kernels/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

namespace {

/// The sorted pairs of one total momentum and kind.
struct PairTable {
  std::vector<std::uint32_t> key;
  std::vector<std::int32_t> index;
};

class CpuScatteringKernels4ph : public ScatteringKernels4ph {
 public:
  explicit CpuScatteringKernels4ph(std::int64_t memory_budget_bytes) : budget_bytes_(memory_budget_bytes) {}

  void load(const Problem4ph& problem) override {
    problem_ = &problem;
    tables_ = problem.host_tables();
    contracted_.resize(static_cast<std::size_t>(tables_.n_rows() * tables_.n_triples * 27));
    cpu::for_each_index(static_cast<std::int64_t>(contracted_.size()),
                        ContractFirst4ph{tables_, contracted_.data()});
    tables_.contracted = contracted_.data();
    double largest_omega = 0.0;
    double largest_spread = 0.0;
    for (std::int32_t m = 0; m < tables_.n_modes(); ++m) {
      if (!(tables_.omega[m] > 0.0)) continue;
      largest_omega = std::max(largest_omega, tables_.omega[m]);
      const double* p = tables_.p(m);
      largest_spread = std::max(largest_spread, p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    }
    keys_ = PairKeys4ph::make(tables_.rules, largest_omega, largest_spread);
  }

  std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) override {
    const SumLayout4ph layout{tables_.n_temperatures};
    const std::int64_t values = tables_.n_rows() * kChannels4ph * layout.size();
    const std::int32_t n_totals = last_total - first_total;
    std::vector<double> per_total(static_cast<std::size_t>(values * n_totals), 0.0);
    fill_batch(first_total, n_totals);
#pragma omp parallel
    {
      Worker worker(tables_);
      const std::int64_t n_items = n_totals * tables_.n_rows();
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t item = 0; item < n_items; ++item) {
        const auto at = static_cast<std::size_t>(item / tables_.n_rows());
        const std::int64_t row = item % tables_.n_rows();
        double* out = per_total.data() + static_cast<std::int64_t>(at) * values + row * kChannels4ph * layout.size();
        visit_row(first_total + static_cast<std::int32_t>(at), row, difference_[at], sum_[at], worker,
                  [&](Channel4ph channel, std::int32_t mode0, std::int32_t mode1, const Worker& found) {
                    accumulate(channel, mode0, mode1, found, layout,
                               out + static_cast<int>(channel) * layout.size());
                  });
      }
    }
    for (std::int32_t i = 1; i < n_totals; ++i)
      for (std::int64_t v = 0; v < values; ++v)
        per_total[static_cast<std::size_t>(v)] += per_total[static_cast<std::size_t>(i * values + v)];
    per_total.resize(static_cast<std::size_t>(values));
    return per_total;
  }

  std::int64_t collision_points_that_fit() const override {
    const std::int64_t budget = budget_bytes_ > 0 ? budget_bytes_ : free_memory_bytes(Device{}) / 2;
    return items_that_fit(budget, memory_bytes(*problem_), tables_.n_branches * tables_.n_modes() * 8,
                          "the collision operator of four phonons");
  }

  void begin_collision(const CollisionRequest4ph& request) override {
    collision_ = request;
    matrix_.assign(static_cast<std::size_t>(collision_rows() * tables_.n_modes()), 0.0);
    out_scattering_.assign(static_cast<std::size_t>(collision_rows()), 0.0);
  }

  /// A row belongs to one thread for all total momenta of the batch, so that its sums have one order.
  void add_collision(std::int32_t first_total, std::int32_t last_total) override {
    const std::int32_t n_totals = last_total - first_total;
    fill_batch(first_total, n_totals);
    const CollisionForm4ph form{tables_.occupation + collision_.temperature * tables_.n_modes(), collision_.symmetric};
    const std::int64_t first_row = static_cast<std::int64_t>(collision_.first_point) * tables_.n_branches;
#pragma omp parallel
    {
      Worker worker(tables_);
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t row = 0; row < collision_rows(); ++row) {
        double* matrix = matrix_.data() + row * tables_.n_modes();
        double& out = out_scattering_[static_cast<std::size_t>(row)];
        for (std::int32_t i = 0; i < n_totals; ++i)
          visit_row(first_total + i, first_row + row, difference_[static_cast<std::size_t>(i)],
                    sum_[static_cast<std::size_t>(i)], worker,
                    [&](Channel4ph channel, std::int32_t mode0, std::int32_t mode1, const Worker& found) {
                      add_to_matrix(channel, mode0, mode1, found, form, matrix, out);
                    });
      }
    }
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
  /// What one thread keeps between items.
  struct Worker {
    explicit Worker(const Tables4ph& tables) : evaluator(tables) {}
    Evaluator4phCpu evaluator;
    std::vector<Found4ph> found;
    std::vector<double> squared;
  };

  std::int64_t collision_rows() const {
    return static_cast<std::int64_t>(collision_.last_point - collision_.first_point) * tables_.n_branches;
  }

  /// Tables of a run of total momenta, both kinds.
  void fill_batch(std::int32_t first_total, std::int32_t n_totals) {
    difference_.resize(static_cast<std::size_t>(n_totals));
    sum_.resize(static_cast<std::size_t>(n_totals));
#pragma omp parallel
    {
      std::vector<std::uint64_t> scratch;
#pragma omp for schedule(dynamic, 1)
      for (std::int32_t i = 0; i < 2 * n_totals; ++i) {
        const auto kind = i % 2 == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
        fill(kind, first_total + i / 2, scratch, (i % 2 == 0 ? difference_ : sum_)[static_cast<std::size_t>(i / 2)]);
      }
    }
  }

  void fill(PairKind4ph kind, std::int32_t total, std::vector<std::uint64_t>& scratch,
            PairTable& table) const {
    const int nb = tables_.n_branches;
    const std::int64_t n_pairs = tables_.n_modes() * nb;
    constexpr std::uint32_t kNone = static_cast<std::uint32_t>(PairKeys4ph::kClasses)
                                    << PairKeys4ph::kEnergyBits;
    scratch.clear();
    for (std::int64_t index = 0; index < n_pairs; ++index) {
      const std::uint32_t key = keys_.key(tables_, kind, total, 0, index);
      if (key < kNone) scratch.push_back(static_cast<std::uint64_t>(key) << 32 | static_cast<std::uint32_t>(index));
    }
    std::sort(scratch.begin(), scratch.end());
    table.key.resize(scratch.size());
    table.index.resize(scratch.size());
    for (std::size_t i = 0; i < scratch.size(); ++i) {
      table.key[i] = static_cast<std::uint32_t>(scratch[i] >> 32);
      table.index[i] = static_cast<std::int32_t>(scratch[i] & 0xffffffffu);
    }
  }

  /// All processes of one row with one total momentum: sink(channel, mode0, mode1, worker) for every (λ')
  /// and channel that has any.
  template <typename Sink>
  void visit_row(std::int32_t total, std::int64_t row, const PairTable& difference,
                 const PairTable& sum, Worker& worker, const Sink& sink) const {
    const Tables4ph& t = tables_;
    const int nb = t.n_branches;
    const auto point = static_cast<std::int32_t>(row / nb);
    const std::int32_t q0 = t.point[point];
    const std::int32_t mode0 = q0 * nb + static_cast<std::int32_t>(row % nb);
    if (!(t.omega[mode0] > 0.0)) return;
    for (const int sign1 : {1, -1}) {
      // q' = Q − q for ++ and +-, q − Q for --.
      const std::int32_t q1 = sign1 > 0 ? t.mesh.add(total, q0, -1) : t.mesh.add(q0, total, -1);
      const int weight = t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1];
      if (weight == 0) continue;
      for (int s1 = 0; s1 < nb; ++s1) {
        const std::int32_t mode1 = q1 * nb + s1;
        if (!(t.omega[mode1] > 0.0)) continue;
        bool pair_set = false;
        for (int c = 0; c < kChannels4ph; ++c) {
          const auto channel = static_cast<Channel4ph>(c);
          if (sign_second(channel) != sign1) continue;
          const bool is_sum = sign_third(channel) < 0;
          find(channel, total, mode0, mode1, weight, is_sum ? sum : difference, worker.found);
          if (worker.found.empty()) continue;
          if (!pair_set) worker.evaluator.set_pair(row, mode1, sign1 < 0);
          pair_set = true;
          worker.squared.resize(worker.found.size());
          worker.evaluator.squared_elements(worker.found.data(), static_cast<std::int64_t>(worker.found.size()),
                                            is_sum, worker.squared.data());
          sink(channel, mode0, mode1, worker);
        }
      }
    }
  }

  /// The processes of one (λ, λ') and channel, in the table's order.
  void find(Channel4ph channel, std::int32_t total, std::int32_t mode0, std::int32_t mode1,
            int weight, const PairTable& table, std::vector<Found4ph>& found) const {
    const Tables4ph& t = tables_;
    const int nb = t.n_branches;
    const auto kind = sign_third(channel) < 0 ? PairKind4ph::kSum : PairKind4ph::kDifference;
    const double energy = t.omega[mode0] + sign_second(channel) * t.omega[mode1];
    found.clear();
    if (kind == PairKind4ph::kSum && !(energy > 0.0)) return;
    for (int pair_class = 0; pair_class < PairKeys4ph::kClasses; ++pair_class) {
      std::uint32_t first;
      std::uint32_t last;
      keys_.interval(t, kind, 0, pair_class, energy, t.p(mode0), t.p(mode1), &first, &last);
      const auto begin = lower_bound_key(table.key.data(), static_cast<std::int64_t>(table.key.size()), first);
      for (auto i = static_cast<std::size_t>(begin); i < table.key.size() && table.key[i] <= last; ++i) {
        const std::int32_t mode2 = table.index[i] / nb;
        const std::int32_t q3 = t.mesh.add(total, mode2 / nb, kind == PairKind4ph::kSum ? -1 : 1);
        const std::int32_t mode3 = q3 * nb + table.index[i] % nb;
        const Process4ph process = test_candidate_4ph(t, channel, mode0, mode1, mode2, mode3);
        if (process.multiplicity > 0.0)
          found.push_back({mode2, mode3, process.multiplicity * weight, delta_4ph_ps(t.rules, process)});
      }
    }
  }

  void accumulate(Channel4ph channel, std::int32_t mode0, std::int32_t mode1, const Worker& worker,
                  const SumLayout4ph& layout, double* out) const {
    const Tables4ph& t = tables_;
    const int nb = t.n_branches;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double omega[4] = {t.omega[mode0], t.omega[mode1], t.omega[f.mode2], t.omega[f.mode3]};
      const double density = f.multiplicity * f.delta_ps * inverse_omega_product_4ph(t.rules, omega);
      const bool normal = is_normal_4ph(t, channel, mode0 / nb, mode1 / nb, f.mode2 / nb, f.mode3 / nb);
      for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
        const double* n = t.occupation + temperature * t.n_modes();
        const double w = density * bose_factor_4ph(channel, n[mode1], n[f.mode2], n[f.mode3]);
        out[normal ? layout.normal(temperature) : layout.umklapp(temperature)] += w * worker.squared[i];
        out[layout.weighted_phase_space(temperature)] += w;
      }
      out[layout.phase_space()] += f.multiplicity * f.delta_ps;
      out[layout.six_count()] += std::round(6.0 * f.multiplicity);
    }
    out[layout.evaluations()] += static_cast<double>(worker.found.size());
  }

  void add_to_matrix(Channel4ph channel, std::int32_t mode0, std::int32_t mode1, const Worker& worker,
                     const CollisionForm4ph& form, double* matrix, double& out_scattering) const {
    const Tables4ph& t = tables_;
    const double sign1 = CollisionForm4ph::sign_of_second(channel);
    const double sign2 = CollisionForm4ph::sign_of_third(channel);
    double sum = 0.0;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double omega[4] = {t.omega[mode0], t.omega[mode1], t.omega[f.mode2], t.omega[f.mode3]};
      const double gamma = f.multiplicity * f.delta_ps * inverse_omega_product_4ph(t.rules, omega) *
                           form.bose(channel, mode0, mode1, f.mode2, f.mode3) * worker.squared[i];
      sum += gamma;
      matrix[f.mode2] += sign2 * gamma;
      matrix[f.mode3] += gamma;
    }
    matrix[mode1] += sign1 * sum;
    out_scattering += sum;
  }

  std::int64_t budget_bytes_;
  const Problem4ph* problem_ = nullptr;
  Tables4ph tables_;
  std::vector<PairTable> difference_, sum_;  ///< of the last batch
  CollisionRequest4ph collision_;
  std::vector<double> matrix_;               ///< M of the request
  std::vector<double> out_scattering_;
  PairKeys4ph keys_{};
  std::vector<Complex<double>> contracted_;
};

}  // namespace

Tables4ph Problem4ph::host_tables() const {
  Tables4ph t;
  t.mesh = mesh;
  t.n_branches = n_branches;
  t.n_atoms = plan.n_atoms;
  t.n_temperatures = static_cast<int>(temperatures_k.size());
  t.rules = rules;
  t.omega = omega_rad_ps.data();
  t.set = set.data();
  t.spread = spread_rad_ps.data();
  t.occupation = occupation.data();
  t.eigenvector = reinterpret_cast<const Complex<double>*>(eigenvector.data());
  t.zone = zone.data();
  t.n_points = static_cast<std::int32_t>(point.size());
  t.point = point.data();
  t.partner_weight = partner_weight.data();
  t.n_triples = plan.n_triples;
  t.n_pairs = plan.n_pairs;
  t.n_cells = plan.n_cells;
  t.tensor = plan.tensor.data();
  t.block_atom = plan.block_atom.data();
  t.block_cell = plan.block_cell.data();
  t.triple_begin = plan.triple_begin.data();
  t.triple_atom = plan.triple_atom.data();
  t.triple_cell = plan.triple_cell.data();
  t.pair_begin = plan.pair_begin.data();
  t.pair_third = plan.pair_third.data();
  t.pair_fourth = plan.pair_fourth.data();
  t.pair_cell = plan.pair_cell.data();
  t.phase = reinterpret_cast<const Complex<double>*>(phase.data());
  return t;
}

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cpu(std::int64_t memory_budget_bytes) {
  return std::make_unique<CpuScatteringKernels4ph>(memory_budget_bytes);
}

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph(const Device& device,
                                                                  std::int64_t memory_budget_bytes) {
  return device.backend == Backend::kCuda ? make_scattering_kernels_4ph_cuda(device, memory_budget_bytes)
                                          : make_scattering_kernels_4ph_cpu(memory_budget_bytes);
}

}  // namespace quasi::thermal
