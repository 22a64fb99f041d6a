#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/process_rules_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/kernels/three_phonon/workspace_3ph_cpu.hpp"
#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const Complex<double>* plain(const Complex64* values) {
  return reinterpret_cast<const Complex<double>*>(values);
}

class CpuThreePhononKernels : public ThreePhononKernels {
 public:
  void load(const ThreePhononProblem& problem) override;
  std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) override;
  std::vector<Process3> list(std::int64_t first, std::int64_t last,
                             std::vector<std::int64_t>& offsets) override;
  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override;
  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override;
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override;

 private:
  static constexpr int kLanes = 4;  ///< branch rows are padded to a multiple, for vector loads

  std::int64_t mode_of_row(std::int64_t row) const {
    return static_cast<std::int64_t>(problem_->rows[static_cast<std::size_t>(row / nb_)]) * nb_ +
           row % nb_;
  }
  template <Broadening kKind>
  void test_point(std::int64_t m0, std::int64_t q0, std::int64_t p,
                  std::vector<Accepted>& out) const;
  void test_point(std::int64_t m0, std::int64_t q0, std::int64_t p,
                  std::vector<Accepted>& out) const;
  void contract_first_slot(std::int64_t m0, Workspace& work) const;
  void first_two_axes(Workspace& work) const;
  template <typename Real, typename Visit>
  void for_each_process(std::int64_t m0, Workspace& work, const LastFactors<Real>& factors,
                        const Visit& visit) const;
  template <typename Visit>
  void for_each_process_naive(std::int64_t m0, Workspace& work, const std::vector<Accepted>* list,
                              const Visit& visit) const;
  void enumerate(std::int64_t m0, std::vector<Accepted>& out) const;
  void run_row(std::int64_t row, Workspace& work, const std::vector<Accepted>* list, Process3* kept,
               std::int64_t* counts, ThreePhononRates& rates) const;
  void tabulate(const std::vector<double>& temperatures_k);
  const OccupationTables& tables_at(double temperature_k);

  const ThreePhononProblem* problem_ = nullptr;
  int nb_ = 0;
  int padded_ = 0;
  std::int64_t n_q_ = 0;
  std::vector<double> omega_;        ///< [n_modes], kInactive where a mode takes no part
  std::vector<double> lanes_;        ///< [n_q][4: ω, p_x, p_y, p_z][padded]
  std::vector<Complex64> reversed_;  ///< [n_modes][nb] conj(e(−q))
  std::vector<Complex32> e32_, reversed32_, phase32_;  ///< with mixed precision
  ProcessRules3 rules_;
  Fc3Transform transform_;
  std::vector<double> occupation_;  ///< [n_modes][nT]
  std::int64_t n_temperatures_ = 0;
  std::vector<Complex64> roots_[3];
  int planes_at_once_ = 1;

  std::vector<std::int64_t> first_process_;  ///< [n_rows + 1]
  std::vector<Process3> kept_;
  OccupationTables tables_;
};

