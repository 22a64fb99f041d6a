#include "proto/wire/action/action.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "proto/wire/digest.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::wire {
namespace {

/// Rises when an engine computes other results from the same deck, so that jobs do not take results
/// of an earlier program.
constexpr std::array<std::pair<std::string_view, int>, 3> kEpochs = {
    {{"gw", 1}, {"mosfet", 1}, {"thermal", 1}}};

int epoch_of(std::string_view kind) {
  for (const auto& [name, epoch] : kEpochs)
    if (name == kind) return epoch;
  return 0;
}

void add_length(Sha256& hash, std::size_t length) {
  std::array<char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(static_cast<std::uint64_t>(length) >> (8 * i));
  hash.update({bytes.data(), bytes.size()});
}

std::string numbered(const char* name, int i) {
  return std::string(name) + std::to_string(i) + "]";
}

}  // namespace

std::vector<ActionField> action_fields(const v1::JobSpec& spec) {
  const v1::DeckWork* deck = deck_of(spec);
  if (deck == nullptr) return {};
  const std::string kind(kind_of(spec));
  std::vector<ActionField> fields = {
      {"kind", kind}, {"epoch", std::to_string(epoch_of(kind))}, {"deck", deck->deck()}};
  for (int i = 0; i < deck->settings_size(); ++i) {
    const std::string setting = numbered("settings[", i);
    fields.push_back({setting + ".key", deck->settings(i).key()});
    fields.push_back({setting + ".value", deck->settings(i).value()});
  }
  for (int i = 0; i < deck->exports_size(); ++i)
    fields.push_back({numbered("exports[", i), deck->exports(i)});
  std::map<std::string, std::string> inputs;
  for (const v1::Input& input : spec.inputs()) inputs[input.slot()] = input.digest();
  for (const auto& [slot, digest] : inputs) fields.push_back({"inputs[" + slot + "]", digest});
  return fields;
}

std::string action_digest(const v1::JobSpec& spec) {
  const std::vector<ActionField> fields = action_fields(spec);
  if (fields.empty()) return "";
  Sha256 hash;
  hash.update("quasi action 1\n");
  for (const ActionField& field : fields) {
    for (const std::string* text : {&field.name, &field.value}) {
      add_length(hash, text->size());
      hash.update(*text);
    }
  }
  return hash.finish_hex();
}

std::vector<ActionDifference> differences(const v1::JobSpec& first, const v1::JobSpec& second) {
  std::vector<std::string> names;
  std::map<std::string, std::pair<std::string, std::string>> values;
  const auto collect = [&](const v1::JobSpec& spec, bool is_second) {
    for (const ActionField& field : action_fields(spec)) {
      const auto [at, is_new] = values.try_emplace(field.name, "absent", "absent");
      if (is_new) names.push_back(field.name);
      (is_second ? at->second.second : at->second.first) = field.value;
    }
  };
  collect(first, false);
  collect(second, true);
  std::vector<ActionDifference> found;
  for (const std::string& name : names) {
    const auto& [one, other] = values[name];
    if (one != other) found.push_back({.name = name, .first = one, .second = other});
  }
  return found;
}

}  // namespace quasi::wire
