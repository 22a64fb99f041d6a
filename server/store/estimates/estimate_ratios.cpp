// Begin here: the table of measured over stated memory and time.

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

void SqliteStore::add_estimate_ratio(Quantity quantity, const std::string& kind,
                                     const std::string& pool, double ratio) {
  sql("INSERT INTO estimate_ratios (quantity, kind, pool, ratio) VALUES (?,?,?,?)")
      .run(quantity, kind, pool, ratio);
  sql("DELETE FROM estimate_ratios WHERE quantity=?1 AND kind=?2 AND pool=?3 AND id <= "
      "(SELECT id FROM estimate_ratios WHERE quantity=?1 AND kind=?2 AND pool=?3 "
      "ORDER BY id DESC LIMIT 1 OFFSET ?4)")
      .run(quantity, kind, pool, static_cast<std::int64_t>(kKeptRatios));
}

EstimateRatios SqliteStore::estimate_ratios_of(Quantity quantity, const std::string& kind,
                                               const std::string& pool) {
  EstimateRatios measured{.quantity = quantity, .kind = kind, .pool = pool, .ratios = {}};
  Rows rows(sql("SELECT ratio FROM estimate_ratios WHERE quantity=? AND kind=? AND pool=? "
                "ORDER BY id")
                .bind(quantity, kind, pool));
  while (rows.next()) measured.ratios.push_back(rows->real(0));
  return measured;
}

std::vector<EstimateRatios> SqliteStore::estimate_ratios() {
  std::vector<EstimateRatios> list;
  Rows rows(sql("SELECT quantity, kind, pool, ratio FROM estimate_ratios "
                "ORDER BY quantity, kind, pool, id")
                .bind());
  while (rows.next()) {
    const auto quantity = static_cast<Quantity>(rows->small(0));
    const std::string kind = rows->text(1), pool = rows->text(2);
    if (list.empty() || list.back().quantity != quantity || list.back().kind != kind ||
        list.back().pool != pool)
      list.push_back({.quantity = quantity, .kind = kind, .pool = pool, .ratios = {}});
    list.back().ratios.push_back(rows->real(3));
  }
  return list;
}

}  // namespace quasi::server
