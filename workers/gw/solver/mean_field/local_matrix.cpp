#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// Matrix elements of functions of r between states of one k (docs/theory/gw.md 3).
namespace quasi::gw {
namespace {

/// The states [begin, end) of one k and the plane waves `g` on a device, and their products
/// M_nm(G) = ⟨n| e^{iGr} |m⟩.
class StatesAtK {
 public:
  StatesAtK(const WavesAtPoint& waves, const std::vector<IVec3>& g, GwKernels& kernels)
      : kernels_(kernels), bands_(load(kernels, waves)) {
    std::vector<std::int32_t> index;
    for (const IVec3& v : g) index.push_back(box_position(v, waves.box));
    sphere_ = kernels.pair_products().load_sphere(
        waves.box, view<const std::int32_t>(index, index.size()), {});
    block_ = kernels.pair_products().make_block();
  }
  /// Copies the products to the host, [left][right][g].
  void read_products(BandRange left, BandRange right, std::vector<Cplx>& m) {
    kernels_.pair_products().fill({*bands_, left}, {*bands_, right}, *sphere_, *block_);
    block_->read(view<Cplx>(m, left.size(), right.size(), block_->n_g()));
  }

 private:
  GwKernels& kernels_;
  std::unique_ptr<const LoadedBands> bands_;
  std::unique_ptr<const LoadedSphere> sphere_;
  std::unique_ptr<PairBlock> block_;
};

StatesAtK states_at_k(const MeanField& field, const BandsAtK& bands, const std::vector<IVec3>& g,
                      GwKernels& kernels) {
  const auto ik = static_cast<std::size_t>(bands.k_index);
  IVec3 extent = component_extent(field.waves.waves[ik].g);
  const auto box = product_box(extent, extent, component_extent(g));
  return StatesAtK(waves_at(field, field.waves.k[ik], bands.spin, bands.begin, bands.end, box), g,
                   kernels);
}

/// Sums of elements that threads make at a time. Their number is fixed, so that bits do not depend
/// on the number of threads.
constexpr std::size_t kDifferenceSums = 32;

/// Returns w(D) = Σ_GG' W_GG' e^{−iDτ} over all pairs with S(G − G') = D, for all D of `table`.
std::vector<Cplx> sums_by_difference(const GSphere& table, const GSphere& sphere,
                                     const SymmetryOperation& operation,
                                     const UnsetVector<Cplx>& w) {
  const GIndex index(table.g);
  const auto n = static_cast<std::size_t>(sphere.size());
  const auto n_d = static_cast<std::size_t>(table.size());
  std::vector<Cplx> phase(n_d);
  for (std::size_t d = 0; d < n_d; ++d)
    phase[d] = std::polar(1.0, -dot(to_real(table.g[d]), operation.translation));
  std::vector<IVec3> rotated;
  for (const IVec3& g : sphere.g) rotated.push_back(multiply(operation.rotation, g));
  std::vector<std::vector<Cplx>> parts(kDifferenceSums);
  bool outside = false;
#pragma omp parallel for schedule(dynamic) reduction(|| : outside)
  for (std::size_t part = 0; part < kDifferenceSums; ++part) {
    std::vector<Cplx>& sum = parts[part];
    sum.resize(n_d);
    for (std::size_t g = part * n / kDifferenceSums; g < (part + 1) * n / kDifferenceSums; ++g)
      for (std::size_t h = 0; h < n; ++h) {
        const std::int32_t at = index.find(rotated[g] - rotated[h]);
        outside = outside || at < 0;
        if (at >= 0) sum[static_cast<std::size_t>(at)] += w[g * n + h];
      }
  }
  if (outside)
    throw InvalidInput("a difference of plane waves lies outside the table of the completed CH");
  std::vector<Cplx> total(n_d);
#pragma omp parallel for schedule(static)
  for (std::size_t d = 0; d < n_d; ++d) {
    for (const std::vector<Cplx>& sum : parts) total[d] += sum[d];
    total[d] *= phase[d];
  }
  return total;
}

}  // namespace

std::vector<Cplx> potential_matrix(const MeanField& field, const PlaneWaveField& potential,
                                   const BandsAtK& bands, GwKernels& kernels) {
  const std::int64_t n = bands.size();
  const auto n_g = static_cast<std::int64_t>(potential.header.g.size());
  const auto& v = potential.values[static_cast<std::size_t>(
      std::min<int>(bands.spin, static_cast<int>(potential.values.size()) - 1))];
  std::vector<Cplx> matrix(static_cast<std::size_t>(n * n));
  std::vector<Cplx> m(static_cast<std::size_t>(n * n_g));
  StatesAtK states = states_at_k(field, bands, potential.header.g, kernels);
  for (std::int64_t l = 0; l < n; ++l) {
    states.read_products({l, l + 1}, {0, n}, m);
    for (std::int64_t j = 0; j < n; ++j) {
      Cplx sum;
      for (std::int64_t g = 0; g < n_g; ++g)
        sum += v[static_cast<std::size_t>(g)] * m[static_cast<std::size_t>(j * n_g + g)];
      matrix[static_cast<std::size_t>(l * n + j)] = sum;
    }
  }
  return matrix;
}

ChargeTable charge_table(const MeanField& field, const BandsAtK& bands, double cutoff_ry,
                         GwKernels& kernels) {
  ChargeTable table{
      .sphere = make_g_sphere(field.crystal().bdot, {}, 4.0 * cutoff_ry * (1.0 + 1e-9)),
      .values = {}};
  const std::int64_t n = bands.size();
  const auto n_g = table.sphere.size();
  table.values.resize(static_cast<std::size_t>(n * n_g));
  std::vector<Cplx> m(static_cast<std::size_t>(n_g));
  StatesAtK states = states_at_k(field, bands, table.sphere.g, kernels);
  for (std::int64_t l = 0; l < n; ++l) {
    states.read_products({l, l + 1}, {l, l + 1}, m);
    std::copy(m.begin(), m.end(), table.values.begin() + l * n_g);
  }
  return table;
}

void add_exact_static_ch(const ChargeTable& charge, const GSphere& sphere,
                         const SymmetryOperation& operation, const UnsetVector<Cplx>& static_w,
                         double weight, std::vector<Cplx>& ch) {
  const std::vector<Cplx> w = sums_by_difference(charge.sphere, sphere, operation, static_w);
  const std::size_t n_g = w.size();
  for (std::size_t l = 0; l < ch.size(); ++l) {
    Cplx sum;
    for (std::size_t d = 0; d < n_g; ++d) sum += w[d] * charge.values[l * n_g + d];
    ch[l] -= 0.5 * weight * sum;
  }
}

}  // namespace quasi::gw
