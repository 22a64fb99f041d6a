#include "workers/thermal/kernels/four_phonon/derivative/element_gradient_4ph_cpu.hpp"

#include <algorithm>

#include "workers/backend/device/launch_cpu.hpp"
#include "workers/thermal/kernels/four_phonon/evaluate_4ph_cpu.hpp"

namespace quasi::thermal {
namespace {

constexpr int kLanes = 8;  ///< processes at a time: two vector registers
using Lanes = double[kLanes];

/// Complex numbers of all lanes.
struct ComplexLanes {
  Lanes re, im;
};

}  // namespace

/// State of one thread: the pair (λ, λ') and sums over its processes.
class ElementGradient4phCpu::Worker {
 public:
  explicit Worker(const Tables4ph& tables)
      : t_(tables),
        evaluator_(tables),
        u_(static_cast<std::size_t>(3 * tables.n_pairs)),
        h_(static_cast<std::size_t>(3 * tables.n_atoms)),
        by_pair_(static_cast<std::size_t>(9 * tables.n_pairs)) {}

  /// Adds the derivative by C of the row. @param occupation  [n_modes] at the temperature
  void add(const ModePair4ph& pair, const double* occupation, const std::vector<double>& by_row,
           Complex<double>* by_contracted) {
    set_factors(pair, occupation, by_row);
    evaluator_.set_pair(pair.row, pair.mode1, sign_second(pair.channel) < 0);
    for (ComplexLanes& sum : by_pair_) sum = {};
    for (std::size_t first = 0; first < found.size(); first += kLanes)
      add_batch(first, sign_third(pair.channel) < 0);
    const std::vector<Complex<double>>& site = evaluator_.site();
    for (int p = 0; p < t_.n_pairs; ++p) {
      double re[9] = {}, im[9] = {};
      for (int x = 0; x < 9; ++x)
        for (int lane = 0; lane < kLanes; ++lane) {
          re[x] += by_pair_[static_cast<std::size_t>(9 * p + x)].re[lane];
          im[x] += by_pair_[static_cast<std::size_t>(9 * p + x)].im[lane];
        }
      for (int triple = t_.pair_begin[p]; triple < t_.pair_begin[p + 1]; ++triple)
        for (int b = 0; b < 3; ++b) {
          const Complex<double> s = site[static_cast<std::size_t>(3 * triple + b)];
          Complex<double>* to = by_contracted + 27 * static_cast<std::int64_t>(triple) + 9 * b;
          for (int x = 0; x < 9; ++x) {
            to[x].re += s.re * re[x] - s.im * im[x];
            to[x].im += s.re * im[x] + s.im * re[x];
          }
        }
    }
  }

  std::vector<Found4ph> found;  ///< the processes of the pair

 private:
  /// Sets 2 ∂F/∂|V|² of every process.
  void set_factors(const ModePair4ph& pair, const double* n, const std::vector<double>& by_row) {
    factor_.resize(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Found4ph& f = found[i];
      const double omega[4] = {t_.omega[pair.mode0], t_.omega[pair.mode1], t_.omega[f.mode2],
                               t_.omega[f.mode3]};
      const double density =
          f.multiplicity * f.delta_ps * inverse_omega_product_4ph(t_.rules, omega);
      double sum = 0.0;
      for_each_row_4ph(t_, {pair.channel, pair.mode0, pair.mode1, f.mode2, f.mode3}, pair.row,
                       pair.both,
                       [&](std::int64_t row, Channel4ph channel, double ratio, std::int32_t p1,
                           std::int32_t p2, std::int32_t p3) {
                         sum += ratio * by_row[static_cast<std::size_t>(row)] *
                                bose_factor_4ph(channel, n[p1], n[p2], n[p3]);
                       });
      factor_[i] = 2.0 * density * sum;
    }
  }

