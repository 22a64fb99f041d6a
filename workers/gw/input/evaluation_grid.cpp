#include "workers/gw/input/evaluation_grid.hpp"

#include "workers/backend/error.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

void EvaluationGrid::add_actions(InpActions& actions) {
  actions["frequency_grid_shift"] = [this](const InpFile& f, const InpLine& l) {
    shift = f.integer(l);
    if (shift < 0 || shift > 2) f.fail(l, "frequency_grid_shift must be 0, 1 or 2");
  };
  actions["init_frequency_eval"] = [this](const InpFile& f, const InpLine& l) {
    first_ev = f.number(l);
    asked = listed = true;
  };
  actions["number_frequency_eval"] = [this](const InpFile& f, const InpLine& l) {
    points = f.integer(l);
    asked = listed = true;
  };
  actions["delta_frequency_eval"] = [this](const InpFile& f, const InpLine& l) {
    step_ev = f.number(l);
    asked = true;
  };
  actions["max_frequency_eval"] = [this](const InpFile& f, const InpLine& l) {
    largest_ev = f.number(l);
    asked = true;
  };
}

std::map<std::string, std::string> EvaluationGrid::sigma_keys() const {
  if (!asked) return {};
  if (shift == 2 && listed)
    throw InvalidInput(
        "sigma.inp: init_frequency_eval and number_frequency_eval need frequency_grid_shift 0 or "
        "1; with 2, the default, give delta_frequency_eval and max_frequency_eval");
  if (shift == 2)
    return {{"spectrum_step_ev", shown(step_ev)}, {"spectrum_window_ev", shown(largest_ev)}};
  if (points < 4)
    throw InvalidInput("sigma.inp: number_frequency_eval = " + std::to_string(points) +
                       "; a grid with frequency_grid_shift 0 or 1 needs 4 energies or more");
  return {{"spectrum_step_ev", shown(step_ev)},
          {"spectrum_origin", shift == 0 ? "\"zero\"" : "\"midgap\""},
          {"spectrum_first_ev", shown(first_ev)},
          {"spectrum_points", std::to_string(points)}};
}

}  // namespace quasi::gw
