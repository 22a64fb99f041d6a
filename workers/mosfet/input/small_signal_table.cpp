#include "workers/mosfet/input/small_signal_table.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/input/table_reader.hpp"

namespace quasi::mosfet {
namespace {

// Below the lower limit the imaginary parts of Y are lost in the tolerance of the solver. Above the
// upper one ω exceeds every rate of the model.
constexpr double kLowest_hz = 1e6, kHighest_hz = 1e15;
constexpr std::size_t kMostFrequencies = 1000;

// Returns frequencies with equal ratios, both ends included.
std::vector<double> logarithmic(double from_hz, double to_hz, int per_decade) {
  const int steps = std::max(1, static_cast<int>(std::lround(std::log10(to_hz / from_hz) *
                                                             static_cast<double>(per_decade))));
  std::vector<double> frequencies;
  for (int n = 0; n < steps; ++n)
    frequencies.push_back(from_hz * std::pow(to_hz / from_hz, static_cast<double>(n) / steps));
  frequencies.push_back(to_hz);
  return frequencies;
}

void check_list(const TableReader& reader, const std::vector<double>& frequencies) {
  if (frequencies.empty())
    reader.fail("frequencies_hz", "is empty; name a frequency, or use from_hz and to_hz");
  for (std::size_t n = 0; n < frequencies.size(); ++n) {
    if (frequencies[n] != 0.0 && frequencies[n] < kLowest_hz)
      reader.fail("frequencies_hz", "holds " + shown(frequencies[n]) + " Hz, between 0 and " +
                                        shown(kLowest_hz) + " Hz; use 0 or " + shown(kLowest_hz) +
                                        " Hz and more");
    if (n > 0 && frequencies[n] <= frequencies[n - 1])
      reader.fail("frequencies_hz", "has " + shown(frequencies[n]) + " Hz after " +
                                        shown(frequencies[n - 1]) +
                                        " Hz; frequencies must increase");
  }
}

// Refuses a deck without steady states of the beam scheme.
void check_run(const TableReader& reader, const Deck& deck) {
  if (deck.run.scheme != StreamingScheme::kBeam || deck.run.mode != RunMode::kSteady)
    reader.fail(
        "frequencies_hz",
        "needs steady states of the beam scheme; set run.mode = \"steady\" and run.scheme = "
        "\"beam\", or leave the table small_signal out");
}

}  // namespace

SmallSignalSettings read_small_signal(const toml::table* table, const std::string& where,
                                      const Deck& deck) {
  TableReader reader(table, "small_signal", where);
  SmallSignalSettings settings;
  const auto list = reader.numbers("frequencies_hz", 0.0, kHighest_hz);
  const bool has_range =
      reader.has("from_hz") || reader.has("to_hz") || reader.has("points_per_decade");
  const double from_hz = reader.number("from_hz", 1e9, kLowest_hz, kHighest_hz);
  const double to_hz = reader.number("to_hz", 1e13, kLowest_hz, kHighest_hz);
  const int per_decade = reader.integer("points_per_decade", 5, 1, 100);
  settings.noise = reader.boolean("noise", false);
  reader.finish();
  if (table == nullptr) return settings;
  check_run(reader, deck);
  if (list) {
    if (has_range)
      reader.fail("frequencies_hz", "and from_hz, to_hz, points_per_decade exclude each other");
    check_list(reader, *list);
    settings.frequencies_hz = *list;
  } else {
    if (!(from_hz < to_hz))
      reader.fail("to_hz",
                  "= " + shown(to_hz) + " Hz must exceed from_hz = " + shown(from_hz) + " Hz");
    settings.frequencies_hz = logarithmic(from_hz, to_hz, per_decade);
  }
  if (settings.frequencies_hz.size() > kMostFrequencies)
    reader.fail(list ? "frequencies_hz" : "points_per_decade",
                "asks for " + std::to_string(settings.frequencies_hz.size()) +
                    " frequencies; the limit is " + std::to_string(kMostFrequencies));
  return settings;
}

}  // namespace quasi::mosfet
