#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The figures of a result: the columns of `quasi table`, and the conditions of stop rules on them.
namespace quasi::wire {

/// The figures of a result with their names, in the order of the result.
using Figures = std::vector<std::pair<std::string, std::string>>;

/// The single values of a summary with their names, in its order: "a.b" of nested objects, the
/// value of a list with one entry, and NAME.xx, NAME.yy and NAME.zz of a 3 x 3 tensor. Longer
/// lists, checks, warnings and timings are left out, and so is what is nested more than 32 deep.
/// @param document  the JSON of the engine, or its `summary` alone
Figures figures_of(const nlohmann::ordered_json& document);

/// The figures of a JSON text; none if it is no JSON.
Figures figures_in(std::string_view json);

/// The number of this name; nothing if there is none, or if it is a text.
std::optional<double> number_of(const Figures& figures, std::string_view name);

/// The sign between the figure and the value of a stop rule: <, <=, > or >=. Each has the number
/// that it has in quasi.v1.StopRule.Comparison.
enum class Comparison : std::uint8_t { kBelow = 1, kAtMost = 2, kAbove = 3, kAtLeast = 4 };

/// True if "figure SIGN value" holds; no comparison holds for a NaN.
bool holds(double figure, Comparison comparison, double value);

/// "<", "<=", ">" or ">=".
std::string_view sign_of(Comparison comparison);

/// A number in as few digits as give the same number, e.g. "0.1".
std::string shortest(double value);

/// A stop rule: so many jobs with a figure beyond a value stop their sweep.
struct StopCondition {
  std::string figure;
  Comparison comparison = Comparison::kBelow;
  double value = 0.0;
  std::int64_t jobs = 1;
};

/// "kappa.xx < 50", and with several jobs "kappa.xx < 50 in 3 jobs".
std::string text_of(const StopCondition& condition);

}  // namespace quasi::wire
