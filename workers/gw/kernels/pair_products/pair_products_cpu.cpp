#include "workers/gw/kernels/pair_products/pair_products_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "workers/backend/team/blas_threads.hpp"

namespace quasi::gw {
namespace {

const CpuBands& bands_of(const BandSelection& selection) {
  return dynamic_cast<const CpuBands&>(selection.bands);
}

bool all_real(const std::vector<Cplx>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Cplx& value) { return value.imag() == 0.0; });
}

std::int64_t box_size(const FftBox& box) { return std::int64_t{1} * box[0] * box[1] * box[2]; }

/// Returns a* b by real numbers, without the test for infinities of the operator.
Cplx conjugate_product(const Cplx& a, const Cplx& b) {
  return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}

/// The convolution matrix of one left band: row G holds c*_l(G'+G) times the factor of G, for each
/// component of the band.
///
/// The box holds products on the whole sphere, so a sum G' + G never wraps around onto another
/// plane wave. Box positions therefore add, each axis modulo its edge.
class ConvolutionMatrix {
 public:
  ConvolutionMatrix(const CpuBands& left, const CpuBands& right, const CpuSphere& sphere)
      : left_(left),
        sphere_(sphere),
        box_(sphere.box),
        boxed_wave_(static_cast<std::size_t>(box_size(box_))),
        matrix_(static_cast<std::size_t>(sphere.n_g() * right.n_spinor * right.n_pw)) {
    for (const std::int32_t at : right.box_index) waves_.push_back(split(at));
  }
  /// Returns the matrix of left band l, [n_g][n_spinor][n_pw].
  const Cplx* matrix_of_band(std::int64_t l) {
    for (std::int64_t component = 0; component < left_.n_spinor; ++component)
      fill_component(l, component);
    return matrix_.data();
  }

 private:
  void fill_component(std::int64_t l, std::int64_t component) {
    const auto n_pw = static_cast<std::int64_t>(waves_.size());
    const std::int64_t of_state = l * left_.n_spinor + component;
    std::fill(boxed_wave_.begin(), boxed_wave_.end(), Cplx{});
    for (std::int64_t p = 0; p < left_.n_pw; ++p)
      boxed_wave_[static_cast<std::size_t>(left_.box_index[static_cast<std::size_t>(p)])] =
          std::conj(left_.coefficients[static_cast<std::size_t>(of_state * left_.n_pw + p)]);
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < sphere_.n_g(); ++g) {
      const std::array<int, 3> shift = split(sphere_.box_index[static_cast<std::size_t>(g)]);
      const Cplx factor = sphere_.factor[static_cast<std::size_t>(g)];
      Cplx* row = matrix_.data() + (g * left_.n_spinor + component) * n_pw;
      for (std::int64_t p = 0; p < n_pw; ++p) {
        std::array<int, 3> at = waves_[static_cast<std::size_t>(p)];
        for (std::size_t i = 0; i < 3; ++i) {
          at[i] += shift[i];
          if (at[i] >= box_[i]) at[i] -= box_[i];
        }
        row[p] = factor *
                 boxed_wave_[static_cast<std::size_t>((at[0] * box_[1] + at[1]) * box_[2] + at[2])];
      }
    }
  }
  std::array<int, 3> split(std::int32_t at) const {
    return {at / (box_[1] * box_[2]), at / box_[2] % box_[1], at % box_[2]};
  }
  const CpuBands& left_;
  const CpuSphere& sphere_;
  FftBox box_;
  std::vector<Cplx> boxed_wave_, matrix_;
  std::vector<std::array<int, 3>> waves_;
};

void fill_by_convolution(const BandSelection& left, const BandSelection& right,
                         const CpuSphere& sphere, Cplx* products) {
  const CpuBands& l_side = bands_of(left);
  const CpuBands& r_side = bands_of(right);
  const std::int64_t n_g = sphere.n_g(), n_pw = r_side.n_pw * r_side.n_spinor,
                     n_right = right.range.size();
  ConvolutionMatrix matrix(l_side, r_side, sphere);
  const Cplx one{1.0, 0.0}, zero{};
  const ThreadedBlas threads(8.0 * static_cast<double>(n_right * n_g) * static_cast<double>(n_pw));
  for (std::int64_t l = left.range.begin; l < left.range.end; ++l)
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(n_right),
                static_cast<int>(n_g), static_cast<int>(n_pw), &one,
                r_side.coefficients.data() + right.range.begin * n_pw, static_cast<int>(n_pw),
                matrix.matrix_of_band(l), static_cast<int>(n_pw), &zero,
                products + (l - left.range.begin) * n_right * n_g, static_cast<int>(n_g));
}

}  // namespace

bool convolution_is_cheaper(const PairSizes& sizes, double n_right) {
  constexpr double kProductOverTransformSpeed = 4.0;
  constexpr double kGatherFlops = 40.0;
  const double matrix = sizes.n_row * sizes.n_g;
  const double transform =
      (5.0 * std::log2(sizes.n_r) + 8.0) * sizes.n_r * kProductOverTransformSpeed;
  return matrix * (8.0 + kGatherFlops / n_right) < transform;
}

