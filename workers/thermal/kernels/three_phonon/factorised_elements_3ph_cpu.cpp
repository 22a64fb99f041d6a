#include "workers/thermal/kernels/three_phonon/factorised_elements_3ph_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <type_traits>

namespace quasi::thermal {
namespace {

/// Row-major C = A·B of complex matrices [m][k] and [k][n].
void multiply(int m, int n, int k, const Complex64* a, const Complex64* b, Complex64* c) {
  const Complex64 one = 1.0;
  const Complex64 zero = 0.0;
  cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, &one, a, k, b, n, &zero, c, n);
}

void multiply(int m, int n, int k, const Complex32* a, const Complex32* b, Complex32* c) {
  const Complex32 one = 1.0f;
  const Complex32 zero = 0.0f;
  cblas_cgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, &one, a, k, b, n, &zero, c, n);
}

const Complex<double>* plain(const std::vector<Complex64>& values) {
  return reinterpret_cast<const Complex<double>*>(values.data());
}

/// Computes product[b] = Σ_g a[b][g] conj(e2[g]).
template <typename Real>
void contract_last_slot(int nb, const std::complex<Real>* a, const std::complex<Real>* e2,
                        std::complex<Real>* product) {
  for (int b = 0; b < nb; ++b) {
    Real re = 0;
    Real im = 0;
    for (int g = 0; g < nb; ++g) {
      const std::complex<Real> value = a[b * nb + g];
      re += value.real() * e2[g].real() + value.imag() * e2[g].imag();
      im += value.imag() * e2[g].real() - value.real() * e2[g].imag();
    }
    product[b] = {re, im};
  }
}

/// Computes |Σ_b e1[b] product[b]|².
template <typename Real>
Real squared_sum(int nb, const std::complex<Real>* e1, const std::complex<Real>* product) {
  Real re = 0;
  Real im = 0;
  for (int b = 0; b < nb; ++b) {
    re += e1[b].real() * product[b].real() - e1[b].imag() * product[b].imag();
    im += e1[b].real() * product[b].imag() + e1[b].imag() * product[b].real();
  }
  return re * re + im * im;
}

}  // namespace

FactorisedElements3phCpu::FactorisedElements3phCpu(const ThreePhononProblem& problem)
    : problem_(&problem),
      nb_(problem.n_branches()),
      transform_(make_fc3_transform(problem.fc3, problem.mass_amu, problem.mesh)) {
  // Rows are the parallel work, and bits must not depend on the threads of BLAS.
  openblas_set_num_threads(1);
  const std::vector<Complex64>& e = problem.modes->eigenvector;
  reversed_.resize(e.size());
  for (std::int64_t q = 0; q < problem.mesh.size(); ++q) {
    const std::int64_t minus = problem.mesh.minus(q);
    for (int i = 0; i < nb_ * nb_; ++i)
      reversed_[q * nb_ * nb_ + i] = std::conj(e[minus * nb_ * nb_ + i]);
  }
  for (int d = 0; d < 3; ++d) roots_[d] = unit_roots(problem.mesh.n[d]);
  if (problem.precision == Precision::kMixed) {
    e32_.assign(e.begin(), e.end());
    reversed32_.assign(reversed_.begin(), reversed_.end());
    phase32_.assign(transform_.phase[2].begin(), transform_.phase[2].end());
  }
  constexpr std::int64_t kGroupBytes = 1 << 20;  // of A_λ(p): they stay in the cache of a core
  const std::int64_t plane_bytes =
      static_cast<std::int64_t>(problem.mesh.n[0]) * problem.mesh.n[1] * nb_ * nb_ * 16;
  planes_at_once_ =
      static_cast<int>(std::clamp<std::int64_t>(kGroupBytes / plane_bytes, 1, problem.mesh.n[2]));
}

template <>
FactorisedElements3phCpu::LastFactors<double> FactorisedElements3phCpu::factors() const {
  return {problem_->modes->eigenvector.data(), reversed_.data(), transform_.phase[2].data()};
}

template <>
FactorisedElements3phCpu::LastFactors<float> FactorisedElements3phCpu::factors() const {
  return {e32_.data(), reversed32_.data(), phase32_.data()};
}

std::vector<Complex64> FactorisedElements3phCpu::third_cell_phases(std::int64_t mode0) const {
  const Fc3Transform& t = transform_;
  int c[3];
  problem_->mesh.coordinates(mode0 / nb_, c);
  const PhaseTable phase{{plain(roots_[0]), plain(roots_[1]), plain(roots_[2])},
                         {problem_->mesh.n[0], problem_->mesh.n[1], problem_->mesh.n[2]}};
  std::vector<Complex64> cell_phase(t.third_cells.size());
  for (std::size_t i = 0; i < cell_phase.size(); ++i) {
    const Complex<double> x = phase(c, t.third_cells[i].data());
    cell_phase[i] = {x.re, -x.im};
  }
  return cell_phase;
}

