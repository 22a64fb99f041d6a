#pragma once

#include <string>
#include <vector>

#include "workers/io/key_notes.hpp"

namespace quasi::test {

/// Begin here: what the parsers of decks and of configurations say about their keys.
/// reference_pages_test.cpp compares it with the tables of docs/reference.
struct ParserKey {
  KeyNote note;
  std::string unit;  ///< "" if neither name nor parser tells it
};

/// Keys that the parser of a kind reads: "thermal", "mosfet" or "gw".
std::vector<ParserKey> keys_of_deck(const std::string& kind);

/// Returns the keys of the server's configuration.
std::vector<ParserKey> keys_of_server();

/// Returns the keys of the worker's configuration.
std::vector<ParserKey> keys_of_worker();

}  // namespace quasi::test
