#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/reference_files.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"

// q → 0 by k·p against wavefunctions on a shifted grid.
namespace quasi::gw {
namespace {

using test::ReferenceCase;

Calculation epsilon_of(const std::string& mean_field, const std::string& epsilon,
                       const std::filesystem::path& directory = ".") {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck = parse_deck("kind = \"gw\"\nstop_after = \"epsilon\"\n[meanfield]\n" +
                                   mean_field + "[epsilon]\n" + epsilon,
                               {}, "test", directory);
  return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
}

double head(const Calculation& run) { return run.epsilon[0].epsilon_diagonal[0].real(); }
double inverse_head(const Calculation& run) { return run.epsilon[0].inverse[0][0].real(); }

// For a local H k·p is the limit itself: heads at finite q₀ approach it as q₀², so that two of them
// extrapolate to it. 1e-6: the next order is q₀⁴ (1e-6 at q₀ = 0.002), and the states' rounding is
// divided by q₀².
TEST(LongWave, IsTheLimitOfFiniteQ) {
  const std::string crystal = "source = \"epm\"\ncutoff_ry = 7.0\nk_grid = [2, 2, 2]\nbands = 14\n";
  for (const std::string name : {"silicon", "gaas"}) {
    SCOPED_TRACE(name);
    const std::string base = crystal + "crystal = \"" + name + "\"\n";
    const Calculation limit = epsilon_of(base + "long_wave = \"kp\"\n", "cutoff_ry = 4.0\n");
    const Calculation near =
        epsilon_of(base + "long_wave = \"states\"\nq0 = [0.0005, 0, 0]\n", "cutoff_ry = 4.0\n");
    const Calculation far =
        epsilon_of(base + "long_wave = \"states\"\nq0 = [0.001, 0, 0]\n", "cutoff_ry = 4.0\n");
    const double extrapolated = (4.0 * head(near) - head(far)) / 3.0,
                 extrapolated_inverse = (4.0 * inverse_head(near) - inverse_head(far)) / 3.0;
    EXPECT_GT(std::abs(head(far) - head(limit)), 1e-5 * head(limit))
        << "finite q must differ, else nothing is shown";
    EXPECT_NEAR((head(far) - head(limit)) / (head(near) - head(limit)), 4.0, 0.02);
    EXPECT_NEAR(extrapolated, head(limit), 1e-6 * head(limit));
    EXPECT_NEAR(extrapolated_inverse, inverse_head(limit), 1e-6);
  }
}

// The whole of ε⁻¹ at q → 0 in a direction that no symmetry prefers: each element approaches k·p as
// the distance to the limit, first order in q₀ for the wings. Halving q₀ must halve what is left,
// or better.
TEST(LongWave, EveryElementInAGeneralDirection) {
  const std::string base =
      "source = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 7.0\nk_grid = [2, 2, 2]\nbands = 14\n";
  // ε̃⁻¹ = v^−½ ε⁻¹ v^½, whose wings neither vanish nor diverge with q₀.
  const auto symmetric = [&](const std::string& how, double scale) {
    char q0[96];
    std::snprintf(q0, sizeof q0, "q0 = [%g, %g, %g]\n", 3e-4 * scale, 5e-4 * scale, -2e-4 * scale);
    const Calculation run =
        epsilon_of(base + "long_wave = \"" + how + "\"\n" + q0, "cutoff_ry = 4.0\n");
    const DielectricMatrix& m = run.epsilon[0];
    const auto n = static_cast<std::size_t>(m.size());
    std::vector<Cplx> e(n * n);
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        e[g * n + h] = m.inverse[0][g * n + h] * std::sqrt(m.coulomb[h] / m.coulomb[g]);
    return e;
  };
  const auto distance = [](const std::vector<Cplx>& a, const std::vector<Cplx>& b) {
    double worst = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst;
  };
  const double at_one = distance(symmetric("kp", 1.0), symmetric("states", 1.0)),
               at_half = distance(symmetric("kp", 0.5), symmetric("states", 0.5));
  EXPECT_LT(at_one, 5e-3);
  EXPECT_LT(at_half, 0.55 * at_one);
}

// Real pseudopotentials without WFNq: the states at k + q₀ diagonalised with projectors fitted to
// VKB are those of the file, and so is the head, far within the 1e-3 that the deck demands.
TEST(LongWave, DenseStatesReplaceWfnq) {
  QUASI_NEED_REFERENCE("gw/si2");
  ReferenceCase files("si2");
  for (const char* name : {"WFN", "WFNq", "RHO", "VSC", "VKB"}) files.file(name);
  const std::string epsilon = "cutoff_ry = 4.0\nbands = 30\n";
  const Calculation states =
      epsilon_of("wfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n", epsilon, files.directory());
  const Calculation made = epsilon_of(
      "wfn = \"WFN\"\nrho = \"RHO\"\nvsc = \"VSC\"\nvkb = \"VKB\"\n", epsilon, files.directory());
  ASSERT_NE(made.field.nonlocal, nullptr);
  EXPECT_LT(made.field.nonlocal->residual(), 1e-8);
  for (const Vec3& k : states.field.shifted->k)
    EXPECT_NO_THROW(made.field.shifted_zone->rotation_to(k));
  EXPECT_NEAR(head(made), head(states), 1e-5 * head(states));
  EXPECT_NEAR(inverse_head(made), inverse_head(states), 1e-5 * inverse_head(states));
  // Where the projectors are known less well than the deck demands, the job ends with the way out,
  // before ε.
  try {
    epsilon_of(
        "wfn = \"WFN\"\nrho = \"RHO\"\nvsc = \"VSC\"\nvkb = \"VKB\"\nmax_projector_residual = "
        "1e-12\n",
        epsilon, files.directory());
    ADD_FAILURE() << "a residual above max_projector_residual was accepted";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("give meanfield.wfnq"), std::string::npos)
        << failure.what();
    EXPECT_NE(std::string(failure.what()).find("max_projector_residual"), std::string::npos)
        << failure.what();
  }
}

// k·p keeps the plane waves of k; WFNq has the sphere of k + q₀, whose surface gains and loses
// plane waves however small q₀ is. That jump, divided by q₀, is 0.6 % of the head here: with the
// plane waves held fixed the states at k + q₀ give k·p's head to 1e-4 (the order q₀²).
TEST(LongWave, VelocityEqualsStatesOnFixedPlaneWaves) {
  QUASI_NEED_REFERENCE("gw/si2");
  ReferenceCase files("si2");
  for (const char* name : {"WFN", "RHO", "VSC", "VKB"}) files.file(name);
  const std::string epsilon = "cutoff_ry = 4.0\nbands = 30\n";
  const Calculation velocity =
      epsilon_of("wfn = \"WFN\"\nrho = \"RHO\"\nvsc = \"VSC\"\nvkb = \"VKB\"\nlong_wave = \"kp\"\n",
                 epsilon, files.directory());
  const MeanField& field = velocity.field;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const PlaneWaveField vsc = read_field(files.file("VSC"), "VSC");
  // ε_00 by its definition, over the whole zone, each k with the plane waves of its own sphere.
  const int n_v = field.n_occupied, n_bands = 30;
  double on_fixed = 0.0, by_velocity = 0.0, local_only = 0.0;
  for (const Orbit& orbit :
       orbits(field.zone, little_group(field.zone.operations(), field.q0, true))) {
    const Rotation r = field.zone.rotation_to(
        field.zone.points()[static_cast<std::size_t>(orbit.representative)].k);
    const auto weight = static_cast<double>(orbit.size);
    const SymmetryOperation& s = field.zone.operations()[static_cast<std::size_t>(r.operation)];
    const Vec3 q = multiply(inverse(s.rotation), field.q0);  // seen from the irreducible point
    const auto& at = field.waves.waves[static_cast<std::size_t>(r.irreducible)];
    const auto n = static_cast<std::int64_t>(at.g.size());
    const auto h = dense_hamiltonian_at(field.crystal(),
                                        field.waves.k[static_cast<std::size_t>(r.irreducible)] + q,
                                        at.g, 0, vsc, *field.nonlocal);
    std::vector<double> values(static_cast<std::size_t>(n_v));
    std::vector<Cplx> vectors(static_cast<std::size_t>(n_v * n));
    kernels->dense().eigen_hermitian(view<const Cplx>(h, n, n), view<double>(values, n_v),
                                     view<Cplx>(vectors, n_v, n));
    const BandPairs pairs{r.irreducible, 0, {0, n_v}, {n_v, n_bands}};
    const auto p = velocity_matrices(field.waves, pairs, {q}, field.nonlocal.get(), *kernels);
    const auto p_local = velocity_matrices(field.waves, pairs, {q}, nullptr, *kernels);
    for (int v = 0; v < n_v; ++v)
      for (int c = n_v; c < n_bands; ++c) {
        Cplx overlap;
        for (std::int64_t g = 0; g < n; ++g)
          overlap += std::conj(vectors[static_cast<std::size_t>(v * n + g)]) *
                     at.coefficients[0][static_cast<std::size_t>(c * n + g)];
        const double delta =
            field.waves.energy(0, r.irreducible, v) - field.waves.energy(0, r.irreducible, c);
        const auto pair = static_cast<std::size_t>(v * (n_bands - n_v) + c - n_v);
        on_fixed += weight * std::norm(overlap) /
                    (values[static_cast<std::size_t>(v)] - field.waves.energy(0, r.irreducible, c));
        by_velocity += weight * std::norm(p[pair] / delta) / delta;
        local_only += weight * std::norm(p_local[pair] / delta) / delta;
      }
  }
  const double scale = 8.0 * kPi / metric_dot(field.crystal().bdot, field.q0, field.q0) * 4.0 /
                       field.zone_volume_bohr3();
  EXPECT_NEAR(1.0 - scale * by_velocity, head(velocity),
              1e-6 * head(velocity));  // the file's states break symmetry a little
  EXPECT_NEAR(1.0 - scale * on_fixed, head(velocity), 1e-4 * head(velocity));
  EXPECT_GT(std::abs(1.0 - scale * local_only - head(velocity)), 1e-2 * head(velocity))
      << "the non-local part must matter, else nothing is shown";
}

// velocity_matrices() has two ways to multiply. With few empty bands one matrix product serves all
// three directions; with many each direction has its own. Both must give the same matrices.
TEST(LongWave, DirectionsTogetherEqualThoseInTurn) {
  const Calculation run = epsilon_of(
      "source = \"epm\"\ncrystal = \"gaas\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 24\n",
      "cutoff_ry = 2.0\n");
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const std::vector<Vec3> directions{{0.1, 0.0, 0.02}, {0.0, -0.3, 0.1}, {0.2, 0.2, 0.2}};
  const BandPairs pairs{0, 0, {0, 16}, {17, 22}};
  const auto all = velocity_matrices(run.field.waves, pairs, directions, nullptr, *kernels);
  const std::size_t each = 16 * 5;
  ASSERT_EQ(all.size(), directions.size() * each);
  double largest = 0.0;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const auto one = velocity_matrices(run.field.waves, pairs, {directions[d]}, nullptr, *kernels);
    for (std::size_t i = 0; i < each; ++i) {
      EXPECT_NEAR(std::abs(all[d * each + i] - one[i]), 0.0, 1e-13);
      largest = std::max(largest, std::abs(one[i]));
    }
  }
  EXPECT_GT(largest, 0.01) << "the elements must not vanish, else nothing is shown";
}

// Fitted projectors at points between those of the file: leave one k-point out and predict it.
TEST(LongWave, ProjectorsPredictAnotherKPoint) {
  QUASI_NEED_REFERENCE("gw/si2");
  ReferenceCase files("si2");
  const Projectors all = read_projectors(files.file("VKB"));
  Projectors fewer = all;
  const std::size_t left_out = 5;
  fewer.k.erase(fewer.k.begin() + left_out);
  fewer.g.erase(fewer.g.begin() + left_out);
  fewer.beta.erase(fewer.beta.begin() + left_out);
  const RadialProjectors fitted(fewer);
  std::vector<Vec3> points;
  for (const IVec3& g : all.g[left_out])
    points.push_back(to_cartesian(all.header.crystal.bvec, all.header.crystal.blat_per_bohr,
                                  all.k[left_out] + to_real(g)));
  const auto predicted = fitted.at(points);
  double worst = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    worst = std::max(worst, std::abs(predicted[i] - all.beta[left_out][i]));
    largest = std::max(largest, std::abs(all.beta[left_out][i]));
  }
  std::printf("left-out k-point: %.2e of %.2e\n", worst, largest);
  EXPECT_LT(worst, 1e-4 * largest);
}

}  // namespace
}  // namespace quasi::gw