  /// Evaluates V of up to kLanes processes and adds 2g V* ∂V/∂A to by_pair_. @param conjugate  λ''
  /// is created
  void add_batch(std::size_t first, bool conjugate) {
    const int nb = t_.n_branches;
    const Complex<double>* e2[kLanes];
    const Complex<double>* e3[kLanes];
    const Complex<double>* phase[kLanes];
    Lanes factor;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {  // lanes without a process have no factor
      const std::size_t at = std::min(first + lane, found.size() - 1);
      e2[lane] = t_.eigenvector + static_cast<std::int64_t>(found[at].mode2) * nb;
      e3[lane] = t_.eigenvector + static_cast<std::int64_t>(found[at].mode3) * nb;
      phase[lane] = t_.phase + static_cast<std::int64_t>(found[at].mode2 / nb) * t_.n_cells;
      factor[lane] = first + lane < found.size() ? factor_[at] : 0.0;
    }
    const double sign = conjugate ? -1.0 : 1.0;
    for (int p = 0; p < t_.n_pairs; ++p) {
      const int third = 3 * t_.pair_third[p], cell = t_.pair_cell[p];
      for (int b = 0; b < 3; ++b) {
        ComplexLanes& u = u_[static_cast<std::size_t>(3 * p + b)];
        for (int lane = 0; lane < kLanes; ++lane) {
          const Complex<double> f = phase[lane][cell], e = e2[lane][third + b];
          u.re[lane] = f.re * e.re - f.im * e.im;
          u.im[lane] = sign * (f.re * e.im + f.im * e.re);
        }
      }
    }
    const ComplexLanes v = elements(e3);
    for (std::size_t x = 0; x < h_.size(); ++x)
      for (int lane = 0; lane < kLanes; ++lane) {
        const Complex<double> e = e3[lane][x];
        const double re = factor[lane] * v.re[lane],
                     im = t_.real_elements ? 0.0 : -factor[lane] * v.im[lane];
        h_[x].re[lane] = re * e.re + im * e.im;
        h_[x].im[lane] = im * e.re - re * e.im;
      }
    for (int p = 0; p < t_.n_pairs; ++p)
      for (int b = 0; b < 3; ++b)
        for (int c = 0; c < 3; ++c) {
          const ComplexLanes& u = u_[static_cast<std::size_t>(3 * p + b)];
          const ComplexLanes& h = h_[static_cast<std::size_t>(3 * t_.pair_fourth[p] + c)];
          ComplexLanes& sum = by_pair_[static_cast<std::size_t>(9 * p + 3 * b + c)];
          for (int lane = 0; lane < kLanes; ++lane) {
            sum.re[lane] += u.re[lane] * h.re[lane] - u.im[lane] * h.im[lane];
            sum.im[lane] += u.re[lane] * h.im[lane] + u.im[lane] * h.re[lane];
          }
        }
  }

  /// Returns V = Σ_p uᵀ A e'''* of all lanes.
  ComplexLanes elements(const Complex<double>* const (&e3)[kLanes]) const {
    const std::vector<Complex<double>>& pairs = evaluator_.pair();
    ComplexLanes v{};
    for (int p = 0; p < t_.n_pairs;) {
      const int fourth = t_.pair_fourth[p];
      ComplexLanes w[3] = {};
      for (; p < t_.n_pairs && t_.pair_fourth[p] == fourth; ++p)
        for (int b = 0; b < 3; ++b)
          for (int c = 0; c < 3; ++c) {
            const ComplexLanes& u = u_[static_cast<std::size_t>(3 * p + b)];
            const Complex<double> a = pairs[static_cast<std::size_t>(9 * p + 3 * b + c)];
            for (int lane = 0; lane < kLanes; ++lane) {
              w[c].re[lane] += u.re[lane] * a.re - u.im[lane] * a.im;
              w[c].im[lane] += u.re[lane] * a.im + u.im[lane] * a.re;
            }
          }
      for (int c = 0; c < 3; ++c)
        for (int lane = 0; lane < kLanes; ++lane) {
          const Complex<double> e = e3[lane][3 * fourth + c];
          v.re[lane] += w[c].re[lane] * e.re + w[c].im[lane] * e.im;
          v.im[lane] += w[c].im[lane] * e.re - w[c].re[lane] * e.im;
        }
    }
    return v;
  }

