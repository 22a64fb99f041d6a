#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "workers/backend/device/launch_cpu.hpp"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/thermal/kernels/four_phonon/evaluate_4ph_cpu.hpp"
#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/pair_key_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

namespace {

/// The sorted pairs of one total momentum and kind.
struct PairTable {
  std::vector<std::uint32_t> key;
  std::vector<std::int32_t> index;
};

class CpuScatteringKernels4ph : public ScatteringKernels4ph {
 public:
  explicit CpuScatteringKernels4ph(std::int64_t memory_budget_bytes)
      : budget_bytes_(memory_budget_bytes) {}

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
    const auto n_totals = static_cast<std::size_t>(last_total - first_total);
    const std::size_t exchanged_size =
        tables_.star == nullptr
            ? 0
            : n_totals * static_cast<std::size_t>(tables_.n_rows() * tables_.n_branches *
                                                  kExchanged * layout.size());
    std::vector<double> exchanged(exchanged_size, 0.0);
    return sums_by_total(
        first_total, last_total, layout.size(), tables_, problem_->precision,
        [&](const Visit& visit, Worker& worker, double* out) {
          evaluate(visit, worker);
          accumulate(visit, worker, layout, out + static_cast<int>(visit.channel) * layout.size());
          if (!visit.both) return;
          const std::int64_t at =
              ((visit.place - first_total) * tables_.n_rows() + visit.row) * tables_.n_branches +
              visit.mode1 % tables_.n_branches;
          accumulate_exchanged(
              visit, worker, layout,
              &exchanged[static_cast<std::size_t>(
                  (at * kExchanged + static_cast<int>(visit.channel)) * layout.size())]);
        },
        [&](double* per_total) {
          if (tables_.star == nullptr) return;
          const std::int64_t points = static_cast<std::int64_t>(n_totals) * tables_.n_points;
          std::vector<std::int32_t> partner(static_cast<std::size_t>(points));
          cpu::for_each_index(points, ExchangePartners4ph{tables_, first_total, partner.data()});
          cpu::for_each_index(
              static_cast<std::int64_t>(n_totals) * tables_.n_rows() * kExchanged * layout.size(),
              AddExchanged4ph{tables_, first_total, layout.size(), partner.data(), exchanged.data(),
                              per_total});
        });
  }