void CpuThreePhononKernels::load(const ThreePhononProblem& problem) {
  openblas_set_num_threads(
      1);  // rows are the parallel work; bits must not depend on BLAS threading
  problem_ = &problem;
  const Modes& modes = *problem.modes;
  nb_ = problem.n_branches();
  padded_ = (nb_ + kLanes - 1) / kLanes * kLanes;
  n_q_ = problem.mesh.size();
  const auto n_modes = static_cast<std::size_t>(modes.n_modes());
  omega_.resize(n_modes);
  for (std::size_t mode = 0; mode < n_modes; ++mode)
    omega_[mode] = modes.active(static_cast<std::int64_t>(mode), problem.omega_max_rad_ps)
                       ? modes.omega_rad_ps[mode]
                       : ProcessRules3::kInactive;
  lanes_.assign(static_cast<std::size_t>(n_q_ * 4 * padded_), 0.0);
  reversed_.resize(n_modes * static_cast<std::size_t>(nb_));
  for (std::int64_t q = 0; q < n_q_; ++q) {
    double* lane = &lanes_[static_cast<std::size_t>(q * 4 * padded_)];
    for (int s = 0; s < padded_; ++s) {
      lane[s] = s < nb_ ? omega_[q * nb_ + s] : ProcessRules3::kInactive;
      for (int d = 0; d < 3 && s < nb_; ++d)
        lane[(d + 1) * padded_ + s] = modes.spread_rad_ps[(q * nb_ + s) * 3 + d];
    }
    const std::int64_t minus = problem.mesh.minus(q);
    for (int e = 0; e < nb_ * nb_; ++e)
      reversed_[q * nb_ * nb_ + e] = std::conj(modes.eigenvector[minus * nb_ * nb_ + e]);
  }
  rules_ = rules_of(problem, omega_.data(), modes.spread_rad_ps.data());
  transform_ = make_fc3_transform(problem.fc3, problem.mass_amu, problem.mesh);
  for (int d = 0; d < 3; ++d) roots_[d] = unit_roots(problem.mesh.n[d]);
  if (problem.precision == Precision::kMixed) {
    e32_.assign(modes.eigenvector.begin(), modes.eigenvector.end());
    reversed32_.assign(reversed_.begin(), reversed_.end());
    phase32_.assign(transform_.phase[2].begin(), transform_.phase[2].end());
  }
  const std::int64_t plane_bytes =
      static_cast<std::int64_t>(problem.mesh.n[0]) * problem.mesh.n[1] * nb_ * nb_ * 16;
  planes_at_once_ =
      static_cast<int>(std::clamp<std::int64_t>((1 << 20) / plane_bytes, 1, problem.mesh.n[2]));
  kept_.clear();
  first_process_.clear();
  tables_ = {};
}

/// Tests all (λ', λ'') of a row with q'' = q + p: absorption with λ' at p, emission with λ' at −p.
template <Broadening kKind>
void CpuThreePhononKernels::test_point(std::int64_t m0, std::int64_t q0, std::int64_t p,
                                       std::vector<Accepted>& out) const {
  const std::int64_t q2 = problem_->mesh.add(q0, p, 1);
  const std::int64_t minus = problem_->mesh.minus(p);
  const double* lane = &lanes_[static_cast<std::size_t>(q2 * 4 * padded_)];
  const double w0 = omega_[m0];
  const Spread p0 = spread_at(rules_.spread_rad_ps + 3 * m0);
  double mismatch[3 * 1024];
  double width[3 * 1024];
  for (const Channel3 channel : {Channel3::kAbsorption, Channel3::kEmission}) {
    const std::int64_t q1 = channel == Channel3::kAbsorption ? p : minus;
    for (int s1 = 0; s1 < nb_; ++s1) {
      const std::int64_t m1 = q1 * nb_ + s1;
      if (!rules_.active(m1)) continue;
      const double w1 = omega_[m1];
      const Spread p1 = spread_at(rules_.spread_rad_ps + 3 * m1);
      int hits = 0;
#pragma omp simd reduction(+ : hits)
      for (int s2 = 0; s2 < padded_; ++s2) {
        const Spread p2{lane[padded_ + s2], lane[2 * padded_ + s2], lane[3 * padded_ + s2]};
        mismatch[s2] = ProcessRules3::mismatch(channel, w0, w1, lane[s2]);
        width[s2] = width_squared_3ph(kKind, p0, p1, p2);
        hits += mismatch[s2] * mismatch[s2] <= rules_.window * width[s2] ? 1 : 0;
      }
      if (hits == 0) continue;
      for (int s2 = 0; s2 < nb_; ++s2)
        if (rules_.in_window(mismatch[s2], width[s2]))
          out.push_back({static_cast<std::int32_t>(channel == Channel3::kAbsorption ? m1 : ~m1),
                         static_cast<std::int32_t>(q2 * nb_ + s2), mismatch[s2], width[s2]});
    }
  }
}

void CpuThreePhononKernels::test_point(std::int64_t m0, std::int64_t q0, std::int64_t p,
                                       std::vector<Accepted>& out) const {
  switch (rules_.broadening) {
    case Broadening::kSymmetric:
      return test_point<Broadening::kSymmetric>(m0, q0, p, out);
    case Broadening::kAdaptiveMax:
      return test_point<Broadening::kAdaptiveMax>(m0, q0, p, out);
    case Broadening::kAdaptiveRms:
      return test_point<Broadening::kAdaptiveRms>(m0, q0, p, out);
  }
}

void CpuThreePhononKernels::enumerate(std::int64_t m0, std::vector<Accepted>& out) const {
  out.clear();
  if (!rules_.active(m0)) return;
  for (std::int64_t p = 0; p < n_q_; ++p) test_point(m0, m0 / nb_, p, out);
}

