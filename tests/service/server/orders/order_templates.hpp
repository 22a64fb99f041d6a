#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/wire/chunks.hpp"
#include "quasi/v1/admin_service.grpc.pb.h"

namespace quasi::server::test {

/// The messages that a client sends in one call.
using Messages = std::vector<std::unique_ptr<google::protobuf::Message>>;

/// Makers of sound requests, by the name of the call.
using Templates = std::map<std::string, std::function<Messages()>>;

template <class Request>
Messages one(const Request& request) {
  Messages messages;
  messages.push_back(std::make_unique<Request>(request));
  return messages;
}

/// Puts a worker with the device "cpu" back into service. A spoilt order may have taken it out.
inline void end_orders(const std::shared_ptr<grpc::Channel>& channel, const std::string& worker) {
  const auto admins = v1::AdminService::NewStub(channel);
  v1::DrainWorkerRequest drain;
  drain.set_worker(worker);
  drain.set_end(true);
  grpc::ClientContext of_drain;
  v1::DrainWorkerResponse drained;
  EXPECT_TRUE(admins->DrainWorker(&of_drain, drain, &drained).ok());
  v1::CordonDeviceRequest cordon;
  cordon.set_worker(worker);
  cordon.set_device("cpu");
  cordon.set_end(true);
  grpc::ClientContext of_cordon;
  v1::CordonDeviceResponse cordoned;
  EXPECT_TRUE(admins->CordonDevice(&of_cordon, cordon, &cordoned).ok());
}

/// Adds the orders of operators. Those about workers put them back into service, so that later
/// calls still find one.
/// @param worker  enlists a worker with the device "cpu" and returns its id
/// @param leased_job  returns the id of a job that the worker has
inline void add_order_calls(Templates& all, const std::function<std::string()>& worker,
                            const std::function<std::string()>& leased_job) {
  all["DrainWorker"] = [worker] {
    v1::DrainWorkerRequest request;
    request.set_worker(worker());
    request.set_end(true);
    request.mutable_within()->set_seconds(60);
    request.set_reason("new fan");
    return one(request);
  };
  all["CordonDevice"] = [worker] {
    v1::CordonDeviceRequest request;
    request.set_worker(worker());
    request.set_device("cpu");
    request.set_end(true);
    request.set_evict(true);
    request.set_reason("new fan");
    return one(request);
  };
  all["PreemptJobs"] = [leased_job] {
    v1::PreemptJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_job_ids(leased_job());
    request.set_reason("a talk");
    return one(request);
  };
}

}  // namespace quasi::server::test
