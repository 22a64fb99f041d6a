#include "workers/gw/input/field_deck.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/io/settings.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

namespace fs = std::filesystem;

/// One line of an .inp file: a keyword and what follows it, or a row of a block.
struct Line {
  int number = 0;
  std::string keyword;
  std::vector<std::string> values;
};

class InputFile {
 public:
  explicit InputFile(const fs::path& path) : name_(path.filename().string()) {
    std::ifstream in(input_file(path));
    if (!in) throw InvalidInput("'" + path.string() + "' cannot be read");
    std::string block, text;
    for (int number = 1; std::getline(in, text); ++number) {
      text = text.substr(0, text.find_first_of("#!"));
      std::istringstream fields(text);
      Line line{.number = number};
      if (!(fields >> line.keyword)) continue;
      for (std::string value; fields >> value;) line.values.push_back(value);
      if (line.keyword == "begin") {
        if (line.values.size() != 1 || !block.empty())
          fail(line, "a block begins with 'begin NAME' and ends with 'end'");
        block = line.values[0];
        blocks_[block];
        block_line_[block] = number;
      } else if (line.keyword == "end") {
        if (block.empty()) fail(line, "'end' without 'begin'");
        block.clear();
      } else if (!block.empty()) {
        line.values.insert(line.values.begin(), line.keyword);
        blocks_[block].push_back(line);
      } else {
        lines_.push_back(line);
      }
    }
    if (!block.empty()) throw InvalidInput(name_ + ": the block '" + block + "' has no 'end'");
  }

  const std::vector<Line>& lines() const { return lines_; }
  const std::map<std::string, std::vector<Line>>& blocks() const { return blocks_; }
  int line_of_block(const std::string& block) const { return block_line_.at(block); }
  [[noreturn]] void fail(const Line& line, const std::string& problem) const {
    fail(line.number, problem);
  }
  [[noreturn]] void fail(int line, const std::string& problem) const {
    throw InvalidInput(name_ + ":" + std::to_string(line) + ": " + problem);
  }

  double number(const Line& line, std::size_t i = 0) const {
    if (i >= line.values.size()) fail(line, "'" + line.keyword + "' needs a number");
    std::string text = line.values[i];
    for (char& c : text)
      if (c == 'd' || c == 'D') c = 'e';  // Fortran's exponent
    std::size_t used = 0;
    double value = 0.0;
    try {
      value = std::stod(text, &used);
    } catch (const std::exception&) {
    }
    if (used != text.size() || text.empty()) fail(line, "'" + line.values[i] + "' is not a number");
    return value;
  }
  int integer(const Line& line, std::size_t i = 0) const {
    const double value = number(line, i);
    if (value != static_cast<double>(static_cast<int>(value)))
      fail(line, "'" + line.values[i] + "' is not a whole number");
    return static_cast<int>(value);
  }

 private:
  std::string name_;
  std::vector<Line> lines_;
  std::map<std::string, std::vector<Line>> blocks_;
  std::map<std::string, int> block_line_;
};

/// The tables of a deck under construction.
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

using Action = std::function<void(const InputFile&, const Line&)>;
using Actions = std::map<std::string, Action>;