/// B_λ folded on ΔR: slot 1 contracted with e_λ, slot 3's cell with e^{−iq·R''}.
void CpuThreePhononKernels::contract_first_slot(std::int64_t m0, Workspace& work) const {
  const Fc3Transform& t = transform_;
  const Complex64* e0 = &problem_->modes->eigenvector[static_cast<std::size_t>(m0 * nb_)];
  int c[3];
  problem_->mesh.coordinates(m0 / nb_, c);
  const PhaseTable phase{
      {plain(roots_[0].data()), plain(roots_[1].data()), plain(roots_[2].data())},
      {problem_->mesh.n[0], problem_->mesh.n[1], problem_->mesh.n[2]}};
  std::vector<Complex64> cell_phase(t.third_cells.size());
  for (std::size_t i = 0; i < cell_phase.size(); ++i) {
    const Complex<double> x = phase(c, t.third_cells[i].data());
    cell_phase[i] = {x.re, -x.im};
  }
  work.box.assign(static_cast<std::size_t>(t.box_size() * nb_ * nb_), 0.0);
  for (std::int64_t block = 0; block < t.n_blocks; ++block) {
    const double* tensor = &t.tensor[static_cast<std::size_t>(block * 27)];
    Complex64* target = &work.box[static_cast<std::size_t>(t.target[block])];
    const Complex64 x[3] = {e0[t.first_component[block]] * cell_phase[t.third_cell[block]],
                            e0[t.first_component[block] + 1] * cell_phase[t.third_cell[block]],
                            e0[t.first_component[block] + 2] * cell_phase[t.third_cell[block]]};
    for (int b = 0; b < 3; ++b)
      for (int g = 0; g < 3; ++g)
        target[b * nb_ + g] +=
            x[0] * tensor[b * 3 + g] + x[1] * tensor[9 + b * 3 + g] + x[2] * tensor[18 + b * 3 + g];
  }
}

void CpuThreePhononKernels::first_two_axes(Workspace& work) const {
  const Fc3Transform& t = transform_;
  const QMesh& mesh = problem_->mesh;
  const std::int64_t x = nb_ * nb_;
  work.stage1.resize(static_cast<std::size_t>(t.extent[2] * t.extent[1] * mesh.n[0] * x));
  work.stage2.resize(static_cast<std::size_t>(t.extent[2] * mesh.n[1] * mesh.n[0] * x));
  for (std::int64_t cb = 0; cb < t.extent[2] * t.extent[1]; ++cb)
    multiply(mesh.n[0], static_cast<int>(x), t.extent[0], t.phase[0].data(),
             &work.box[cb * t.extent[0] * x], &work.stage1[cb * mesh.n[0] * x]);
  for (std::int64_t c = 0; c < t.extent[2]; ++c)
    multiply(mesh.n[1], static_cast<int>(mesh.n[0] * x), t.extent[1], t.phase[1].data(),
             &work.stage1[c * t.extent[1] * mesh.n[0] * x],
             &work.stage2[c * mesh.n[1] * mesh.n[0] * x]);
}

