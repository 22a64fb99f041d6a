#include "workers/backend/study/settings_ladder.hpp"

#include <algorithm>
#include <charconv>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

std::string shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

}  // namespace

std::vector<double> settings_below(const std::vector<double>& listed, double own,
                                   std::span<const double> shares, std::size_t least,
                                   const std::string& key) {
  std::vector<double> settings = listed;
  if (settings.empty())
    for (const double share : shares) settings.push_back(share * own);
  std::sort(settings.begin(), settings.end());
  settings.erase(std::unique(settings.begin(), settings.end()), settings.end());
  if (!settings.empty() && settings.back() >= own)
    throw InvalidInput(key + " holds " + shortest(settings.back()) +
                       ", which is not below the deck's value " + shortest(own) +
                       "; list settings below it");
  if (settings.size() < least)
    throw InvalidInput(key + " holds " + std::to_string(settings.size()) +
                       " setting(s) below the deck's value " + shortest(own) +
                       "; a convergence study needs " + std::to_string(least));
  return settings;
}

}  // namespace quasi