void FactorisedElements3phCpu::contract_first_slot(std::int64_t mode0, Arrays& arrays) const {
  const Fc3Transform& t = transform_;
  const Complex64* e0 = &problem_->modes->eigenvector[static_cast<std::size_t>(mode0 * nb_)];
  const std::vector<Complex64> cell_phase = third_cell_phases(mode0);
  arrays.box.assign(static_cast<std::size_t>(t.box_size() * nb_ * nb_), 0.0);
  for (std::int64_t block = 0; block < t.n_blocks; ++block) {
    const double* tensor = &t.tensor[static_cast<std::size_t>(block * 27)];
    Complex64* target = &arrays.box[static_cast<std::size_t>(t.target[block])];
    const Complex64 x[3] = {e0[t.first_component[block]] * cell_phase[t.third_cell[block]],
                            e0[t.first_component[block] + 1] * cell_phase[t.third_cell[block]],
                            e0[t.first_component[block] + 2] * cell_phase[t.third_cell[block]]};
    for (int b = 0; b < 3; ++b)
      for (int g = 0; g < 3; ++g)
        target[b * nb_ + g] +=
            x[0] * tensor[b * 3 + g] + x[1] * tensor[9 + b * 3 + g] + x[2] * tensor[18 + b * 3 + g];
  }
}

void FactorisedElements3phCpu::sum_first_two_axes(Arrays& arrays) const {
  const Fc3Transform& t = transform_;
  const QMesh& mesh = problem_->mesh;
  const std::int64_t x = nb_ * nb_;
  arrays.stage1.resize(static_cast<std::size_t>(t.extent[2] * t.extent[1] * mesh.n[0] * x));
  arrays.stage2.resize(static_cast<std::size_t>(t.extent[2] * mesh.n[1] * mesh.n[0] * x));
  for (std::int64_t cb = 0; cb < t.extent[2] * t.extent[1]; ++cb)
    multiply(mesh.n[0], static_cast<int>(x), t.extent[0], t.phase[0].data(),
             &arrays.box[cb * t.extent[0] * x], &arrays.stage1[cb * mesh.n[0] * x]);
  for (std::int64_t c = 0; c < t.extent[2]; ++c)
    multiply(mesh.n[1], static_cast<int>(mesh.n[0] * x), t.extent[1], t.phase[1].data(),
             &arrays.stage1[c * t.extent[1] * mesh.n[0] * x],
             &arrays.stage2[c * mesh.n[1] * mesh.n[0] * x]);
  if (problem_->precision == Precision::kMixed)
    arrays.fp32.stage2.assign(arrays.stage2.begin(), arrays.stage2.end());
}

void FactorisedElements3phCpu::sum_last_axis(int k, int group, Arrays& arrays) const {
  if (problem_->precision == Precision::kMixed)
    sum_last_axis<float>(k, group, arrays.fp32.stage2.data(), arrays.fp32);
  else
    sum_last_axis<double>(k, group, arrays.stage2.data(), arrays.fp64);
}

template <typename Real>
void FactorisedElements3phCpu::sum_last_axis(int k, int group, const std::complex<Real>* stage2,
                                             LastAxis<Real>& last) const {
  const std::int64_t plane_size =
      static_cast<std::int64_t>(problem_->mesh.n[0]) * problem_->mesh.n[1] * nb_ * nb_;
  last.planes.resize(static_cast<std::size_t>(planes_at_once_ * plane_size));
  multiply(group, static_cast<int>(plane_size), transform_.extent[2],
           factors<Real>().phase + k * transform_.extent[2], stage2, last.planes.data());
}

void FactorisedElements3phCpu::square_elements(std::int64_t p, std::int64_t local,
                                               Arrays& arrays) const {
  if (problem_->precision == Precision::kMixed)
    square_elements<float>(p, local, arrays.fp32, arrays);
  else
    square_elements<double>(p, local, arrays.fp64, arrays);
}

template <typename Real>
void FactorisedElements3phCpu::square_elements(std::int64_t p, std::int64_t local,
                                               LastAxis<Real>& last, Arrays& arrays) const {
  const LastFactors<Real> factor = factors<Real>();
  const std::complex<Real>* a = &last.planes[static_cast<std::size_t>(local * nb_ * nb_)];
  last.products.resize(static_cast<std::size_t>(nb_ * nb_));
  last.ready.assign(static_cast<std::size_t>(nb_), 0);
  arrays.squared.clear();
  for (const Found3& found : arrays.found) {
    const Process3& process = found.process;
    const auto s2 = static_cast<int>(process.second % nb_);
    std::complex<Real>* product = &last.products[static_cast<std::size_t>(s2 * nb_)];
    if (!last.ready[s2]) {
      last.ready[s2] = 1;
      contract_last_slot(nb_, a, factor.e + static_cast<std::int64_t>(process.second) * nb_,
                         product);
    }
    // At −p the first partner enters conjugated, and conj(e(−p)) is tabulated at p.
    const std::complex<Real>* e1 =
        process.emission() ? factor.reversed + (p * nb_ + process.partner() % nb_) * nb_
                           : factor.e + static_cast<std::int64_t>(process.partner()) * nb_;
    arrays.squared.push_back(static_cast<double>(squared_sum(nb_, e1, product)));
  }
}

}  // namespace quasi::thermal