/// Calls visit(accepted, |V|²) for every process of a row, by the factorised algorithm.
template <typename Real, typename Visit>
void CpuThreePhononKernels::for_each_process(std::int64_t m0, Workspace& work,
                                             const LastFactors<Real>& factors,
                                             const Visit& visit) const {
  if (!rules_.active(m0)) return;
  using ComplexR = std::complex<Real>;
  thread_local LastProducts<Real> last;
  const QMesh& mesh = problem_->mesh;
  const std::int64_t q0 = m0 / nb_;
  const std::int64_t x = nb_ * nb_;
  const std::int64_t plane = static_cast<std::int64_t>(mesh.n[0]) * mesh.n[1];
  contract_first_slot(m0, work);
  first_two_axes(work);
  const ComplexR* stage2;
  if constexpr (std::is_same_v<Real, double>) {
    stage2 = work.stage2.data();
  } else {
    last.stage2.assign(work.stage2.begin(), work.stage2.end());
    stage2 = last.stage2.data();
  }
  last.planes.resize(static_cast<std::size_t>(planes_at_once_ * plane * x));
  last.products.resize(static_cast<std::size_t>(x));
  std::vector<char> ready(static_cast<std::size_t>(nb_));
  for (int k = 0; k < mesh.n[2]; k += planes_at_once_) {
    const int group = std::min(planes_at_once_, mesh.n[2] - k);
    multiply(group, static_cast<int>(plane * x), transform_.extent[2],
             factors.phase + k * transform_.extent[2], stage2, last.planes.data());
    for (std::int64_t local = 0; local < group * plane; ++local) {
      const std::int64_t p = k * plane + local;
      work.accepted.clear();
      test_point(m0, q0, p, work.accepted);
      if (work.accepted.empty()) continue;
      const ComplexR* a = &last.planes[static_cast<std::size_t>(local * x)];
      std::fill(ready.begin(), ready.end(), 0);
      for (const Accepted& process : work.accepted) {
        const auto s2 = static_cast<int>(process.second % nb_);
        ComplexR* product = &last.products[static_cast<std::size_t>(s2 * nb_)];
        if (!ready[s2]) {
          ready[s2] = 1;
          const ComplexR* e2 = factors.e + static_cast<std::int64_t>(process.second) * nb_;
          for (int b = 0; b < nb_; ++b) {
            Real re = 0;
            Real im = 0;
            for (int g = 0; g < nb_; ++g) {
              const ComplexR value = a[b * nb_ + g];
              re += value.real() * e2[g].real() + value.imag() * e2[g].imag();
              im += value.imag() * e2[g].real() - value.real() * e2[g].imag();
            }
            product[b] = {re, im};
          }
        }
        // At −p the first partner enters conjugated, and conj(e(−p)) is tabulated at p.
        const bool emission = process.first < 0;
        const std::int32_t m1 = emission ? ~process.first : process.first;
        const ComplexR* e1 = emission ? factors.reversed + (p * nb_ + m1 % nb_) * nb_
                                      : factors.e + static_cast<std::int64_t>(m1) * nb_;
        Real re = 0;
        Real im = 0;
        for (int b = 0; b < nb_; ++b) {
          re += e1[b].real() * product[b].real() - e1[b].imag() * product[b].imag();
          im += e1[b].real() * product[b].imag() + e1[b].imag() * product[b].real();
        }
        visit(process, static_cast<double>(re * re + im * im));
      }
    }
  }
}

/// The same by the block sum of one process at a time: what the paper's strategies evaluate. With a
/// list it is walked; without one every candidate is tested in place.
template <typename Visit>
void CpuThreePhononKernels::for_each_process_naive(std::int64_t m0, Workspace& work,
                                                   const std::vector<Accepted>* list,
                                                   const Visit& visit) const {
  if (!rules_.active(m0)) return;
  const QMesh& mesh = problem_->mesh;
  const PhaseTable phase{
      {plain(roots_[0].data()), plain(roots_[1].data()), plain(roots_[2].data())},
      {mesh.n[0], mesh.n[1], mesh.n[2]}};
  const Blocks3View blocks{transform_.n_blocks, problem_->fc3.atom.data(),
                           problem_->fc3.cell.data(), transform_.tensor.data()};
  const Complex<double>* e = plain(problem_->modes->eigenvector.data());
  const auto evaluate = [&](const Accepted& process) {
    const bool emission = process.first < 0;
    const std::int64_t m1 = emission ? ~process.first : process.first;
    const std::int64_t m2 = process.second;
    Triplet3 triplet{.channel = emission ? Channel3::kEmission : Channel3::kAbsorption,
                     .e0 = e + m0 * nb_,
                     .e1 = e + m1 * nb_,
                     .e2 = e + m2 * nb_};
    mesh.coordinates(m1 / nb_, triplet.c1);
    mesh.coordinates(m2 / nb_, triplet.c2);
    visit(process, norm(matrix_element_3ph(blocks, phase, triplet)));
  };
  if (list != nullptr) {
    for (const Accepted& process : *list) evaluate(process);
    return;
  }
  for (std::int64_t p = 0; p < n_q_; ++p) {
    work.accepted.clear();
    test_point(m0, m0 / nb_, p, work.accepted);
    for (const Accepted& process : work.accepted) evaluate(process);
  }
}

