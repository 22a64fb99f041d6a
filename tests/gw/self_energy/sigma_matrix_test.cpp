// The full matrix Σ_lm(E) of silicon: its diagonal, its symmetry, and the reference's numbers.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/gw/support/silicon_fixture.hpp"
#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

namespace quasi::gw {
namespace {

class SiliconMatrix : public test::SiliconSigma {
 protected:
  std::vector<SigmaMatrixAtK> matrices(SigmaOptions o, const SigmaMatrixOptions& matrix,
                                       const CoulombInteraction& coulomb,
                                       OffDiagonalReport* report = nullptr) {
    SilentProgress silent;
    return self_energy_matrix(*field_, *epsilon_, o, matrix, {coulomb, *kernels_, silent}, report);
  }
  /// k-point 7 of the file: X = (0, ½, ½), whose bands of one symmetry mix.
  int x_point() const {
    for (int ik = 0; ik < field_->waves.n_k(); ++ik) {
      const Vec3 d = field_->waves.k[static_cast<std::size_t>(ik)] - Vec3{0.0, 0.5, 0.5};
      if (dot(d, d) < 1e-12) return ik;
    }
    return -1;
  }
};

// l = m of the matrix is the diagonal sum at the same energies (property 12), through whole zone
// sums; every method.
TEST_F(SiliconMatrix, DiagonalEqualsTheDiagonalSum) {
  const CoulombInteraction own(field_->crystal(), field_->waves.k_grid, {});
  for (const SigmaMethod method : {SigmaMethod::kHybertsenLouie, SigmaMethod::kCohsex}) {
    SigmaOptions o = options(8);
    o.method = method;
    o.kpoints = {x_point()};
    o.reduce_q = false;
    o.offsets_ry = {0.0};
    SigmaMatrixOptions m;
    for (int n = 0; n < 8; ++n) m.energies_ry.push_back(field_->waves.energy(0, x_point(), n));
    const auto matrix = matrices(o, m, own);
    SilentProgress silent;
    const auto diagonal = self_energy(*field_, *epsilon_, o, {own, *kernels_, silent});
    for (std::size_t l = 0; l < 8; ++l) {
      EXPECT_NEAR(matrix[0].x_ry[9 * l].real(), diagonal[0].x_ry[l], 1e-12);
      const Cplx c = matrix[0].at(method == SigmaMethod::kCohsex ? 0 : l)[9 * l];
      EXPECT_LT(std::abs(c - diagonal[0].sx_ry[0][l] - diagonal[0].ch_ry[0][l]), 1e-11) << l;
    }
  }
}

// Against the reference's table at Γ and X, E of band 4: all 8 × 8 elements, among them 0.7 eV
// between bands of one symmetry at X. Its v̄ of that run is random and not stored: X to 8 meV, Σ to
// 5 meV (README); 2.7 meV found.
TEST_F(SiliconMatrix, AgreesWithTheReference) {
  const CoulombInteraction own(field_->crystal(), field_->waves.k_grid,
                               {.wing_rule = WingRule::kListedPoint});
  std::ifstream in(files_->file("out/sigma_hl30_off.txt"));
  std::map<std::pair<int, int>, Cplx> x, sigma;
  int ik = -1, compared = 0;
  double worst_x = 0.0, worst = 0.0;
  const auto check = [&]() {
    if (x.size() < 64) return;
    SigmaOptions o = options(8);
    o.kpoints = {ik};
    const auto matrix =
        matrices(o, {.kernel = {}, .energies_ry = {field_->waves.energy(0, ik, 3)}}, own);
    for (int l = 0; l < 8; ++l)
      for (int m = 0; m < 8; ++m) {
        const auto at = static_cast<std::size_t>(8 * l + m);
        const Cplx ours_x = matrix[0].x_ry[at] * kRydberg_ev,
                   ours = ours_x + matrix[0].correlation_ry[at] * kRydberg_ev;
        worst_x = std::max(worst_x, std::abs(ours_x - x.at({l + 1, m + 1})));
        worst = std::max(worst, std::abs(ours - sigma.at({l + 1, m + 1})));
        ++compared;
      }
  };
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string first;
    fields >> first;
    if (first == "k") {
      check();
      x.clear();
      sigma.clear();
      const auto at = line.find("ik =");
      ik = std::stoi(line.substr(at + 4)) - 1;
      continue;
    }
    if (line.find("real") == std::string::npos && line.find("imag") == std::string::npos) continue;
    int l = 0, m = 0, e = 0;
    std::string part;
    double value_x = 0, sx = 0, ch = 0, sig = 0;
    std::istringstream row(line);
    if (!(row >> l >> m >> e >> part >> value_x >> sx >> ch >> sig)) continue;
    const Cplx unit = part == "real" ? Cplx(1.0, 0.0) : Cplx(0.0, 1.0);
    x[{l, m}] += unit * value_x;
    sigma[{l, m}] += unit * sig;
  }
  check();
  EXPECT_EQ(compared, 128);
  EXPECT_LT(worst_x, 8e-3);
  EXPECT_LT(worst, 5e-3);
}

}  // namespace
}  // namespace quasi::gw
