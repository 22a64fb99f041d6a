#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "tests/gw/support/reference_files.hpp"
#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/berkeleygw_inputs.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

// eps0mat.h5 and epsmat.h5, and the inputs of BerkeleyGW.
namespace quasi::gw {
namespace {

using test::ReferenceCase;

Calculation run(const Deck& deck) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
}

/// A small crystal from files that we write ourselves: WFN, WFNq and RHO of the built-in silicon.
class SmallSilicon : public testing::Test {
 protected:
  void SetUp() override {
    test::write_files_of(test::silicon_for_files(7.0, 14), directory_.path());
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  Deck deck(const std::string& epsilon, const std::string& sigma, bool wfnq = true) const {
    return parse_deck("kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\n" +
                          std::string(wfnq ? "wfnq = \"WFNq\"\n" : "") + "[epsilon]\n" + epsilon +
                          "[sigma]\nband_max = 8\n" + sigma,
                      {}, "test", directory_.path());
  }
  quasi::test::TemporaryDirectory directory_;
};

// Σ from stored matrices is Σ from those in memory: the same numbers went through the file. The
// order of sums is the same too, so 1e-12 eV only allows for v̄ at points folded through the header.
TEST_F(SmallSilicon, StoredEpsilonGivesTheSameSelfEnergy) {
  const std::string grid = "real_max_ev = 60.0\nreal_step_ev = 1.0\nimaginary_points = 6\n";
  for (const auto& [method, extra] : {std::pair{std::string("hl-gpp"), std::string()},
                                      {"gn-gpp", ""},
                                      {"contour", grid},
                                      {"cohsex", ""}}) {
    SCOPED_TRACE(method);
    const std::string sigma = "method = \"" + method + "\"\n";
    const Calculation whole = run(deck("cutoff_ry = 4.0\nbands = 14\n" + extra, sigma));
    const EpsilonFiles files{path("eps0mat.h5"), path("epsmat.h5")};
    write_epsilon(files, whole.field, whole.epsilon, whole.plan.epsilon,
                  CoulombInteraction(whole.field.crystal(), whole.field.waves.k_grid, {}));
    const Calculation stored =
        run(deck("eps0mat = \"eps0mat.h5\"\nepsmat = \"epsmat.h5\"\n", sigma, false));
    ASSERT_EQ(stored.quasiparticles.size(), whole.quasiparticles.size());
    for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i) {
      EXPECT_NEAR(stored.quasiparticles[i].sigma_ev, whole.quasiparticles[i].sigma_ev, 1e-12);
      EXPECT_NEAR(stored.quasiparticles[i].z, whole.quasiparticles[i].z, 1e-10);
    }
  }
}

TEST_F(SmallSilicon, StoredEpsilonThatDoesNotFitIsRefused) {
  const Calculation whole = run(deck("cutoff_ry = 4.0\n", "method = \"cohsex\"\n"));
  const EpsilonFiles files{path("eps0mat.h5"), path("epsmat.h5")};
  const CoulombInteraction coulomb(whole.field.crystal(), whole.field.waves.k_grid, {});
  std::vector<DielectricMatrix> fewer(whole.epsilon.begin(), whole.epsilon.end() - 1);
  write_epsilon(files, whole.field, fewer, whole.plan.epsilon, coulomb);
  const std::string stored = "eps0mat = \"eps0mat.h5\"\nepsmat = \"epsmat.h5\"\n";
  const auto message = [&](const std::string& epsilon, const std::string& sigma) -> std::string {
    try {
      run(deck(epsilon, sigma, false));
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_NE(message(stored, "method = \"cohsex\"\n").find("has no q ="), std::string::npos);
  EXPECT_NE(message(stored, "method = \"contour\"\n").find("real and an imaginary axis"),
            std::string::npos);
  EXPECT_NE(message(stored, "method = \"gn-gpp\"\n").find("imaginary frequency"),
            std::string::npos);
  EXPECT_NE(message(stored + "bands = 10\n", "").find("epsilon.bands"), std::string::npos);
  EXPECT_NE(message("epsmat = \"epsmat.h5\"\n", "").find("epsilon.eps0mat"), std::string::npos);
  EXPECT_NE(message("eps0mat = \"RHO\"\n", "").find("RHO"), std::string::npos);
  EXPECT_NE(message(stored, "screened_cutoff_ry = 5.0\n").find("exceeds the cut-off of ε⁻¹"),
            std::string::npos);
}

// epsilon.inp and sigma.inp are another spelling of one deck: the same bits come out.
TEST_F(SmallSilicon, FieldDecksEqualTheToml) {
  std::ofstream(path("epsilon.inp"))
      << "epsilon_cutoff 4.0   # Ry\nnumber_bands 14\nband_occupation 4*1 10*0\ngcomm_matrix\n"
         "begin qpoints\n 0.001 0.0 0.0 1.0 1\n 0 0 0.5 1.0 0\n 0 1 1 2.0 0\nend\n";
  std::ofstream(path("sigma.inp"))
      << "screened_coulomb_cutoff 4.0d0\nbare_coulomb_cutoff 7.0\nnumber_bands 14\nband_index_min "
         "1\n"
         "band_index_max 8\nscreening_semiconductor\nfrequency_dependence "
         "1\nfinite_difference_form 0\n"
         "finite_difference_spacing 0.5\ninvalid_gpp_mode 0\nbegin kpoints\n 0 0 0 1\n 0 0 1 "
         "2\nend\n";
  std::ofstream(path("vxc.dat")) << "";
  std::filesystem::remove(path("vxc.dat"));
  PlaneWaveField zero = read_field(path("RHO"), "RHO");
  zero.header.title = "VXC-Complex";
  for (auto& value : zero.values[0]) value = 0.0;
  write_field(path("VXC"), zero);
  const Calculation ours = run(read_deck(directory_.path(), {}));
  const Calculation toml =
      run(parse_deck("kind = \"gw\"\ncompat = \"bgw\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = "
                     "\"WFNq\"\nrho = \"RHO\"\nvxc = \"VXC\"\n[epsilon]\ncutoff_ry = 4.0\n"
                     "bands = 14\n[sigma]\nbands = 14\nband_max = 8\nbare_cutoff_ry = "
                     "7.0\ninvalid_modes = \"skip\"\nderivative = \"central\"\n"
                     "derivative_step_ev = 0.5\nkpoints = [[0,0,0],[0,0,0.5]]\n",
                     {}, "test", directory_.path()));
  ASSERT_EQ(ours.quasiparticles.size(), 16u);
  ASSERT_EQ(toml.quasiparticles.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(ours.quasiparticles[i].sigma_ev, toml.quasiparticles[i].sigma_ev);
    EXPECT_EQ(*ours.quasiparticles[i].qp1_ev, *toml.quasiparticles[i].qp1_ev);
  }
  // epsilon.inp alone ends with ε⁻¹; sigma.inp alone starts from it.
  std::filesystem::rename(path("sigma.inp"), path("kept"));
  const Deck first = read_deck(directory_.path(), {});
  EXPECT_TRUE(first.stop_after_epsilon);
  const Calculation epsilon = run(first);
  EXPECT_TRUE(epsilon.quasiparticles.empty());
  write_epsilon({path("eps0mat.h5"), path("epsmat.h5")}, epsilon.field, epsilon.epsilon,
                epsilon.plan.epsilon,
                CoulombInteraction(epsilon.field.crystal(), epsilon.field.waves.k_grid, {}));
  std::filesystem::rename(path("kept"), path("sigma.inp"));
  std::filesystem::remove(path("epsilon.inp"));
  std::filesystem::remove(path("WFNq"));
  const Calculation second = run(read_deck(directory_.path() / "sigma.inp", {}));
  ASSERT_EQ(second.quasiparticles.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(second.quasiparticles[i].sigma_ev, ours.quasiparticles[i].sigma_ev, 1e-12);
}

TEST_F(SmallSilicon, FieldDecksNameWhatTheyCannotDo) {
  const std::string good = "epsilon_cutoff 4.0\nnumber_bands 14\n";
  const auto message = [&](const std::string& epsilon, const std::string& sigma) -> std::string {
    std::filesystem::remove(path("sigma.inp"));
    std::ofstream(path("epsilon.inp")) << epsilon;
    if (!sigma.empty()) std::ofstream(path("sigma.inp")) << sigma;
    try {
      run(read_deck(directory_.path(), {}));
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  };
  const auto expect_message = [&](const std::string& epsilon, const std::string& sigma,
                                  const std::string& part) {
    EXPECT_NE(message(epsilon, sigma).find(part), std::string::npos) << part << "\n"
                                                                     << message(epsilon, sigma);
  };
  expect_message(good + "\n# a comment\nskip_chi\n", "", "epsilon.inp:5: the keyword 'skip_chi'");
  expect_message(good + "number_band 14\n", "", "did you mean 'number_bands'");
  expect_message("epsilon_cutoff ten\n", "", "epsilon.inp:1: 'ten' is not a number");
  expect_message("epsilon_cutoff 4.0\nnumber_bands 7.5\n", "",
                 "epsilon.inp:2: '7.5' is not a whole number");
  expect_message(good + "frequency_dependence 1\n", "", "epsilon.inp:3: frequency_dependence = 1");
  expect_message(good + "begin qpoints\n0 0 0.5 1\nend\n", "",
                 "the list of q-points lacks (0.001000");
  expect_message(good + "begin qpoints\n0 0 0.5 1\n", "", "has no 'end'");
  expect_message(good + "band_occupation 3*1 11*0\n", "", "counts 3 occupied bands");
  expect_message(good, "frequency_dependence 2\nscreened_coulomb_cutoff 4\n", "set both alike");
  expect_message(good, "frequency_dependence 1\nsigma_matrix -1 -1\n",
                 "sigma.inp:2: the keyword 'sigma_matrix'");
  expect_message(good, "begin offdiag\n1 2 2 1\nend\n", "sigma.inp:1: the block 'offdiag'");
  expect_message(good + "degeneracy_check_override\n", "", "split a multiplet are lowered");
  expect_message(good + "cell_average_cutoff 1.0d-8\n", "",
                 "epsilon.inp:3: 'cell_average_cutoff' other than 1e-12");
  expect_message(good + "elph_phonq 0 0 0\n", "", "epsilon.inp:3: the keyword 'elph_phonq'");
}

/// Every dataset of a file, groups walked.
void walk(const H5Reader& file, const std::string& group,
          const std::function<void(const std::string&)>& visit) {
  for (const std::string& name : file.children(group == "" ? "/" : group)) {
    const std::string path = group + "/" + name;
    bool is_group = true;
    try {
      file.children(path);
    } catch (const InvalidInput&) {
      is_group = false;
    }
    if (is_group)
      walk(file, path, visit);
    else
      visit(path);
  }
}

// Our files have the datasets, shapes and values of those that BerkeleyGW wrote of the same
// job: 1e-10 in ε⁻¹, 1e-9 relative elsewhere. Rows may be ordered differently within a shell, so
// matrices are compared by G.
TEST(EpsilonFile, EqualsTheReferencesFile) {
  QUASI_NEED_REFERENCE("gw/si2");
  ReferenceCase files("si2");
  for (const char* name : {"WFN", "WFNq", "RHO", "eps0mat.h5", "epsmat.h5"}) files.file(name);
  const Calculation ours =
      run(parse_deck("kind = \"gw\"\nstop_after = \"epsilon\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = "
                     "\"WFNq\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 10.0\nbands = 30\n",
                     {}, "test", files.directory()));
  quasi::test::TemporaryDirectory out;
  const CoulombInteraction coulomb(ours.field.crystal(), ours.field.waves.k_grid, {});
  const EpsilonFiles written{out.path() / "eps0mat.h5", out.path() / "epsmat.h5"};
  write_epsilon(written, ours.field, ours.epsilon, ours.plan.epsilon, coulomb);
  const EpsilonFiles reference{files.file("eps0mat.h5"), files.file("epsmat.h5")};

  for (const auto& [mine, theirs] :
       {std::pair{written.gamma, reference.gamma}, {written.others, reference.others}}) {
    const H5Reader a(mine), b(theirs);
    int datasets = 0;
    walk(b, "", [&](const std::string& path) {
      ++datasets;
      ASSERT_TRUE(a.has(path)) << path;
      EXPECT_EQ(a.shape(path), b.shape(path)) << path;
      const bool by_g = path.find("/mats/") == 0 || path.find("gind_") != std::string::npos ||
                        path.find("vcoul") != std::string::npos;
      if (by_g) return;
      const auto x = a.doubles(path), y = b.doubles(path);
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(x[i], y[i], 1e-9 * std::max(1.0, std::abs(y[i]))) << path << " " << i;
    });
    EXPECT_GT(datasets, 50);
    // The two lists of indices undo each other.
    const auto to = a.integers("/eps_header/gspace/gind_eps2rho"),
               from = a.integers("/eps_header/gspace/gind_rho2eps");
    const auto n = static_cast<std::size_t>(a.integer("/mf_header/gspace/ng"));
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(from[i / n * n + static_cast<std::size_t>(to[i] - 1)],
                static_cast<std::int64_t>(i % n) + 1);
  }

  const auto back = read_epsilon(written, ours.field, coulomb),
             theirs = read_epsilon(reference, ours.field, coulomb);
  ASSERT_EQ(back.size(), ours.epsilon.size());
  for (std::size_t iq = 0; iq < back.size(); ++iq) {
    EXPECT_EQ(back[iq].sphere.g, ours.epsilon[iq].sphere.g);
    EXPECT_EQ(back[iq].inverse[0], ours.epsilon[iq].inverse[0]);  // bit for bit
    const GIndex index(theirs[iq].sphere.g);
    const auto n = static_cast<std::size_t>(back[iq].size());
    ASSERT_EQ(theirs[iq].size(), back[iq].size());
    double worst = 0.0;
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) {
        const auto i = static_cast<std::size_t>(index.find(back[iq].sphere.g[g])),
                   j = static_cast<std::size_t>(index.find(back[iq].sphere.g[h]));
        worst = std::max(
            worst, std::abs(back[iq].inverse[0][g * n + h] - theirs[iq].inverse[0][i * n + j]));
      }
    EXPECT_LT(worst, 1e-10);
  }
}

}  // namespace
}  // namespace quasi::gw