std::vector<std::int64_t> CpuThreePhononKernels::count(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> counts(rows.size() * 2, 0);
#pragma omp parallel
  {
    std::vector<Accepted> accepted;
#pragma omp for schedule(dynamic, 4)
    for (std::size_t i = 0; i < rows.size(); ++i) {
      enumerate(mode_of_row(rows[i]), accepted);
      for (const Accepted& process : accepted) ++counts[2 * i + (process.first < 0 ? 1 : 0)];
    }
  }
  return counts;
}

std::vector<Process3> CpuThreePhononKernels::list(std::int64_t first, std::int64_t last,
                                                  std::vector<std::int64_t>& offsets) {
  std::vector<std::vector<Process3>> rows(static_cast<std::size_t>(last - first));
#pragma omp parallel
  {
    std::vector<Accepted> accepted;
#pragma omp for schedule(dynamic, 4)
    for (std::int64_t row = first; row < last; ++row) {
      enumerate(mode_of_row(row), accepted);
      for (const Accepted& process : accepted)
        rows[row - first].push_back({process.first, process.second, 0.0});
    }
  }
  offsets.assign(1, 0);
  std::vector<Process3> all;
  for (const auto& row : rows) {
    all.insert(all.end(), row.begin(), row.end());
    offsets.push_back(static_cast<std::int64_t>(all.size()));
  }
  return all;
}

void CpuThreePhononKernels::tabulate(const std::vector<double>& temperatures_k) {
  n_temperatures_ = static_cast<std::int64_t>(temperatures_k.size());
  occupation_.assign(omega_.size() * temperatures_k.size(), 0.0);
  for (std::size_t mode = 0; mode < omega_.size(); ++mode)
    for (std::size_t t = 0; t < temperatures_k.size(); ++t)
      if (rules_.active(static_cast<std::int64_t>(mode)))
        occupation_[mode * temperatures_k.size() + t] =
            bose_einstein(omega_[mode], temperatures_k[t], problem_->hbar_over_kb_k_ps);
}

void CpuThreePhononKernels::run_row(std::int64_t row, Workspace& work,
                                    const std::vector<Accepted>* list, Process3* kept,
                                    std::int64_t* counts, ThreePhononRates& rates) const {
  const std::int64_t m0 = mode_of_row(row);
  const auto n_t = static_cast<std::size_t>(n_temperatures_);
  work.sums.assign(n_t, {});
  double phase_space[2] = {0.0, 0.0};
  counts[0] = counts[1] = 0;
  const auto visit = [&](const Accepted& process, double amplitude_squared) {
    const bool emission = process.first < 0;
    const std::int64_t m1 = emission ? ~process.first : process.first;
    const std::int64_t m2 = process.second;
    const double delta = rules_.delta_ps(process.mismatch_rad_ps, process.width_squared);
    const double phase_space_ps4 = delta / (omega_[m0] * omega_[m1] * omega_[m2]);
    const double weight = rules_.prefactor * phase_space_ps4 * amplitude_squared;
    const bool normal =
        is_normal_3ph(emission ? Channel3::kEmission : Channel3::kAbsorption,
                      problem_->first_zone[m0 / nb_].data(), problem_->first_zone[m1 / nb_].data(),
                      problem_->first_zone[m2 / nb_].data());
    phase_space[emission ? 1 : 0] += delta;
    ++counts[emission ? 1 : 0];
    const double* n1 = &occupation_[static_cast<std::size_t>(m1) * n_t];
    const double* n2 = &occupation_[static_cast<std::size_t>(m2) * n_t];
    for (std::size_t t = 0; t < n_t; ++t)
      add_process(work.sums[t], emission, normal, occupation_factor_3ph(emission, n1[t], n2[t]),
                  weight, phase_space_ps4);
    if (kept != nullptr) *kept++ = {process.first, process.second, weight};
  };
  if (problem_->strategy != Strategy::kFactorised)
    for_each_process_naive(m0, work, list, visit);
  else if (problem_->precision == Precision::kMixed)
    for_each_process(m0, work, LastFactors<float>{e32_.data(), reversed32_.data(), phase32_.data()},
                     visit);
  else
    for_each_process(m0, work,
                     LastFactors<double>{problem_->modes->eigenvector.data(), reversed_.data(),
                                         transform_.phase[2].data()},
                     visit);

  const auto n_rows = static_cast<std::size_t>(problem_->n_rows());
  const double per_point = 1.0 / static_cast<double>(n_q_);
  for (std::size_t t = 0; t < n_t; ++t) {
    const std::size_t at = t * n_rows + static_cast<std::size_t>(row);
    const RowSums3& sums = work.sums[t];
    rates.absorption_per_ps[at] = sums.absorption;
    rates.emission_per_ps[at] = 0.5 * sums.emission;
    rates.normal_absorption_per_ps[at] = sums.normal_absorption;
    rates.normal_emission_per_ps[at] = 0.5 * sums.normal_emission;
    rates.weighted_absorption_ps4[at] = per_point * sums.weighted_absorption;
    rates.weighted_emission_ps4[at] = 0.5 * per_point * sums.weighted_emission;
  }
  rates.phase_space_absorption_ps[row] = phase_space[0];
  rates.phase_space_emission_ps[row] = phase_space[1];
}

