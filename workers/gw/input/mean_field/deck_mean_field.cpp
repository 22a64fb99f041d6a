#include "workers/gw/input/mean_field/deck_mean_field.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/input/deck_sigma.hpp"
#include "workers/gw/input/spinors/deck_spinors.hpp"

namespace quasi::gw {
namespace {

Vec3 vector_of(TableReader& reader, const std::string& key, const Vec3& fallback) {
  const auto values = reader.numbers(key, -1e3, 1e3);
  if (!values) return fallback;
  if (values->size() != 3)
    reader.fail(key, "holds " + std::to_string(values->size()) + " numbers; give 3");
  return {(*values)[0], (*values)[1], (*values)[2]};
}

IVec3 grid_of(TableReader& reader, const std::string& key, const IVec3& fallback) {
  const auto values = reader.numbers(key, 1, 1000);
  if (!values) return fallback;
  IVec3 grid{};
  if (values->size() != 3)
    reader.fail(key, "holds " + std::to_string(values->size()) + " numbers; give 3 whole ones");
  for (int i = 0; i < 3; ++i) {
    grid[i] = static_cast<int>((*values)[static_cast<std::size_t>(i)]);
    if (grid[i] != (*values)[static_cast<std::size_t>(i)])
      reader.fail(
          key, "holds " + shown((*values)[static_cast<std::size_t>(i)]) + "; give 3 whole numbers");
  }
  return grid;
}

void read_crystal(TableReader& reader, EmpiricalCrystal& c) {
  const auto names = empirical_crystal_names();
  c.name = names[reader.choice("crystal", 0, names)];
  c.lattice_bohr = reader.number("lattice_bohr", 0.0, 0.0, 1000.0);
  const Vec3 stretch = vector_of(reader, "stretch", {1.0, 1.0, 1.0});
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!(stretch[axis] >= 0.8 && stretch[axis] <= 1.25))
      reader.fail(
          "stretch",
          "holds " + std::to_string(stretch[axis]) +
              ", outside 0.8 … 1.25, where the form factors hold; choose a value in this range");
    c.deformation[axis][axis] = stretch[axis];
  }
  c.cubic_cell = reader.choice("cell", 0, {"primitive", "cubic"}) == 1;
  if (c.cubic_cell && well_model(c.name) != nullptr)
    reader.fail("cell", "= \"cubic\" belongs to the crystals of diamond and zincblende; remove it");
  read_spin_orbit(reader, c);
  c.repeats = grid_of(reader, "supercell", c.repeats);
  c.origin_shift = vector_of(reader, "origin_shift", c.origin_shift);
  c.disorder_bohr = reader.number("disorder_bohr", c.disorder_bohr, 0.0, 0.5);
  c.disorder_seed = reader.integer("disorder_seed", c.disorder_seed, 0, 2147483647);
  if (c.disorder_bohr > 0.0 && well_model(c.name) != nullptr)
    reader.fail("disorder_bohr", "displaces atoms, \"monolayer\" has none; choose another crystal");
  if (c.disorder_bohr == 0.0 && reader.has("disorder_seed"))
    reader.fail("disorder_seed", "belongs to disorder_bohr; set that too, or remove the seed");
  c.wavefunction_cutoff_ry = reader.number("cutoff_ry", c.wavefunction_cutoff_ry, 0.5, 1000.0);
  c.k_grid = grid_of(reader, "k_grid", c.k_grid);
  c.bands = reader.integer("bands", c.bands, 2, kMaxBandCount);
  c.q0 = vector_of(reader, "q0", c.q0);
}

/// Lists the values of meanfield.long_wave in the order in which TableReader::choice() has them.
enum LongWaveChoice : std::size_t { kAutomatic, kStates, kDense, kVelocity };

/// Refuses keys of files in a deck with a built-in crystal.
/// @param limit  choice of meanfield.long_wave, LongWaveChoice
void check_crystal_keys(TableReader& reader, std::size_t limit) {
  if (limit == kDense)
    reader.fail("long_wave",
                "= \"dense\" belongs to files; \"states\" does the same with source = \"epm\"");
  for (const char* key : {"wfn", "wfnq", "wfn_outer", "wfn_inner", "vsc_inner", "vkb_inner", "rho",
                          "vsc", "vkb", "state_memory_mib"})
    if (reader.has(key))
      reader.fail(key, "is not allowed with source = \"epm\", which needs no files; remove it");
}