/// Rows "x y z scale [flag…]" as points.
std::string points_of(const InputFile& file, const std::vector<Line>& rows) {
  std::string list = "[";
  for (const Line& row : rows) {
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

/// TOML keeps whole numbers and decimals apart where a key wants the latter; both are accepted by
/// our deck.
void add_shared(Actions& actions, DeckText& deck) {
  const Action nothing = [](const InputFile&, const Line&) {};
  // How the field's programs communicate, print or keep files: nothing of it changes a result.
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
  actions["cell_average_cutoff"] = [](const InputFile& f, const Line& l) {
    if (f.number(l) != 1e-12)
      f.fail(l,
             "'cell_average_cutoff' other than 1e-12 is not supported: which averages are taken "
             "follows from the truncation; remove the line");
  };
  actions["use_wfn_hdf5"] = [&](const InputFile&, const Line&) { deck.wavefunctions_hdf5 = true; };
  actions["degeneracy_check_override"] = [](const InputFile& f, const Line& l) {
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
    actions[keyword] = [&deck, name = name](const InputFile& f, const Line& l) {
      const auto [entry, fresh] = deck.coulomb.emplace("truncation", quoted(name));
      if (!fresh && entry->second != quoted(name))
        f.fail(l, "two kinds of truncation are asked for");
    };
  actions["coulomb_truncation_radius"] = [&](const InputFile& f, const Line& l) {
    deck.coulomb["radius_bohr"] = shown(f.number(l));
  };
}

Actions epsilon_actions(DeckText& deck) {
  Actions a;
  add_shared(a, deck);
  const auto number = [&a](const std::string& keyword, std::map<std::string, std::string>& table,
                           const std::string& key) {
    a[keyword] = [&table, key](const InputFile& f, const Line& l) {
      table[key] = shown(f.number(l));
    };
  };
  number("epsilon_cutoff", deck.epsilon, "cutoff_ry");
  a["number_bands"] = [&](const InputFile& f, const Line& l) {
    deck.epsilon["bands"] = std::to_string(f.integer(l));
  };
  number("broadening", deck.epsilon, "broadening_ev");
  number("delta_frequency", deck.epsilon, "real_step_ev");
  number("frequency_low_cutoff", deck.epsilon, "real_max_ev");
  a["frequency_high_cutoff"] = [&](const InputFile& f, const Line& l) {
    const auto low = deck.epsilon.find("real_max_ev");
    if (low == deck.epsilon.end() || f.number(l) > std::stod(low->second))
      f.fail(l,
             "a real axis whose step grows (frequency_high_cutoff above frequency_low_cutoff, "
             "which must come first) is not "
             "supported; raise frequency_low_cutoff instead");
  };
  a["delta_frequency_step"] = [](const InputFile&, const Line&) {
  };  // acts above frequency_low_cutoff only
  a["init_frequency"] = [](const InputFile& f, const Line& l) {
    if (f.number(l) != 0.0) f.fail(l, "'init_frequency' other than 0 is not supported");
  };
  a["number_imaginary_freqs"] = [&](const InputFile& f, const Line& l) {
    deck.epsilon["imaginary_points"] = std::to_string(f.integer(l));
  };
  a["plasma_freq"] = [&](const InputFile& f, const Line& l) {
    deck.epsilon["imaginary_scale_ry"] = shown(f.number(l));
  };
  number("imaginary_frequency", deck.sigma, "imaginary_frequency_ev");
  a["frequency_dependence"] = [&](const InputFile& f, const Line& l) {
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
  a["frequency_dependence_method"] = [](const InputFile& f, const Line& l) {
    if (f.integer(l) != 2) f.fail(l, "only the contour-deformation method (2) is supported");
  };
  a["band_occupation"] = [&](const InputFile& f, const Line& l) {
    int occupied = 0;
    bool empty = false;
    for (const std::string& item : l.values) {
      const auto star = item.find('*');
      const int count = star == std::string::npos ? 1 : std::atoi(item.substr(0, star).c_str());
      const std::string value = star == std::string::npos ? item : item.substr(star + 1);
      if (value != "0" && value != "1")
        f.fail(l, "occupations must be 0 or 1, not '" + value + "'");
      if (value == "1" && empty) f.fail(l, "an occupied band follows an empty one");
      if (value == "0")
        empty = true;
      else
        occupied += count;
    }
    deck.epsilon["occupied_bands"] = std::to_string(occupied);
  };
  a["chi_eigenvalue_cutoff"] = [&](const InputFile& f, const Line& l) {
    deck.epsilon["subspace_tolerance"] = shown(f.number(l));
  };
  a["nbasis_subspace"] = [&](const InputFile& f, const Line& l) {
    if (f.integer(l) > 0) deck.epsilon["subspace_vectors"] = std::to_string(f.integer(l));
  };
  for (const char* name :
       {"write_subspace_epsinv", "subspace_dont_keep_full_eps_omega0",
        "sub_collective_eigen_redistr", "subspace_use_elpa", "sub_collective_redistr"})
    a[name] = [](const InputFile&, const Line&) {};
  return a;
}

Actions sigma_actions(DeckText& deck, int* exact_ch, int* method) {
  Actions a;
  add_shared(a, deck);
  const auto number = [&a, &deck](const std::string& keyword, const std::string& key) {
    a[keyword] = [&deck, key](const InputFile& f, const Line& l) {
      deck.sigma[key] = shown(f.number(l));
    };
  };
  const auto integer = [&a, &deck](const std::string& keyword, const std::string& key) {
    a[keyword] = [&deck, key](const InputFile& f, const Line& l) {
      deck.sigma[key] = std::to_string(f.integer(l));
    };
  };
  number("screened_coulomb_cutoff", "screened_cutoff_ry");
  number("bare_coulomb_cutoff", "bare_cutoff_ry");
  integer("number_bands", "bands");
  integer("band_index_min", "band_min");
  integer("band_index_max", "band_max");
  number("gpp_broadening", "pole_half_width_ev");
  number("gpp_sexcutoff", "sx_cut");
  number("finite_difference_spacing", "derivative_step_ev");
  a["finite_difference_form"] = [&](const InputFile& f, const Line& l) {
    const int form = f.integer(l);
    if (form != 0 && form != 1 && form != 2)
      f.fail(l, "only central (0) and forward differences (1, 2) are supported");
    deck.sigma["derivative"] = quoted(form == 0 ? "central" : "forward");
  };
  a["invalid_gpp_mode"] = [&](const InputFile& f, const Line& l) {
    const char* names[] = {"static", "skip", "imaginary", "two-rydberg", "static"};
    const int mode = f.integer(l);
    if (mode < -1 || mode > 3) f.fail(l, "invalid_gpp_mode must be −1…3");
    deck.sigma["invalid_modes"] = quoted(names[mode + 1]);
  };
  a["frequency_dependence"] = [method](const InputFile& f, const Line& l) {
    *method = f.integer(l);
    if (*method < 0 || *method > 3)
      f.fail(l, "frequency_dependence = " + std::to_string(*method) +
                    " is not supported; 0, 1, 2 and 3 are");
  };
  a["exact_static_ch"] = [exact_ch](const InputFile& f, const Line& l) {
    *exact_ch = f.integer(l);
  };
  a["cd_integration_method"] = [&](const InputFile& f, const Line& l) {
    const int rule = f.integer(l);
    if (rule != 0 && rule != 2)
      f.fail(l, "cd_integration_method must be 0 (constant) or 2 (quadratic)");
    deck.sigma["imaginary_rule"] = quoted(rule == 0 ? "constant" : "quadratic");
  };
  a["dont_use_vxcdat"] = [&](const InputFile&, const Line&) { deck.vxc_matrix_file = true; };
  return a;
}

void apply(const InputFile& file, const std::string& name, const Actions& actions) {
  std::vector<std::string> known;
  for (const auto& entry : actions) known.push_back(entry.first);
  for (const Line& line : file.lines()) {
    const auto action = actions.find(line.keyword);
    if (action == actions.end()) {
      const std::string near = nearest_name(line.keyword, known);
      file.fail(line, "the keyword '" + line.keyword + "' of " + name + " is not supported" +
                          (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    action->second(file, line);
  }
}

}  // namespace

bool has_field_deck(const fs::path& directory) {
  return fs::exists(directory / "epsilon.inp") || fs::exists(directory / "sigma.inp");
}

std::string translate_field_deck(const fs::path& directory) {
  DeckText deck;
  const bool epsilon = fs::exists(directory / "epsilon.inp"),
             sigma = fs::exists(directory / "sigma.inp");
  if (epsilon) {
    const InputFile file(directory / "epsilon.inp");
    apply(file, "epsilon.inp", epsilon_actions(deck));
    for (const auto& [block, rows] : file.blocks()) {
      if (block != "qpoints")
        file.fail(file.line_of_block(block), "the block '" + block + "' is not supported");
      deck.epsilon["qpoints"] = points_of(file, rows);
      for (const Line& row : rows)
        if (row.values.size() > 4 && file.integer(row, 4) == 2)
          file.fail(row, "q → 0 of a metal (flag 2) is not supported");
    }
  }
  if (sigma) {
    const InputFile file(directory / "sigma.inp");
    int exact_ch = -1, method = 1;
    apply(file, "sigma.inp", sigma_actions(deck, &exact_ch, &method));
    const char* names[] = {"cohsex", "hl-gpp", "contour", "gn-gpp"};
    deck.sigma["method"] = quoted(names[method]);
    // The field's default: completed by closure for COHSEX, no remainder for poles.
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
    // ε's own frequencies follow from the method when both files agree.
    if (epsilon) {
      const auto found = deck.epsilon.find("frequencies");
      const std::string has = found == deck.epsilon.end() ? quoted("static") : found->second;
      if ((method == 2 && has != quoted("both")) || (method == 3 && has != quoted("godby-needs")))
        throw InvalidInput("sigma.inp asks for frequency_dependence " + std::to_string(method) +
                           ", epsilon.inp for another; set both alike");
      if (method == 2 || method == 3) deck.epsilon.erase("frequencies");
    }
  }
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
  deck.mean_field["rho"] = quoted("RHO");
  if (fs::exists(directory / named("WFN_outer")))
    throw InvalidInput("'" + named("WFN_outer") +
                       "' lies beside the decks and would not be used: a TOML deck takes it "
                       "(meanfield.wfn_outer, all points of a shifted grid); else take it away");
  if (fs::exists(directory / named("WFNq"))) deck.mean_field["wfnq"] = quoted(named("WFNq"));
  if (sigma) {
    const bool has_dat = fs::exists(directory / "vxc.dat");
    deck.mean_field["vxc"] = quoted(deck.vxc_matrix_file || !has_dat ? "VXC" : "vxc.dat");
    if (!epsilon) {
      deck.epsilon["eps0mat"] = quoted("eps0mat.h5");
      if (fs::exists(directory / "epsmat.h5")) deck.epsilon["epsmat"] = quoted("epsmat.h5");
    }
  }
  for (const char* name : {"VSC", "VKB"})
    if (fs::exists(directory / "VSC") && fs::exists(directory / "VKB"))
      deck.mean_field[name == std::string("VSC") ? "vsc" : "vkb"] = quoted(name);
  return deck.text(epsilon && !sigma);
}

}  // namespace quasi::gw
