#include "workers/gw/kernels/gw_kernels.hpp"

#include <array>
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

void warm_up(GwKernels& kernels) {
  constexpr std::int64_t kBands = 4, kEdge = 8, kPlaneWaves = 27;
  const std::array<int, 3> box{kEdge, kEdge, kEdge};
  std::vector<std::int32_t> index;
  for (std::int32_t i = 0; i < 3; ++i)
    for (std::int32_t j = 0; j < 3; ++j)
      for (std::int32_t k = 0; k < 3; ++k) index.push_back((i * kEdge + j) * kEdge + k);
  const View<const std::int32_t, 1> sphere{index.data(), {kPlaneWaves}};
  const std::vector<double> v(kPlaneWaves, 1.0), weight(kBands * kBands, -1e-3), none(kBands, 0.0),
      x(kBands * kBands, -2.0);
  for (const double imaginary : {0.0, 0.5}) {  // in real arithmetic and in complex
    const std::vector<Cplx> waves(kBands * kPlaneWaves, Cplx{0.1, imaginary});
    kernels.set_box(box);
    kernels.load_sphere(sphere, {});
    for (const Side side : {Side::kLeft, Side::kRight})
      kernels.load_bands(side, {waves.data(), {kBands, kPlaneWaves}}, sphere);
    kernels.start_chi(kPlaneWaves);
    kernels.add_pairs_to_chi({0, kBands}, {0, kBands}, {weight.data(), {kBands, kBands}}, {}, {});
    const auto chi = kernels.take_chi();
    chi->add(*chi);
    std::vector<Cplx> matrix(kPlaneWaves * kPlaneWaves), product(kBands * kBands);
    kernels.invert_dielectric(*chi, 0, {.coulomb = {v.data(), {kPlaneWaves}}},
                              {matrix.data(), {kPlaneWaves, kPlaneWaves}});
    kernels.multiply_transposed({waves.data(), {kBands, kPlaneWaves}},
                                {waves.data(), {kBands, kPlaneWaves}},
                                {product.data(), {kBands, kBands}});
    kernels.pair_products({0, kBands}, {0, kBands});
    std::vector<double> norms(kBands * kBands);
    kernels.weighted_norms({v.data(), {kPlaneWaves}}, {norms.data(), {kBands, kBands}});
    const std::vector<double> poles(matrix.size(), 1.0);
    kernels.load_plasmon_pole(
        {{matrix.data(), {kPlaneWaves, kPlaneWaves}}, {poles.data(), {kPlaneWaves, kPlaneWaves}}},
        {});
    std::vector<Cplx> total(kBands), sx(kBands), slope(kBands);
    kernels.sigma_diagonal_slope({x.data(), {kBands, kBands}}, {none.data(), {kBands}}, 1.0,
                                 {total.data(), {kBands}}, {sx.data(), {kBands}},
                                 {slope.data(), {kBands}});
  }
}

}  // namespace quasi::gw