  std::vector<double> sums_by_strategy(Strategy strategy, StrategySeconds& seconds) override {
    return strategy_sums_4ph_cpu(
        strategy, tables_, budget_bytes_ > 0 ? budget_bytes_ : free_memory_bytes(Device{}) / 2,
        seconds);
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
        first_total, last_total, size, tables_.without_exchange(), Precision::kDouble,
        [&](const Visit& visit, Worker& worker, double* out) {
          thin(visit, thinning, worker, out + static_cast<int>(visit.channel) * size);
        },
        [](double*) {});
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
    fill_batch(first_total, n_totals);
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
          visit_row(whole, first_total + i, first_row + row, worker, [&](const Visit& visit) {
            evaluate(visit, worker);
            add_to_matrix(visit, worker, form, matrix, out);
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
  /// What one thread keeps between items.
  struct Worker {
    explicit Worker(const Tables4ph& tables, Precision precision = Precision::kDouble)
        : evaluator(tables, precision) {}
    Evaluator4phCpu evaluator;
    std::int64_t row_set = -1;  ///< of the evaluator's (λ, λ')
    std::int32_t mode1_set = -1;
    std::vector<Found4ph> found;  ///< the processes of the visit
    std::vector<double> squared;  ///< |V|² of found, once evaluated
    std::vector<Found4ph> drawn;
    std::vector<double> probability;  ///< of found
  };
  /// A (λ, λ') and channel that have processes.
  struct Visit {
    Channel4ph channel;
    std::int32_t place;  ///< of Q in the order
    std::int64_t row;
    std::int32_t mode0, mode1;
    bool both;  ///< adds to the row of λ' too
  };

  /// Values of each row and channel, one sum per total momentum, added in rising place; `finish`
  /// takes the sums of all total momenta before that.
  template <typename Sink, typename Finish>
  std::vector<double> sums_by_total(std::int32_t first_total, std::int32_t last_total, int size,
                                    const Tables4ph& visited, Precision precision, const Sink& sink,
                                    const Finish& finish) {
    const std::int64_t values = tables_.n_rows() * kChannels4ph * size;
    const std::int32_t n_totals = last_total - first_total;
    std::vector<double> per_total(static_cast<std::size_t>(values * n_totals), 0.0);
    fill_batch(first_total, n_totals);
#pragma omp parallel
    {
      Worker worker(tables_, precision);
      const std::int64_t n_items = n_totals * tables_.n_rows();
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t item = 0; item < n_items; ++item) {
        const auto at = static_cast<std::size_t>(item / tables_.n_rows());
        const std::int64_t row = item % tables_.n_rows();
        double* out =
            per_total.data() + static_cast<std::int64_t>(at) * values + row * kChannels4ph * size;
        visit_row(visited, first_total + static_cast<std::int32_t>(at), row, worker,
                  [&](const Visit& visit) { sink(visit, worker, out); });
      }
    }
    finish(per_total.data());
    for (std::int32_t i = 1; i < n_totals; ++i)
      for (std::int64_t v = 0; v < values; ++v)
        per_total[static_cast<std::size_t>(v)] +=
            per_total[static_cast<std::size_t>(i * values + v)];
    per_total.resize(static_cast<std::size_t>(values));
    return per_total;
  }

  void evaluate(const Visit& visit, Worker& worker) const {
    set_pair(visit, worker);
    worker.squared.resize(worker.found.size());
    worker.evaluator.squared_elements(worker.found.data(),
                                      static_cast<std::int64_t>(worker.found.size()),
                                      sign_third(visit.channel) < 0, worker.squared.data());
  }
  void set_pair(const Visit& visit, Worker& worker) const {
    if (worker.row_set == visit.row &&
        worker.mode1_set == visit.mode1 * 2 + (sign_second(visit.channel) < 0))
      return;
    worker.evaluator.set_pair(visit.row, visit.mode1, sign_second(visit.channel) < 0);
    worker.row_set = visit.row;
    worker.mode1_set = visit.mode1 * 2 + (sign_second(visit.channel) < 0);
  }

  double density(const Visit& visit, const Found4ph& f) const {
    const double omega[4] = {tables_.omega[visit.mode0], tables_.omega[visit.mode1],
                             tables_.omega[f.mode2], tables_.omega[f.mode3]};
    return f.multiplicity * f.delta_ps * inverse_omega_product_4ph(tables_.rules, omega);
  }
  bool normal(const Visit& visit, const Found4ph& f) const {
    const int nb = tables_.n_branches;
    return is_normal_4ph(tables_, visit.channel, visit.mode0 / nb, visit.mode1 / nb, f.mode2 / nb,
                         f.mode3 / nb);
  }

  void thin(const Visit& visit, const Thinning4ph& thinning, Worker& worker, double* out) const {
    worker.drawn.clear();
    worker.probability.clear();
    for (const Found4ph& f : worker.found) {
      worker.probability.push_back(thinning.drawn(tables_, visit.channel, visit.row,
                                                  f.multiplicity * f.delta_ps, visit.mode0,
                                                  visit.mode1, f.mode2, f.mode3));
      if (worker.probability.back() > 0.0) worker.drawn.push_back(f);
    }
    worker.squared.resize(worker.drawn.size());
    if (!worker.drawn.empty()) {
      set_pair(visit, worker);
      worker.evaluator.squared_elements(worker.drawn.data(),
                                        static_cast<std::int64_t>(worker.drawn.size()),
                                        sign_third(visit.channel) < 0, worker.squared.data());
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double p = worker.probability[i];
      const double squared = p > 0.0 ? worker.squared[next++] : 0.0;
      add_thinned(tables_, visit.channel, p, density(visit, f), f.multiplicity * f.delta_ps,
                  f.multiplicity, squared, normal(visit, f), !(thinning.draws > 0.0), visit.mode1,
                  f.mode2, f.mode3, [&](int slot, double value) { out[slot] += value; });
    }
  }

  std::int64_t collision_rows() const {
    return static_cast<std::int64_t>(collision_.last_point - collision_.first_point) *
           tables_.n_branches;
  }

  /// Tables of the stars of a run of total momenta, both kinds.
  void fill_batch(std::int32_t first_total, std::int32_t n_totals) {
    first_star_ = tables_.star_at(first_total);
    const std::int32_t n_stars = tables_.star_at(first_total + n_totals - 1) - first_star_ + 1;
    difference_.resize(static_cast<std::size_t>(n_stars));
    sum_.resize(static_cast<std::size_t>(n_stars));
#pragma omp parallel
    {
      std::vector<std::uint64_t> scratch;
#pragma omp for schedule(dynamic, 1)
      for (std::int32_t i = 0; i < 2 * n_stars; ++i) {
        const auto kind = i % 2 == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
        fill(kind, tables_.leader_of(first_star_ + i / 2), scratch,
             (i % 2 == 0 ? difference_ : sum_)[static_cast<std::size_t>(i / 2)]);
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
      if (key < kNone)
        scratch.push_back(static_cast<std::uint64_t>(key) << 32 |
                          static_cast<std::uint32_t>(index));
    }
    std::sort(scratch.begin(), scratch.end());
    table.key.resize(scratch.size());
    table.index.resize(scratch.size());
    for (std::size_t i = 0; i < scratch.size(); ++i) {
      table.key[i] = static_cast<std::uint32_t>(scratch[i] >> 32);
      table.index[i] = static_cast<std::int32_t>(scratch[i] & 0xffffffffu);
    }
  }

  /// All processes of one row with one total momentum: sink(visit) for every λ' and channel that
  /// has any, with worker.found filled.
  template <typename Sink>
  void visit_row(const Tables4ph& t, std::int32_t place, std::int64_t row, Worker& worker,
                 const Sink& sink) const {
    const int nb = t.n_branches;
    const std::int32_t total = t.total_at(place);
    const auto star = static_cast<std::size_t>(t.star_at(place) - first_star_);
    const auto point = static_cast<std::int32_t>(row / nb);
    const std::int32_t q0 = t.point[point];
    const std::int32_t mode0 = q0 * nb + static_cast<std::int32_t>(row % nb);
    if (!(t.omega[mode0] > 0.0)) return;
    for (const int sign1 : {1, -1}) {
      // q' = Q − q for ++ and +-, q − Q for --.
      const std::int32_t q1 = sign1 > 0 ? t.mesh.add(total, q0, -1) : t.mesh.add(q0, total, -1);
      const Visit4ph which = visit_4ph(t, sign1, point, q1);
      if (which == Visit4ph::kNone) continue;
      const int weight = t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1];
      for (int s1 = 0; s1 < nb; ++s1) {
        const std::int32_t mode1 = q1 * nb + s1;
        if (!(t.omega[mode1] > 0.0)) continue;
        for (int c = 0; c < kChannels4ph; ++c) {
          const auto channel = static_cast<Channel4ph>(c);
          if (sign_second(channel) != sign1) continue;
          find(t, channel, place, mode0, mode1, weight,
               sign_third(channel) < 0 ? sum_[star] : difference_[star], worker.found);
          if (!worker.found.empty())
            sink({channel, place, row, mode0, mode1, which == Visit4ph::kBoth});
        }
      }
    }
  }

  /// The processes of one (λ, λ') and channel, in the order of the star's table.
  void find(const Tables4ph& t, Channel4ph channel, std::int32_t place, std::int32_t mode0,
            std::int32_t mode1, int weight, const PairTable& table,
            std::vector<Found4ph>& found) const {
    const int nb = t.n_branches;
    const auto kind = sign_third(channel) < 0 ? PairKind4ph::kSum : PairKind4ph::kDifference;
    const std::int32_t total = t.total_at(place);
    const double energy = t.omega[mode0] + sign_second(channel) * t.omega[mode1];
    found.clear();
    if (kind == PairKind4ph::kSum && !(energy > 0.0)) return;
    for (int pair_class = 0; pair_class < PairKeys4ph::kClasses; ++pair_class) {
      if (channel == Channel4ph::kSplitting &&
          !may_precede_4ph(t, t.omega[mode1],
                           energy + keys_.reach(t.rules, pair_class, t.p(mode0), t.p(mode1))))
        continue;
      std::uint32_t first;
      std::uint32_t last;
      keys_.interval(t, kind, 0, pair_class, energy, t.p(mode0), t.p(mode1), &first, &last);
      const auto begin =
          lower_bound_key(table.key.data(), static_cast<std::int64_t>(table.key.size()), first);
      for (auto i = static_cast<std::size_t>(begin); i < table.key.size() && table.key[i] <= last;
           ++i) {
        const std::int32_t q2 = t.turn(place, table.index[i] / nb / nb);
        const std::int32_t q3 = t.mesh.add(total, q2, kind == PairKind4ph::kSum ? -1 : 1);
        std::int32_t mode2 = q2 * nb + table.index[i] / nb % nb;
        std::int32_t mode3 = q3 * nb + table.index[i] % nb;
        if (kind == PairKind4ph::kSum && mode2 > mode3)
          std::swap(mode2, mode3);  // turned past each other
        const double share =
            channel == Channel4ph::kSplitting ? splitting_share_4ph(t, mode1, mode2, mode3) : 1.0;
        if (!(share > 0.0)) continue;
        const Process4ph process = test_candidate_4ph(t, channel, mode0, mode1, mode2, mode3);
        if (process.multiplicity > 0.0)
          found.push_back({mode2, mode3, share * process.multiplicity * weight,
                           delta_4ph_ps(t.rules, process)});
      }
    }
  }

  void accumulate(const Visit& visit, const Worker& worker, const SumLayout4ph& layout,
                  double* out) const {
    add_processes(visit, worker, visit.mode1, 1.0, layout, out);
    out[layout.evaluations()] += static_cast<double>(worker.found.size());
  }

  /// The same for λ': Bose factor and weight are its own, the matrix elements are not counted
  /// again.
  void accumulate_exchanged(const Visit& visit, const Worker& worker, const SumLayout4ph& layout,
                            double* out) const {
    const Tables4ph& t = tables_;
    const double ratio = exchange_ratio_4ph(t, static_cast<std::int32_t>(visit.row / t.n_branches),
                                            visit.mode1 / t.n_branches);
    add_processes(visit, worker, visit.mode0, ratio, layout, out);
  }

  /// @param partner  of λ and λ' the one whose sums these are not
  /// @param ratio    multiplies the weight of every process
  void add_processes(const Visit& visit, const Worker& worker, std::int32_t partner, double ratio,
                     const SumLayout4ph& layout, double* out) const {
    const Tables4ph& t = tables_;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double weight = ratio * density(visit, f);
      const bool is_normal = normal(visit, f);
      for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
        const double* n = t.occupation + temperature * t.n_modes();
        const double w =
            weight * bose_factor_4ph(visit.channel, n[partner], n[f.mode2], n[f.mode3]);
        out[is_normal ? layout.normal(temperature) : layout.umklapp(temperature)] +=
            w * worker.squared[i];
        out[layout.weighted_phase_space(temperature)] += w;
      }
      out[layout.phase_space()] += ratio * f.multiplicity * f.delta_ps;
      out[layout.six_count()] += std::round(6.0 * ratio * f.multiplicity);
    }
  }

  void add_to_matrix(const Visit& visit, const Worker& worker, const CollisionForm4ph& form,
                     double* matrix, double& out_scattering) const {
    const double sign1 = CollisionForm4ph::sign_of_second(visit.channel);
    const double sign2 = CollisionForm4ph::sign_of_third(visit.channel);
    double sum = 0.0;
    for (std::size_t i = 0; i < worker.found.size(); ++i) {
      const Found4ph& f = worker.found[i];
      const double gamma = density(visit, f) *
                           form.bose(visit.channel, visit.mode0, visit.mode1, f.mode2, f.mode3) *
                           worker.squared[i];
      sum += gamma;
      matrix[f.mode2] += sign2 * gamma;
      matrix[f.mode3] += gamma;
    }
    matrix[visit.mode1] += sign1 * sum;
    out_scattering += sum;
  }

  std::int64_t budget_bytes_;
  const Problem4ph* problem_ = nullptr;
  Tables4ph tables_;
  std::vector<PairTable> difference_, sum_;  ///< of the stars of the last batch
  std::int32_t first_star_ = 0;
  CollisionRequest4ph collision_;
  std::vector<double> matrix_;  ///< M of the request
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
  t.star = star.empty() ? nullptr : star.data();
  t.star_size = star.empty() ? nullptr : star_size.data();
  t.precedence = star.empty() ? nullptr : precedence.data();
  t.precedence_slack_rad_ps = precedence_slack_rad_ps;
  if (!totals.total.empty()) {
    t.total = totals.total.data();
    t.total_star = totals.star.data();
    t.total_leader = totals.leader.data();
    t.total_turn = totals.turn.data();
    t.turned = totals.turned.data();
    t.turned_back = totals.turned_back.data();
  }
  t.n_triples = plan.n_triples;
  t.n_pairs = plan.n_pairs;
  t.n_cells = plan.n_cells;
  t.real_elements = plan.real_elements;
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