/// Refuses keys of the built-in crystal in a deck with files, and files that exclude each other.
/// @param limit  choice of meanfield.long_wave, LongWaveChoice
/// @param needs_density  true if the job needs the file RHO. A job that ends with ε⁻¹ makes the
///                       density from its states.
void check_file_keys(TableReader& reader, const MeanFieldOptions& m, std::size_t limit,
                     bool needs_density) {
  for (const char* key : {"crystal", "lattice_bohr", "stretch", "cell", "supercell", "origin_shift",
                          "disorder_bohr", "disorder_seed", "cutoff_ry", "k_grid", "bands"})
    if (reader.has(key))
      reader.fail(key, "belongs to source = \"epm\"; with files it follows from WFN, so remove it");
  const bool own = m.long_wave != LongWave::kStates;
  if (reader.has("q0") && !own)
    reader.fail(
        "q0", "follows from WFNq; remove q0, or set long_wave = \"dense\" or \"kp\" without wfnq");
  if (limit == kStates && m.wfnq.empty())
    reader.fail("long_wave",
                "= \"states\" needs wfnq; add it, or use \"dense\" or \"kp\" with vsc and vkb");
  if (own && !m.wfnq.empty())
    reader.fail("wfnq",
                "is not allowed with long_wave = \"dense\" or \"kp\", which need no second file; "
                "remove it");
  if (own && m.vkb.empty())
    reader.fail("long_wave",
                "needs vsc and vkb, which make the Hamiltonian between the k-points; add both");
  if (!m.wfn.empty() && m.wfn == m.rho) return;  // Both are the folder meanfield.save.
  for (const char* key : {"wfn", "rho"})
    if (!reader.has(key) && (needs_density || key[0] == 'w'))
      reader.fail(key, std::string("is missing: name the ") + (key[0] == 'w' ? "WFN" : "RHO") +
                           " file, or set source = \"epm\"");
}

/// Reads the keys solver and residual_ry. @pre the paths of the files are set in `m`
void read_eigensolver(TableReader& reader, MeanFieldOptions& m) {
  EigensolverOptions& e = m.eigensolver;
  e.method = static_cast<Eigensolver>(reader.choice("solver", 0, {"dense", "operator"}));
  e.residual_ry = reader.number("residual_ry", e.residual_ry, 1e-11, 1e-4);
  if (e.method == Eigensolver::kDense && reader.has("residual_ry"))
    reader.fail("residual_ry", "belongs to solver = \"operator\"; remove it or set that");
  if (e.method == Eigensolver::kOperator && !m.empirical && m.vsc.empty())
    reader.fail("solver", "= \"operator\" needs vsc and vkb, which make the Hamiltonian; add both");
  m.crystal.eigensolver = e;
}

/// Sets the folder PREFIX.save of Quantum ESPRESSO as the source of all data. It refuses the folder
/// beside another source, and single files beside the folder.
/// @param folder  value of meanfield.save; empty if the deck lacks it
/// @param wanted  true with source = "quantum-espresso"
void read_save(TableReader& reader, const std::filesystem::path& folder, bool wanted,
               MeanFieldOptions& m) {
  if (!wanted && !folder.empty())
    reader.fail("save", "belongs to source = \"quantum-espresso\"; set that, or remove it");
  for (const auto& [key, path] : {std::pair{"wfn", &m.wfn},
                                  {"rho", &m.rho},
                                  {"vxc", &m.vxc},
                                  {"vsc", &m.vsc},
                                  {"vkb", &m.vkb}})
    if (!wanted && std::filesystem::is_directory(*path))
      reader.fail(key,
                  "names a folder; give a folder PREFIX.save of Quantum ESPRESSO as `save` with "
                  "source = \"quantum-espresso\"");
    else if (wanted && reader.has(key))
      reader.fail(key,
                  "is not allowed with source = \"quantum-espresso\", whose folder `save` holds "
                  "all data; remove it");
  if (wanted && folder.empty())
    reader.fail("save", "is missing: name the folder PREFIX.save that pw.x writes in its outdir");
  m.vxc_core_charge = reader.boolean("vxc_core_charge", false);
  if (!wanted && reader.has("vxc_core_charge"))
    reader.fail(
        "vxc_core_charge",
        "belongs to source = \"quantum-espresso\"; a file VXC is taken as it is, so remove it");
  if (!wanted) return;
  for (std::filesystem::path* part : {&m.wfn, &m.rho, &m.vxc, &m.vsc, &m.vkb}) *part = folder;
}

