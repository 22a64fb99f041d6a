#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/reference_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/sigma.hpp"
#include "workers/io/hdf5.hpp"

// Silicon on a 4×4×4 grid against an established plane-wave GW program (spec, reference/gw/si2).
namespace quasi::gw {
namespace {

using test::ReferenceCase;
using test::read_sigma_table;

/// The whole calculation with 30 bands, made once for all cases of this file.
class Silicon : public testing::Test {
 protected:
  static constexpr double kEpsilonCutoff_ry = 10.0;
  static constexpr int kBands = 30;

  static void SetUpTestSuite() {
    if (!std::filesystem::exists(quasi::test::reference_dir() / "gw/si2")) return;
    files_ = new ReferenceCase("si2");
    field_ = new MeanField(make_mean_field(read_wavefunctions(files_->file("WFN")), read_wavefunctions(files_->file("WFNq")),
                                           read_field(files_->file("RHO"), "RHO")));
    kernels_ = make_gw_kernels(find_device("cpu")).release();
    coulomb_ = new CoulombInteraction(field_->crystal(), field_->waves.k_grid, {});
    SilentProgress silent;
    EpsilonOptions options{.cutoff_ry = kEpsilonCutoff_ry, .bands = kBands};
    epsilon_ = new std::vector<DielectricMatrix>;
    for (const Vec3& q : screening_points(*field_))
      epsilon_->push_back(dielectric_matrix(*field_, q, options, *coulomb_, *kernels_, silent));
  }
  static void TearDownTestSuite() {
    delete epsilon_;
    delete coulomb_;
    delete kernels_;
    delete field_;
    delete files_;
  }
  void SetUp() override { QUASI_NEED_REFERENCE("gw/si2"); }

  static inline ReferenceCase* files_ = nullptr;
  static inline MeanField* field_ = nullptr;
  static inline GwKernels* kernels_ = nullptr;
  static inline CoulombInteraction* coulomb_ = nullptr;
  static inline std::vector<DielectricMatrix>* epsilon_ = nullptr;
};

/// Largest deviation from the stored matrices; elements are matched by G, never by order.
double deviation_from(const std::filesystem::path& path, const std::vector<DielectricMatrix>& ours) {
  const H5Reader file(path);
  const auto components = file.integers("/mf_header/gspace/components");
  const auto q = file.doubles("/eps_header/qpoints/qpts");
  const auto order = file.integers("/eps_header/gspace/gind_eps2rho");
  const auto size = file.integers("/eps_header/gspace/nmtx");
  const std::int64_t edge = file.integer("/eps_header/gspace/nmtx_max");
  const auto n_rho = file.integer("/mf_header/gspace/ng");
  double worst = 0.0;
  for (std::size_t iq = 0; iq < size.size(); ++iq) {
    const DielectricMatrix* mine = nullptr;
    for (const DielectricMatrix& m : ours)
      if (std::abs(m.q[0] - q[3 * iq]) + std::abs(m.q[1] - q[3 * iq + 1]) + std::abs(m.q[2] - q[3 * iq + 2]) < 1e-9) mine = &m;
    if (mine == nullptr || mine->size() != size[iq]) return INFINITY;
    const GIndex index(mine->sphere.g);
    std::vector<std::size_t> at;
    for (std::int64_t g = 0; g < size[iq]; ++g) {
      const auto c = static_cast<std::size_t>(3 * (order[iq * static_cast<std::size_t>(n_rho) + static_cast<std::size_t>(g)] - 1));
      const std::int32_t found = index.find({static_cast<int>(components[c]), static_cast<int>(components[c + 1]), static_cast<int>(components[c + 2])});
      if (found < 0) return INFINITY;
      at.push_back(static_cast<std::size_t>(found));
    }
    const std::int64_t start[] = {static_cast<std::int64_t>(iq), 0, 0, 0, 0, 0};
    const std::int64_t count[] = {1, 1, 1, edge, edge, 2};
    const auto values = file.slab("/mats/matrix", start, count);
    for (std::size_t h = 0; h < at.size(); ++h)
      for (std::size_t g = 0; g < at.size(); ++g) {
        const std::size_t from = 2 * (h * static_cast<std::size_t>(edge) + g);
        const Cplx mine_gh = mine->inverse[0][at[g] * at.size() + at[h]];
        worst = std::max(worst, std::abs(mine_gh - Cplx(values[from], values[from + 1])));
      }
  }
  return worst;
}

// Both programs solve the same linear algebra in double precision on matrices of condition ~25.
TEST_F(Silicon, InverseDielectricMatrixEqualsReferenceElementwise) {
  EXPECT_LT(deviation_from(files_->file("epsmat.h5"), *epsilon_), 1e-10);
}

// The same bound, though wings at q₀ = 0.001 reach 20: no symmetry is used there (see polarizability).
TEST_F(Silicon, InverseDielectricMatrixAtGammaEqualsReference) {
  EXPECT_LT(deviation_from(files_->file("eps0mat.h5"), *epsilon_), 1e-10);
}

TEST_F(Silicon, SelfEnergyAtGammaWithStoredCoulombAverages) {
  const CoulombInteraction stored(field_->crystal(), field_->waves.k_grid, {.wing_rule = WingRule::kListedPoint, .average_file = files_->file("vcoul_gamma.dat").string()});
  SigmaOptions options{.bands = kBands, .bare_cutoff_ry = 25.0, .screened_cutoff_ry = 10.0, .band_min = 1, .band_max = 14, .kpoints = {0}};
  options.offsets_ry = {0.0, 1.0 / kRydberg_ev};
  SilentProgress silent;
  const auto sigma = self_energy(*field_, *epsilon_, options, stored, *kernels_, silent, nullptr);
  double dx = 0, dsx = 0, dch = 0, dsig = 0;
  for (const auto& row : read_sigma_table(files_->file("out/sigma_hl30.txt"))) {
    if (dot(row.k, row.k) > 1e-12) continue;
    const auto groups = multiplets(field_->waves, 0, 0, 0, 14);
    for (const auto& [begin, end] : groups) {
      if (row.band - 1 < begin || row.band - 1 >= end) continue;
      double x = 0, sx = 0, ch = 0;
      for (int n = begin; n < end; ++n) {
        x += sigma[0].x_ry[static_cast<std::size_t>(n)] / (end - begin);
        sx += sigma[0].sx_ry[0][static_cast<std::size_t>(n)].real() / (end - begin);
        ch += sigma[0].ch_ry[0][static_cast<std::size_t>(n)].real() / (end - begin);
      }
      x *= kRydberg_ev;
      sx *= kRydberg_ev;
      ch *= kRydberg_ev;
      dx = std::max(dx, std::abs(x - row.column.at("X")));
      dsx = std::max(dsx, std::abs(sx - row.column.at("SX-X")));
      dch = std::max(dch, std::abs(ch - row.column.at("CH")));
      dsig = std::max(dsig, std::abs(x + sx + ch - row.column.at("Sig")));
    }
  }
  EXPECT_LT(dx, 1e-6);
  EXPECT_LT(dsx, 2e-4);
  EXPECT_LT(dch, 2e-4);
  EXPECT_LT(dsig, 1e-4);
}

}  // namespace
}  // namespace quasi::gw
