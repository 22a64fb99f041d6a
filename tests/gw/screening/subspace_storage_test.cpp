#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/gw/support/interrupter.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "tests/gw/support/written_out.hpp"
#include "tests/oracle/gw/subspace_forms.hpp"
#include "tests/support/every_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

// ε⁻¹ that stays in its static subspace, and Σ from it, against the same matrices written out.
namespace quasi::gw {
namespace {

class SubspaceStorageOnDevice : public quasi::test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(SubspaceStorageOnDevice);

constexpr Mat3 kTriclinic{{{0.97, 0.03, -0.02}, {0.01, 1.02, 0.04}, {0.05, -0.01, 1.06}}};

struct Case {
  const char* name;
  bool strained = false;  ///< no symmetry is left: q → 0 is reduced too
  bool by_velocity = true;
  bool complement = true;
  IVec3 grid{2, 1, 1};
  double sphere_radius_bohr = 0.0;
};

struct Problem {
  std::unique_ptr<GwKernels> kernels;
  SilentProgress silent;
  MeanField field;
  CoulombInteraction coulomb;
  SigmaOptions o;
  std::vector<DielectricMatrix> epsilon, whole;

  static EmpiricalCrystal crystal(const Case& c) {
    EmpiricalCrystal gaas = test::SmallSilicon::small_crystal();
    gaas.name = "gaas";
    gaas.k_grid = c.grid;
    gaas.by_velocity = c.by_velocity;
    if (c.strained) gaas.deformation = kTriclinic;
    return gaas;
  }
  explicit Problem(const Device& device, const Case& c, int vectors = 10)
      : kernels(make_gw_kernels(device)),
        field(empirical_mean_field(crystal(c), *kernels, silent)),
        coulomb(field.crystal(), field.waves.k_grid,
                {.truncation = c.sphere_radius_bohr > 0.0 ? Truncation::kSphere : Truncation::kNone,
                 .sphere_radius_bohr = c.sphere_radius_bohr}) {
    const int bands = band_count_without_split(field.waves, field.waves.n_bands, 5, "bands");
    o = {.method = SigmaMethod::kContour,
         .bands = bands,
         .bare_cutoff_ry = 6.0,
         .screened_cutoff_ry = 2.5,
         .band_min = 1,
         .kpoints = {0}};
    o.band_max = band_count_without_split(field.waves, 8, 1, "band_max", o.kpoints);
    o.contour.imaginary_ry = imaginary_grid(6, 2.0);
    for (int i = 0; i <= 16; ++i) o.contour.real_ry.push_back(1.0 * i / kRydberg_ev);
    o.offsets_ry = {0.0, 0.1};
    EpsilonOptions e{
        .epsilon_cutoff_ry = 3.0,
        .bands = bands,
        .frequencies_ry = o.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev),
        .n_real = static_cast<int>(o.contour.real_ry.size())};
    e.subspace = {.tolerance = 0.0, .vectors = vectors, .complement = c.complement};
    for (const Vec3& q : screening_points(field)) {
      epsilon.push_back(dielectric_matrix(field, q, e, coulomb, *kernels, silent));
      whole.push_back(test::written_out(epsilon.back()));
    }
  }
  std::vector<SelfEnergyAtK> sigma(const std::vector<DielectricMatrix>& of) {
    return self_energy(field, of, o, {coulomb, *kernels, silent});
  }
  std::vector<SigmaMatrixAtK> matrix(const std::vector<DielectricMatrix>& of,
                                     const SigmaMatrixOptions& at) {
    return self_energy_matrix(field, of, o, at, {coulomb, *kernels, silent}, nullptr);
  }
};

const Case kCases[] = {
    {.name = "k·p, cubic", .grid = {2, 2, 2}},
    {.name = "k·p, no symmetry", .strained = true},
    {.name = "k·p, no symmetry, plain", .strained = true, .complement = false},
    {.name = "one direction, no symmetry", .strained = true, .by_velocity = false},
    {.name = "one direction, cubic", .by_velocity = false, .grid = {2, 2, 2}},
    {.name = "sphere", .strained = true, .grid = {1, 1, 1}, .sphere_radius_bohr = 3.6}};

// Every element at every frequency, Γ by all its ways. Where the group averages W, it is left
// whole. 1e-12 of the largest element: rounding.
TEST_P(SubspaceStorageOnDevice, WInTheSubspaceIsW) {
  bool cut = false;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Problem p(GetParam(), c);
    for (std::size_t iq = 0; iq < p.epsilon.size(); ++iq) {
      SCOPED_TRACE(iq);
      const DielectricMatrix& m = p.epsilon[iq];
      ASSERT_EQ(m.inverse.size(), 1u) << "of the other frequencies no matrix is kept";
      ASSERT_LT(m.reduced.n_b, m.reduced.n);
      const ScreeningAtQ at = screening_at(p.field, p.whole[iq], p.o.screened_cutoff_ry, p.coulomb);
      const WingFactors wings = wing_factors(at.epsilon);
      const SubspaceOfW s =
          subspace_of_epsilon(p.field, m, at, screened_matrix(at, 0, wings), p.coulomb);
      ASSERT_EQ(s.used(), c.strained || !m.at_gamma);
      EXPECT_EQ(full_frequency_w(p.field, m, p.o, p.coulomb, *p.kernels).subspace.used(), s.used())
          << "every device stays in it";
      if (!s.used()) continue;
      cut = cut || s.n < m.size();
      double moved = 0.0, size = 0.0;
      const UnsetVector<Cplx> zero = screened_matrix(at, 0, wings);
      for (const Cplx& value : zero) size = std::max(size, std::abs(value));
      for (std::size_t f = 0; f < m.n_frequencies(); ++f) {
        const UnsetVector<Cplx> w = screened_matrix(at, f, wings);
        oracle::gw::SubspaceMatrix made{.n = static_cast<int>(s.n),
                                        .n_b = s.inner[f].empty() ? 0 : static_cast<int>(s.n_b),
                                        .basis = s.basis,
                                        .inner = s.inner[f],
                                        .share = s.share[f],
                                        .rest = {s.rest.begin(), s.rest.end()},
                                        .diagonal = s.diagonal[f]};
        if (made.diagonal.empty()) made.diagonal.resize(static_cast<std::size_t>(s.n));
        double worst = 0.0;
        for (int g = 0; g < made.n; ++g)
          for (int h = 0; h < made.n; ++h) {
            const auto i = static_cast<std::size_t>(g * made.n + h);
            worst = std::max(worst, std::abs(made.element(g, h) - w[i]));
            moved = std::max(moved, std::abs(w[i] - zero[i]));
          }
        EXPECT_LT(worst, 1e-12 * size) << f;
        EXPECT_LT(std::abs(head_of(m, f) - p.whole[iq].inverse[f][0]), 1e-12);
      }
      EXPECT_GT(moved, 0.1 * size);
    }
  }
  EXPECT_TRUE(cut) << "a lower cut-off in Σ is to be tried too";
}