ThreePhononRates CpuThreePhononKernels::rates(const std::vector<double>& temperatures_k,
                                              bool keep_processes, Progress& progress) {
  const auto start = Clock::now();
  const std::int64_t n_rows = problem_->n_rows();
  tabulate(temperatures_k);
  ThreePhononRates result;
  result.n_temperatures = n_temperatures_;
  const auto size = static_cast<std::size_t>(n_temperatures_ * n_rows);
  for (auto* array : {&result.absorption_per_ps, &result.emission_per_ps,
                      &result.normal_absorption_per_ps, &result.normal_emission_per_ps,
                      &result.weighted_absorption_ps4, &result.weighted_emission_ps4})
    array->assign(size, 0.0);
  result.phase_space_absorption_ps.assign(static_cast<std::size_t>(n_rows), 0.0);
  result.phase_space_emission_ps.assign(static_cast<std::size_t>(n_rows), 0.0);

  // Count, scan, fill: where a list is wanted its place is known, and refused if it cannot fit,
  // before work starts. Rates alone need no list, and are counted as they are summed.
  const bool list_all =
      problem_->strategy == Strategy::kListHost || problem_->strategy == Strategy::kListDevice;
  const bool count_first = keep_processes || list_all;
  std::vector<std::int64_t> all(static_cast<std::size_t>(n_rows));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  constexpr std::int64_t kChunk = 64;
  std::vector<std::int64_t> counts;
  if (!count_first) counts.assign(static_cast<std::size_t>(2 * n_rows), 0);
  for (std::int64_t first = 0; count_first && first < n_rows; first += kChunk * 4) {
    progress.report("enumerate 3ph", first, n_rows);
    const auto part =
        count({all.begin() + first, all.begin() + std::min(n_rows, first + kChunk * 4)});
    counts.insert(counts.end(), part.begin(), part.end());
  }
  first_process_.assign(static_cast<std::size_t>(n_rows) + 1, 0);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    first_process_[row + 1] = first_process_[row] + counts[2 * row] + counts[2 * row + 1];
  }
  const std::int64_t n_processes = first_process_.back();
  const std::int64_t need =
      (keep_processes ? n_processes * static_cast<std::int64_t>(sizeof(Process3)) : 0) +
      (list_all ? n_processes * static_cast<std::int64_t>(sizeof(Accepted)) : 0);
  const std::int64_t have = problem_->memory_budget_bytes > 0
                                ? problem_->memory_budget_bytes
                                : free_memory_bytes({.backend = Backend::kCpu}) / 10 * 8;
  if (need > have)
    throw OutOfMemory(
        "the list of " + std::to_string(n_processes) + " three-phonon processes needs " +
        std::to_string(need >> 20) + " MiB and " + std::to_string(have >> 20) +
        " MiB may be used; use a coarser mesh, a smaller 'scalebroad', 'convergence' = .false., or "
        "raise 'memory_budget_mib'");
  kept_.clear();
  if (keep_processes) kept_.resize(static_cast<std::size_t>(n_processes));
  std::vector<std::vector<Accepted>> lists;
  if (list_all) {
    lists.resize(static_cast<std::size_t>(n_rows));
#pragma omp parallel for schedule(dynamic, 4)
    for (std::int64_t row = 0; row < n_rows; ++row) {
      lists[row].reserve(static_cast<std::size_t>(first_process_[row + 1] - first_process_[row]));
      enumerate(mode_of_row(row), lists[row]);
    }
  }
  result.seconds_enumerate = seconds_since(start);

  const auto middle = Clock::now();
  std::vector<Workspace> workspaces(static_cast<std::size_t>(omp_get_max_threads()));
  for (std::int64_t first = 0; first < n_rows; first += kChunk) {
    progress.report("scattering 3ph", first, n_rows);
    const std::int64_t last = std::min(n_rows, first + kChunk);
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t row = first; row < last; ++row) {
      Workspace& work = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
      std::vector<Accepted> mine;
      const std::vector<Accepted>* list = nullptr;
      if (list_all) {
        list = &lists[row];
      } else if (problem_->strategy == Strategy::kModeByMode) {
        enumerate(mode_of_row(row), mine);
        list = &mine;
      }
      run_row(row, work, list, keep_processes ? kept_.data() + first_process_[row] : nullptr,
              &counts[2 * row], result);
    }
  }
  for (std::int64_t row = 0; row < n_rows; ++row) {
    result.n_absorption += counts[2 * row];
    result.n_emission += counts[2 * row + 1];
  }
  progress.report("scattering 3ph", n_rows, n_rows);
  result.seconds_evaluate = seconds_since(middle);
  return result;
}

