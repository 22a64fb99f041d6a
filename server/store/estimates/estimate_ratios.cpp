// Begin here: the table of measured over stated memory.

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

void SqliteStore::add_estimate_ratio(const std::string& kind, const std::string& pool,
                                     double ratio) {
  sql("INSERT INTO estimate_ratios (kind, pool, ratio) VALUES (?,?,?)").run(kind, pool, ratio);
  sql("DELETE FROM estimate_ratios WHERE kind=?1 AND pool=?2 AND id <= "
      "(SELECT id FROM estimate_ratios WHERE kind=?1 AND pool=?2 ORDER BY id DESC "
      "LIMIT 1 OFFSET ?3)")
      .run(kind, pool, static_cast<std::int64_t>(kKeptRatios));
}

std::vector<EstimateRatios> SqliteStore::estimate_ratios() {
  std::vector<EstimateRatios> list;
  Rows rows(sql("SELECT kind, pool, ratio FROM estimate_ratios ORDER BY kind, pool, id").bind());
  while (rows.next()) {
    const std::string kind = (*rows).text(0), pool = (*rows).text(1);
    if (list.empty() || list.back().kind != kind || list.back().pool != pool)
      list.push_back({.kind = kind, .pool = pool, .ratios = {}});
    list.back().ratios.push_back((*rows).real(2));
  }
  return list;
}

}  // namespace quasi::server