// Σ of every state and energy, residues and integral apart, and every element of the full matrix:
// 1e-11 Ry, far below the 1e-9 eV asked.
TEST_P(SubspaceStorageOnDevice, SigmaIsThatOfTheWholeMatrices) {
  for (const std::size_t i : {0, 1, 3, 5}) {
    const Case& c = kCases[i];
    SCOPED_TRACE(c.name);
    Problem p(GetParam(), c);
    for (const SigmaMethod method : {SigmaMethod::kContour, SigmaMethod::kRealAxis}) {
      p.o.method = method;
      const auto here = p.sigma(p.epsilon), there = p.sigma(p.whole);
      double size = 0.0;
      for (std::size_t e = 0; e < 2; ++e)
        for (std::size_t l = 0; l < here[0].x_ry.size(); ++l) {
          EXPECT_LT(std::abs(here[0].sx_ry[e][l] - there[0].sx_ry[e][l]), 1e-11);
          EXPECT_LT(std::abs(here[0].ch_ry[e][l] - there[0].ch_ry[e][l]), 1e-11);
          size = std::max(size, std::abs(there[0].ch_ry[e][l]));
        }
      EXPECT_GT(size, 0.05);
    }
    p.o.method = SigmaMethod::kContour;
    SigmaMatrixOptions at;
    at.at_states = true;
    const auto here = p.matrix(p.epsilon, at), there = p.matrix(p.whole, at);
    double off_diagonal = 0.0;
    for (std::size_t at_i = 0; at_i < here[0].correlation_ry.size(); ++at_i) {
      EXPECT_LT(std::abs(here[0].correlation_ry[at_i] - there[0].correlation_ry[at_i]), 1e-11);
      const auto n = static_cast<std::size_t>(here[0].n), l = at_i / n % n, m = at_i % n;
      if (l != m) off_diagonal = std::max(off_diagonal, std::abs(there[0].correlation_ry[at_i]));
    }
    if (c.strained) {
      EXPECT_GT(off_diagonal, 1e-3);
    }
  }
}

