#include "workers/thermal/output/derivative/derivative_file.hpp"

#include <cmath>
#include <cstdio>
#include <numeric>

#include "workers/thermal/solver/transport/derivative/constants_error.hpp"

namespace quasi::thermal {

namespace {

/// Writes the derivative by the fourth order.
void write_fourth_order(const Deck& deck, const SolvedCase& solved, double factor, H5Writer& out) {
  if (solved.kappa_derivative_4ph.empty()) return;
  const SparseForceConstants& constants = *deck.fourth_order;
  const std::int64_t n_blocks = constants.n_blocks();
  std::vector<double> values;
  for (const std::vector<double>& derivative : solved.kappa_derivative_4ph)
    for (const double value : derivative) values.push_back(factor * value);
  out.write("/derivative/fourth_order_atom", constants.atom, {n_blocks, 4}, "1");
  out.write("/derivative/fourth_order_cell", constants.cell, {n_blocks, 3, 3}, "1");
  out.write("/derivative/fourth_order", values,
            {std::ssize(solved.kappa_derivative_4ph), n_blocks, 3, 3, 3, 3},
            "W angstrom^4/(m K eV)");
}

}  // namespace

void write_derivative(const Deck& deck, const SolvedCase& solved,
                      const std::optional<ConstantsCovariance>& covariance, H5Writer& out) {
  if (solved.kappa_derivative.empty()) return;
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  const std::int64_t n_blocks = deck.third_order.n_blocks();
  std::vector<double> values;
  for (const std::vector<double>& derivative : solved.kappa_derivative)
    for (const double value : derivative) values.push_back(factor * value);
  out.write("/derivative/atom", deck.third_order.atom, {n_blocks, 3}, "1");
  out.write("/derivative/cell", deck.third_order.cell, {n_blocks, 2, 3}, "1");
  out.write("/derivative/third_order", values,
            {std::ssize(solved.kappa_derivative), n_blocks, 3, 3, 3}, "W angstrom^3/(m K eV)");
  write_fourth_order(deck, solved, factor, out);
  if (!covariance) return;
  std::vector<double> gradient, error;
  for (const std::vector<double>& derivative : solved.kappa_derivative) {
    const ConstantsError of_constants = kappa_error_of_constants(*covariance, derivative);
    for (const double g : of_constants.gradient) gradient.push_back(factor * g);
    error.push_back(factor * of_constants.kappa_w_per_mk);
  }
  out.write("/derivative/by_parameter", gradient, {std::ssize(error), covariance->n_parameters},
            "W/(m K)");
  out.write("/derivative/kappa_error", error, {std::ssize(error)}, "W/(m K)");
}

void summarise_derivative(const Deck& deck, const SolvedCase& solved,
                          const std::optional<ConstantsCovariance>& covariance,
                          nlohmann::json& summary) {
  if (solved.kappa_derivative.empty()) return;
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  const std::vector<double>& constants = deck.third_order.tensor;
  std::vector<double> euler, norm;
  for (const std::vector<double>& d : solved.kappa_derivative) {
    euler.push_back(factor * std::inner_product(d.begin(), d.end(), constants.begin(), 0.0));
    norm.push_back(factor * std::sqrt(std::inner_product(d.begin(), d.end(), d.begin(), 0.0)));
  }
  summary["derivative"] = {{"solution", deck.control.converge ? "iterated" : "relaxation-time"},
                           {"euler_w_per_mk", euler},
                           {"norm", norm}};
  std::vector<double> fourth;
  for (const std::vector<double>& d : solved.kappa_derivative_4ph)
    fourth.push_back(
        factor * std::inner_product(d.begin(), d.end(), deck.fourth_order->tensor.begin(), 0.0));
  if (!fourth.empty()) summary["derivative"]["euler_fourth_order_w_per_mk"] = fourth;
  if (!covariance) return;
  std::vector<double> error;
  for (const std::vector<double>& d : solved.kappa_derivative)
    error.push_back(factor * kappa_error_of_constants(*covariance, d).kappa_w_per_mk);
  summary["derivative"]["kappa_error_w_per_mk"] = error;
}

std::string derivative_table(const nlohmann::json& summary) {
  if (!summary.contains("derivative")) return "";
  const nlohmann::json& derivative = summary["derivative"];
  const bool iterated = derivative["solution"] == "iterated";
  const nlohmann::json& kappa = summary[iterated ? "kappa_w_per_mk" : "kappa_rta_w_per_mk"];
  const bool fourth = derivative.contains("euler_fourth_order_w_per_mk");
  std::string text = "change of κ (" + std::string(iterated ? "BTE" : "RTA") +
                     ") when all third-order constants grow by 1 %" +
                     (fourth ? ", and all of fourth order\n" : "\n");
  for (std::size_t t = 0; t < kappa.size(); ++t) {
    double mean = 0.0;
    for (std::size_t i = 0; i < 3; ++i) mean += kappa[t][i][i].get<double>() / 3.0;
    char line[80];
    std::snprintf(line, sizeof line, "%11.2f%12.4f %%", summary["temperatures_k"][t].get<double>(),
                  derivative["euler_w_per_mk"][t].get<double>() / mean);
    text += line;
    if (fourth) {
      std::snprintf(line, sizeof line, "%12.4f %%",
                    derivative["euler_fourth_order_w_per_mk"][t].get<double>() / mean);
      text += line;
    }
    text += '\n';
  }
  if (!derivative.contains("kappa_error_w_per_mk")) return text;
  text += "standard error of κ from the covariance of the third-order constants (W/m/K)\n";
  for (std::size_t t = 0; t < kappa.size(); ++t) {
    char line[80];
    std::snprintf(line, sizeof line, "%11.2f%12.5g\n", summary["temperatures_k"][t].get<double>(),
                  derivative["kappa_error_w_per_mk"][t].get<double>());
    text += line;
  }
  return text;
}

}  // namespace quasi::thermal
