// Begin here: the table of the orders that keep workers and devices out of service.

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

std::vector<ServiceOrder> SqliteStore::service_orders() {
  return all<ServiceOrder>(
      sql("SELECT worker_id, device_id, evicts, until_ms, since_ms, by_name, reason "
          "FROM service_orders ORDER BY worker_id, device_id")
          .bind(),
      [](const Statement& row) {
        return ServiceOrder{.worker_id = row.text(0),
                            .device_id = row.text(1),
                            .evicts = row.integer(2) != 0,
                            .until_ms = row.integer(3),
                            .since_ms = row.integer(4),
                            .by = row.text(5),
                            .reason = row.text(6)};
      });
}

void SqliteStore::save_service_order(const ServiceOrder& order) {
  sql("INSERT OR REPLACE INTO service_orders VALUES (?,?,?,?,?,?,?)")
      .run(order.worker_id, order.device_id, order.evicts, order.until_ms, order.since_ms, order.by,
           order.reason);
}

void SqliteStore::end_service_order(const std::string& worker_id, const std::string& device_id) {
  sql("DELETE FROM service_orders WHERE worker_id=? AND device_id=?").run(worker_id, device_id);
}

}  // namespace quasi::server