// The full matrix in either subspace: its diagonal is the diagonal sum's, and it turns with the
// states of a multiplet. 1e-11 Ry.
TEST_P(SubspaceStorageOnDevice, MatrixHasItsDiagonalAndIsCovariant) {
  for (const bool of_sigma : {false, true}) {
    SCOPED_TRACE(of_sigma ? "the subspace of W" : "the subspace of ε⁻¹");
    Problem p(GetParam(), kCases[0], of_sigma ? 1000 : 10);
    if (of_sigma) p.o.subspace.vectors = 8;
    p.o.reduce_q = false;
    p.o.offsets_ry = {0.0};
    SigmaMatrixOptions at;
    at.at_states = true;
    const auto before = p.matrix(p.epsilon, at);
    const auto diagonal = p.sigma(p.epsilon);
    const auto n = static_cast<std::size_t>(before[0].n);
    double residues = 0.0;
    for (std::size_t l = 0; l < n; ++l) {
      EXPECT_LT(std::abs(before[0].at(l)[(n + 1) * l] - diagonal[0].sx_ry[0][l] -
                         diagonal[0].ch_ry[0][l]),
                1e-11)
          << l;
      residues = std::max(residues, std::abs(diagonal[0].sx_ry[0][l]));
    }
    EXPECT_GT(residues, 1e-2);
    if (of_sigma) {
      Problem all = Problem(GetParam(), kCases[0], 1000);
      all.o.reduce_q = false;
      double cost = 0.0;
      const auto full = all.matrix(all.epsilon, at);
      for (std::size_t i = 0; i < full[0].correlation_ry.size(); ++i)
        cost = std::max(cost, std::abs(full[0].correlation_ry[i] - before[0].correlation_ry[i]));
      EXPECT_GT(cost, 1e-5) << "nothing was left out";
      EXPECT_LT(cost, 0.1);
    }
    const auto u = test::rotate_multiplets(p.field, 0, p.o.band_max, 5);
    const auto after = p.matrix(p.epsilon, at);
    double turned = 0.0;
    for (std::size_t e = 0; e < n; ++e)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          Cplx rotated;
          for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = 0; b < n; ++b)
              rotated += std::conj(u[i * n + a]) * before[0].at(e)[a * n + b] * u[j * n + b];
          EXPECT_LT(std::abs(after[0].at(e)[i * n + j] - rotated), 1e-11)
              << e << ' ' << i << ' ' << j;
          if (i != j) turned = std::max(turned, std::abs(u[i * n + j]));
        }
    EXPECT_GT(turned, 0.1);
  }
}

