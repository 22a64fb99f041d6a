// Compares jobs whose matrices between plane waves are cut into slices (docs/theory/gw.md 4.3) with
// jobs that have whole matrices.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/gw/support/bars_of_jobs.hpp"
#include "tests/gw/support/planned_deck.hpp"
#include "workers/gw/solver/calculation/slices/slices_plan.hpp"
#include "workers/gw/solver/screening/slices/sliced_inversion.hpp"

namespace quasi::gw {
namespace {

using test::expect_refusal;
using test::run_on_cpus;

/// Returns B B† + 1 of a random B, whose eigenvalues lie between 1 and about n.
template <typename T>
std::vector<T> definite_matrix(std::int64_t n, std::uint32_t seed) {
  std::vector<Cplx> b(static_cast<std::size_t>(n * n));
  std::uint32_t state = seed;
  const auto next = [&] {
    state = 1664525u * state + 1013904223u;
    return static_cast<double>(state) / 4294967296.0 - 0.5;
  };
  for (Cplx& value : b) value = {next(), std::is_same_v<T, double> ? 0.0 : next()};
  std::vector<T> a(b.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Cplx sum = i == j ? 1.0 : 0.0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += b[static_cast<std::size_t>(i * n + k)] *
               std::conj(b[static_cast<std::size_t>(j * n + k)]);
      if constexpr (std::is_same_v<T, double>)
        a[static_cast<std::size_t>(i * n + j)] = sum.real();
      else
        a[static_cast<std::size_t>(i * n + j)] = sum;
    }
  return a;
}

// A A⁻¹ is 1 to 1e-13 for each of the n = 71 terms of the order 1, and the inverse has the same
// bits on one, two and three devices. The lower triangle is not read.
template <typename T>
void check_inverse(std::int64_t slices) {
  constexpr std::int64_t kEdge = 71;
  const std::vector<T> a = definite_matrix<T>(kEdge, 5);
  std::vector<T> first;
  for (const int devices : {1, 2, 3}) {
    DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
    std::vector<T> inverse = a;
    for (std::int64_t i = 0; i < kEdge; ++i)
      for (std::int64_t j = 0; j < i; ++j) inverse[static_cast<std::size_t>(i * kEdge + j)] = 1e9;
    invert_in_slices(View<T, 2>{inverse.data(), {kEdge, kEdge}}, slices, team);
    for (std::int64_t i = 0; i < kEdge; ++i)
      for (std::int64_t j = 0; j < i; ++j)
        inverse[static_cast<std::size_t>(i * kEdge + j)] = 0.0;  // The content is not defined.
    if (first.empty()) first = inverse;
    EXPECT_EQ(inverse, first) << devices;
  }
  const auto element = [&](std::int64_t i, std::int64_t j) {
    return i <= j ? Cplx(first[static_cast<std::size_t>(i * kEdge + j)])
                  : std::conj(Cplx(first[static_cast<std::size_t>(j * kEdge + i)]));
  };
  for (std::int64_t i = 0; i < kEdge; ++i)
    for (std::int64_t j = 0; j < kEdge; ++j) {
      Cplx sum;
      for (std::int64_t k = 0; k < kEdge; ++k)
        sum += Cplx(a[static_cast<std::size_t>(i * kEdge + k)]) * element(k, j);
      ASSERT_LE(std::abs(sum - (i == j ? 1.0 : 0.0)), 1e-13 * kEdge) << i << ' ' << j;
    }
}

TEST(ColumnSlices, InverseOfADefiniteMatrix) {
  for (const std::int64_t slices : {1, 2, 5, 64}) {
    check_inverse<double>(slices);
    check_inverse<Cplx>(slices);
  }
}

TEST(ColumnSlices, AMatrixThatIsNotDefiniteIsNamed) {
  std::vector<double> a = definite_matrix<double>(40, 7);
  a[30 * 40 + 30] = -1.0;
  DeviceTeam team({find_device("cpu")});
  try {
    invert_in_slices(View<double, 2>{a.data(), {40, 40}}, 4, team);
    FAIL() << "an indefinite matrix was inverted";
  } catch (const NotConverged& error) {
    EXPECT_NE(std::string(error.what()).find("rows 31 to 40"), std::string::npos) << error.what();
  }
}

/// Deck of eight atoms at Γ with real states, and with pseudobands and the closed sum.
constexpr const char* kEight =
    "checkpoint_interval_s = 0.0\n[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\n"
    "cutoff_ry = 5.0\nbands = 70\nsolver = \"operator\"\n[epsilon]\ncutoff_ry = 4.0\n"
    "[sigma]\nband_min = 14\nband_max = 18\n"
    "[pseudobands]\nvectors = 3\nprotected_ry = 0.3\nclosure = \"sigma\"\n"
    "max_identity_error = 0.02\nratio = 0.5\n";

/// Deck with complex states and three irreducible q, whose χ is completed by symmetry.
constexpr const char* kGrid =
    "checkpoint_interval_s = 0.0\n[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\n"
    "cutoff_ry = 6.0\nk_grid = [2, 2, 2]\nbands = 20\n[epsilon]\ncutoff_ry = 4.0\n"
    "[sigma]\nband_max = 8\ninvalid_modes = \"imaginary\"\n";

Deck deck_of(const std::string& text, int slices) {
  return parse_deck(text, {Setting{"epsilon.column_slices", std::to_string(slices)}}, "test", ".");
}

void expect_same_bits(const Calculation& a, const Calculation& b) {
  ASSERT_EQ(a.epsilon.size(), b.epsilon.size());
  for (std::size_t iq = 0; iq < a.epsilon.size(); ++iq) {
    EXPECT_EQ(a.epsilon[iq].inverse, b.epsilon[iq].inverse);
    EXPECT_EQ(a.epsilon[iq].epsilon_diagonal, b.epsilon[iq].epsilon_diagonal);
  }
  ASSERT_EQ(a.quasiparticles.size(), b.quasiparticles.size());
  for (std::size_t i = 0; i < a.quasiparticles.size(); ++i) {
    EXPECT_EQ(a.quasiparticles[i].sigma_ev, b.quasiparticles[i].sigma_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].x_ev, b.quasiparticles[i].x_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].z, b.quasiparticles[i].z) << i;
  }
}

