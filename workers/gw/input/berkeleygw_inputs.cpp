#include "workers/gw/input/berkeleygw_inputs.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/input/evaluation_grid.hpp"
#include "workers/gw/input/inp_file.hpp"
#include "workers/gw/physics/crystal.hpp"
#include "workers/io/settings.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

namespace fs = std::filesystem;

/// Tables of a deck under construction.
struct DeckText {
  std::map<std::string, std::string> epsilon, sigma, coulomb, mean_field;
  bool wavefunctions_hdf5 = false;
  bool vxc_matrix_file = false;
  std::string text(bool stop_after_epsilon) const {
    std::string t = "kind = \"gw\"\ncompat = \"bgw\"\n";
    if (stop_after_epsilon) t += "stop_after = \"epsilon\"\n";
    for (const auto& [name, table] : {std::pair{"meanfield", mean_field},
                                      {"epsilon", epsilon},
                                      {"sigma", sigma},
                                      {"coulomb", coulomb}}) {
      t += std::string("[") + name + "]\n";
      for (const auto& [key, value] : table) t += key + " = " + value + "\n";
    }
    return t;
  }
};

std::string quoted(const std::string& s) { return '"' + s + '"'; }

using Actions = InpActions;
using Action = Actions::mapped_type;

/// Converts rows "x y z scale [flag…]" to points.
std::string points_of(const InpFile& file, const std::vector<InpLine>& rows) {
  std::string list = "[";
  for (const InpLine& row : rows) {
    if (row.values.size() < 4) file.fail(row, "a point is 'x y z scale'");
    const double scale = file.number(row, 3);
    if (scale == 0.0) file.fail(row, "the scale of a point must not be 0");
    list += list.size() > 1 ? ", [" : "[";
    for (std::size_t i = 0; i < 3; ++i)
      list += (i > 0 ? ", " : "") + shown(file.number(row, i) / scale);
    list += "]";
  }
  return list + "]";
}

/// Adds the actions of the keywords that epsilon.inp and sigma.inp share.
void add_shared(Actions& actions, DeckText& deck) {
  const Action nothing = [](const InpFile&, const InpLine&) {};
  // Keywords of communication, printing and storage in BerkeleyGW, which change no result.
  for (const char* name : {"comm_mpi",
                           "comm_disk",
                           "gcomm_matrix",
                           "gcomm_elements",
                           "verbosity",
                           "dont_use_hdf5",
                           "number_qpoints",
                           "number_kpoints",
                           "number_diag",
                           "distribution",
                           "memory_per_core",
                           "nv_block",
                           "dont_check_norms",
                           "screening_semiconductor",
                           "use_symmetries_q_grid",
                           "no_symmetries_unfolded_grid",
                           "restart",
                           "number_of_proc_per_pool",
                           "number_sigma_pools",
                           "fullbz_write",
                           "use_vxcdat",
                           "no_symmetries_q_grid",
                           "acc_mtxel_algo",
                           "mtxel_algo",
                           "use_gpu",
                           "gpp_algo"})
    actions[name] = nothing;
  actions["cell_average_cutoff"] = [](const InpFile& f, const InpLine& l) {
    if (f.number(l) != 1e-12)
      f.fail(l,
             "'cell_average_cutoff' other than 1e-12 is not supported, because the truncation "
             "decides on averages; "
             "follows from the truncation; remove the line");
  };
  actions["use_wfn_hdf5"] = [&](const InpFile&, const InpLine&) { deck.wavefunctions_hdf5 = true; };
  actions["degeneracy_check_override"] = [](const InpFile& f, const InpLine& l) {
    f.fail(l,
           "'degeneracy_check_override' is not supported: bands that would split a multiplet are "
           "lowered to the next complete "
           "one, with a note; remove the line");
  };
  for (const auto& [keyword, name] :
       std::map<std::string, std::string>{{"cell_slab_truncation", "slab"},
                                          {"cell_wire_truncation", "wire"},
                                          {"cell_box_truncation", "box"},
                                          {"spherical_truncation", "sphere"}})
    actions[keyword] = [&deck, name = name](const InpFile& f, const InpLine& l) {
      const auto [entry, fresh] = deck.coulomb.emplace("truncation", quoted(name));
      if (!fresh && entry->second != quoted(name))
        f.fail(l, "two kinds of truncation are given; keep one");
    };
  actions["coulomb_truncation_radius"] = [&](const InpFile& f, const InpLine& l) {
    deck.coulomb["radius_bohr"] = shown(f.number(l));
  };
}