// Forms of random parts against the literal sum.
TEST_P(SubspaceStorageOnDevice, FormsAgainstTheOracle) {
  constexpr std::size_t kN = 17, kVectors = 5, kPairs = 6;
  std::mt19937_64 generator(7);
  std::normal_distribution<double> normal;
  const auto random = [&](std::size_t count) {
    std::vector<Cplx> values(count);
    for (Cplx& value : values) {
      const double re = normal(generator);
      value = {re, normal(generator)};
    }
    return values;
  };
  SubspaceOfW s;
  s.n = kN;
  s.n_b = kVectors;
  s.basis = random(kN * kVectors);
  s.inner = {{}, random(kVectors * kVectors), random(kVectors * kVectors)};
  s.share = {1.0, {0.4, 0.0}, {-0.3, 0.7}};
  const std::vector<Cplx> rest = random(kN * kN), m = random(kPairs * kN);
  s.rest.assign(rest.begin(), rest.end());
  s.diagonal = {{}, random(kN), random(kN)};
  const auto kernels = make_gw_kernels(GetParam());
  const auto block = kernels->pair_products().make_block();
  block->load({m.data(), {2, 3, kN}});
  const ScreeningAtQ whole;  // unused: W is in the subspace
  const WingFactors wings;
  const FormsOfBlock forms({whole, wings, s}, 1.0, *block, nullptr);
  for (std::size_t f = 0; f < 3; ++f) {
    const oracle::gw::SubspaceMatrix w{.n = kN,
                                       .n_b = f == 0 ? 0 : static_cast<int>(kVectors),
                                       .basis = s.basis,
                                       .inner = s.inner[f],
                                       .share = s.share[f],
                                       .rest = rest,
                                       .diagonal = f == 0 ? std::vector<Cplx>(kN) : s.diagonal[f]};
    const std::vector<Cplx> found = forms.at(f);
    for (std::size_t p = 0; p < kPairs; ++p) {
      const Cplx expected = oracle::gw::form(w, m.data() + p * kN, m.data() + p * kN);
      EXPECT_LT(std::abs(found[p] - expected), 1e-11 * (100.0 + std::abs(expected)))
          << f << ' ' << p;
    }
  }
}

std::string deck(const std::string& epsilon, const std::string& sigma = "") {
  return "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 6.0\nk_grid = [2, 1, "
         "1]\nbands = 18\nstretch = [0.97, 1.02, 1.08]\n"
         "[epsilon]\ncutoff_ry = 4.0\nreal_max_ev = 24.0\nreal_step_ev = 2.0\nimaginary_points = "
         "8\n" +
         epsilon + "[sigma]\nmethod = \"contour\"\nband_max = 6\n" + sigma;
}
Calculation run(const std::string& text, int devices = 1, Progress* progress = nullptr,
                const std::filesystem::path& checkpoint = {}) {
  SilentProgress silent;
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(parse_deck(text, {}, "test", "."),
                         {.team = team,
                          .memory_budget_bytes = std::int64_t{1} << 30,
                          .checkpoint_directory = checkpoint},
                         progress != nullptr ? *progress : silent);
}

// All vectors kept: contour deformation itself, by a job. 1e-9 eV.
TEST(SubspaceStorage, AllVectorsAreContourDeformation) {
  const Calculation whole = run(deck("")), all = run(deck("subspace_vectors = 10000\n")),
                    by_tolerance = run(deck("subspace_tolerance = 1e-12\n"));
  ASSERT_FALSE(whole.quasiparticles.empty());
  for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i) {
    EXPECT_NEAR(all.quasiparticles[i].sigma_ev, whole.quasiparticles[i].sigma_ev, 1e-9);
    EXPECT_NEAR(all.quasiparticles[i].sx_ev, whole.quasiparticles[i].sx_ev, 1e-9);
    EXPECT_NEAR(by_tolerance.quasiparticles[i].sigma_ev, whole.quasiparticles[i].sigma_ev, 1e-9);
  }
  EXPECT_FALSE(whole.epsilon[0].reduced.used());
  EXPECT_LT(all.epsilon[0].subspace_error, 1e-9);
}

