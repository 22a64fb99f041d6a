// Σ(E) on grids of energies, and more bands, against the reference's tables at Γ with its own v̄.

#include <gtest/gtest.h>

#include <map>

#include "tests/gw/support/silicon_fixture.hpp"
#include "workers/gw/solver/self_energy/graphical.hpp"

namespace quasi::gw {
namespace {

class SiliconSpectrum : public test::SiliconContour {};

/// Columns of a table of spectra at Γ by band: [band] → rows of numbers after "iw".
std::map<int, std::vector<std::vector<double>>> spectrum_table(const std::filesystem::path& path) {
  std::map<int, std::vector<std::vector<double>>> bands;
  for (const auto& row : test::read_number_rows(path))
    if (row.size() > 7 && std::abs(row[0]) + std::abs(row[1]) + std::abs(row[2]) < 1e-9)
      bands[static_cast<int>(row[4])].emplace_back(row.begin() + 6, row.end());
  return bands;
}

constexpr SpectrumGrid kReferenceGrid{.window_ev = 5.0, .step_ev = 0.5, .broadening_ev = 0.0};

/// Largest deviation over energies and columns; ours averaged over multiplets as the reference's
/// are.
template <typename Ours>
void compare(const MeanField& field, const std::map<int, std::vector<std::vector<double>>>& table,
             int last_band, const std::vector<double>& tolerance, Ours ours) {
  int compared = 0;
  for (const auto& [begin, end] : multiplets(field.waves, 0, 0, 0, last_band))
    for (std::size_t e = 0; e < 21; ++e) {
      std::vector<double> expected, got;
      for (int n = begin; n < end; ++n) {
        const auto& row = table.at(n + 1).at(e);
        const std::vector<double> mine = ours(static_cast<std::size_t>(n), e);
        expected.resize(mine.size());
        got.resize(mine.size());
        for (std::size_t c = 0; c < mine.size(); ++c) {
          expected[c] += row[c + 1] / (end - begin);
          got[c] += mine[c] / (end - begin);
        }
      }
      for (std::size_t c = 0; c < got.size(); ++c)
        EXPECT_NEAR(got[c], expected[c], tolerance[c])
            << "band " << begin + 1 << " energy " << e << " column " << c;
      ++compared;
    }
  EXPECT_GT(compared, 80);
}

TEST_F(SiliconSpectrum, HybertsenLouieOnAGrid) {
  SigmaOptions o = options(8);
  o.offsets_ry = kReferenceGrid.offsets_ry();
  SilentProgress silent;
  const auto sums = self_energy(*field_, *epsilon_, o, {*stored_, *kernels_, silent});
  // An element whose ω̃ lies on a rule's threshold changes columns, at four of 168 energies by up to
  // 2e-3 eV; the sum feels it below 2e-4 eV. Five decimals are printed.
  compare(*field_, spectrum_table(files_->file("out/spectrum_hl30_grid.txt")), 8,
          {2e-3, 2e-3, 2e-4}, [&](std::size_t l, std::size_t e) {
            // Its "SX" holds the bare exchange.
            const double sx = (sums[0].x_ry[l] + sums[0].sx_ry[e][l].real()) * kRydberg_ev,
                         ch = sums[0].ch_ry[e][l].real() * kRydberg_ev;
            return std::vector<double>{sx, ch, sx + ch};
          });
}

TEST_F(SiliconSpectrum, ContourDeformationOnAGrid) {
  SigmaOptions o = contour_options();
  // The reference shifts its grid by 1e-6 eV off the poles at E = E_n.
  o.offsets_ry = kReferenceGrid.offsets_ry();
  for (double& offset : o.offsets_ry) offset += 1e-6 / kRydberg_ev;
  SilentProgress silent;
  const auto sums = self_energy(*field_, contour_epsilon(), o, {*stored_, *kernels_, silent});
  compare(*field_, spectrum_table(files_->file("out/spectrum_cd30.txt")), 8,
          std::vector<double>(7, 3e-4), [&](std::size_t l, std::size_t e) {
            const Cplx residue = sums[0].sx_ry[e][l] * kRydberg_ev,
                       integral = sums[0].ch_ry[e][l] * kRydberg_ev;
            const Cplx all = residue + integral;
            return std::vector<double>{all.real() + sums[0].x_ry[l] * kRydberg_ev,
                                       all.imag(),
                                       residue.real(),
                                       residue.imag(),
                                       all.real(),
                                       all.imag(),
                                       integral.real()};
          });
}

}  // namespace
}  // namespace quasi::gw