// Compares ε⁻¹ and Σ of a job with whole matrices and of one whose matrices are cut into
// slices. Both jobs add the same 1e5 terms, but in different orders, so that rounding alone may
// differ: it is below 1e-11 of ε⁻¹, whose elements are below 1, and of Σ, which is about 10
// eV.
void expect_close(const Calculation& whole, const Calculation& cut) {
  ASSERT_EQ(whole.epsilon.size(), cut.epsilon.size());
  for (std::size_t iq = 0; iq < whole.epsilon.size(); ++iq) {
    const auto &a = whole.epsilon[iq].inverse[0], &b = cut.epsilon[iq].inverse[0];
    ASSERT_EQ(a.size(), b.size());
    double largest = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    EXPECT_LE(largest, 1e-11) << iq;
    EXPECT_GT(largest, 0.0) << "the same form was calculated twice";
  }
  ASSERT_EQ(whole.quasiparticles.size(), cut.quasiparticles.size());
  for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i) {
    EXPECT_NEAR(whole.quasiparticles[i].sigma_ev, cut.quasiparticles[i].sigma_ev, 1e-10) << i;
    EXPECT_NEAR(whole.quasiparticles[i].z, cut.quasiparticles[i].z, 1e-11) << i;
  }
  EXPECT_EQ(whole.statistics.elements, cut.statistics.elements);
  EXPECT_EQ(whole.statistics.invalid, cut.statistics.invalid);
}

TEST(ColumnSlices, JobsEqualThoseWithWholeMatricesOnAnyDevices) {
  for (const char* text : {kEight, kGrid}) {
    SCOPED_TRACE(text);
    const Calculation one = run_on_cpus(deck_of(text, 5));
    expect_close(run_on_cpus(deck_of(text, 0)), one);
    expect_same_bits(one, run_on_cpus(deck_of(text, 5), 2));
  }
}

/// Returns the deck kEight with four random vectors in place of three. Each vector is a block of
/// its own, and the scatter of the four blocks gives the job its error bars.
std::string with_bars() {
  std::string text = kEight;
  return text.replace(text.find("vectors = 3"), 11, "vectors = 4\nblocks = 4");
}

// Error bars of the sliced form depart by rounding, which the small differences between blocks
// magnify: single precision of the changes of poles, 6e-8, allows 1e-6 of half-widths that exceed
// 1 meV. Their bits do not depend on the number of devices.
TEST(ColumnSlices, ErrorBarsEqualThoseWithWholeMatrices) {
  const Deck deck = deck_of(with_bars(), 5);
  const Calculation whole = run_on_cpus(deck_of(with_bars(), 0)), one = run_on_cpus(deck),
                    two = run_on_cpus(deck, 2);
  expect_close(whole, one);
  expect_same_bits(one, two);
  ASSERT_TRUE(whole.pseudoband_errors && one.pseudoband_errors && two.pseudoband_errors);
  EXPECT_EQ(one.pseudoband_errors->half_width_ev, two.pseudoband_errors->half_width_ev);
  EXPECT_EQ(one.pseudoband_errors->estimate_ev, two.pseudoband_errors->estimate_ev);
  const auto &a = whole.pseudoband_errors->half_width_ev, &b = one.pseudoband_errors->half_width_ev;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_GT(a[i], 1e-3);
    EXPECT_NEAR(a[i], b[i], 1e-6 * a[i]) << i;
  }
}

// A job that was cancelled at one of several places and goes on with another number of devices
// gives the bits of the undisturbed job.
TEST(ColumnSlices, AnInterruptedJobResumesWithTheSameBits) {
  const Deck deck = deck_of(kGrid, 5);
  const Calculation whole = run_on_cpus(deck);
  int interruptions = 0;
  for (const int after : {4, 19, 33}) {
    const quasi::test::TemporaryDirectory directory;
    Interrupter interrupter(after);
    try {
      run_on_cpus(deck, 1, directory.path(), &interrupter);
    } catch (const Cancelled&) {
      ++interruptions;
    }
    expect_same_bits(whole, run_on_cpus(deck, 1 + after % 2, directory.path()));
  }
  EXPECT_EQ(interruptions, 3);
}