// Interrupted at some points and taken up by another number of devices: the same bits of Σ and of
// the full matrix, and the indicator is not lost.
TEST(SubspaceStorage, AResumedJobGivesTheSameBits) {
  const std::string text =
      "checkpoint_interval_s = 0\n" +
      deck("subspace_vectors = 15\n",
           "full_matrix = true\nmatrix_step_ev = 4.0\nmatrix_margin_ev = 1.0\n");
  const Calculation whole = run(text);
  int interruptions = 0;
  for (const int after : {2, 9, 15}) {
    quasi::test::TemporaryDirectory directory;
    Interrupter interrupter(after);
    try {
      run(text, 1, &interrupter, directory.path());
      break;
    } catch (const Cancelled&) {
      ++interruptions;
    }
    const Calculation resumed = run(text, 1 + after % 2, nullptr, directory.path());
    ASSERT_EQ(resumed.quasiparticles.size(), whole.quasiparticles.size());
    for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i)
      EXPECT_EQ(resumed.quasiparticles[i].sigma_ev, whole.quasiparticles[i].sigma_ev);
    ASSERT_EQ(resumed.matrices.size(), whole.matrices.size());
    for (std::size_t i = 0; i < whole.matrices.size(); ++i)
      EXPECT_EQ(resumed.matrices[i].correlation_ry, whole.matrices[i].correlation_ry);
    for (std::size_t iq = 0; iq < whole.epsilon.size(); ++iq) {
      EXPECT_EQ(resumed.epsilon[iq].reduced.inner, whole.epsilon[iq].reduced.inner);
      EXPECT_EQ(resumed.epsilon[iq].reduced.rest, whole.epsilon[iq].reduced.rest);
      EXPECT_EQ(resumed.epsilon[iq].subspace_error, whole.epsilon[iq].subspace_error);
      EXPECT_EQ(resumed.epsilon[iq].subspace_vectors, whole.epsilon[iq].subspace_vectors);
    }
  }
  EXPECT_EQ(interruptions, 3);
}

// What the plan says of the host is what is there: ε⁻¹ of all q within a factor of 2 (spheres of
// some tens of plane waves are not round, and matrices go as their square), and the share that a
// subspace saves within 30 %. W of Σ is a term more.
TEST(SubspaceStorage, ThePlanKnowsTheSmallerArrays) {
  const std::string stop = "stop_after = \"epsilon\"\n";
  const Calculation whole = run(stop + deck("frequencies = \"both\"\n")),
                    few = run(stop + deck("frequencies = \"both\"\nsubspace_vectors = 5\n"));
  const auto bytes = [](const Calculation& of) {
    std::size_t count = 0;
    for (const DielectricMatrix& m : of.epsilon) {
      for (const auto& inverse : m.inverse) count += inverse.size();
      for (const auto& inner : m.reduced.inner) count += inner.size();
      count += m.reduced.basis.size() + m.reduced.rest.size();
    }
    return 16.0 * static_cast<double>(count);
  };
  for (const Calculation* each : {&whole, &few}) {
    EXPECT_LT(static_cast<double>(each->plan.screening_bytes), 2.0 * bytes(*each));
    EXPECT_GT(static_cast<double>(each->plan.screening_bytes), 0.5 * bytes(*each));
  }
  const double share = bytes(few) / bytes(whole);
  EXPECT_LT(share, 0.25);
  EXPECT_NEAR(static_cast<double>(few.plan.screening_bytes) /
                  static_cast<double>(whole.plan.screening_bytes),
              share, 0.3 * share);
  const auto with_sigma = [](const std::string& epsilon, const std::string& sigma) {
    return run(deck(epsilon, sigma)).plan.screening_bytes;
  };
  const std::int64_t both_whole = with_sigma("", ""),
                     of_epsilon = with_sigma("subspace_vectors = 5\n", ""),
                     of_sigma = with_sigma("", "subspace_vectors = 5\n");
  EXPECT_GT(both_whole - whole.plan.screening_bytes, 5 * (of_sigma - whole.plan.screening_bytes))
      << "W";
  EXPECT_GT(of_sigma, whole.plan.screening_bytes);
  EXPECT_LT(of_epsilon, both_whole);
  EXPECT_LT(few.plan.memory_bytes, whole.plan.memory_bytes);
  EXPECT_EQ(whole.plan.subspace_vectors, 0);
  EXPECT_EQ(few.plan.subspace_vectors, 8) << "three stand for G = 0 at q → 0";
}

}  // namespace
}  // namespace quasi::gw