/// Checks the files of inner states of a displaced crystal against the others, and leaves out the
/// V_xc of a folder `save`, which jobs with inner states do not use. @pre all files are read
void check_inner_files(const TableReader& reader, MeanFieldOptions& m) {
  if (m.vsc_inner.empty() != m.vkb_inner.empty())
    reader.fail(m.vsc_inner.empty() ? "vsc_inner" : "vkb_inner",
                "is missing: bands beyond WFN_inner need both vsc_inner and vkb_inner");
  if (m.wfn_inner.empty() && !m.vsc_inner.empty())
    reader.fail("vsc_inner", "belongs to wfn_inner; name that file too, or remove it");
  if (m.wfn_inner.empty() || m.empirical) return;
  if (reader.has("vxc"))
    reader.fail("vxc",
                "is not allowed with wfn_inner: Σ with inner states of a displaced crystal gives "
                "no quasiparticle energies; remove vxc");
  if (reader.has("wfn_outer"))
    reader.fail("wfn_outer",
                "is not allowed with wfn_inner, whose outer states are those of WFN; remove one "
                "of them");
  m.vxc.clear();
}

}  // namespace

void read_mean_field(TableReader reader, const std::filesystem::path& directory, Deck* deck) {
  MeanFieldOptions& m = deck->mean_field;
  const std::size_t source = reader.choice("source", 0, {"files", "epm", "quantum-espresso"});
  m.empirical = source == 1;
  const auto path_of = [&](const char* key, const char* fallback) {
    const std::string name = reader.text(key, fallback);
    return name.empty() ? std::filesystem::path() : directory / name;
  };
  m.wfn = path_of("wfn", "");
  m.wfnq = path_of("wfnq", "");
  m.wfn_outer = path_of("wfn_outer", "");
  m.wfn_inner = path_of("wfn_inner", "");
  m.vsc_inner = path_of("vsc_inner", "");
  m.vkb_inner = path_of("vkb_inner", "");
  m.rho = path_of("rho", "");
  m.local_density = m.empirical && reader.choice("vxc", 0, {"none", "lda"}) == 1;
  if (!m.empirical) m.vxc = path_of("vxc", "");
  m.vsc = path_of("vsc", "");
  m.vkb = path_of("vkb", "");
  read_save(reader, path_of("save", ""), source == 2, m);
  check_inner_files(reader, m);
  read_crystal(reader, m.crystal);
  m.q0 = m.crystal.q0;
  if (dot(m.q0, m.q0) < 1e-12 || dot(m.q0, m.q0) > 1e-2)
    reader.fail("q0", "has the length " + shown(std::sqrt(dot(m.q0, m.q0))) +
                          ", outside 1e-6 … 0.1; choose a short vector such as [0.001, 0, 0]");
  const std::size_t limit = reader.choice("long_wave", 0, {"auto", "states", "dense", "kp"});
  m.crystal.by_velocity = limit == kVelocity || (limit == kAutomatic && !deck->compatible);
  if (limit != kAutomatic)
    m.long_wave = static_cast<LongWave>(limit - 1);
  else if (m.wfnq.empty() && !m.vkb.empty())
    m.long_wave = LongWave::kDense;
  m.max_projector_residual =
      reader.number("max_projector_residual", m.max_projector_residual, 1e-12, 1.0);
  m.state_memory_mib = reader.number("state_memory_mib", 0.0, 1.0, 1e9);
  read_eigensolver(reader, m);
  if (m.empirical)
    check_crystal_keys(reader, limit);
  else
    check_file_keys(reader, m, limit, !deck->stop_after_epsilon);
  if (m.vsc.empty() != m.vkb.empty())
    reader.fail(m.vsc.empty() ? "vsc" : "vkb",
                "is missing: bands beyond WFN need both vsc and vkb; add it, or remove the other");
  reader.finish();
}

void check_inner_states(const Deck& deck, const std::string& where) {
  if (deck.mean_field.wfn_inner.empty()) return;
  const auto refuse_if = [&](bool wanted, const char* key, const char* why) {
    if (wanted)
      throw InvalidInput(where + ": meanfield.wfn_inner is not allowed with " + key + ", " + why +
                         "; remove one of them");
  };
  refuse_if(deck.perturbation.wanted, "[perturbation]", "whose first orders start at rest");
  refuse_if(deck.pseudobands.wanted(), "[pseudobands]", "which replace states of WFN alone");
  refuse_if(deck.stop_after_epsilon, "stop_after = \"epsilon\"", "which calculates no Σ");
  refuse_if(deck.study.wanted, "--converge", "which compares quasiparticle energies");
  refuse_if(deck.sigma.outer.kind != OuterLoop::kNone, "sigma.outer_loop",
            "whose energies go back into the states of WFN");
  refuse_if(!deck.sigma.path.corners.empty(), "sigma.band_path",
            "which interpolates quasiparticle energies");
  refuse_if(deck.sigma.remainder, "sigma.static_remainder", "which sums over states of WFN");
  refuse_if(deck.sigma.exact_ch, "sigma.exact_ch", "which depends on outer states alone");
  refuse_if(deck.coulomb.subsampling > 0, "coulomb.subsampling",
            "which makes further inner states at rest");
}

}  // namespace quasi::gw