/// Adds an action that writes the number of a keyword under a key of a table.
void number(Actions& actions, const std::string& keyword, std::map<std::string, std::string>& table,
            const std::string& key) {
  actions[keyword] = [&table, key](const InpFile& f, const InpLine& l) {
    table[key] = shown(f.number(l));
  };
}

/// Returns the number of occupied bands in a list "1*4 0*20".
int occupied_bands(const InpFile& f, const InpLine& l) {
  int occupied = 0;
  bool empty = false;
  for (const std::string& item : l.values) {
    const auto star = item.find('*');
    const int count = star == std::string::npos ? 1 : std::atoi(item.substr(0, star).c_str());
    const std::string value = star == std::string::npos ? item : item.substr(star + 1);
    if (value != "0" && value != "1") f.fail(l, "occupations must be 0 or 1, not '" + value + "'");
    if (value == "1" && empty) f.fail(l, "an occupied band follows an empty one");
    if (value == "0")
      empty = true;
    else
      occupied += count;
  }
  return occupied;
}

/// Adds the action of the keyword that chooses the method of a full-frequency calculation.
void add_method(Actions& a) {
  a["frequency_dependence_method"] = [](const InpFile& f, const InpLine& l) {
    if (f.integer(l) != 2) f.fail(l, "only the contour-deformation method (2) is supported");
  };
}

/// Adds the actions of the keywords of epsilon.inp that choose frequencies.
void add_frequencies(Actions& a, DeckText& deck) {
  number(a, "broadening", deck.epsilon, "broadening_ev");
  number(a, "delta_frequency", deck.epsilon, "real_step_ev");
  number(a, "frequency_low_cutoff", deck.epsilon, "real_max_ev");
  a["frequency_high_cutoff"] = [&](const InpFile& f, const InpLine& l) {
    const auto low = deck.epsilon.find("real_max_ev");
    if (low == deck.epsilon.end() || f.number(l) > std::stod(low->second))
      f.fail(l,
             "a real axis whose step grows (frequency_high_cutoff above frequency_low_cutoff, "
             "which must come first) is not "
             "supported; raise frequency_low_cutoff instead");
  };
  a["delta_frequency_step"] = [](const InpFile&, const InpLine&) {
  };  // acts above frequency_low_cutoff only
  a["init_frequency"] = [](const InpFile& f, const InpLine& l) {
    if (f.number(l) != 0.0) f.fail(l, "'init_frequency' other than 0 is not supported");
  };
  a["number_imaginary_freqs"] = [&](const InpFile& f, const InpLine& l) {
    deck.epsilon["imaginary_points"] = std::to_string(f.integer(l));
  };
  a["plasma_freq"] = [&](const InpFile& f, const InpLine& l) {
    // BerkeleyGW's manual gives this keyword in eV.
    deck.epsilon["imaginary_scale_ry"] = shown(f.number(l) / kRydberg_ev);
  };
  number(a, "imaginary_frequency", deck.sigma, "imaginary_frequency_ev");
  a["frequency_dependence"] = [&](const InpFile& f, const InpLine& l) {
    const int value = f.integer(l);
    if (value == 0)
      deck.epsilon["frequencies"] = quoted("static");
    else if (value == 2)
      deck.epsilon["frequencies"] = quoted("both");
    else if (value == 3)
      deck.epsilon["frequencies"] = quoted("godby-needs");
    else
      f.fail(l, "frequency_dependence = " + std::to_string(value) +
                    " is not supported; 0, 2 and 3 are");
  };
  add_method(a);
}

Actions epsilon_actions(DeckText& deck) {
  Actions a;
  add_shared(a, deck);
  number(a, "epsilon_cutoff", deck.epsilon, "cutoff_ry");
  add_frequencies(a, deck);
  a["number_bands"] = [&](const InpFile& f, const InpLine& l) {
    deck.epsilon["bands"] = std::to_string(f.integer(l));
  };
  a["band_occupation"] = [&](const InpFile& f, const InpLine& l) {
    deck.epsilon["occupied_bands"] = std::to_string(occupied_bands(f, l));
  };
  a["chi_eigenvalue_cutoff"] = [&](const InpFile& f, const InpLine& l) {
    deck.epsilon["subspace_tolerance"] = shown(f.number(l));
  };
  a["nbasis_subspace"] = [&](const InpFile& f, const InpLine& l) {
    if (f.integer(l) > 0) deck.epsilon["subspace_vectors"] = std::to_string(f.integer(l));
  };
  for (const char* name :
       {"write_subspace_epsinv", "subspace_dont_keep_full_eps_omega0",
        "sub_collective_eigen_redistr", "subspace_use_elpa", "sub_collective_redistr"})
    a[name] = [](const InpFile&, const InpLine&) {};
  return a;
}

