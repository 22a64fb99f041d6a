#include "workers/gw/kernels/gw_kernels.hpp"

#include <cstdint>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi::gw {

std::unique_ptr<GwKernels> make_gw_kernels(const Device& device) {
  switch (device.backend) {
    case Backend::kCpu:
      return make_gw_kernels_cpu(device);
    case Backend::kCuda:
      return make_gw_kernels_cuda(device);
  }
  throw BackendAbsent("unknown back end");
}

namespace {

constexpr std::int64_t kBands = 4, kPlaneWaves = 27;
constexpr int kEdge = 8;

/// Computes χ, ε⁻¹ and a product of matrices of the warm-up. @returns ε⁻¹
std::vector<Cplx> warm_up_screening(GwKernels& kernels, const BandSelection& bands,
                                    const LoadedSphere& sphere, View<const Cplx, 2> waves) {
  const std::vector<double> weight(kBands * kBands, -1e-3), v(kPlaneWaves, 1.0);
  const auto sum = kernels.polarizability().start({.n_static = kPlaneWaves});
  sum->add_pairs({bands, bands, sphere, {weight.data(), {kBands, kBands}}, {}}, {});
  const auto chi = sum->finish();
  chi->add(*chi);
  std::vector<Cplx> matrix(kPlaneWaves * kPlaneWaves), product(kBands * kBands);
  kernels.polarizability().invert_dielectric(*chi, 0, {.coulomb = {v.data(), {kPlaneWaves}}},
                                             {matrix.data(), {kPlaneWaves, kPlaneWaves}});
  kernels.dense().multiply_transposed(waves, waves, {product.data(), {kBands, kBands}});
  return matrix;
}

/// Computes exchange and the plasmon-pole sum of the warm-up.
void warm_up_self_energy(GwKernels& kernels, const BandSelection& bands, const LoadedSphere& sphere,
                         const std::vector<Cplx>& strength) {
  const std::vector<double> v(kPlaneWaves, 1.0), occupation(kBands, 0.0), x(kBands * kBands, -2.0),
      poles(strength.size(), 1.0);
  const auto block = kernels.pair_products().make_block();
  kernels.pair_products().fill(bands, bands, sphere, *block);
  std::vector<double> norms(kBands * kBands);
  block->weighted_norms({v.data(), {kPlaneWaves}}, {norms.data(), {kBands, kBands}});
  const auto model = kernels.pole_sums().load(
      {{strength.data(), {kPlaneWaves, kPlaneWaves}}, {poles.data(), {kPlaneWaves, kPlaneWaves}}},
      {});
  std::vector<Cplx> total(kBands), sx(kBands), slope(kBands);
  model->add_diagonal_slope(
      *block, {{x.data(), {kBands, kBands, 1}}, {occupation.data(), {kBands}}, 1.0},
      {{total.data(), {kBands}}, {sx.data(), {kBands}}, {slope.data(), {kBands}}});
}

}  // namespace

void warm_up(GwKernels& kernels) {
  const FftBox box{kEdge, kEdge, kEdge};
  std::vector<std::int32_t> index;
  for (std::int32_t i = 0; i < 3; ++i)
    for (std::int32_t j = 0; j < 3; ++j)
      for (std::int32_t k = 0; k < 3; ++k) index.push_back((i * kEdge + j) * kEdge + k);
  const View<const std::int32_t, 1> positions{index.data(), {kPlaneWaves}};
  for (const double imaginary : {0.0, 0.5}) {  // in real arithmetic, then in complex arithmetic
    const std::vector<Cplx> waves(kBands * kPlaneWaves, Cplx{0.1, imaginary});
    const View<const Cplx, 2> coefficients{waves.data(), {kBands, kPlaneWaves}};
    const auto sphere = kernels.pair_products().load_sphere(box, positions, {});
    const auto bands = kernels.pair_products().load_bands(box, coefficients, positions);
    const BandSelection all{*bands, {0, kBands}};
    warm_up_self_energy(kernels, all, *sphere,
                        warm_up_screening(kernels, all, *sphere, coefficients));
  }
}

}  // namespace quasi::gw
