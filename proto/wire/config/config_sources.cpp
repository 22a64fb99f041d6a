#include "proto/wire/config/config_sources.hpp"

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "workers/io/settings.hpp"

namespace quasi::wire {
namespace {

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return text;
}

std::string text_of(double value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string text_of(const toml::node& node, const std::string& key, const std::string& source) {
  if (const auto* list = node.as_array()) {
    std::string text;
    for (const toml::node& item : *list)
      text += (text.empty() ? "" : ",") + text_of(item, key, source);
    return text;
  }
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto whole = node.value_exact<std::int64_t>()) return std::to_string(*whole);
  if (const auto real = node.value_exact<double>()) return text_of(*real);
  throw ConfigProblem(source + ": " + key + " must be a text, a number, true or false");
}

void add_file(const std::string& path, const ConfigSources& sources,
              std::vector<ConfigText>& texts) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    throw ConfigProblem(path + ":" + std::to_string(error.source().begin.line) + ": " +
                        std::string(error.description()));
  }
  for (const auto& [name, node] : table) {
    const std::string key(name.str());
    if (std::find(sources.keys.begin(), sources.keys.end(), key) == sources.keys.end()) {
      const std::string message = unknown_key_message(key, path, sources.keys);
      throw ConfigProblem(message + (message.ends_with('?')
                                         ? ""
                                         : "; " + sources.program + " --help lists the keys"));
    }
    texts.push_back({.key = key, .text = text_of(node, key, path), .source = path});
  }
}

}  // namespace

std::vector<ConfigText> config_texts(const ConfigSources& sources) {
  std::vector<ConfigText> texts;
  // quasi-server reads /etc/quasi/server.toml.
  const std::string usual =
      "/etc/quasi/" + sources.program.substr(sources.program.find('-') + 1) + ".toml";
  if (!sources.file.empty())
    add_file(sources.file, sources, texts);
  else if (std::filesystem::exists(usual))
    add_file(usual, sources, texts);
  for (const std::string& key : sources.keys) {
    const std::string variable = config_variable(sources.program, key);
    if (const char* text = std::getenv(variable.c_str()))
      texts.push_back({.key = key, .text = text, .source = variable});
    if (const auto flag = sources.flags.find(key); flag != sources.flags.end())
      texts.push_back({.key = key, .text = flag->second, .source = config_flag(key)});
  }
  return texts;
}

std::string config_flag(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string config_variable(std::string_view program, std::string_view key) {
  return upper(std::string(program) + "_" + std::string(key));
}

std::string nearest_config_flag(std::string name, const std::vector<std::string>& keys) {
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string nearest = nearest_name(name, keys);
  return nearest.empty() ? "" : config_flag(nearest);
}

std::string config_line(const std::string& key, const std::string& value,
                        const std::map<std::string, std::string>& sources) {
  const auto source = sources.find(key);
  return key + " = " + value + "  # " +
         (source == sources.end() ? std::string("built-in") : source->second) + "\n";
}

}  // namespace quasi::wire
