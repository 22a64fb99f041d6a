#include "workers/thermal/kernels/three_phonon/derivative/element_gradient_3ph_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

namespace quasi::thermal {
namespace {

/// The shape of C = Aᵀ·B: C [rows][columns], A [terms][rows] and B [terms][columns].
struct ProductShape {
  int rows, columns, terms;
};

/// Computes the row-major C = Aᵀ·B + βC of complex matrices.
void multiply_transposed(const ProductShape& shape, const Complex64* a, const Complex64* b,
                         Complex64 beta, Complex64* c) {
  const Complex64 one = 1.0;
  cblas_zgemm(CblasRowMajor, CblasTrans, CblasNoTrans, shape.rows, shape.columns, shape.terms, &one,
              a, shape.rows, b, shape.columns, &beta, c, shape.columns);
}

}  // namespace

ElementGradient3phCpu::ElementGradient3phCpu(const ThreePhononProblem& problem)
    : problem_(&problem), nb_(problem.n_branches()), elements_(problem) {
  SparseForceConstants ones = problem.fc3;
  std::fill(ones.tensor.begin(), ones.tensor.end(), 1.0);
  const std::vector<double> scaled = mass_scaled_tensors(ones, problem.mass_amu);
  for (std::int64_t block = 0; block < ones.n_blocks(); ++block)
    mass_factor_.push_back(scaled[static_cast<std::size_t>(block * 27)]);
}

void ElementGradient3phCpu::begin(std::int64_t mode0, Arrays& arrays) const {
  elements_.contract_first_slot(mode0, arrays.forward);
  elements_.sum_first_two_axes(arrays.forward);
  arrays.stage2.assign(arrays.forward.stage2.size(), 0.0);
  arrays.stage1.resize(arrays.forward.stage1.size());
  arrays.box.resize(arrays.forward.box.size());
  arrays.product.resize(static_cast<std::size_t>(nb_));
}

void ElementGradient3phCpu::begin_planes(int k, int group, Arrays& arrays) const {
  elements_.sum_last_axis(k, group, arrays.forward);
  arrays.planes.assign(arrays.forward.fp64.planes.size(), 0.0);
}

void ElementGradient3phCpu::add_point(std::int64_t p, std::int64_t local, Arrays& arrays) const {
  const auto at = static_cast<std::size_t>(local * nb_ * nb_);
  const Complex64* a = &arrays.forward.fp64.planes[at];
  Complex64* gradient = &arrays.planes[at];
  const Complex64* eigenvector = problem_->modes->eigenvector.data();
  for (std::size_t i = 0; i < arrays.forward.found.size(); ++i) {
    const Process3& process = arrays.forward.found[i].process;
    const Complex64* e2 = eigenvector + static_cast<std::int64_t>(process.second) * nb_;
    const Complex64* e1 =
        process.emission() ? elements_.reversed_.data() + (p * nb_ + process.partner() % nb_) * nb_
                           : eigenvector + static_cast<std::int64_t>(process.partner()) * nb_;
    Complex64 element = 0.0;
    for (int b = 0; b < nb_; ++b)
      for (int g = 0; g < nb_; ++g) element += e1[b] * a[b * nb_ + g] * std::conj(e2[g]);
    const Complex64 outer = 2.0 * arrays.factor[i] * std::conj(element);
    for (int b = 0; b < nb_; ++b)
      for (int g = 0; g < nb_; ++g) gradient[b * nb_ + g] += outer * e1[b] * std::conj(e2[g]);
  }
}

void ElementGradient3phCpu::end_planes(int k, int group, Arrays& arrays) const {
  const Fc3Transform& t = elements_.transform_;
  const int plane_size = problem_->mesh.n[0] * problem_->mesh.n[1] * nb_ * nb_;
  multiply_transposed({t.extent[2], plane_size, group}, t.phase[2].data() + k * t.extent[2],
                      arrays.planes.data(), 1.0, arrays.stage2.data());
}

void ElementGradient3phCpu::end(std::int64_t mode0, Arrays& arrays,
                                std::vector<double>& gradient) const {
  const Fc3Transform& t = elements_.transform_;
  const QMesh& mesh = problem_->mesh;
  const std::int64_t x = nb_ * nb_;
  for (std::int64_t c = 0; c < t.extent[2]; ++c)
    multiply_transposed({t.extent[1], static_cast<int>(mesh.n[0] * x), mesh.n[1]},
                        t.phase[1].data(), &arrays.stage2[c * mesh.n[1] * mesh.n[0] * x], 0.0,
                        &arrays.stage1[c * t.extent[1] * mesh.n[0] * x]);
  for (std::int64_t cb = 0; cb < t.extent[2] * t.extent[1]; ++cb)
    multiply_transposed({t.extent[0], static_cast<int>(x), mesh.n[0]}, t.phase[0].data(),
                        &arrays.stage1[cb * mesh.n[0] * x], 0.0, &arrays.box[cb * t.extent[0] * x]);
  const std::vector<Complex64> cell_phase = elements_.third_cell_phases(mode0);
  const Complex64* e0 = &problem_->modes->eigenvector[static_cast<std::size_t>(mode0 * nb_)];
  for (std::int64_t block = 0; block < t.n_blocks; ++block) {
    const Complex64* source = &arrays.box[static_cast<std::size_t>(t.target[block])];
    double* target = &gradient[static_cast<std::size_t>(block * 27)];
    for (int i = 0; i < 3; ++i) {
      const Complex64 slot =
          mass_factor_[block] * e0[t.first_component[block] + i] * cell_phase[t.third_cell[block]];
      for (int b = 0; b < 3; ++b)
        for (int g = 0; g < 3; ++g)
          target[(i * 3 + b) * 3 + g] += (slot * source[b * nb_ + g]).real();
    }
  }
}

}  // namespace quasi::thermal
