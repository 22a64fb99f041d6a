#include <cblas.h>

#include <cstddef>

#include "workers/thermal/kernels/renormalisation/static_bubble_kernels.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_sums.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;
using Matrix = std::vector<Complex64>;

constexpr Complex64 kOne = 1.0;
constexpr Complex64 kZero = 0.0;

/// Sums the bubble of one q over all q' of the mesh. An object has work space of its own, so each
/// thread needs its own object.
class BubbleSum {
 public:
  explicit BubbleSum(const StaticBubbleProblem& problem)
      : t_(problem.transform),
        mesh_(problem.mesh),
        phonons_(problem),
        weight_{problem.omega_rad_ps.data(), problem.occupation.data(), problem.inverse_kt_ps},
        nb_(static_cast<std::size_t>(problem.transform.nb)) {
    for (int d = 0; d < 3; ++d) roots_[d] = unit_roots(mesh_.n[d]);
  }

  /// Writes D^B(q), [nb][nb].
  void compute(std::int64_t q, Complex64* matrix) {
    transform_first_cell(q);
    sum_.assign(nb_ * nb_, 0.0);
    const std::size_t cube = nb_ * nb_ * nb_;
    const auto b_extent = static_cast<std::size_t>(t_.extent[1]),
               a_extent = static_cast<std::size_t>(t_.extent[0]);
    plane_.resize(a_extent * b_extent * cube);
    line_.resize(a_extent * cube);
    element_.resize(cube);
    for (int k = 0; k < mesh_.n[2]; ++k) {
      add_up(2, k, box_, plane_);
      for (int j = 0; j < mesh_.n[1]; ++j) {
        add_up(1, j, plane_, line_);
        for (int i = 0; i < mesh_.n[0]; ++i) {
          add_up(0, i, line_, element_);
          add_point(q, mesh_.index(i, j, k));
        }
      }
    }
    // sum_ is [x'][x] of Σ U_x' g U*_x.
    for (std::size_t x = 0; x < nb_; ++x)
      for (std::size_t y = 0; y < nb_; ++y)
        matrix[x * nb_ + y] = -phonons_.scale * sum_[y * nb_ + x];
  }

 private:
  /// Sums Φ/√(mm'm'') e^{−iq·R''} into the box of ΔR = R' − R'',
  /// [c][b][a][3κ'+β][3κ+α][3κ''+γ].
  void transform_first_cell(std::int64_t q) {
    int c[3];
    mesh_.coordinates(q, c);
    box_.assign(static_cast<std::size_t>(t_.box_size()) * nb_ * nb_ * nb_, 0.0);
    for (std::int64_t block = 0; block < t_.n_blocks; ++block) {
      const Index3& cell = t_.third_cells[static_cast<std::size_t>(t_.third_cell[block])];
      Complex64 phase = 1.0;
      for (int d = 0; d < 3; ++d)
        phase *=
            std::conj(roots_[d][QMesh::wrap(c[d] * QMesh::wrap(cell[d], mesh_.n[d]), mesh_.n[d])]);
      const auto target = static_cast<std::size_t>(t_.target[block]);
      const std::size_t third = target % nb_, second = target / nb_ % nb_,
                        place = target / nb_ / nb_;
      const auto first = static_cast<std::size_t>(t_.first_component[block]);
      const double* tensor = &t_.tensor[static_cast<std::size_t>(27 * block)];
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b)
          for (std::size_t g = 0; g < 3; ++g)
            box_[((place * nb_ + second + b) * nb_ + first + a) * nb_ + third + g] +=
                phase * tensor[9 * a + 3 * b + g];
    }
  }

  /// Computes to = Σ_r e^{ip·ΔR} from[r] over the slowest axis of the box that is left.
  void add_up(int axis, int m, const Matrix& from, Matrix& to) const {
    const int extent = t_.extent[axis];
    const Complex64* phase = &t_.phase[axis][static_cast<std::size_t>(m * extent)];
    const int n = static_cast<int>(to.size());
    cblas_zgemv(CblasRowMajor, CblasTrans, extent, n, &kOne, from.data(), n, phase, 1, &kZero,
                to.data(), 1);
  }

  /// Adds the pairs of phonons at p and q + p, of which element_ is Σ_ΔR.
  void add_point(std::int64_t q, std::int64_t p) {
    const auto at1 = static_cast<std::size_t>(p) * nb_,
               at2 = static_cast<std::size_t>(mesh_.add(q, p, 1)) * nb_;
    const Complex<double>* e1 = &phonons_.vectors[at1 * nb_];
    const Complex<double>* e2 = &phonons_.vectors[at2 * nb_];
    const int nb = static_cast<int>(nb_), square = nb * nb;
    half_.resize(element_.size());
    whole_.resize(element_.size());
    weighted_.resize(nb_ * nb_);
    // half[s][x][γ] = Σ_β e1_sβ A[β][x][γ]; whole[s][x][s'] = Σ_γ half[s][x][γ] e2*_s'γ =
    // U_{x,s,s'}.
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, nb, square, nb, &kOne, e1, nb,
                element_.data(), square, &kZero, half_.data(), square);
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasConjTrans, square, nb, nb, &kOne, half_.data(),
                nb, e2, nb, &kZero, whole_.data(), nb);
    for (std::size_t s = 0; s < nb_; ++s) {
      if (phonons_.omega_rad_ps[at1 + s] == 0.0) continue;
      const Complex64* u = &whole_[s * nb_ * nb_];
      for (std::size_t s2 = 0; s2 < nb_; ++s2) {
        const double weight =
            weight_(static_cast<std::int64_t>(at1 + s), static_cast<std::int64_t>(at2 + s2));
        for (std::size_t x = 0; x < nb_; ++x) weighted_[x * nb_ + s2] = weight * u[x * nb_ + s2];
      }
      cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasConjTrans, nb, nb, nb, &kOne, weighted_.data(),
                  nb, u, nb, &kOne, sum_.data(), nb);
    }
  }

  const Fc3Transform& t_;
  const QMesh& mesh_;
  const StaticBubbleProblem& phonons_;
  BubbleWeight weight_;
  std::size_t nb_;
  std::vector<Complex64> roots_[3];
  Matrix box_, plane_, line_, element_;  ///< sums over no, one, two and three axes of the box
  Matrix half_, whole_, weighted_, sum_;
};

/// Points are the parallel work.
class StaticBubbleKernelsCpu : public StaticBubbleKernels {
 public:
  void load(const StaticBubbleProblem& problem) override { problem_ = &problem; }
  std::vector<Complex64> matrices(const std::vector<std::int64_t>& points) override {
    const auto nb = static_cast<std::size_t>(problem_->transform.nb);
    std::vector<Complex64> result(points.size() * nb * nb);
    openblas_set_num_threads(1);
#pragma omp parallel
    {
      BubbleSum sum(*problem_);
#pragma omp for schedule(dynamic)
      for (std::size_t i = 0; i < points.size(); ++i) sum.compute(points[i], &result[i * nb * nb]);
    }
    return result;
  }

 private:
  const StaticBubbleProblem* problem_ = nullptr;
};

}  // namespace

std::unique_ptr<StaticBubbleKernels> make_static_bubble_kernels(const Device& device) {
  if (device.backend == Backend::kCuda) return make_static_bubble_kernels_cuda(device);
  return std::make_unique<StaticBubbleKernelsCpu>();
}

}  // namespace quasi::thermal
