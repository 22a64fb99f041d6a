#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// Matrix elements of functions of r between states of one k.
namespace quasi::gw {
namespace {

/// M_nm(G) = ⟨n| e^{iGr} |m⟩ for the plane waves `g`, left in the kernels' block.
void products_at_k(const MeanField& field, int k_index, int spin, int begin, int end,
                   BandRange left, BandRange right, const std::vector<IVec3>& g,
                   GwKernels& kernels) {
  IVec3 extent = component_extent(field.waves.waves[static_cast<std::size_t>(k_index)].g);
  const auto box = product_box(extent, extent, component_extent(g));
  kernels.set_box(box);
  const WavesAtPoint waves =
      waves_at(field, field.waves.k[static_cast<std::size_t>(k_index)], spin, begin, end, box);
  load(kernels, Side::kLeft, waves);
  load(kernels, Side::kRight, waves);
  std::vector<std::int32_t> index;
  for (const IVec3& v : g) index.push_back(box_position(v, box));
  kernels.load_sphere(view<const std::int32_t>(index, index.size()), {});
  kernels.pair_products(left, right);
}

}  // namespace

std::vector<Cplx> potential_matrix(const MeanField& field, const PlaneWaveField& potential,
                                   int k_index, int spin, int begin, int end, GwKernels& kernels) {
  const auto n = static_cast<std::int64_t>(end - begin);
  const auto n_g = static_cast<std::int64_t>(potential.header.g.size());
  const auto& v = potential.values[static_cast<std::size_t>(
      std::min<int>(spin, static_cast<int>(potential.values.size()) - 1))];
  std::vector<Cplx> matrix(static_cast<std::size_t>(n * n));
  std::vector<Cplx> m(static_cast<std::size_t>(n * n_g));
  for (std::int64_t l = 0; l < n; ++l) {
    if (l == 0)
      products_at_k(field, k_index, spin, begin, end, {0, 1}, {0, n}, potential.header.g, kernels);
    else
      kernels.pair_products({l, l + 1}, {0, n});
    kernels.read_pair_products(view<Cplx>(m, 1, n, n_g));
    for (std::int64_t j = 0; j < n; ++j) {
      Cplx sum;
      for (std::int64_t g = 0; g < n_g; ++g)
        sum += v[static_cast<std::size_t>(g)] * m[static_cast<std::size_t>(j * n_g + g)];
      matrix[static_cast<std::size_t>(l * n + j)] = sum;
    }
  }
  return matrix;
}

ChargeTable charge_table(const MeanField& field, int k_index, int spin, int begin, int end,
                         double cutoff_ry, GwKernels& kernels) {
  ChargeTable table{
      .sphere = make_g_sphere(field.crystal().bdot, {}, 4.0 * cutoff_ry * (1.0 + 1e-9)),
      .values = {}};
  const auto n = static_cast<std::int64_t>(end - begin);
  const auto n_g = table.sphere.size();
  table.values.resize(static_cast<std::size_t>(n * n_g));
  std::vector<Cplx> m(static_cast<std::size_t>(n_g));
  for (std::int64_t l = 0; l < n; ++l) {
    if (l == 0)
      products_at_k(field, k_index, spin, begin, end, {0, 1}, {0, 1}, table.sphere.g, kernels);
    else
      kernels.pair_products({l, l + 1}, {l, l + 1});
    kernels.read_pair_products(view<Cplx>(m, 1, 1, n_g));
    std::copy(m.begin(), m.end(), table.values.begin() + l * n_g);
  }
  return table;
}

void add_exact_static_ch(const ChargeTable& charge, const GSphere& sphere,
                         const SymmetryOperation& operation, const UnsetVector<Cplx>& static_w,
                         double weight, std::vector<Cplx>& ch) {
  const GIndex index(charge.sphere.g);
  const auto n = static_cast<std::size_t>(sphere.size());
  const auto n_g = static_cast<std::size_t>(charge.sphere.size());
  const std::size_t n_l = ch.size();
  std::vector<Cplx> of_row(n *
                           n_l);  // added in the order of the rows, whatever the number of threads
  bool outside = false;
#pragma omp parallel for schedule(static) reduction(|| : outside)
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h) {
      const IVec3 rotated = multiply(operation.rotation, sphere.g[g] - sphere.g[h]);
      const std::int32_t at = index.find(rotated);
      if (at < 0) {
        outside = true;
        continue;
      }
      const double angle = dot(to_real(rotated), operation.translation);
      const Cplx element =
          angle == 0.0 ? static_w[g * n + h] : std::polar(1.0, -angle) * static_w[g * n + h];
      for (std::size_t l = 0; l < n_l; ++l)
        of_row[g * n_l + l] += element * charge.values[l * n_g + static_cast<std::size_t>(at)];
    }
  if (outside)
    throw InvalidInput("a difference of plane waves lies outside the table of the completed CH");
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t l = 0; l < n_l; ++l) ch[l] -= 0.5 * weight * of_row[g * n_l + l];
}

}  // namespace quasi::gw