std::unique_ptr<const LoadedBands> CpuPairProductKernels::load_bands(
    const FftBox& box, View<const Cplx, 2> coefficients, View<const std::int32_t, 1> box_index) {
  auto bands = std::make_unique<CpuBands>();
  bands->box = box;
  bands->n_bands = coefficients.extent[0];
  bands->n_pw = box_index.extent[0];
  bands->n_spinor = coefficients.extent[1] / std::max<std::int64_t>(1, bands->n_pw);
  bands->coefficients.assign(coefficients.data, coefficients.data + coefficients.size());
  bands->box_index.assign(box_index.data, box_index.data + box_index.extent[0]);
  bands->real = all_real(bands->coefficients);
  return bands;
}

std::unique_ptr<const LoadedSphere> CpuPairProductKernels::load_sphere(
    const FftBox& box, View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) {
  auto sphere = std::make_unique<CpuSphere>();
  sphere->box = box;
  sphere->box_index.assign(box_index.data, box_index.data + box_index.extent[0]);
  sphere->to_sphere = SphereTransform(box, sphere->box_index);
  sphere->factor.assign(sphere->box_index.size(), Cplx{1.0, 0.0});
  std::copy(factor.data, factor.data + factor.extent[0], sphere->factor.begin());
  sphere->real = all_real(sphere->factor);
  return sphere;
}

void CpuPairProductKernels::fill(const BandSelection& left, const BandSelection& right,
                                 const LoadedSphere& sphere, PairBlock& block) {
  const auto& kept = dynamic_cast<const CpuSphere&>(sphere);
  if (bands_of(left).box != kept.box || bands_of(right).box != kept.box)
    throw std::logic_error("bands and sphere of a pair product are on different boxes");
  if (bands_of(left).n_spinor != bands_of(right).n_spinor)
    throw std::logic_error("a pair product of a spinor with a state of one component");
  Cplx* products =
      dynamic_cast<CpuPairBlock&>(block).resize(left.range.size(), right.range.size(), kept.n_g());
  const CpuBands& bands = bands_of(right);
  const PairSizes sizes{.n_row = static_cast<double>(bands.n_pw * bands.n_spinor),
                        .n_g = static_cast<double>(kept.n_g()),
                        .n_r = static_cast<double>(box_size(kept.box))};
  if (convolution_is_cheaper(sizes, static_cast<double>(right.range.size()))) {
    fill_by_convolution(left, right, kept, products);
  } else {
    use_box(kept.box);
    fill_by_transform(left, right, kept, products);
  }
}

void CpuPairProductKernels::use_box(const FftBox& box) {
  if (box == box_) return;
  to_real_ = FftPlan(box, FftPlan::Sign::kPlus);
  box_ = box;
  n_r_ = box_size(box);
}

void CpuPairProductKernels::make_waves(const CpuBands& bands) const {
  if (bands.waves.size() > 0) return;
  const std::int64_t n_waves = bands.n_bands * bands.n_spinor;
  bands.waves = FftArray(n_waves * stride());
#pragma omp parallel for schedule(static)
  for (std::int64_t n = 0; n < n_waves; ++n) {
    Cplx* u = bands.waves.data() + n * stride();
    std::fill(u, u + stride(), Cplx{});
    const Cplx* c = bands.coefficients.data() + n * bands.n_pw;
    for (std::int64_t g = 0; g < bands.n_pw; ++g)
      u[bands.box_index[static_cast<std::size_t>(g)]] = c[g];
    to_real_.run(u);
  }
}

void CpuPairProductKernels::fill_by_transform(const BandSelection& left, const BandSelection& right,
                                              const CpuSphere& sphere, Cplx* products) const {
  const CpuBands& l_side = bands_of(left);
  const CpuBands& r_side = bands_of(right);
  make_waves(l_side);
  make_waves(r_side);
  const double scale = 1.0 / static_cast<double>(n_r_);
  const std::int64_t n_right = right.range.size(), n_g = sphere.n_g(), n_spinor = r_side.n_spinor;
#pragma omp parallel
  {
    FftArray work(stride());
    Cplx* f = work.data();
#pragma omp for schedule(static) collapse(2)
    for (std::int64_t l = left.range.begin; l < left.range.end; ++l)
      for (std::int64_t n = right.range.begin; n < right.range.end; ++n) {
        const Cplx* ul = l_side.waves.data() + l * n_spinor * stride();
        const Cplx* un = r_side.waves.data() + n * n_spinor * stride();
        for (std::int64_t r = 0; r < n_r_; ++r) f[r] = conjugate_product(ul[r], un[r]);
        if (n_spinor == 2)
          for (std::int64_t r = 0; r < n_r_; ++r)
            f[r] += conjugate_product(ul[stride() + r], un[stride() + r]);
        sphere.to_sphere.run(f);
        Cplx* m = products + ((l - left.range.begin) * n_right + (n - right.range.begin)) * n_g;
        for (std::int64_t g = 0; g < n_g; ++g)
          m[g] = scale * sphere.factor[static_cast<std::size_t>(g)] *
                 f[sphere.box_index[static_cast<std::size_t>(g)]];
      }
  }
}

void CpuPairProductKernels::add_density(const BandSelection& bands, const LoadedSphere& sphere,
                                        double weight, View<Cplx, 1> sum) {
  CpuPairBlock block;
  for (std::int64_t n = bands.range.begin; n < bands.range.end; ++n) {
    fill({bands.bands, {n, n + 1}}, {bands.bands, {n, n + 1}}, sphere, block);
    const View<const Cplx, 3> m = block.view();
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < sum.size(); ++g) sum(g) += weight * std::conj(m.data[g]);
  }
}

}  // namespace quasi::gw
