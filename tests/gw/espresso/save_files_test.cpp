// Compares the data of PREFIX.save with those of pw2bgw.x, with the energies of pw.x and with
// closed forms (docs/theory/gw.md 1.5).

#include <gtest/gtest.h>

#include "tests/gw/espresso/save_fixture.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/espresso/save_potentials.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using test::largest_difference;
using test::largest_difference_of_lists;

class SaveFiles : public testing::Test {
 protected:
  void SetUp() override {
    test::unpack_espresso_fixture(directory_.path());
    if (!test::reads_saves(directory_.path() / "x.save"))
      GTEST_SKIP() << "this program was built without pugixml";
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  EspressoSave save() const { return read_espresso_save(path("x.save")); }
  /// Returns the number in the first element of a name after <output>.
  double number_of_schema(const std::string& name) const {
    const std::string text = test::text_of(path("x.save/data-file-schema.xml"));
    const auto at = text.find("<" + name + ">", text.find("<output>"));
    return std::stod(text.substr(at + name.size() + 2));
  }
  std::vector<Quasiparticle> energies(const std::string& mean_field) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    // The few bands of these runs hold a small part of the f-sum.
    const std::string text = "kind = \"gw\"\nchecks.accept = [\"f_sum\"]\n[meanfield]\n" +
                             mean_field +
                             "long_wave = \"kp\"\nmax_projector_residual = 0.01\n"
                             "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 5\n";
    return run_calculation(parse_deck(text, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent)
        .quasiparticles;
  }
  quasi::test::TemporaryDirectory directory_;
};

// Coefficients keep their bits. Energies pass through 16 digits of text and a factor of two.
TEST_F(SaveFiles, StatesAreThoseOfTheConverter) {
  const Wavefunctions found = read_espresso_states(save(), {}),
                      wanted = read_wavefunctions(path("WFN"));
  EXPECT_NO_THROW(require_same_crystal(found.header, "save", wanted.header, "WFN"));
  EXPECT_EQ(found.n_bands, wanted.n_bands);
  EXPECT_EQ(found.k_grid, wanted.k_grid);
  EXPECT_EQ(found.last_occupied, wanted.last_occupied);
  EXPECT_LT(largest_difference_of_lists(found.energy_ry, wanted.energy_ry), 1e-13);
  EXPECT_LT(largest_difference_of_lists(found.weight, wanted.weight), 1e-12);
  ASSERT_EQ(found.n_k(), wanted.n_k());
  for (std::size_t ik = 0; ik < found.waves.size(); ++ik) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(found.k[ik][i], wanted.k[ik][i], 1e-12);
    EXPECT_EQ(found.waves[ik].g, wanted.waves[ik].g);
    EXPECT_TRUE(found.waves[ik].coefficients[0] == wanted.waves[ik].coefficients[0]);
  }
  const auto &a = found.header.crystal.symmetries, &b = wanted.header.crystal.symmetries;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) EXPECT_EQ(a[s].rotation, b[s].rotation);
}

TEST_F(SaveFiles, StatesInPiecesAreTheSame) {
  StateStorage storage;
  storage.memory_bytes = 4096;
  const Wavefunctions whole = read_espresso_states(save(), {}),
                      pieces = read_espresso_states(save(), storage);
  for (std::size_t ik = 0; ik < whole.waves.size(); ++ik) {
    EXPECT_TRUE(pieces.waves[ik].coefficients[0].is_mapped());
    EXPECT_TRUE(pieces.waves[ik].coefficients[0] == whole.waves[ik].coefficients[0]);
  }
}

TEST_F(SaveFiles, DensityIsThatOfTheConverter) {
  EXPECT_LT(largest_difference(read_espresso_density(save()), read_field(path("RHO"), "RHO")),
            1e-13);
}

// pw.x has functionals of its own, whose constants differ from those of libxc beyond six digits.
TEST_F(SaveFiles, PotentialsAreThoseOfTheConverter) {
  QUASI_NEED_LIBXC;
  for (const auto& [of, name] :
       {std::pair{XcDensity::kValence, "VXC"}, {XcDensity::kWithCore, "VXC_CORE"}})
    EXPECT_LT(
        largest_difference(exchange_correlation_of_save(save(), of), read_field(path(name), "VXC")),
        1e-6)
        << name;
  EXPECT_LT(largest_difference(local_potential_of_save(save()), read_field(path("VSC"), "VSC")),
            1e-6);
}

