#include "tests/support/hostile_deck.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>

#include "workers/backend/error.hpp"

namespace quasi::test {
namespace {

constexpr const char* kValues[]{"-1",
                                "0",
                                "1e300",
                                "-1e300",
                                "1e-300",
                                "nan",
                                "inf",
                                "-0.0",
                                "99999999999999999999",
                                "2147483648",
                                "1000000",
                                "0.5",
                                "\"\"",
                                "\"big\"",
                                "[]",
                                "[[]]",
                                "[1, 2, 3, 4, 5]",
                                "{}",
                                "true",
                                "1979-05-27",
                                "0x7fffffffffffffff",
                                "3",
                                "7",
                                ""};

bool is_number_character(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == 'e';
}

/// The offsets of the beginnings of lines.
std::vector<std::size_t> lines_of(const std::string& text) {
  std::vector<std::size_t> starts{0};
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\n') starts.push_back(i + 1);
  return starts;
}

}  // namespace

std::string HostileDeck::spoil(std::string text, std::string* change) {
  change->clear();
  for (std::size_t n = 1 + below(2); n > 0 && !text.empty(); --n)
    text = spoil_once(std::move(text), change);
  return text;
}

std::string HostileDeck::spoil_once(std::string text, std::string* change) {
  const auto starts = lines_of(text);
  const std::size_t line = below(starts.size());
  const std::size_t begin = starts[line];
  std::size_t end = text.find('\n', begin);
  end = end == std::string::npos ? text.size() : end + 1;
  const std::string whole = text.substr(begin, end - begin);
  const std::string at = " at line " + std::to_string(line + 1) + "; ";
  const std::size_t place = begin + below(std::max<std::size_t>(whole.size(), 1));
  switch (below(10)) {
    case 0:
    case 1:
    case 2: {  // another value for a number of the line
      std::vector<std::size_t> numbers;
      for (std::size_t i = begin; i < end; ++i)
        if (std::isdigit(static_cast<unsigned char>(text[i])) &&
            (i == begin || !is_number_character(text[i - 1])))
          numbers.push_back(i);
      if (numbers.empty()) break;
      const std::size_t from = numbers[below(numbers.size())];
      std::size_t to = from;
      while (to < end && is_number_character(text[to])) ++to;
      const std::string value = kValues[below(std::size(kValues))];
      *change += text.substr(from, to - from) + " -> " + value + at;
      return text.replace(from, to - from, value);
    }
    case 3: {  // a misspelt word
      const std::size_t letter = text.find_first_of("abcdefghijklmnopqrstuvwxyz", place);
      if (letter == std::string::npos) break;
      *change += "misspelt" + at;
      text[letter] = static_cast<char>('a' + below(26));
      return text;
    }
    case 4:
      *change += "line removed" + at;
      return text.erase(begin, end - begin);
    case 5:
      *change += "line twice" + at;
      return text.insert(begin, whole);
    case 6: {
      const std::size_t mark = text.find_first_of("[]\"=,.", place);
      if (mark == std::string::npos) break;
      *change += std::string("no '") + text[mark] + "'" + at;
      return text.erase(mark, 1);
    }
    case 7: {
      std::string bytes;
      for (std::size_t n = 1 + below(6); n > 0; --n) bytes += static_cast<char>(below(256));
      *change += "bytes" + at;
      return text.insert(place, bytes);
    }
    case 8:
      *change += "cut short" + at;
      return text.substr(0, place);
    default: {
      const char mark = "[]{}\"'=#&\n,-"[below(12)];
      *change += std::string("a '") + mark + "' more" + at;
      return text.insert(place, std::string(below(8) == 0 ? 3000 : 1, mark));
    }
  }
  *change += "unchanged; ";
  return text;
}

std::string HostileDeck::spoil_bytes(std::string bytes, std::string* change) {
  change->clear();
  for (std::size_t n = 1 + below(2); n > 0 && bytes.size() > 8; --n) {
    const std::size_t most =
        below(3) > 0 ? std::min<std::size_t>(bytes.size(), 1200) : bytes.size();
    const std::size_t place = below(most - 4);
    const std::string at = " at byte " + std::to_string(place) + "; ";
    switch (below(5)) {
      case 0:
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << below(8)));
        *change += "a bit" + at;
        break;
      case 1: {
        constexpr std::int32_t kCounts[]{-1, 0, 1, 2147483647, -2147483647 - 1, 1 << 24, 100'000};
        const std::int32_t count = kCounts[below(std::size(kCounts))];
        std::memcpy(bytes.data() + place / 4 * 4, &count, sizeof count);
        *change += "the number " + std::to_string(count) + at;
        break;
      }
      case 2:
        for (std::size_t i = place; i < std::min(place + 64, bytes.size()); ++i)
          bytes[i] = static_cast<char>(below(256));
        *change += "64 random bytes" + at;
        break;
      case 3:
        bytes.resize(place);
        *change += "cut short" + at;
        break;
      default:
        bytes.erase(place, 1 + below(8));
        *change += "bytes removed" + at;
    }
  }
  return bytes;
}

FuzzTally fuzz(int n_decks, const std::vector<std::string>& names, double most_seconds,
               const std::function<void(int)>& attempt,
               const std::function<std::string()>& described) {
  FuzzTally tally;
  int failures = 0;
  for (int i = 0; i < n_decks && failures < 10; ++i) {
    const auto began = std::chrono::steady_clock::now();
    const std::clock_t cpu_began = std::clock();
    std::string trouble;
    try {
      attempt(i);
      ++tally.accepted;
    } catch (const InvalidInput& refused) {
      ++tally.refused;
      const std::string message = refused.what();
      const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return message.find(name) != std::string::npos;
      });
      if (!named) trouble = "refused without a name: " + message;
    } catch (const std::exception& failure) {
      trouble =
          std::string("ended as no deck may: ") + typeid(failure).name() + ": " + failure.what();
    }
    // The processor time, which other programs on the machine do not stretch; the wall time with
    // several threads.
    const double seconds =
        std::min(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(),
                 static_cast<double>(std::clock() - cpu_began) / CLOCKS_PER_SEC);
    if (trouble.empty() && seconds > most_seconds)
      trouble = "took " + std::to_string(seconds) + " s";
    if (trouble.empty()) continue;
    ++failures;
    ADD_FAILURE() << "deck " << i << ": " << trouble << "\n" << described();
  }
  std::cout << "    " << n_decks << " decks: " << tally.refused << " refused, " << tally.accepted
            << " accepted\n";
  return tally;
}

std::uint64_t fuzz_seed() {
  const char* given = std::getenv("QUASI_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20'261'122;
  std::cout << "    QUASI_SEED=" << seed << '\n';
  return seed;
}

}  // namespace quasi::test
