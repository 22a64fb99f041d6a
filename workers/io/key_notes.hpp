#pragma once

#include <string>
#include <vector>

namespace quasi {

/// Holds the words of a parser about one key of a deck.
struct KeyNote {
  std::string key;       ///< with its table, e.g. "mesh.nx"
  std::string type;      ///< e.g. "whole number"; "" if the parser does not tell
  std::string fallback;  ///< default as a deck writes it; "" if it follows from other values
  std::string range;     ///< e.g. "1 … 12"; "" if the parser does not tell
};

/// Collects the keys that parsers read in this thread while it exists. The reference pages and
/// their test are made from these notes.
class KeyNotes {
 public:
  KeyNotes();
  ~KeyNotes();
  KeyNotes(const KeyNotes&) = delete;
  KeyNotes& operator=(const KeyNotes&) = delete;

  /// Adds a note to the collection of this thread, if there is one. A further note about a key
  /// fills in its type and its range alone.
  static void add(KeyNote note);

  const std::vector<KeyNote>& notes() const { return notes_; }

 private:
  std::vector<KeyNote> notes_;
  KeyNotes* outer_;
};

/// Returns "low … high" in the shortest digits.
std::string range_text(double low, double high);

/// Returns the words in quotes, separated by commas.
std::string choices_text(const std::vector<std::string>& choices);

}  // namespace quasi