// The projectors may be in another order within l, so the whole H is compared.
TEST_F(SaveFiles, HamiltonianIsThatOfTheConverterAndOfTheRun) {
  QUASI_NEED_LIBXC;
  const Wavefunctions waves = read_espresso_states(save(), {});
  const PlaneWaveField own = local_potential_of_save(save()),
                       potential = read_field(path("VSC"), "VSC");
  const Projectors of_save = projectors_of_save(save()), of_file = read_projectors(path("VKB"));
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    const auto made = dense_hamiltonian(waves, ik, 0, potential, of_save),
               wanted = dense_hamiltonian(waves, ik, 0, potential, of_file);
    EXPECT_LT(largest_difference_of_lists(made, wanted), 1e-9);
    const auto h = dense_hamiltonian(waves, ik, 0, own, of_save);
    const auto& at = waves.waves[static_cast<std::size_t>(ik)];
    const std::size_t n = at.g.size();
    for (int band = 0; band < waves.n_bands; ++band) {  // ‖Hψ − Eψ‖ of the states of pw.x
      const Cplx* c = at.coefficients[0].data() + static_cast<std::size_t>(band) * n;
      double squared = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        Cplx sum = -waves.energy(0, ik, band) * c[i];
        for (std::size_t j = 0; j < n; ++j) sum += h[i * n + j] * c[j];
        squared += std::norm(sum);
      }
      EXPECT_LT(std::sqrt(squared), 2e-6) << "k " << ik << " band " << band;
    }
  }
}

// The schema holds ∫ V_xc ρ of the valence density in Hartree. The constants of PBE in pw.x
// differ from those of libxc by 1e-6 of the gradient terms.
TEST_F(SaveFiles, PotentialIntegratesToTheEnergyOfTheRun) {
  QUASI_NEED_LIBXC;
  const PlaneWaveField density = read_espresso_density(save()),
                       potential = exchange_correlation_of_save(save(), XcDensity::kWithCore);
  double integral_ry = 0.0;
  for (std::size_t i = 0; i < density.header.g.size(); ++i)
    integral_ry += (std::conj(density.values[0][i]) * potential.values[0][i]).real();
  EXPECT_NEAR(integral_ry, 2.0 * number_of_schema("vtxc"), 1e-5);
}

TEST_F(SaveFiles, Hdf5HoldsTheSame) {
  const EspressoSave records = save();
  const Wavefunctions waves = read_espresso_states(records, {});
  const PlaneWaveField density = read_espresso_density(records);
  const auto indices = [](const std::vector<IVec3>& g) {
    std::vector<std::int32_t> flat;
    for (const IVec3& v : g) flat.insert(flat.end(), v.begin(), v.end());
    return flat;
  };
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    const auto& at = waves.waves[static_cast<std::size_t>(ik)];
    const auto n = static_cast<std::int64_t>(at.g.size());
    const std::string name = "x.save/wfc" + std::to_string(ik + 1);
    H5Writer file(path(name + ".hdf5"));
    file.write("/MillerIndices", indices(at.g), {n, 3}, "1");
    const auto* values = reinterpret_cast<const double*>(at.coefficients[0].data());
    file.write("/evc", std::vector<double>(values, values + 2 * n * waves.n_bands),
               {waves.n_bands, 2 * n}, "1");
    file.commit();
    std::filesystem::remove(path(name + ".dat"));
  }
  H5Writer file(path("x.save/charge-density.hdf5"));
  const auto n = static_cast<std::int64_t>(density.header.g.size());
  file.write("/MillerIndices", indices(density.header.g), {n, 3}, "1");
  std::vector<double> parts;
  for (const Cplx& value : density.values[0])
    for (const double part : {value.real(), value.imag()})
      parts.push_back(part / records.crystal().volume_bohr3);
  file.write("/rhotot_g", parts, {2 * n}, "1");
  file.commit();
  std::filesystem::remove(path("x.save/charge-density.dat"));
  const Wavefunctions found = read_espresso_states(save(), {});
  for (std::size_t ik = 0; ik < found.waves.size(); ++ik) {
    EXPECT_EQ(found.waves[ik].g, waves.waves[ik].g);
    EXPECT_TRUE(found.waves[ik].coefficients[0] == waves.waves[ik].coefficients[0]);
  }
  EXPECT_LT(largest_difference(read_espresso_density(save()), density), 1e-13);
}

// The energies of a job from the folder are those from the files of pw2bgw.x within 0.01 meV,
// which is the difference of the functionals.
TEST_F(SaveFiles, QuasiparticlesAreThoseOfTheFiles) {
  QUASI_NEED_LIBXC;
  const std::string direct_keys = "source = \"quantum-espresso\"\nsave = \"x.save\"\n";
  const std::string file_keys = "wfn = \"WFN\"\nrho = \"RHO\"\nvsc = \"VSC\"\nvkb = \"VKB\"\n";
  for (const bool core : {false, true}) {
    const auto direct = energies(direct_keys + (core ? "vxc_core_charge = true\n" : "")),
               files = energies(file_keys + "vxc = \"" + (core ? "VXC_CORE" : "VXC") + "\"\n");
    ASSERT_EQ(direct.size(), files.size());
    ASSERT_GE(direct.size(), 15U);
    for (std::size_t i = 0; i < direct.size(); ++i) {
      ASSERT_TRUE(direct[i].qp1_ev && files[i].qp1_ev);
      EXPECT_NEAR(*direct[i].qp1_ev, *files[i].qp1_ev, 1e-5) << i;
      EXPECT_NEAR(*direct[i].vxc_ev, *files[i].vxc_ev, 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace quasi::gw
