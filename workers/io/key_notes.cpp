#include "workers/io/key_notes.hpp"

#include <algorithm>
#include <utility>

#include "workers/io/table_reader.hpp"

namespace quasi {
namespace {

thread_local KeyNotes* collection = nullptr;

}  // namespace

KeyNotes::KeyNotes() : outer_(std::exchange(collection, this)) {}

KeyNotes::~KeyNotes() { collection = outer_; }

void KeyNotes::add(KeyNote note) {
  if (collection == nullptr) return;
  std::vector<KeyNote>& notes = collection->notes_;
  const auto known = std::find_if(notes.begin(), notes.end(),
                                  [&](const auto& each) { return each.key == note.key; });
  if (known == notes.end()) {
    notes.push_back(std::move(note));
    return;
  }
  if (known->type.empty()) known->type = note.type;
  if (known->range.empty()) known->range = note.range;
}

std::string range_text(double low, double high) { return shown(low) + " … " + shown(high); }

std::string choices_text(const std::vector<std::string>& choices) {
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "\"" : ", \"") + choice + '"';
  return list;
}

}  // namespace quasi
