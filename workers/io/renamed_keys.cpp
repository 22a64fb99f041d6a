#include "workers/io/renamed_keys.hpp"

#include "workers/backend/error.hpp"
#include "workers/io/settings.hpp"

namespace quasi {
namespace {

bool is_setting(const toml::node& node) {
  return node.source().path && node.source().path->starts_with(kSettingOrigin);
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }
std::string_view table_part(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

/// Returns all tables that a dotted path names, or none if a part is absent.
std::vector<toml::table*> tables_at(toml::table& root, std::string_view path) {
  std::vector<toml::table*> tables{&root};
  while (!path.empty()) {
    const auto dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    std::vector<toml::table*> inside;
    for (toml::table* table : tables) {
      toml::node* node = table->get(part);
      if (node == nullptr) continue;
      if (toml::table* one = node->as_table()) inside.push_back(one);
      if (toml::array* list = node->as_array())
        for (toml::node& entry : *list)
          if (toml::table* one = entry.as_table()) inside.push_back(one);
    }
    tables = std::move(inside);
  }
  return tables;
}

/// Returns the table of a new name that lies in another table than the old name. The table is made
/// if it is absent.
toml::table* target_of(toml::table& root, std::string_view path) {
  if (path.empty()) return &root;
  if (!root.contains(path)) root.insert(path, toml::table{});
  return root.get(path)->as_table();
}

}  // namespace

std::vector<std::string> rename_keys(toml::table& root, const std::vector<RenamedKey>& renamed,
                                     const std::string& where) {
  std::vector<std::string> notes;
  for (const RenamedKey& key : renamed) {
    const bool stays = table_part(key.old_name) == table_part(key.new_name);
    bool moved = false;
    for (toml::table* table : tables_at(root, table_part(key.old_name))) {
      toml::node* old = table->get(last_part(key.old_name));
      if (old == nullptr) continue;
      toml::table* target = stays ? table : target_of(root, table_part(key.new_name));
      if (target == nullptr) continue;  // the reader of that key reports that it is not a table
      const toml::node* present = target->get(last_part(key.new_name));
      if (present != nullptr && is_setting(*present) == is_setting(*old))
        throw InvalidInput(where + ": " + std::string(key.old_name) + " is the old name of " +
                           std::string(key.new_name) + ", and both are given; keep the new one");
      if (present == nullptr || is_setting(*old))
        target->insert_or_assign(last_part(key.new_name), std::move(*old));
      table->erase(last_part(key.old_name));
      moved = true;
    }
    if (moved)
      notes.push_back(where + ": the key " + std::string(key.old_name) + " is now called " +
                      std::string(key.new_name) + "; the old name is still read");
  }
  return notes;
}

}  // namespace quasi