Actions sigma_actions(DeckText& deck, int* exact_ch, int* method) {
  Actions a;
  add_shared(a, deck);
  const auto integer = [&a, &deck](const std::string& keyword, const std::string& key) {
    a[keyword] = [&deck, key](const InpFile& f, const InpLine& l) {
      deck.sigma[key] = std::to_string(f.integer(l));
    };
  };
  number(a, "screened_coulomb_cutoff", deck.sigma, "screened_cutoff_ry");
  number(a, "bare_coulomb_cutoff", deck.sigma, "bare_cutoff_ry");
  integer("number_bands", "bands");
  integer("band_index_min", "band_min");
  integer("band_index_max", "band_max");
  number(a, "gpp_broadening", deck.sigma, "pole_half_width_ev");
  number(a, "gpp_sexcutoff", deck.sigma, "sx_cut");
  number(a, "finite_difference_spacing", deck.sigma, "derivative_step_ev");
  a["finite_difference_form"] = [&](const InpFile& f, const InpLine& l) {
    const int form = f.integer(l);
    if (form != 0 && form != 1 && form != 2)
      f.fail(l, "only central (0) and forward differences (1, 2) are supported");
    deck.sigma["derivative"] = quoted(form == 0 ? "central" : "forward");
  };
  a["invalid_gpp_mode"] = [&](const InpFile& f, const InpLine& l) {
    const char* names[] = {"static", "skip", "imaginary", "two-rydberg", "static"};
    const int mode = f.integer(l);
    if (mode < -1 || mode > 3) f.fail(l, "invalid_gpp_mode must be −1…3");
    deck.sigma["invalid_modes"] = quoted(names[mode + 1]);
  };
  a["frequency_dependence"] = [method](const InpFile& f, const InpLine& l) {
    *method = f.integer(l);
    if (*method < 0 || *method > 3)
      f.fail(l, "frequency_dependence = " + std::to_string(*method) +
                    " is not supported; 0, 1, 2 and 3 are");
  };
  a["exact_static_ch"] = [exact_ch](const InpFile& f, const InpLine& l) {
    *exact_ch = f.integer(l);
  };
  a["cd_integration_method"] = [&](const InpFile& f, const InpLine& l) {
    const int rule = f.integer(l);
    if (rule != 0 && rule != 2)
      f.fail(l, "cd_integration_method must be 0 (constant) or 2 (quadratic)");
    deck.sigma["imaginary_rule"] = quoted(rule == 0 ? "constant" : "quadratic");
  };
  a["dont_use_vxcdat"] = [&](const InpFile&, const InpLine&) { deck.vxc_matrix_file = true; };
  return a;
}

