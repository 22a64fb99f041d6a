#include "workers/gw/kernels/pair_products/pair_products_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

namespace quasi::gw {

void PairProducts::set_box(std::array<int, 3> box) {
  if (box != box_) to_real_ = FftPlan(box, FftPlan::Sign::kPlus);
  box_ = box;
  n_r_ = std::int64_t{1} * box[0] * box[1] * box[2];
  for (Bands& side : bands_) side = Bands();
  sphere_.clear();
}

void PairProducts::load_bands(Side side, View<const Cplx, 2> coefficients,
                              View<const std::int32_t, 1> box_index) {
  Bands bands;
  bands.n_bands = coefficients.extent[0];
  bands.n_pw = coefficients.extent[1];
  bands.coefficients.assign(coefficients.data, coefficients.data + coefficients.size());
  bands.box_index.assign(box_index.data, box_index.data + box_index.extent[0]);
  bands.real = std::all_of(bands.coefficients.begin(), bands.coefficients.end(),
                           [](const Cplx& c) { return c.imag() == 0.0; });
  bands_[static_cast<int>(side)] = std::move(bands);
}

void PairProducts::load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) {
  sphere_.assign(box_index.data, box_index.data + box_index.extent[0]);
  to_sphere_ = SphereTransform(box_, sphere_);
  factor_.assign(sphere_.size(), Cplx{1.0, 0.0});
  std::copy(factor.data, factor.data + factor.extent[0], factor_.begin());
  real_factor_ =
      std::all_of(factor_.begin(), factor_.end(), [](const Cplx& c) { return c.imag() == 0.0; });
}

bool PairProducts::convolution_is_cheaper(std::int64_t n_right) const {
  // Flops of a matrix product against those of an FFT and its product on the box, and the gather of
  // the convolution matrix spread over the bands that use it.
  constexpr double kProductOverTransformSpeed = 4.0;
  constexpr double kGatherFlops = 40.0;
  const double matrix = static_cast<double>(bands_[1].n_pw) * static_cast<double>(sphere_.size());
  const double n = static_cast<double>(n_r_);
  const double transform = (5.0 * std::log2(n) + 8.0) * n * kProductOverTransformSpeed;
  return matrix * (8.0 + kGatherFlops / static_cast<double>(n_right)) < transform;
}

void PairProducts::run(BandRange left, BandRange right, Cplx* products) {
  if (convolution_is_cheaper(right.size()))
    by_convolution(left, right, products);
  else
    by_transform(left, right, products);
}

void PairProducts::make_waves(Bands& bands) const {
  if (bands.waves.size() > 0) return;
  bands.waves = FftArray(bands.n_bands * stride());
#pragma omp parallel for schedule(static)
  for (std::int64_t n = 0; n < bands.n_bands; ++n) {
    Cplx* u = bands.waves.data() + n * stride();
    std::fill(u, u + stride(), Cplx{});
    const Cplx* c = bands.coefficients.data() + n * bands.n_pw;
    for (std::int64_t g = 0; g < bands.n_pw; ++g)
      u[bands.box_index[static_cast<std::size_t>(g)]] = c[g];
    to_real_.run(u);
  }
}

void PairProducts::by_transform(BandRange left, BandRange right, Cplx* products) {
  for (Bands& side : bands_) make_waves(side);
  const double scale = 1.0 / static_cast<double>(n_r_);
  const std::int64_t n_right = right.size(), n_g = n_sphere();
#pragma omp parallel
  {
    FftArray work(stride());
    Cplx* f = work.data();
#pragma omp for schedule(static) collapse(2)
    for (std::int64_t l = left.begin; l < left.end; ++l)
      for (std::int64_t n = right.begin; n < right.end; ++n) {
        const Cplx* ul = bands_[0].waves.data() + l * stride();
        const Cplx* un = bands_[1].waves.data() + n * stride();
        for (std::int64_t r = 0; r < n_r_; ++r)
          f[r] = {ul[r].real() * un[r].real() + ul[r].imag() * un[r].imag(),
                  ul[r].real() * un[r].imag() - ul[r].imag() * un[r].real()};
        to_sphere_.run(f);
        Cplx* m = products + ((l - left.begin) * n_right + (n - right.begin)) * n_g;
        for (std::int64_t g = 0; g < n_g; ++g)
          m[g] = scale * factor_[static_cast<std::size_t>(g)] *
                 f[sphere_[static_cast<std::size_t>(g)]];
      }
  }
}

void PairProducts::by_convolution(BandRange left, BandRange right, Cplx* products) const {
  const Bands& l_side = bands_[0];
  const Bands& r_side = bands_[1];
  const std::int64_t n_g = n_sphere(), n_pw = r_side.n_pw, n_right = right.size();
  // The sum G' + G stays within the box without reaching the waves again from the other side,
  // because the box holds products on the whole sphere; so box positions add, each axis modulo its
  // edge.
  const auto split = [&](std::int32_t at) {
    return std::array<int, 3>{at / (box_[1] * box_[2]), at / box_[2] % box_[1], at % box_[2]};
  };
  std::vector<Cplx> in_box(static_cast<std::size_t>(n_r_));
  std::vector<Cplx> matrix(static_cast<std::size_t>(n_g * n_pw));
  std::vector<std::array<int, 3>> waves(static_cast<std::size_t>(n_pw));
  for (std::size_t p = 0; p < waves.size(); ++p) waves[p] = split(r_side.box_index[p]);
  const Cplx one{1.0, 0.0}, zero{};
  for (std::int64_t l = left.begin; l < left.end; ++l) {
    std::fill(in_box.begin(), in_box.end(), Cplx{});
    for (std::int64_t p = 0; p < l_side.n_pw; ++p)
      in_box[static_cast<std::size_t>(l_side.box_index[static_cast<std::size_t>(p)])] =
          std::conj(l_side.coefficients[static_cast<std::size_t>(l * l_side.n_pw + p)]);
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < n_g; ++g) {
      const std::array<int, 3> shift = split(sphere_[static_cast<std::size_t>(g)]);
      const Cplx factor = factor_[static_cast<std::size_t>(g)];
      Cplx* row = matrix.data() + g * n_pw;
      for (std::int64_t p = 0; p < n_pw; ++p) {
        std::array<int, 3> at = waves[static_cast<std::size_t>(p)];
        for (std::size_t i = 0; i < 3; ++i) {
          at[i] += shift[i];
          if (at[i] >= box_[i]) at[i] -= box_[i];
        }
        row[p] =
            factor * in_box[static_cast<std::size_t>((at[0] * box_[1] + at[1]) * box_[2] + at[2])];
      }
    }
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(n_right),
                static_cast<int>(n_g), static_cast<int>(n_pw), &one,
                r_side.coefficients.data() + right.begin * n_pw, static_cast<int>(n_pw),
                matrix.data(), static_cast<int>(n_pw), &zero,
                products + (l - left.begin) * n_right * n_g, static_cast<int>(n_g));
  }
}

}  // namespace quasi::gw