  const Tables4ph& t_;
  Evaluator4phCpu evaluator_;
  std::vector<ComplexLanes> u_;        ///< [n_pairs][3] E'' of the batch
  std::vector<ComplexLanes> h_;        ///< [n_branches] 2g V* e'''* of the batch
  std::vector<ComplexLanes> by_pair_;  ///< [n_pairs][9] derivative by A
  std::vector<double> factor_;         ///< of found
};

ElementGradient4phCpu::ElementGradient4phCpu(const Problem4ph& problem)
    : tables_(host_tables(problem)), n_totals_(static_cast<std::int32_t>(problem.mesh.size())) {
  contracted_.resize(static_cast<std::size_t>(tables_.n_rows() * tables_.n_triples * 27));
  cpu::for_each_index(static_cast<std::int64_t>(contracted_.size()),
                      ContractFirst4ph{tables_, contracted_.data()});
  tables_.contracted = contracted_.data();
  finder_ = ProcessFinder4phCpu(tables_);
}

std::vector<double> ElementGradient4phCpu::gradient(int temperature,
                                                    const std::vector<double>& by_row) {
  constexpr std::int32_t kTotalsAtOnce = 16;  // they share tables of last pairs
  by_contracted_.assign(contracted_.size(), {});
  const double* occupation = tables_.occupation + temperature * tables_.n_modes();
  for (std::int32_t first = 0; first < n_totals_; first += kTotalsAtOnce) {
    const std::int32_t n = std::min(kTotalsAtOnce, n_totals_ - first);
    finder_.prepare(first, n);
#pragma omp parallel
    {
      Worker worker(tables_);
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t row = 0; row < tables_.n_rows(); ++row) {
        Complex<double>* sum =
            &by_contracted_[static_cast<std::size_t>(row * tables_.n_triples * 27)];
        for (std::int32_t i = 0; i < n; ++i)
          finder_.for_each_pair(
              tables_, first + i, row, worker.found,
              [&](const ModePair4ph& pair) { worker.add(pair, occupation, by_row, sum); });
      }
    }
  }
  return first_slot_gradient();
}

/// Transposes ContractFirst4ph.
std::vector<double> ElementGradient4phCpu::first_slot_gradient() const {
  const Tables4ph& t = tables_;
  std::vector<double> result(static_cast<std::size_t>(t.triple_begin[t.n_triples]) * 81, 0.0);
#pragma omp parallel for schedule(dynamic, 1)
  for (int triple = 0; triple < t.n_triples; ++triple)
    for (std::int32_t block = t.triple_begin[triple]; block < t.triple_begin[triple + 1]; ++block) {
      double* to = &result[static_cast<std::size_t>(block) * 81];
      for (std::int64_t row = 0; row < t.n_rows(); ++row) {
        const std::int32_t q = t.point[row / t.n_branches];
        const std::int64_t mode = static_cast<std::int64_t>(q) * t.n_branches + row % t.n_branches;
        const Complex<double>* e = t.eigenvector + mode * t.n_branches + 3 * t.block_atom[block];
        const Complex<double> phase =
            t.phase[static_cast<std::int64_t>(q) * t.n_cells + t.block_cell[block]];
        const Complex<double>* from =
            &by_contracted_[static_cast<std::size_t>((row * t.n_triples + triple) * 27)];
        for (int a = 0; a < 3; ++a) {
          const Complex<double> slot = phase * e[a];
          for (int x = 0; x < 27; ++x)
            to[27 * a + x] += slot.re * from[x].re - slot.im * from[x].im;
        }
      }
    }
  return result;
}

}  // namespace quasi::thermal