/// Returns the plan of a deck for one device of `limit_bytes`.
Plan planned(const Deck& deck, std::int64_t limit_bytes = 0) {
  SilentProgress silent;
  DeviceTeam team({find_device("cpu")});
  return validated_plan(deck,
                        {.team = team,
                         .memory_budget_bytes = std::int64_t{1} << 30,
                         .memory_limit_bytes = limit_bytes},
                        silent);
}

// The largest of eight slices of 5,000 plane waves has an eighth of χ and of the poles, to 3 %,
// which is the rounding of its ends. A whole job needs 48 N² bytes on a CPU, for χ, ε and the
// work space of the inverse. Ends at multiples of 32 rows make slices of 146 plane waves unequal,
// so that 24 N²/8 bytes become up to 24 N²/5.
TEST(ColumnSlices, ThePlanHasTheMemoryOfOneSlice) {
  const double n = 5000.0;
  const SliceBytes real = bytes_of_slices(n, n, 8, true), complex = bytes_of_slices(n, n, 8, false);
  EXPECT_NEAR(real.chi, 8.0 * n * n / 8.0, 0.03 * n * n);
  EXPECT_EQ(complex.chi, 2.0 * real.chi);
  EXPECT_NEAR(real.poles, 24.0 * n * n / 8.0, 0.09 * n * n);
  EXPECT_LT(real.inversion, real.poles);
  EXPECT_EQ(real.least(), real.poles);
  const Plan whole = planned(deck_of(kEight, 0)), cut = planned(deck_of(kEight, 8));
  EXPECT_LT(static_cast<double>(cut.least_memory_bytes),
            24.0 / 5.0 / 48.0 * static_cast<double>(whole.least_memory_bytes));
  EXPECT_LT(cut.memory_bytes, whole.memory_bytes);
  EXPECT_LT(cut.host_bytes, whole.host_bytes);
}

// A device that holds a quarter of the matrices gets slices, the plan says so, and the job has the
// bits of a job with that number of slices.
TEST(ColumnSlices, ThePlanChoosesSlicesThatFit) {
  const Deck deck = deck_of(kEight, 0);
  const std::int64_t limit = planned(deck).least_memory_bytes / 4;
  const Plan plan = planned(deck, limit);
  EXPECT_EQ(plan.epsilon.column_slices, 8);
  EXPECT_EQ(plan.sigma.column_slices, 8);
  EXPECT_LE(plan.least_memory_bytes, limit);
  bool noted = false;
  for (const std::string& note : plan.notes)
    noted = noted || note.find("cut into 8 slices (epsilon.column_slices)") != std::string::npos;
  EXPECT_TRUE(noted);
  SilentProgress silent;
  DeviceTeam team({find_device("cpu")});
  expect_same_bits(
      run_on_cpus(deck_of(kEight, 8)),
      run_calculation(
          deck,
          {.team = team, .memory_budget_bytes = std::int64_t{1} << 30, .memory_limit_bytes = limit},
          silent));
  try {
    planned(deck, limit / 1000);
    FAIL() << "a job that cannot fit was planned";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("at most 64"), std::string::npos) << error.what();
  }
}

// A deck with slices and a setting that they do not support is refused, and the message names the
// setting. If a job does not fit and slices are excluded, the message names the setting, too.
TEST(ColumnSlices, SettingsWithoutSlicesAreNamed) {
  const auto refusal = [](const char* key, const char* value) {
    try {
      parse_deck(kGrid, {Setting{"epsilon.column_slices", "4"}, Setting{key, value}}, "test", ".");
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const auto& [key, value, named] :
       {std::array{"sigma.method", "contour", "this sigma.method"},
        std::array{"sigma.static_remainder", "true", "sigma.static_remainder"},
        std::array{"sigma.outer_loop", "evgw0", "sigma.outer_loop"},
        std::array{"epsilon.frequencies", "imaginary", "this epsilon.frequencies"},
        std::array{"coulomb.truncation", "slab", "coulomb.truncation"},
        std::array{"compat", "bgw", "compat"}}) {
    const std::string text = refusal(key, value);
    EXPECT_NE(text.find(named), std::string::npos) << key << ": " << text;
    EXPECT_NE(text.find("epsilon.column_slices = 4"), std::string::npos) << key << ": " << text;
  }
  EXPECT_NE(refusal("epsilon.column_slices", "65").find("64"), std::string::npos);
  const Deck deck = parse_deck(kGrid, {Setting{"sigma.static_remainder", "true"}}, "test", ".");
  try {
    planned(deck, planned(deck).least_memory_bytes / 4);
    FAIL() << "a job that cannot fit was planned";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("sigma.static_remainder"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace quasi::gw