void apply(const InpFile& file, const std::string& name, const Actions& actions) {
  std::vector<std::string> known;
  for (const auto& entry : actions) known.push_back(entry.first);
  for (const InpLine& line : file.lines()) {
    const auto action = actions.find(line.keyword);
    if (action == actions.end()) {
      const std::string near = nearest_name(line.keyword, known);
      file.fail(line, "the keyword '" + line.keyword + "' of " + name + " is not supported" +
                          (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    action->second(file, line);
  }
}

void read_epsilon_inp(const fs::path& directory, DeckText& deck) {
  const InpFile file(directory / "epsilon.inp");
  apply(file, "epsilon.inp", epsilon_actions(deck));
  for (const auto& [block, rows] : file.blocks()) {
    if (block != "qpoints")
      file.fail(file.line_of_block(block), "the block '" + block + "' is not supported");
    deck.epsilon["qpoints"] = points_of(file, rows);
    for (const InpLine& row : rows)
      if (row.values.size() > 4 && file.integer(row, 4) == 2)
        file.fail(row, "q → 0 of a metal (flag 2) is not supported");
  }
}

/// Reads sigma.inp. @param epsilon  true if epsilon.inp has been read, whose frequencies must agree
void read_sigma_inp(const fs::path& directory, bool epsilon, DeckText& deck) {
  const InpFile file(directory / "sigma.inp");
  int exact_ch = -1, method = 1;
  EvaluationGrid grid;
  Actions actions = sigma_actions(deck, &exact_ch, &method);
  add_method(actions);
  grid.add_actions(actions);
  apply(file, "sigma.inp", actions);
  if (method == 2) deck.sigma.merge(grid.sigma_keys());
  const char* names[] = {"cohsex", "hl-gpp", "contour", "gn-gpp"};
  deck.sigma["method"] = quoted(names[method]);
  // BerkeleyGW's defaults: CH is completed by closure for COHSEX, and poles have no remainder.
  if (method == 0)
    deck.sigma["exact_ch"] = exact_ch != 0 ? "true" : "false";
  else if (exact_ch == 1)
    deck.sigma["static_remainder"] = "true";
  for (const auto& [block, rows] : file.blocks()) {
    if (block != "kpoints")
      file.fail(file.line_of_block(block),
                "the block '" + block +
                    "' is not supported; choose bands by band_index_min and band_index_max");
    deck.sigma["kpoints"] = points_of(file, rows);
  }
  // If both files agree, the method determines the frequencies of ε.
  if (epsilon) {
    const auto found = deck.epsilon.find("frequencies");
    const std::string has = found == deck.epsilon.end() ? quoted("static") : found->second;
    if ((method == 2 && has != quoted("both")) || (method == 3 && has != quoted("godby-needs")))
      throw InvalidInput("sigma.inp asks for frequency_dependence " + std::to_string(method) +
                         ", epsilon.inp for another; set both alike");
    if (method == 2 || method == 3) deck.epsilon.erase("frequencies");
  }
}

/// Names the files beside the inputs that BerkeleyGW would read.
void name_files(const fs::path& directory, bool epsilon, bool sigma, DeckText& deck) {
  const auto named = [&](const std::string& stem) {
    return deck.wavefunctions_hdf5 ? stem + ".h5" : stem;
  };
  const std::string inner = named("WFN_inner"), outer = named("WFN");
  const bool has_inner = fs::exists(directory / inner), has_plain = fs::exists(directory / outer);
  if (has_inner && has_plain &&
      fs::file_size(directory / inner) != fs::file_size(directory / outer))
    throw InvalidInput("'" + outer + "' and '" + inner +
                       "' differ; one set of wavefunctions serves ε and Σ here: keep one of them");
  deck.mean_field["wfn"] = quoted(has_plain || !has_inner ? outer : inner);
  // epsilon.x reads no density; the states have it.
  if (sigma || fs::exists(directory / "RHO")) deck.mean_field["rho"] = quoted("RHO");
  if (fs::exists(directory / named("WFN_outer")))
    throw InvalidInput("'" + named("WFN_outer") +
                       "' lies beside the decks and would not be used: a TOML deck takes it "
                       "(meanfield.wfn_outer, all points of a shifted grid); else take it away");
  if (fs::exists(directory / named("WFNq"))) deck.mean_field["wfnq"] = quoted(named("WFNq"));
  if (sigma) {
    const bool has_dat = fs::exists(directory / "vxc.dat");
    if (!has_dat && !fs::exists(directory / "VXC"))
      throw InvalidInput("'" + directory.string() +
                         "' has neither vxc.dat nor VXC, from which sigma.inp takes V_xc; put one "
                         "of them there (pw2bgw.x writes both)");
    deck.mean_field["vxc"] = quoted(deck.vxc_matrix_file || !has_dat ? "VXC" : "vxc.dat");
    if (!epsilon) {
      deck.epsilon["eps0mat"] = quoted("eps0mat.h5");
      if (fs::exists(directory / "epsmat.h5")) deck.epsilon["epsmat"] = quoted("epsmat.h5");
    }
  }
  for (const char* name : {"VSC", "VKB"})
    if (fs::exists(directory / "VSC") && fs::exists(directory / "VKB"))
      deck.mean_field[name == std::string("VSC") ? "vsc" : "vkb"] = quoted(name);
}

}  // namespace

bool has_berkeleygw_inputs(const fs::path& directory) {
  return fs::exists(directory / "epsilon.inp") || fs::exists(directory / "sigma.inp");
}

std::string translate_berkeleygw_inputs(const fs::path& directory) {
  DeckText deck;
  const bool epsilon = fs::exists(directory / "epsilon.inp"),
             sigma = fs::exists(directory / "sigma.inp");
  if (epsilon) read_epsilon_inp(directory, deck);
  if (sigma) read_sigma_inp(directory, epsilon, deck);
  name_files(directory, epsilon, sigma, deck);
  return deck.text(epsilon && !sigma);
}

}  // namespace quasi::gw
