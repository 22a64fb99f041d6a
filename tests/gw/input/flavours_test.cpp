// Equal physics from different input: real and complex coefficients, binary and HDF5 files, with
// and without inversion about the origin. The truth is the run with complex coefficients and
// inversion.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// X + Σ_c of every outer state at every k, averaged over multiplets, in eV.
std::vector<double> sigma_of(SmallSilicon& s, const MeanField& field, const SigmaOptions& o,
                             const std::vector<Cplx>& frequencies = {Cplx{}}) {
  std::vector<double> values;
  const DerivativeRule rule{o.slope ? Derivative::kAnalytic : Derivative::kCentral,
                            0.02 / kRydberg_ev};
  for (const Quasiparticle& qp : quasiparticles(
           field, s.sigma(field, s.screening(field, frequencies), o), {}, o, rule, false))
    values.push_back(qp.sigma_ev);
  return values;
}

/// Expects lists of equal length whose largest difference is below `tolerance_ev`.
void expect_equal(const std::vector<double>& a, const std::vector<double>& b, double tolerance_ev) {
  ASSERT_EQ(a.size(), b.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  EXPECT_LT(worst, tolerance_ev);
}

// With inversion about the origin the coefficients are real. Files of real coefficients, binary or
// HDF5, and complex HDF5 files give the energies of the run with complex coefficients.
TEST(Flavours, RealAndHdf5FilesEqualTheComplexBinaryOne) {
  SmallSilicon s;
  const quasi::test::TemporaryDirectory directory;
  const auto path = [&](const char* name) { return directory.path() / name; };
  const SigmaOptions o = s.options();
  const auto expected = sigma_of(s, s.field, o);
  for (const bool real : {true, false}) {
    Wavefunctions waves = s.field.waves, shifted = *s.field.shifted;
    for (Wavefunctions* w : {&waves, &shifted}) {
      double imaginary = 0.0;
      for (const KPointWaves& point : w->waves)
        for (const Cplx& c : point.coefficients[0])
          imaginary = std::max(imaginary, std::abs(c.imag()));
      ASSERT_LT(imaginary, 1e-12);
      w->header.is_real = real;
      w->header.title = real ? "WFN-Real" : "WFN-Complex";
    }
    write_wavefunctions(path("WFN"), waves);
    write_wavefunctions(path("WFNq"), shifted);
    write_wavefunctions_hdf5(path("WFN.h5"), waves);
    write_wavefunctions_hdf5(path("WFNq.h5"), shifted);
    for (const auto& [wfn, wfnq] : {std::pair{"WFN", "WFNq"}, {"WFN.h5", "WFNq.h5"}}) {
      const Wavefunctions back = read_wavefunctions(path(wfn));
      EXPECT_EQ(back.header.is_real, real);
      const MeanField field =
          make_mean_field(back, read_wavefunctions(path(wfnq)), s.field.density);
      expect_equal(sigma_of(s, field, o), expected, 1e-10);
    }
  }
}

// Without inversion about the origin ε⁻¹, ω̃ and M are complex. Silicon with a shifted origin has
// the energies of the symmetric setting, and GaAs, which has no inversion, has equal energies at
// any origin: 1e-8 eV with every method.
TEST(Flavours, EnergiesDoNotDependOnTheOrigin) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = SmallSilicon::small_crystal();
    crystal.name = name;
    SmallSilicon centred(crystal);
    crystal.origin_shift = {0.13, 0.07, -0.21};
    SmallSilicon shifted(crystal);
    double imaginary = 0.0;
    for (const Cplx& value : shifted.epsilon[1].inverse[0])
      imaginary = std::max(imaginary, std::abs(value.imag()));
    EXPECT_GT(imaginary, 1e-2);
    for (const SigmaMethod method : {SigmaMethod::kHybertsenLouie, SigmaMethod::kGodbyNeeds,
                                     SigmaMethod::kCohsex, SigmaMethod::kContour}) {
      SigmaOptions o = centred.options();
      o.method = method;
      std::vector<Cplx> frequencies{Cplx{}};
      if (method == SigmaMethod::kGodbyNeeds) frequencies.push_back({0.0, o.godby_needs_ry});
      if (method == SigmaMethod::kContour) {
        o.slope = false;
        o.offsets_ry = DerivativeRule{Derivative::kCentral, 0.02 / kRydberg_ev}.offsets_ry();
        o.contour.imaginary_ry = imaginary_grid(10, 2.0);
        for (int i = 0; i <= 60; ++i) o.contour.real_ry.push_back(0.04 * i);
        frequencies = o.contour.frequencies_ry(0.02, 1e-5);
      }
      SCOPED_TRACE(std::string(name) + " method " + std::to_string(static_cast<int>(method)));
      expect_equal(sigma_of(shifted, shifted.field, o, frequencies),
                   sigma_of(centred, centred.field, o, frequencies), 1e-8);
    }
  }
}

}  // namespace
}  // namespace quasi::gw