const OccupationTables& CpuThreePhononKernels::tables_at(double temperature_k) {
  if (tables_.temperature_k != temperature_k) {
    tables_ = {temperature_k, std::vector<double>(omega_.size(), 0.0),
               std::vector<double>(omega_.size(), 0.0)};
    for (std::size_t mode = 0; mode < omega_.size(); ++mode) {
      if (omega_[mode] >= ProcessRules3::kInactive) continue;
      tables_.n[mode] = bose_einstein(omega_[mode], temperature_k, problem_->hbar_over_kb_k_ps);
      tables_.s[mode] = std::sqrt(tables_.n[mode] * (tables_.n[mode] + 1.0));
    }
  }
  return tables_;
}

std::vector<double> CpuThreePhononKernels::apply_collision(double temperature_k,
                                                           OccupationForm form,
                                                           const std::vector<double>& f) {
  const std::int64_t n_rows = problem_->n_rows();
  const OccupationTables& tables = tables_at(temperature_k);
  const CollisionOccupations3 occupations{form == OccupationForm::kSymmetric, tables.n.data(),
                                          tables.s.data()};
  std::vector<double> out(static_cast<std::size_t>(n_rows * 3), 0.0);
#pragma omp parallel for schedule(dynamic, 8)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::int64_t m0 = mode_of_row(row);
    double sum[3] = {0.0, 0.0, 0.0};
    for (std::int64_t i = first_process_[row]; i < first_process_[row + 1]; ++i) {
      const Process3& process = kept_[static_cast<std::size_t>(i)];
      const std::int64_t m1 = process.partner();
      const std::int64_t m2 = process.second;
      const CollisionTerm3 term = collision_term_3ph(occupations, m0, process);
      for (int d = 0; d < 3; ++d)
        sum[d] += term.gamma_per_ps * (f[m2 * 3 + d] + term.sign * f[m1 * 3 + d]);
    }
    std::copy(sum, sum + 3, &out[static_cast<std::size_t>(row * 3)]);
  }
  return out;
}

std::vector<double> CpuThreePhononKernels::row_rates(double temperature_k, OccupationForm form) {
  const std::int64_t n_rows = problem_->n_rows();
  const OccupationTables& tables = tables_at(temperature_k);
  const CollisionOccupations3 occupations{form == OccupationForm::kSymmetric, tables.n.data(),
                                          tables.s.data()};
  std::vector<double> out(static_cast<std::size_t>(n_rows), 0.0);
#pragma omp parallel for schedule(dynamic, 8)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::int64_t m0 = mode_of_row(row);
    double sum = 0.0;
    for (std::int64_t i = first_process_[row]; i < first_process_[row + 1]; ++i) {
      const Process3& process = kept_[static_cast<std::size_t>(i)];
      sum += collision_term_3ph(occupations, m0, process).gamma_per_ps;
    }
    out[row] = sum;
  }
  return out;
}

}  // namespace

std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels(const Device& device) {
  switch (device.backend) {
    case Backend::kCpu:
      return std::make_unique<CpuThreePhononKernels>();
    case Backend::kCuda:
      return make_three_phonon_kernels_cuda(device);
  }
  throw BackendAbsent("unknown back end");
}

}  // namespace quasi::thermal
